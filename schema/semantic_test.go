package schema

import (
	"strings"
	"testing"
	"time"
)

// wholeSite is valid; the tests change one line of it.
const wholeSite = `
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "vault" {
    url = "https://vault.example.net"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute"]
  }
  ironic "a" {
    cloud               = "x"
    device_classes      = ["COMPUTE_GPU", "COMPUTE_CPU"]
    timeout             = "1m"
    cleaning_deadline   = "3h"
    inspection_deadline = "1h"
    node_lock {
      max_wait = "15m"
      backoff  = ["10s", "60s"]
    }
  }
  dhcp {
    host             = "192.0.2.2"
    user             = "enroll"
    identity_file    = "id"
    known_hosts_file = "known_hosts"
    service          = "dnsmasq"
    directory        = "/etc/dnsmasq.d/enroll"
    subnets          = ["192.0.2.0/24"]
  }
  bmc {
    credential = secret("bmc-${device.name}", "password")
    ntp {
      servers   = ["ntp1.example.net"]
      time_zone = "Europe/London"
    }
    idrac {
      restrict_boot = true
    }
    bios "DELLPOWEREDGEXE9680" {
      attributes = { BootMode = "Uefi" }
    }
  }
  limits {
    reboots          = 4
    reboots_per_rack = 2
  }
  owned_nodes {
    release = ["bmc.ntp"]
  }
  tolerate "x" {
    address = "*/bmc.bios"
    path    = "SerialRedirect"
    reason  = "why"
    until   = "2027-01-31"
  }
}
`

// TestSemantics: what single attributes cannot say. Each change makes exactly one
// mistake.
func TestSemantics(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	check := func(src string) Diagnostics {
		_, ds := load(src, Options{Now: now})
		return ds
	}
	if ds := check(wholeSite); len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	long := strings.Repeat("A", 129)
	for _, c := range []struct{ name, old, new, says string }{
		{"overlapping device classes", `roles = ["compute"]`, `roles = ["compute", "gpu-compute"]`, `already belongs to device_class "COMPUTE_GPU"`},
		{"class with no Ironic", `["COMPUTE_GPU", "COMPUTE_CPU"]`, `["COMPUTE_GPU"]`, `No ironic block lists the device class "COMPUTE_CPU"`},
		{"no usable host", `["192.0.2.0/24"]`, `["192.0.2.1/32"]`, "no usable host address"},
		{"no usable host in a link", `["192.0.2.0/24"]`, `["192.0.2.0/31"]`, "no usable host address"},
		{"no usable host in a group", `["192.0.2.0/24"]`, `["224.0.0.0/8"]`, "no usable host address"},
		{"backoff above its budget", `["10s", "60s"]`, `["10s", "20m"]`, "The longest pause (20m) is longer than the budget of all pauses together, max_wait (15m)"},
		{"budget below the default backoff", "max_wait = \"15m\"\n      backoff  = [\"10s\", \"60s\"]", "max_wait = \"5s\"", ""},
		{"timeout above a deadline", `timeout             = "1m"`, `timeout             = "1h"` + "\n    attempts = 2", ""},
		{"timeout above the deadline", `inspection_deadline = "1h"`, `inspection_deadline = "30s"`, "One request may take longer (timeout, 1m) than all of it (inspection_deadline, 30s)"},
		{"backoff turned round", `["10s", "60s"]`, `["60s", "10s"]`, "the smaller one first"},
		{"unknown time zone", `"Europe/London"`, `"Europe/Lundon"`, "is no time zone of the IANA database"},
		{"abbreviated time zone", `"Europe/London"`, `"Local"`, "must be the IANA name"},
		{"restrict_boot that cannot be", "idrac {\n", "xcc {\n", `cannot be switched off one by one in the family "xcc"`},
		{"restrict_boot on Supermicro", "idrac {\n", "supermicro {\n", `in the family "supermicro"`},
		{"restrict_boot on others", "idrac {\n", "generic {\n", `in the family "generic"`},
		{"endpoint and cloud", `cloud               = "x"`, "cloud = \"x\"\n    endpoint = \"http://x\"", `"cloud" and "endpoint" say the same thing twice`},
		{"directory that is not absolute", `"/etc/dnsmasq.d/enroll"`, `"etc/dnsmasq.d/enroll"`, "must be an absolute path"},
		{"NTP server", `["ntp1.example.net"]`, `["ntp1_example"]`, "must be a host name or an IP address"},
		{"NTP server that is nearly an address", `["ntp1.example.net"]`, `["192.0.2.300"]`, "looks like an IP address and is none"},
		{"platform class too long", "DELLPOWEREDGEXE9680", long, "longer than 128 characters"},
		{"platform class in another form", "DELLPOWEREDGEXE9680", "Dell PowerEdge", "manufacturer and model in upper case"},
		{"password in a bios block", `BootMode = "Uefi"`, `SetupPassword = "hunter2secret"`, "has a password in it"},
		{"until without an end", `"2027-01-31"`, `"2126-01-31"`, "more than 3 years away"},
		{"until in the past", `"2027-01-31"`, `"2026-01-31"`, "2026-01-31"},
		{"rack above site", `reboots_per_rack = 2`, `reboots_per_rack = 5`, "larger than reboots (4), so it limits nothing"},
		{"release of what reboots", `["bmc.ntp"]`, `["bmc.bios"]`, `"release" must be`},
		{"control of dnsmasq", `service          = "dnsmasq"`, "service = \"dnsmasq\"\n    control = \"127.0.0.1:8000\"", "Kea alone takes commands"},
		{"option of dnsmasq", `service          = "dnsmasq"`, "service = \"dnsmasq\"\n    option \"ntp-servers\" {\n      value = \"192.0.2.1\"\n    }", "dnsmasq takes no option"},
		{"DHCPv6 of dnsmasq", `service          = "dnsmasq"`, "service = \"dnsmasq\"\n    family = \"ipv6\"", "DHCPv6 is served"},
		{"reload of ISC", `service          = "dnsmasq"`, "service = \"isc\"\n    apply = \"reload\"", "dhcpd cannot reload"},
		{"option that ends its statement", `service          = "dnsmasq"`, "service = \"isc\"\n    option \"x\" {\n      value = \"1; } host y {\"\n    }", "close its quotes"},
		{"control channel nowhere", `service          = "dnsmasq"`, "service = \"kea\"\n    control = \"somewhere\"", "HOST:PORT"},
		{"lockout without a limit", "    idrac {\n", "    security {\n      lockout_duration = \"1m\"\n    }\n    idrac {\n", "lockout_duration needs lockout_attempts"},
		{"lockout that never is", "    idrac {\n", "    security {\n      lockout_attempts = 0\n      lockout_duration = \"1m\"\n    }\n    idrac {\n", "which never locks out"},
		{"monitoring without a password", "    idrac {\n", "    monitoring_username = secret(\"m\", \"u\")\n    idrac {\n", "account without a password"},
		{"NTP twice", "    idrac {\n", "    ntp_servers = [\"ntp1.example.net\"]\n    idrac {\n", `"ntp_servers" and "ntp.servers" say the same thing twice`},
		{"CA twice", "    idrac {\n", "    ca_file = \"a\"\n    tls {\n      ca_file = \"b\"\n    }\n    idrac {\n", `"ca_file" and "tls.ca_file" say the same thing twice`},
		{"insecure without a reason", "    idrac {\n", "    tls {\n      insecure = true\n    }\n    idrac {\n", "wants a reason"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(wholeSite, c.old) {
				t.Fatalf("%q is not in the site", c.old)
			}
			ds := check(strings.Replace(wholeSite, c.old, c.new, 1))
			if c.says == "" {
				if len(ds) > 0 {
					t.Error(text(t, ds))
				}
				return
			}
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if len(ds) != 1 || !strings.Contains(said, c.says) || strings.Contains(said, "hunter2") {
				t.Errorf("%d mistakes, want one with %q: %s", len(ds), c.says, said)
			}
		})
	}
}

// TestDefaultsFollow: a default never contradicts what is written.
func TestDefaultsFollow(t *testing.T) {
	type of struct {
		Reboots, PerRack           int
		Wait, First, Longest       time.Duration
		Timeout, Cleaning, Inspect time.Duration
	}
	defaults := of{5, 2, 15 * time.Minute, 10 * time.Second, time.Minute, time.Minute, 3 * time.Hour, time.Hour}
	for _, c := range []struct {
		name, limits, ironic string
		change               func(*of)
	}{
		{"nothing", "", "", func(*of) {}},
		{"fewer of the site", "reboots = 1", "", func(w *of) { w.Reboots, w.PerRack = 1, 1 }},
		{"more of a rack", "reboots_per_rack = 9", "", func(w *of) { w.Reboots, w.PerRack = 9, 9 }},
		{"both", "reboots = 9\n reboots_per_rack = 9", "", func(w *of) { w.Reboots, w.PerRack = 9, 9 }},
		{"short budget", "", "node_lock {\n max_wait = \"5s\"\n}", func(w *of) { w.Wait, w.First, w.Longest = 5*time.Second, 5*time.Second, 5*time.Second }},
		{"budget between the pauses", "", "node_lock {\n max_wait = \"30s\"\n}", func(w *of) { w.Wait, w.Longest = 30*time.Second, 30*time.Second }},
		{"long pause", "", "node_lock {\n backoff = [\"1m\", \"20m\"]\n}", func(w *of) { w.Wait, w.First, w.Longest = 20*time.Minute, time.Minute, 20*time.Minute }},
		{"short deadline", "", "cleaning_deadline = \"30s\"", func(w *of) { w.Timeout, w.Cleaning = 30*time.Second, 30*time.Second }},
		{"long timeout", "", "timeout = \"1h\"\n cleaning_deadline = \"1h\"", func(w *of) { w.Timeout, w.Cleaning = time.Hour, time.Hour }},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := minimal("", "  limits {\n "+c.limits+"\n}\n  ironic \"x\" {\n cloud = \"x\"\n device_classes = [\"COMPUTE_GPU\"]\n "+c.ironic+"\n}\n")
			file, ds := load(site, Options{})
			if file == nil {
				t.Fatal(text(t, ds))
			}
			want := defaults
			c.change(&want)
			l, i := file.Site().Limits, file.Site().Ironics[0]
			if got := (of{l.Reboots, l.RebootsPerRack, i.LockMaxWait, i.LockBackoffMin, i.LockBackoffMax, i.Timeout, i.CleaningDeadline, i.InspectDeadline}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestAlwaysAnIronic: without one no device can be planned, whatever is switched
// off, so it is said before.
func TestAlwaysAnIronic(t *testing.T) {
	whole := minimal("", "")
	before, _, _ := strings.Cut(whole, "  ironic \"x\"")
	if _, ds := load(before+"}\n", Options{}); len(ds) != 1 || !strings.Contains(ds[0].Detail, `needs a block "ironic"`) {
		t.Error(text(t, ds))
	}
	if _, ds := load(strings.Replace(whole, `["COMPUTE_GPU"]`, `["COMPUTE_GPUU"]`, 1), Options{}); len(ds) != 1 || ds[0].Suggestion != "COMPUTE_GPU" {
		t.Error(text(t, ds))
	}
	more := strings.Replace(whole, "  ironic_enrol", "  device_class \"OTHER\" {\n    roles = [\"other\"]\n  }\n  ironic_enrol", 1)
	if _, ds := load(more, Options{}); len(ds) != 1 || !strings.Contains(ds[0].Detail, `No ironic block lists the device class "OTHER"`) {
		t.Error(text(t, ds))
	}
}
