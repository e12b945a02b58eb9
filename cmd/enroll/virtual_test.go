package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// virtual is a clock that stands while an exchange is under way and jumps to the
// end of the next pause when there is none: hours of inspecting and cleaning pass
// in no time, and the same run meets the same times.
type virtual struct {
	mu  sync.Mutex
	now time.Time
}

func newVirtual() *virtual { return &virtual{now: time.Now().Truncate(time.Second)} }

// Now is the virtual time.
func (v *virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Timer lets the time pass at once when nothing is under way, else never: the loop
// asks for another timer when the exchange has ended.
func (v *virtual) Timer(d time.Duration, inFlight int) (<-chan time.Time, func() bool) {
	if inFlight > 0 {
		return nil, func() bool { return true }
	}
	v.pass(d)
	fired := make(chan time.Time, 1)
	fired <- v.Now()
	return fired, func() bool { return true }
}

func (v *virtual) pass(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(d)
}

// family is a maker of BMCs and what a site wants of its machines, so that a
// complete enrolment meets everything that enroll does to them.
type family struct {
	vendor string
	bios   string // a bios block
}

func families() []family {
	bios := func(class, attributes string) string {
		return fmt.Sprintf("    bios %q {\n      attributes = { %s }\n    }\n", class, attributes)
	}
	return []family{
		{bmctest.IDRAC, bios("DELLPOWEREDGEXE9680", `SriovGlobalEnable = "Enabled", AcPwrRcvryUserDelay = "180"`)},
		{bmctest.XCC, bios("LENOVOTHINKSYSTEMSR680AV3", `DevicesandIOPorts_SRIOV = "Enable"`)},
		{bmctest.AMI, ""},
		{bmctest.Supermicro, ""},
		{bmctest.Generic, bios("GIGABYTEG593SD0", `SriovSupport = "Enabled"`)},
	}
}

// estate is a lab of factory-new machines in virtual time, with runs against it.
type estate struct {
	t     testing.TB
	lab   *lab.Lab
	dir   string
	clock *virtual
	runs  int
}

// hostKeys are those of the DHCP machines of all labs: making some for each is the
// greater part of its work.
var hostKeys = sync.OnceValue(dhcptest.NewHostKeys) //nolint:gochecknoglobals // made once for all tests

func newEstate(t testing.TB, devices int, of ...family) *estate {
	t.Helper()
	return newEstateOf(t, devices, func(*bmctest.Machine) {}, of...)
}

// newEstateOf has machines that are not the usual ones.
func newEstateOf(t testing.TB, devices int, machine func(*bmctest.Machine), of ...family) *estate {
	t.Helper()
	e := &estate{t: t, dir: t.TempDir(), clock: newVirtual()}
	var vendors []string
	for _, f := range of {
		vendors = append(vendors, f.vendor)
	}
	l, err := lab.Start(lab.Options{
		Dir: e.dir, Devices: devices, Seed: 7, Now: e.clock.Now, Families: vendors, HostKeys: hostKeys(),
		Machine:   func(m *bmctest.Machine) { m.Profile.BootTime = 90 * time.Second; machine(m) },
		Durations: ironictest.Durations{Verify: 3 * time.Second, Inspect: 20 * time.Second, Clean: 30 * time.Second, Power: 4 * time.Second, Release: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	e.lab = l
	const ntp = `    ntp_servers = ["ntp1.example.net", "ntp2.example.net"]` + "\n"
	settings := "    restrict_boot = true\n    syslog {\n      servers = [\"syslog1.example.net\"]\n    }\n    security {\n      http = false\n      snmp = \"v3\"\n      lockout_attempts = 5\n    }\n"
	for _, f := range of {
		settings += f.bios
	}
	replaceIn(t, e.site(), ntp, ntp+settings)
	return e
}

func (e *estate) site() string { return filepath.Join(e.dir, "site", "site.hcl") }

// patience is how long a request may take before it counts as lost, on all ways.
func (e *estate) patience(d string) {
	e.t.Helper()
	raw, err := os.ReadFile(e.site())
	if err != nil {
		e.t.Fatal(err)
	}
	text := string(raw)
	for _, block := range []string{"netbox {", "secrets \"vault\" {", "ironic \"baremetal\" {", "bmc {"} {
		if !strings.Contains(text, block) {
			e.t.Fatalf("the site has no block %q", block)
		}
		text = strings.Replace(text, block, block+"\n    timeout = \""+d+"\"\n", 1)
	}
	text = strings.Replace(text, "    settle ", fmt.Sprintf("    timeouts {\n      connect = %[1]q\n      login = %[1]q\n      command = %[1]q\n      transfer = %[1]q\n    }\n    settle ", d), 1)
	if err := os.WriteFile(e.site(), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// ran is what a command line came to.
type ran struct {
	code   int
	text   string // stdout and stderr
	report streamReport
	events []streamEvent
}

// streamReport is the part of the last line of a stream that tests look at.
type streamReport struct {
	Interrupted bool `json:"interrupted"`
	Devices     []struct {
		Name  string      `json:"name"`
		OK    bool        `json:"ok"`
		Fault *plan.Fault `json:"fault"`
	} `json:"devices"`
	Steps       []streamStep             `json:"steps"`
	Obligations []apply.ObligationReport `json:"obligations"`
}

type streamStep struct {
	ID      string         `json:"id"`
	Address plan.Address   `json:"address"`
	Action  plan.Action    `json:"action"`
	State   plan.StepState `json:"state"`
	Fault   *plan.Fault    `json:"fault"`
}

type streamEvent struct {
	Kind    plan.EventKind `json:"kind"`
	Device  string         `json:"device"`
	Address string         `json:"address"`
	Text    string         `json:"text"`
	State   plan.StepState `json:"state"`
	Plan    json.RawMessage
	Report  *streamReport `json:"report"`
}

// state is where this machine keeps journals and locks.
func (e *estate) state() string { return filepath.Join(e.dir, "state") }

// run is a command line of a process of its own, as far as one process can be two.
func (e *estate) run(args ...string) ran { return e.runIn(e.state(), args...) }

func (e *estate) runIn(state string, args ...string) ran {
	var out, errOut bytes.Buffer
	code := run(context.Background(), args, e.process(state, &out, &errOut))
	return ran{code: code, text: out.String() + errOut.String()}
}

// into is run with an output of the test's own.
func (e *estate) into(out io.Writer, args ...string) int {
	return run(context.Background(), args, e.process(e.state(), out, io.Discard))
}

func (e *estate) process(state string, out, errOut io.Writer) *sys {
	env := map[string]string{"ENROLL_SITE": filepath.Join(e.dir, "site"), "VAULT_TOKEN": e.lab.Vault.Token, "XDG_STATE_HOME": state}
	s := inProcess(env, make(chan os.Signal), out, errOut)
	s.now, s.clock = e.clock.Now, e.clock
	return s
}

// apply enrols devices without asking, and gives what its stream says.
func (e *estate) apply(args ...string) ran {
	e.t.Helper()
	return e.stream(append([]string{"apply", "--auto-approve"}, args...)...)
}

func (e *estate) stream(args ...string) ran {
	e.t.Helper()
	e.runs++
	stream := filepath.Join(e.dir, fmt.Sprintf("stream-%d.jsonl", e.runs))
	r := e.run(append(args, "--json-into", stream)...)
	raw, err := os.ReadFile(stream)
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	lines := lineSchema(e.t)
	for line := range strings.Lines(string(raw)) {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			e.t.Fatal(err)
		}
		if err := lines.Validate(document); err != nil {
			e.t.Errorf("%v\n%.600s", err, line)
		}
		var ev streamEvent
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			e.t.Fatalf("%v in %s", err, line)
		}
		r.events = append(r.events, ev)
		if ev.Report != nil {
			r.report = *ev.Report
		}
	}
	return r
}

// lineSchema is what enroll schema --events says, without the members that later
// versions may add.
func lineSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	schema, err := compiledLines()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

var compiledLines = sync.OnceValues(func() (*jsonschema.Schema, error) { //nolint:gochecknoglobals // compiled once for all tests
	raw, err := view.StreamSchema(version)
	if err != nil {
		return nil, err
	}
	published, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	closeObjects(published)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:enroll:events:1", published); err != nil {
		return nil, err
	}
	return c.Compile("urn:enroll:events:1")
})

// faults are those of the report, each once.
func (r ran) faults() []*plan.Fault {
	var out []*plan.Fault
	for _, s := range r.report.Steps {
		if s.Fault != nil {
			out = append(out, s.Fault)
		}
	}
	for _, d := range r.report.Devices {
		if d.Fault != nil {
			out = append(out, d.Fault)
		}
	}
	return out
}

// exchanges is how many requests all systems have received since the recorder was
// reset.
func (e *estate) exchanges() int { return len(e.lab.Recorder.Records()) }

// world is everything that enrolment leaves behind, but for names and times that
// no two runs share. Equal worlds are equal texts.
func (e *estate) world() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, name := range e.lab.DHCP.Files() {
		content, _ := e.lab.DHCP.ReadFile(path.Join("/etc/dnsmasq.d/enroll-hosts", name))
		line("dhcp %s %q", name, content)
	}
	for _, h := range e.lab.Hosts {
		d, _ := e.lab.NetBox.Device(h.Name)
		slices.Sort(d.Tags)
		line("%s netbox %s %v %s", h.Name, d.Status, d.Tags, text(d.CustomFields))
		m := e.lab.BMCOf(h.Name)
		on, servers := m.NTP()
		line("%s bmc %s ntp %v %v dhcp %v powered %v boots %v recipients %v pending %d", h.Name, m.Hostname(), on, servers, m.DHCP(), m.Powered(), m.Boots(), m.Recipients(), m.PendingBIOS())
		for _, v := range []string{"http", "ssh", "ssdp", "snmp", "ipmi", "tls", "kcs", "rollback", "lockout", "lockoutfor", "rmedia", "syslog", "syslogserver", "syslogport", "zone", "offset"} {
			line("%s bmc %s %v", h.Name, v, m.Value(v))
		}
		if h.Family == bmctest.IDRAC {
			for _, v := range []string{"SysLog.1.SysLogEnable", "SysLog.1.Server1", "NTPConfigGroup.1.NTPEnable", "NTPConfigGroup.1.NTP1", "NIC.1.DNSRacName"} {
				line("%s bmc %s %v", h.Name, v, m.Attribute(v))
			}
		}
		for _, a := range bmctest.Attributes(h.Family) {
			line("%s bios %s %v", h.Name, a.Name, m.BIOS(a.Name))
		}
		n, ok := e.lab.Ironic.Node(h.Name)
		if !ok {
			line("%s ironic: no node", h.Name)
			continue
		}
		slices.Sort(n.MACs)
		line("%s ironic %s %s %s instance %q reservation %q maintenance %v macs %v traits %v inventory %v", h.Name, n.Driver, n.ProvisionState, n.PowerState, n.InstanceUUID, n.Reservation, n.Maintenance, n.MACs, n.Traits, n.HasInventory)
		if n.DriverInfo["redfish_address"] == m.URL {
			n.DriverInfo["redfish_address"] = "the BMC"
		}
		if extra, ok := n.Extra["enroll"].(map[string]any); ok {
			if credential, ok := extra["credential"].(map[string]any); ok && credential["written"] != "" {
				credential["written"] = "at some time"
			}
		}
		line("%s ironic %s %s %s", h.Name, text(n.DriverInfo), text(n.Properties), text(n.Extra))
	}
	return b.String()
}

func text(m map[string]any) string {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// differences are the lines that two worlds do not share.
func differences(want, got string) string {
	w, g := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(want) {
		w[line] = true
	}
	for line := range strings.Lines(got) {
		g[line] = true
	}
	var out []string
	for line := range w {
		if !g[line] {
			out = append(out, "- "+line)
		}
	}
	for line := range g {
		if !w[line] {
			out = append(out, "+ "+line)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return strings.Join(out, "")
}

// effects are the writes that a machine feels, as their systems took them: each may
// happen as often as in an undisturbed run.
func (e *estate) effects() map[string]int {
	out := map[string]int{}
	for _, h := range e.lab.Hosts {
		m := e.lab.BMCOf(h.Name)
		out[h.Name+" host resets"], out[h.Name+" BMC resets"] = m.Resets(), m.Restarts()
	}
	for _, r := range e.lab.Recorder.Records() {
		// A fault that answers for the system, or cuts before it, keeps it from serving.
		served := r.Fault == "" || r.Fault == string(exchange.LostReply) || r.Fault == string(exchange.HalfBody) || r.Fault == string(exchange.Delay)
		if r.System == "ironic" && r.Mutating && strings.Contains(r.Path, "/states/") && served && (r.Status == 202 || r.Status == 0) {
			out[r.Device+" "+r.Method+" "+r.Path[strings.LastIndex(r.Path, "/")+1:]]++
		}
	}
	return out
}

// leaks is what a run that ended by itself must not leave.
func (e *estate) leaks() []string {
	var out []string
	for _, h := range e.lab.Hosts {
		if n := e.lab.BMCOf(h.Name).Sessions(); n > 0 {
			out = append(out, fmt.Sprintf("%d sessions at the BMC of %s", n, h.Name))
		}
		n, ok := e.lab.Ironic.Node(h.Name)
		switch {
		case ok && n.Maintenance && n.ProvisionState != plan.StateCleanFailed:
			out = append(out, "maintenance of "+h.Name)
		case ok && !n.Maintenance && n.ProvisionState == plan.StateCleanFailed:
			out = append(out, h.Name+" clean failed without its maintenance")
		}
	}
	for _, name := range e.lab.DHCP.Files() {
		if strings.HasPrefix(name, ".") {
			out = append(out, "on the DHCP server: "+name)
		}
	}
	locks, err := apply.ListLocks(filepath.Join(e.state(), "enroll", "locks"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, l := range locks {
		if l.Held {
			out = append(out, "the lock on "+l.Device)
		}
	}
	return out
}

// secrets tells which secret of the lab a text holds.
func (e *estate) secrets(text string) string {
	for i, s := range e.lab.Secrets() {
		if strings.Contains(text, s) {
			return fmt.Sprintf("secret number %d was printed", i)
		}
	}
	return ""
}

// An enrolment of each family goes through in virtual time, and twice the same way.
func TestVirtualTime(t *testing.T) {
	for _, f := range families() {
		t.Run(f.vendor, func(t *testing.T) {
			t.Parallel()
			var worlds []string
			var effects []map[string]int
			for range 2 {
				e := newEstate(t, 1, f)
				e.lab.Recorder.Reset()
				began := e.clock.Now()
				r := e.apply("gpu-001")
				if r.code != exitDone {
					t.Fatalf("exit %d\n%s", r.code, r.text)
				}
				if spent := e.clock.Now().Sub(began); spent < time.Minute || spent > time.Hour {
					t.Errorf("it took %s", spent)
				}
				if left := e.leaks(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				if told := r.resetsTold("gpu-001"); told != e.lab.BMCOf("gpu-001").Resets() {
					t.Errorf("the host was reset %d times, and %d were told", e.lab.BMCOf("gpu-001").Resets(), told)
				}
				t.Logf("%d exchanges, %v", e.exchanges(), e.effects())
				worlds, effects = append(worlds, e.world()), append(effects, e.effects())
				if r := e.run("plan", "gpu-001", "--detailed-exitcode"); r.code != exitDone {
					t.Errorf("the plan after it: exit %d\n%s", r.code, r.text)
				}
			}
			if d := differences(worlds[0], worlds[1]); d != "" || !maps.Equal(effects[0], effects[1]) {
				t.Errorf("two runs differ: %v %v\n%s", effects[0], effects[1], d)
			}
		})
	}
}

// The published schema refuses what no stream has.
func TestLinesThatNoStreamHas(t *testing.T) {
	for _, line := range []string{
		`{"seq":1,"time":"2026-11-30T10:00:00Z","elapsed":0,"kind":"explode"}`,
		`{"seq":0,"time":"2026-11-30T10:00:00Z","elapsed":0,"kind":"stop","text":"x"}`,
		`{"seq":1,"time":"2026-11-30T10:00:00Z","elapsed":0,"kind":"end","step":"s1","address":"a/b/c.d"}`,
		`{"seq":1,"time":"2026-11-30T10:00:00Z","elapsed":0,"kind":"end","step":"s1","address":"a/b/c.d","state":"lost"}`,
		`{"seq":1,"time":"2026-11-30T10:00:00Z","elapsed":0,"kind":"plan","plan":{}}`,
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if lineSchema(t).Validate(document) == nil {
			t.Errorf("taken: %s", line)
		}
	}
}
