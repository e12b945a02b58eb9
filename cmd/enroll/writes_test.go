package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// sends is one request that a step may send: its method, its path, and what each
// member of its body may be, written MEMBER.MEMBER=VALUE. All are regular
// expressions for the whole text; {key} stands for the address's, {device} for its
// device or those that a shared step serves, and {after} for every MEMBER=VALUE that
// the step wants.
type sends struct{ method, path, members string }

// swept are the files of uploads, which nobody reads by these names.
const swept = `/etc/dnsmasq\.d/enroll-hosts/\..+\.enroll-[0-9a-f]{16}`

// everyWrite is what the steps of each kind may send, beside reading. A kind that is
// not here may send nothing.
func everyWrite() map[string][]sends {
	const (
		manager  = `/redfish/v1/Managers/[^/]+`
		system   = `/redfish/v1/Systems/[^/]+`
		dell     = manager + `/Oem/Dell/DellAttributes/iDRAC\.Embedded\.1`
		node     = `/v1/nodes/[0-9a-f-]{36}`
		device   = `/api/dcim/devices/[0-9]+/`
		changed  = `changelog_message=enroll plan .*`
		entries  = `/etc/dnsmasq\.d/enroll-hosts/`
		temp     = `(\.enroll-[0-9a-f]+)?`
		anything = `[^=]*=.*`
	)
	sftp := `sftp\.(open|write|fsetstat|rename|posix-rename|hardlink|remove|mkdir|rmdir)`
	// What a broken upload left in part is swept by whichever step comes next.
	shared := []sends{{sftp, entries + `\.enroll-(lock|pending)` + temp, ``}, {`sftp\.(remove|rmdir)`, swept, ``}}
	reset := sends{"POST", system + `/Actions/ComputerSystem\.Reset`, `ResetType=(GracefulRestart|ForceRestart|On|PowerCycle)`}
	jobs := []sends{
		{"POST", manager + `/Oem/Dell/Jobs`, `TargetSettingsURI=` + system + `/Bios/Settings`},
		{"POST", manager + `/Oem/Dell/DellJobService/Actions/DellJobService\.DeleteJobQueue`, `JobID=JID_[0-9]+`},
	}
	idrac := func(attributes string) sends { return sends{"PATCH", dell, `Attributes\.` + attributes + `=.*`} }
	provision := func(targets string) sends {
		return sends{"PUT", node + `/states/provision`, `target=(` + targets + `)`}
	}
	maintenance := []sends{{"PUT", node + `/maintenance`, `reason=.*`}, {"DELETE", node + `/maintenance`, ``}}
	account := `/redfish/v1/(AccountService/Accounts|Managers/[^/]+/Accounts)(/[^/]+)?`
	protocols := manager + `/NetworkProtocol`
	return map[string][]sends{
		"netbox.platform_class": {{"PATCH", device, `custom_fields\.platform_class=.*|` + changed}},
		"netbox.status":         {{"PATCH", device, `status=active|` + changed}},
		"netbox.tag":            {{"PATCH", device, `add_tags=\[map\[slug:{key}\]\]|` + changed}},

		// What an entry replaces is kept beside it until the service is proved.
		"dhcp.reservation": append(slices.Clone(shared), sends{sftp, entries + `(\.{device}-bmc\.enroll-([0-9a-f]+|old)|{device}-bmc)`, ``}),
		"dhcp.service": append(slices.Clone(shared), sends{sftp, entries + `(\.{device}-bmc\.enroll-([0-9a-f]+|old)|{device}-bmc)`, ``},
			sends{`ssh\.exec`, `(?s).*sudo -n /usr/bin/systemctl (reload|restart) dnsmasq;.*`, ``}),

		"bmc.hostname": {{"PATCH", manager + `/EthernetInterfaces/[^/]+(/SD)?`, `HostName={device}`}, idrac(`NIC\.1\.DNSRacName`)},
		"bmc.network":  {{"PATCH", manager + `/EthernetInterfaces/[^/]+(/SD)?`, `DHCPv4\.DHCPEnabled=true`}, idrac(`IPv4\.1\.DHCPEnable`)},
		"bmc.ntp":      {{"PATCH", protocols + `(/SD)?`, `NTP\.(ProtocolEnabled|NTPServers)=.*`}, idrac(`NTPConfigGroup\.1\.NTP(Enable|[1-3])`)},
		"bmc.time_zone": {
			{"PATCH", manager, `(TimeZoneName=(UTC|\(UTC\+00:00\) Coordinated Universal Time)|DateTimeLocalOffset=\+00:00|AutoDSTEnabled=false)`},
			idrac(`Time\.1\.Timezone`),
		},
		"bmc.syslog": {
			{"PATCH", manager + `/Oem/Supermicro/Syslog`, `(EnableSyslog|SyslogServer|SyslogPortNumber)=.*`}, idrac(`SysLog\.1\.(SysLogEnable|Server[1-4]|Port)`),
			{"POST", manager + `/Oem/Lenovo/Recipients`, `Id=.*|RecipientSettings\..*`}, {"PATCH", manager + `/Oem/Lenovo/Recipients/[^/]+`, `RecipientSettings\.(Address|Enabledstate)=.*`},
			{"DELETE", manager + `/Oem/Lenovo/Recipients/[^/]+`, ``},
		},
		"bmc.virtual_media": {{"POST", manager + `/Actions/Oem/AMIVirtualMedia\.EnableRMedia`, `RMediaState=(Enable|Disable)`}},
		"bmc.bios":          append([]sends{reset, {"PATCH", system + `/Bios/(Settings|SD|Pending)`, `{after}`}}, jobs...),
		"bmc.boot_order": append([]sends{reset,
			{"PATCH", system + `/BootOptions/[^/]+(/SD)?`, `BootOptionEnabled=(true|false)`}, {"PATCH", system + `(/Settings|/SD)?`, `Boot\.BootOrder=.*`},
			{"PATCH", system + `/Oem/Lenovo/BootSettings/[^/]+`, `BootOrderNext=.*`}}, jobs...),
		"bmc.ipmi_user": {{"(POST|PATCH)", account, `(UserName|Password|RoleId|Enabled|AccountTypes)=.*`}, idrac(`Users\.[0-9]+\.IpmiLanPrivilege`)},
		"bmc.ipmi_lan":  {{"PATCH", protocols + `(/SD)?`, `IPMI\.ProtocolEnabled=true`}, idrac(`IPMILan\.1\.Enable`)},
		"bmc.security": {
			{"PATCH", protocols + `(/SD)?`, `(HTTP|HTTPS|SSH|Telnet|SNMP|SSDP|IPMI|Oem)\..*`}, {"PATCH", `/redfish/v1/AccountService`, `AccountLockout[A-Za-z]+=.*`},
			{"PATCH", manager + `/Oem/Supermicro/SysLockdown`, `SysLockdownEnabled=(true|false)`},
			idrac(`(WebServer|SSH|Telnet|VNCServer|SNMP|IPBlocking|Lockdown)\.1\.[A-Za-z]+`),
		},
		"bmc.reset": {
			{"POST", manager + `/Actions/Manager\.Reset`, `ResetType=(GracefulRestart|ForceRestart)`},
			{"POST", manager + `/Oem/Dell/DellLCService/Actions/DellLCService\.GetRemoteServicesAPIStatus`, `=map\[\]`}, // a question
		},

		"ironic.node":       {{"POST", `/v1/nodes`, `name={device}|driver=.*|resource_class=.*|[a-z]+_interface=.*|(driver_info|properties|extra)[.=].*`}},
		"ironic.port":       {{"POST", `/v1/ports`, `(address|node_uuid|pxe_enabled|portgroup_uuid|physical_network)=.*|local_link_connection\..*`}, {"PATCH", `/v1/ports/[0-9a-f-]{36}`, `add /local_link_connection`}},
		"ironic.portgroup":  {{"POST", `/v1/portgroups`, `(name={device}-bond|(node_uuid|address|mode)=.*|properties[.=].*)`}},
		"ironic.credential": {{"PATCH", node, `add /(driver_info/[a-z]+_(username|password)|extra/enroll)`}},
		// manage puts right what an earlier attempt left in a failed state, which needs the
		// node out of maintenance for that long.
		"ironic.provision[manage]":  append([]sends{provision("manage")}, maintenance...),
		"ironic.provision[inspect]": append([]sends{provision("inspect|manage")}, maintenance...),
		"ironic.provision[provide]": append([]sends{provision("provide|manage")}, maintenance...),
		"ironic.maintenance":        {maintenance[1]},
		"ironic.trait":              {{"PUT", node + `/traits/{key}`, ``}},
		"ironic.raid_interface":     {{"PATCH", node, `add /raid_interface`}},
		"ironic.raid_config":        {{"PUT", node + `/states/raid`, anything}},
		"ironic.root_device":        {{"PATCH", node, `(add|remove) /properties/root_device`}},
		"ironic.power":              {{"PUT", node + `/states/power`, `target=power on`}},
	}
}

// Every kind whose steps may write has its row, and no row is of a kind that is gone.
func TestEveryKindSaysWhatItSends(t *testing.T) {
	// Kinds that the worlds of this file do not have: a password is replaced by a step
	// of its own test, dnsmasq has no list of files, and these only look.
	without := []string{"bmc.credential", "bmc.link", "check.ipmi", "check.link", "dhcp.index", "dhcp.stale", "ironic.driver", "check.inspection", "check.lldp"}
	rows, known := map[string]bool{}, map[string]bool{}
	for name := range everyWrite() {
		kind, _, _ := strings.Cut(name, "[")
		rows[kind] = true
	}
	for _, k := range slices.Concat(netbox.Kinds(), dhcp.Kinds(), bmc.Kinds(), ironic.Kinds()) {
		if !rows[k.Name] && !slices.Contains(without, k.Name) {
			t.Errorf("nobody says what %s sends", k.Name)
		}
		known[k.Name] = true
	}
	for name := range rows {
		if known[name] {
			continue
		}
		t.Errorf("there is no kind %s", name)
	}
}

// may reports whether a step may send a request.
func may(s *plan.Step, r exchange.Record) bool {
	name := s.Address.KindName()
	rows := append(slices.Clone(everyWrite()[name]), everyWrite()[name+"["+s.Address.Key+"]"]...)
	devices := s.Serves
	if s.Address.Device != "" {
		devices = []string{s.Address.Device}
	}
	fill := strings.NewReplacer("{key}", regexp.QuoteMeta(s.Address.Key), "{device}", anyOf(devices), "{after}", anyOf(members(plan.ToJSON(s.After))))
	whole := func(pattern, text string) bool {
		return regexp.MustCompile(`^(?:` + fill.Replace(pattern) + `)$`).MatchString(text)
	}
	path := r.Path
	if strings.HasPrefix(path, "/") {
		path, _, _ = strings.Cut(path, "?")
	}
	return slices.ContainsFunc(rows, func(w sends) bool {
		return whole(w.method, r.Method) && whole(w.path, path) &&
			!slices.ContainsFunc(members(r.Body), func(m string) bool { return !whole(w.members, m) })
	})
}

// anyOf is the expression for one of some texts.
func anyOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}

// members are a body's members, a JSON Patch's by what each operation does.
func members(body []byte) []string {
	if len(strings.TrimSpace(string(body))) == 0 {
		return nil
	}
	var patch []struct{ Op, Path string }
	if json.Unmarshal(body, &patch) == nil {
		var out []string
		for _, p := range patch {
			out = append(out, p.Op+" "+p.Path)
		}
		return out
	}
	var document any
	if json.Unmarshal(body, &document) != nil {
		return []string{"no JSON"}
	}
	return leaves("", document)
}

func leaves(at string, v any) []string {
	node, ok := v.(map[string]any)
	if !ok || len(node) == 0 {
		return []string{fmt.Sprintf("%s=%v", at, v)}
	}
	var out []string
	for name, inner := range node {
		out = append(out, leaves(strings.TrimPrefix(at+"."+name, "."), inner)...)
	}
	return out
}

// witness looks at every request that writes, before its system does: some step of
// the plan has to be under way, as the journal has it on disk, that may send it.
type witness struct {
	e      *estate
	mu     sync.Mutex
	plan   *plan.Plan
	seen   int
	kinds  map[string]bool // whose requests were seen
	breach []string
}

func watch(e *estate) *witness {
	w := &witness{e: e, kinds: map[string]bool{}}
	e.lab.Recorder.Before(w.look)
	return w
}

// approve says which plan is applied from now on.
func (w *witness) approve(p *plan.Plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = p
}

func (w *witness) look(r exchange.Record) {
	if !r.Mutating || r.System == "vault" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if r.System == "dhcp" && regexp.MustCompile("^"+swept+"$").MatchString(r.Path) && (r.Method == "sftp.remove" || r.Method == "sftp.rmdir") {
		r.Device = ""
	}
	var under []string
	past := apply.Past{}
	if w.plan != nil {
		var err error
		if past, err = apply.ReadJournal(filepath.Join(w.e.state(), "enroll", "journal"), w.plan.PlanID); err != nil {
			w.breach = append(w.breach, err.Error())
		}
		for _, s := range w.plan.Steps {
			if s.Blocked != nil || !s.Action.Mutates() || !slices.ContainsFunc(past.Steps, func(p apply.PastStep) bool { return p.ID == s.ID && !p.Began.IsZero() && p.State == "" }) {
				continue
			}
			under = append(under, s.Address.String())
			if (r.Device == "" || s.Address.Device == "" || r.Device == s.Address.Device) && may(s, r) {
				w.kinds[s.Address.KindName()] = true
				return
			}
		}
	}
	// What the run itself took goes back when it ends.
	if strings.HasSuffix(r.Path, "/.enroll-lock") && r.Method == "sftp.remove" && slices.ContainsFunc(past.Steps, func(p apply.PastStep) bool { return !p.Began.IsZero() && strings.Contains(p.Address, "/dhcp.") }) {
		return
	}
	w.breach = append(w.breach, fmt.Sprintf("%s %s %.300s %.300s of %q while under way: %v", r.System, r.Method, r.Path, r.Body, r.Device, under))
}

// check fails the test for what no step covers.
func (w *witness) check(t testing.TB, when string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.breach {
		t.Errorf("%s: no step of the plan covers %s", when, b)
	}
	w.breach = nil
}

// apply plans devices into a file and applies that, as two people do.
func (w *witness) apply(flags ...string) ran {
	w.e.t.Helper()
	w.e.runs++
	file := filepath.Join(w.e.dir, fmt.Sprintf("%d.plan", w.e.runs))
	w.approve(nil)
	if r := w.e.run(append([]string{"plan", "--all", "--out", file}, flags...)...); r.code != exitDone {
		return r
	}
	p, err := readPlan(file)
	if err != nil {
		w.e.t.Fatal(err)
	}
	if !p.HasWork() {
		return ran{}
	}
	w.approve(p)
	r := w.e.apply(file)
	w.approve(nil)
	return r
}

// world is how an estate is and what happens to it.
type world struct {
	families  []int
	static    bool  // BMCs do not ask DHCP
	monitored bool  // by an account of its own
	context   bool  // NetBox says more than it has to
	cleaning  bool  // fails once
	mishap    int   // what goes wrong
	at        int   // …at this exchange
	drifts    []int // what somebody changes when all is enrolled
	reopened  bool  // …and takes the node back and changes it
	forced    bool  // a restart of the BMC
}

func worlds() *rapid.Generator[world] {
	return rapid.Custom(func(t *rapid.T) world {
		return world{
			families: rapid.SliceOfNDistinct(rapid.IntRange(0, len(families())-1), 1, 2, rapid.ID[int]).Draw(t, "families"),
			static:   rapid.Bool().Draw(t, "static"), reopened: rapid.Bool().Draw(t, "reopened"),
			monitored: rapid.Bool().Draw(t, "monitored"), context: rapid.Bool().Draw(t, "context"),
			drifts: rapid.SliceOfNDistinct(rapid.IntRange(0, len(drifts())-1), 0, len(drifts()), rapid.ID[int]).Draw(t, "drifts"),
			forced: rapid.Bool().Draw(t, "forced"), cleaning: rapid.Bool().Draw(t, "cleaning"),
			mishap: rapid.IntRange(0, len(mishaps())-2).Draw(t, "mishap"), // no stall: it passes in real time
			at:     rapid.IntRange(1, 400).Draw(t, "at"),
		}
	})
}

// Less than planned only: whatever the world is and whatever goes wrong, each request
// that writes is one that a step of the approved plan may send, with what that step
// wants, while the step stands in the journal as begun.
func TestEveryWriteIsOneOfAStep(t *testing.T) {
	const all = 600
	var mu sync.Mutex
	kinds := map[string]bool{}
	tried := 0
	t.Run("worlds", func(t *testing.T) {
		for seed := range sweep.Points(t, all, 100) {
			tried++
			w := worlds().Example(seed)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				t.Logf("%+v", w)
				seen := observed(t, w)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(kinds, seen)
			})
		}
	})
	for name := range everyWrite() {
		if kind, _, _ := strings.Cut(name, "["); !kinds[kind] && tried == all {
			t.Errorf("no world has a write of %s", kind)
		}
	}
}

func observed(t *testing.T, w world) map[string]bool {
	t.Helper()
	var of []family
	for _, i := range w.families {
		of = append(of, families()[i])
	}
	e := newEstateOf(t, len(of), func(m *bmctest.Machine) { m.StaticIP = w.static }, of...)
	e.furnish(w)
	eye := watch(e)
	mishap := mishaps()[w.mishap]
	mishap.At = w.at
	e.lab.Recorder.Reset()
	e.lab.Recorder.Inject(&mishap)
	if w.cleaning { // once there is a node
		e.lab.Recorder.Before(func(r exchange.Record) {
			if _, ok := e.lab.Ironic.Node("gpu-001"); ok && strings.Contains(string(r.Body), `"provide"`) {
				e.lab.Ironic.FailCleaning("gpu-001", "step erase_devices_metadata failed")
			}
			eye.look(r)
		})
	}
	first := eye.apply()
	eye.check(t, "the first run")
	e.lab.Recorder.Reset()
	if w.cleaning {
		if _, ok := e.lab.Ironic.Node("gpu-001"); ok {
			e.lab.Ironic.FailCleaning("gpu-001", "")
		}
		e.lab.Recorder.Before(eye.look)
	}
	e.clock.pass(61 * time.Minute) // a password that a BMC refused is not tried again in the first hour
	second := eye.apply()
	eye.check(t, "the run after it")
	if second.code != exitDone {
		t.Fatalf("exit %d, then %d\n%s", first.code, second.code, second.text)
	}
	for _, i := range w.drifts {
		drifts()[i].does(e.lab)
	}
	var flags []string
	if w.reopened {
		for _, h := range e.lab.Hosts {
			for field, value := range map[string]any{
				"provision_state": string(plan.StateManageable), "maintenance": true, "maintenance_reason": "a person looked at it", "raid_interface": "fake",
				"properties": map[string]any{"root_device": map[string]any{"wwn": "0x1"}}, "traits": []any{},
			} {
				e.lab.Ironic.Set(h.Name, field, value)
			}
		}
		flags = append(flags, "--clear-maintenance", "--rewrite-credentials")
	}
	if w.forced {
		flags = append(flags, "--force-bmc-restart")
	}
	third := eye.apply(flags...)
	eye.check(t, "the run after the drift")
	if third.code != exitDone {
		t.Errorf("after the drift: exit %d\n%s", third.code, third.text)
	}
	if eye.seen == 0 {
		t.Error("nothing was written")
	}
	return eye.kinds
}

// furnish gives the site and the records what a world has beside the usual.
func (e *estate) furnish(w world) {
	e.t.Helper()
	if w.monitored {
		e.lab.Vault.Put("ipmi_exporter", map[string]string{"username": "monitor", "password": "Monitor-5-Password"})
		replaceIn(e.t, e.site(), "    restrict_boot = true\n", "    restrict_boot = true\n    monitoring = secret(\"ipmi_exporter\", \"password\")\n    ntp {\n      time_zone = \"UTC\"\n    }\n    ami {\n      virtual_media = true\n    }\n")
	}
	if !w.context {
		return
	}
	replaceIn(e.t, e.site(), "    device_classes = [\"COMPUTE_GPU\"]\n", "    device_classes = [\"COMPUTE_GPU\"]\n    scheduler_trait = \"HW_ARCH_X86_64\"\n")
	for _, h := range e.lab.Hosts {
		e.lab.NetBox.Update(h.Name, func(d *netboxtest.Device) {
			settings := maps.Clone(d.Context["ironic_settings"].(map[string]any))
			settings["raid_interface"] = "agent"
			settings["target_raid_config"] = map[string]any{"logical_disks": []any{map[string]any{"controller": "software", "raid_level": "1", "size_gb": "MAX"}}}
			settings["root_device"] = map[string]any{"serial": "S7X0A1"}
			settings["bond"] = map[string]any{"mode": "802.3ad"}
			d.Context = map[string]any{"ironic_settings": settings}
		})
	}
}

// The witness sees what no step covers: another system's request, another device's,
// another value than the planned one, one before the step began.
func TestAWriteOfNoStepIsSeen(t *testing.T) {
	step := func(address string, after map[string]plan.Value) *plan.Step {
		at, err := plan.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		return &plan.Step{Address: at, Action: plan.ActionUpdate, After: plan.Obj(map[string]plan.Value{"Attributes": plan.Obj(after)})}
	}
	bios := step("lab/gpu-001/bmc.bios", map[string]plan.Value{"Sriov": plan.Str("Enabled")})
	const settings = "/redfish/v1/Systems/1/Bios/Settings"
	for _, c := range []struct {
		step *plan.Step
		sent exchange.Record
		may  bool
	}{
		{bios, exchange.Record{Method: "PATCH", Path: settings, Body: []byte(`{"Attributes":{"Sriov":"Enabled"}}`)}, true},
		{bios, exchange.Record{Method: "PATCH", Path: settings, Body: []byte(`{"Attributes":{"Sriov":"Disabled"}}`)}, false},
		{bios, exchange.Record{Method: "PATCH", Path: settings, Body: []byte(`{"Attributes":{"Sriov":"Enabled","BootMode":"Uefi"}}`)}, false},
		{bios, exchange.Record{Method: "POST", Path: "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Body: []byte(`{"ResetType":"ForceOff"}`)}, false},
		{bios, exchange.Record{Method: "PATCH", Path: "/redfish/v1/AccountService/Accounts/3", Body: []byte(`{"Password":"x"}`)}, false},
		{step("lab/gpu-001/netbox.tag[ironic]", nil), exchange.Record{Method: "PATCH", Path: "/api/dcim/devices/7/?fields=id", Body: []byte(`{"add_tags":[{"slug":"other"}]}`)}, false},
		{step("lab/gpu-001/netbox.tag[ironic]", nil), exchange.Record{Method: "PATCH", Path: "/api/dcim/devices/7/?fields=id", Body: []byte(`{"add_tags":[{"slug":"ironic"}],"status":"active"}`)}, false},
		{step("lab/gpu-001/dhcp.reservation", nil), exchange.Record{Method: "sftp.posix-rename", Path: "/etc/dnsmasq.d/enroll-hosts/.gpu-002-bmc.enroll-0a"}, false},
		{step("lab/gpu-001/ironic.provision[inspect]", nil), exchange.Record{Method: "PUT", Path: "/v1/nodes/00000001-0000-4000-8000-000000000060/states/provision", Body: []byte(`{"target":"deleted"}`)}, false},
	} {
		if got := may(c.step, c.sent); got != c.may {
			t.Errorf("%s may send %s %s %s: %v", c.step.Address, c.sent.Method, c.sent.Path, c.sent.Body, got)
		}
	}
	e := newEstate(t, 1, family{bmctest.IDRAC, ""})
	eye := watch(e)
	eye.look(exchange.Record{System: "ironic", Method: "POST", Path: "/v1/nodes", Mutating: true})
	if len(eye.breach) != 1 {
		t.Error("a write while nothing was approved was not seen")
	}
}
