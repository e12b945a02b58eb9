package bmc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

const password = `s3cret"&'<pw`

var provisioningMAC = plan.MAC{0x02, 0, 0x5e, 0, 1, 1}

// world is a fleet of simulated BMCs with a client and a scope.
type world struct {
	t          *testing.T
	fleet      *bmctest.Server
	client     *bmc.Client
	scope      *plan.Scope
	bmcs       []*bmctest.BMC
	now        func() time.Time
	dial       func(ctx context.Context, network, address string) (net.Conn, error) // nil: over the network
	monitoring bmc.Monitoring
	ipmiPort   int
	vault      *testVault  // nil: passwords are never changed
	dead       atomic.Bool // nothing that the process sends arrives any more
	refusals   memory      // nil: none is remembered
	kinds      []plan.Kind // that are read and planned; nil: all
	restarts   restarting  // nil: remembered in one run only
	// passwords overrides what the vault has for a device.
	passwords map[string]string
}

func (w *world) Credential(_ context.Context, device string) (string, plan.Secret, error) {
	if w.vault != nil {
		return "root", plan.NewSecret(w.vault.stored, w.vault.version()), nil
	}
	if p, ok := w.passwords[device]; ok {
		return "root", plan.NewSecret(p, "1"), nil
	}
	return "root", plan.NewSecret(password, "1"), nil
}

func (w *world) Ref(device string) plan.SecretRef {
	return plan.SecretRef{Item: "bmc-" + device, Field: "password"}
}

// machine is a plain machine of a maker whose settings all differ from what the
// site wants.
func machine(vendor string) bmctest.Machine {
	return bmctest.Machine{
		Vendor: vendor, Serial: "SVC0001", User: "root", Password: password,
		NICs: []bmctest.NIC{{MAC: provisioningMAC}, {MAC: plan.MAC{0x02, 0, 0x5e, 0, 1, 2}}},
	}
}

func newWorld(t *testing.T, machines ...bmctest.Machine) *world {
	t.Helper()
	return newWorldAt(t, time.Now, machines...)
}

// newWorldAt has a clock of the test's own.
func newWorldAt(t *testing.T, now func() time.Time, machines ...bmctest.Machine) *world {
	t.Helper()
	return worldOf(t, bmctest.Options{Now: now}, machines...)
}

// newBubble is a world for a synctest bubble: its BMCs are reached through pipes,
// so that what waits in it takes no time and no busy machine is taken for a silent
// BMC.
func newBubble(t *testing.T, machines ...bmctest.Machine) *world {
	t.Helper()
	return worldOf(t, bmctest.Options{Now: time.Now, Pipes: true}, machines...)
}

func worldOf(t *testing.T, options bmctest.Options, machines ...bmctest.Machine) *world {
	t.Helper()
	w := &world{t: t, now: options.Now, fleet: bmctest.New(options), passwords: map[string]string{}}
	if options.Pipes {
		w.dial = w.fleet.Dial
	}
	t.Cleanup(w.fleet.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, w.fleet.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	site := &plan.Site{Name: "demo", ConfigureBMC: true, BMC: &plan.BMCSettings{CAFile: ca, Timeout: 20 * time.Second, RestrictBoot: true, ReadyBudget: time.Minute}}
	w.scope = &plan.Scope{Site: site}
	for i, m := range machines {
		if m.Name == "" {
			m.Name = fmt.Sprintf("gpu-%03d", i+1)
		}
		b := w.fleet.Add(m)
		w.bmcs = append(w.bmcs, b)
		w.scope.Targets = append(w.scope.Targets, &plan.Target{
			Site: site,
			Intent: &plan.Intent{
				Name: m.Name, ID: int64(i + 1), URL: "https://netbox.example.org/dcim/devices/1/", Serial: m.Serial, OOB: netip.MustParseAddr("127.0.0.1"),
				Ironic:   plan.IronicContext{RedfishAddress: b.URL},
				Frontend: []plan.FrontendNIC{{Name: "eth0", MAC: provisioningMAC}},
			},
			Settings: plan.Settings{Hostname: m.Name + "-bmc", NTPServers: []string{"ntp1.example.org", "ntp2.example.org"}, BMCPassword: w.Ref(m.Name), Set: map[string]string{}},
		})
	}
	w.connect()
	return w
}

// plainClient asks the BMCs beside the provider.
func (w *world) plainClient() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.fleet.CA())
	transport := &http.Transport{DialContext: w.dial, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// bootsRight lets the first BMC's host boot from the provisioning NIC as the site
// wants it.
func (w *world) bootsRight() {
	w.bmcs[0].RestrictTo(1)
}

// connect makes a new client, as another run of the program would.
func (w *world) connect() {
	w.t.Helper()
	o := bmc.Options{Now: w.now, DialContext: w.dial, Monitoring: w.monitoring, IPMIPort: w.ipmiPort}
	if w.vault != nil {
		o.Rotation = w.vault
	}
	if w.refusals != nil {
		o.Refusals = w.refusals
	}
	if w.restarts != nil {
		o.Restarts = w.restarts
	}
	c, err := bmc.New(*w.scope.Site.BMC, w, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.client = c
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
}

func (w *world) read() plan.Snapshot {
	return w.client.Read(context.Background(), w.scope, plan.Desired(w.scope, w.planned()))
}

func (w *world) build(snap plan.Snapshot) *plan.Plan {
	return plan.Build(plan.Input{Scope: w.scope, Kinds: w.planned(), World: snap})
}

func (w *world) planned() []plan.Kind {
	if w.kinds == nil {
		return bmc.Kinds()
	}
	return w.kinds
}

func (w *world) live(snap plan.Snapshot, kind string) plan.Live {
	return snap.Get(w.scope.Targets[0].Address("bmc", kind, ""))
}

// apply runs a step to its end, waiting without sleeping.
func (w *world) apply(step *plan.Step) plan.Result {
	w.t.Helper()
	var memo plan.Memo
	for range 20 {
		r := w.client.Run(context.Background(), w.scope, step, memo)
		if r.Outcome != plan.OutcomeWait {
			return r
		}
		if r.After <= 0 || r.Observed == "" {
			w.t.Fatalf("%s: a wait without a pause or a word: %+v", step.Address, r)
		}
		memo = r.Memo
	}
	w.t.Fatalf("%s: never done", step.Address)
	return plan.Result{}
}

// close ends the client and wants no session left.
func (w *world) close() {
	w.t.Helper()
	if err := w.client.Close(context.Background()); err != nil {
		w.t.Errorf("Close: %v", err)
	}
	for _, b := range w.bmcs {
		if n := b.Sessions(); n != 0 {
			w.t.Errorf("%d sessions left", n)
		}
	}
}

func steps(p *plan.Plan) string {
	var out []string
	for _, s := range p.Steps {
		line := string(s.Action) + " " + s.Address.Local() + " " + string(s.Reason)
		if s.Blocked != nil {
			line += " blocked " + string(s.Blocked.Rule)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// faultText is everything of a fault that may be printed.
func faultText(f *plan.Fault) string {
	if f == nil {
		return ""
	}
	return f.Error() + " " + f.WayOut() + " " + strings.Join(f.EvidenceLines(), " ")
}
