package dhcp_test

import (
	"context"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

var (
	_ providers.Reader = (*dhcp.Provider)(nil)
	_ providers.Runner = (*dhcp.Provider)(nil)
	_ providers.Closer = (*dhcp.Provider)(nil)
)

// hostKeys are shared by all machines of the tests: an RSA key takes a while.
var hostKeys = sync.OnceValue(func() []ssh.Signer { return dhcptest.NewHostKeys() })

const dir = "/etc/enroll-hosts.d"

// clock is a clock that stands until it is moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// crowd moves a clock for several runs at once: time passes when all of them
// wait, up to the moment that the first of them waits for. However the machine
// shares its time among them, no run is late.
type crowd struct {
	clock *clock
	mu    sync.Mutex
	moved *sync.Cond
	runs  int         // that have not ended
	until []time.Time // what the runs that wait are waiting for
}

func newCrowd(c *clock, runs int) *crowd {
	w := &crowd{clock: c, runs: runs}
	w.moved = sync.NewCond(&w.mu)
	return w
}

func (w *crowd) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := w.clock.now().Add(d)
	w.until = append(w.until, until)
	for w.pass(); w.clock.now().Before(until); {
		w.moved.Wait()
	}
	i := slices.Index(w.until, until)
	w.until = slices.Delete(w.until, i, i+1)
}

// leave ends a run.
func (w *crowd) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs--
	w.pass()
}

func (w *crowd) pass() {
	if len(w.until) < w.runs || w.runs == 0 {
		return
	}
	first := slices.MinFunc(w.until, time.Time.Compare)
	if d := first.Sub(w.clock.now()); d > 0 {
		w.clock.pass(d)
	}
	w.moved.Broadcast()
}

// pauses are what a provider waits for, deadlines among them: none ends by itself,
// the test ends them.
type pauses struct {
	mu      sync.Mutex
	changed *sync.Cond
	all     []*pause // in the order in which they began
}

type pause struct {
	length time.Duration
	f      func()
	over   bool // ended, or stopped
}

func newPauses() *pauses {
	h := &pauses{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *pauses) after(length time.Duration, f func()) func() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &pause{length: length, f: f}
	h.all = append(h.all, p)
	h.changed.Broadcast()
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		was := p.over
		p.over = true
		h.changed.Broadcast()
		return !was
	}
}

// end ends the pauses of a length that are under way; false when there is none.
func (h *pauses) end(length time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finish(length)
}

// endNext is end, once there is one under way.
func (h *pauses) endNext(length time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.finish(length) {
		h.changed.Wait()
	}
}

func (h *pauses) finish(length time.Duration) bool {
	var due []func()
	for _, p := range h.all {
		if p.length == length && !p.over {
			p.over = true
			due = append(due, p.f)
		}
	}
	h.mu.Unlock()
	defer h.mu.Lock()
	for _, f := range due {
		f()
	}
	return len(due) > 0
}

// nth waits until the nth pause of a length has begun.
func (h *pauses) nth(length time.Duration, n int) *pause {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		var those []*pause
		for _, p := range h.all {
			if p.length == length {
				those = append(those, p)
			}
		}
		if len(those) >= n {
			return those[n-1]
		}
		h.changed.Wait()
	}
}

// endNth ends the nth pause of a length, once it has begun.
func (h *pauses) endNth(length time.Duration, n int) {
	p := h.nth(length, n)
	h.mu.Lock()
	was := p.over
	p.over = true
	h.mu.Unlock()
	if !was {
		p.f()
	}
}

// stopped waits until the nth pause of a length is over.
func (h *pauses) stopped(length time.Duration, n int) {
	p := h.nth(length, n)
	h.mu.Lock()
	defer h.mu.Unlock()
	for !p.over {
		h.changed.Wait()
	}
}

// when calls functions when a machine with this recorder has recorded something.
type when map[string]func()

func (w when) Write(record []byte) (int, error) {
	for what, f := range w {
		if strings.Contains(string(record), what) {
			go f() // the recorder is still at it
		}
	}
	return len(record), nil
}

// bench is a machine, a site on it and a provider.
type bench struct {
	t     *testing.T
	clock *clock
	wait  func(time.Duration) // nil: the clock is moved instead
	after func(time.Duration, func()) func() bool
	srv   *dhcptest.Server
	scope *plan.Scope
	p     *dhcp.Provider
}

// farewell is how long the provider lets a command take that it gives up.
const farewell = 100 * time.Millisecond

// newStalling is a bench on which a deadline is over when the machine does not
// answer, and never else.
func newStalling(t *testing.T, o dhcptest.Options, devices ...*plan.Intent) *bench {
	t.Helper()
	h, c := newPauses(), newClock()
	o.Now = c.now
	late := func() { h.endNext(dhcptest.Deadline) } // which may be about to begin
	o.Recorder = exchange.NewRecorder(c.now, when{
		`"fault":"stall"`: late, `"fault":"hangs"`: late,
		`"method":"ssh.signal"`: func() { h.end(farewell) },
	})
	b := newBench(t, o, devices...)
	b.clock, b.after = c, h.after
	b.p = b.connect()
	return b
}

func newBench(t *testing.T, o dhcptest.Options, devices ...*plan.Intent) *bench {
	t.Helper()
	b := &bench{t: t, clock: newClock()}
	if o.Now == nil {
		o.Now = b.clock.now
	}
	if o.HostKeys == nil {
		o.HostKeys = hostKeys()
	}
	b.srv = dhcptest.New(o)
	t.Cleanup(func() {
		if err := b.srv.Close(); err != nil {
			t.Error(err)
		}
	})
	settings := b.srv.Settings()
	site := &plan.Site{Name: "lon14", ConfigureDHCP: true, DHCP: &settings}
	b.scope = &plan.Scope{Site: site}
	for _, d := range devices {
		b.scope.Targets = append(b.scope.Targets, &plan.Target{Site: site, Intent: d})
	}
	b.p = b.connect()
	return b
}

// connect makes another provider, as a new run does.
func (b *bench) connect() *dhcp.Provider {
	b.t.Helper()
	p, err := dhcp.New(*b.scope.Site.DHCP, b.credentials(), dhcp.Options{After: b.after})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// later is another run after this one has ended as a process does that was
// killed: its lock and its temporary files are still there.
func (b *bench) later() {
	b.t.Helper()
	b.clock.pass(2 * time.Hour)
	b.p = b.connect()
}

// end closes the provider, as a run does, and makes that of the next.
func (b *bench) end() {
	b.t.Helper()
	if err := b.p.Close(context.Background()); err != nil {
		b.t.Error(err)
	}
	b.p = b.connect()
}

// at is the path of a name in the machine's folder.
func (b *bench) at(name string) string { return path.Join(b.scope.Site.DHCP.Directory, name) }

// file is an entry's file as the machine's server wants it, and its path.
func (b *bench) file(e dhcp.Entry) (at, content string) {
	return b.at(dhcp.FileName(*b.scope.Site.DHCP, e)), dhcp.Render(*b.scope.Site.DHCP, e)
}

// stand puts entries in force before a run.
func (b *bench) stand(entries ...dhcp.Entry) {
	b.t.Helper()
	var names []string
	for _, e := range entries {
		at, content := b.file(e)
		b.srv.PutOld(at, content, b.clock.now())
		names = append(names, path.Base(at))
	}
	if at, content := dhcp.RenderIndex(*b.scope.Site.DHCP, names); at != "" {
		b.srv.PutOld(at, content, b.clock.now())
	}
	if !b.srv.Restart() {
		b.t.Fatal("the machine does not start with what stands there")
	}
}

func (b *bench) credentials() dhcp.Credentials {
	return dhcp.Credentials{Identity: plan.NewSecret(string(b.srv.IdentityPEM), ""), KnownHosts: b.srv.KnownHosts}
}

func device(n int) *plan.Intent {
	name := "gpu-00" + string(rune('0'+n))
	return &plan.Intent{
		Site: "lon14", Name: name, ID: int64(1000 + n), URL: "https://netbox.example/dcim/devices/" + name + "/",
		BMCInterface: "bmc", BMCMAC: mac(n), OOB: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + n)}), Hash: "h",
	}
}

func addr(a [4]byte) netip.Addr { return netip.AddrFrom4(a) }

func mac(n int) plan.MAC { return plan.MAC{2, 0, 0x5e, 0x10, 0, byte(n)} }

func entry(d *plan.Intent) dhcp.Entry {
	return dhcp.Entry{DeviceID: d.ID, Device: d.Name, MAC: d.BMCMAC, Address: d.OOB, Name: strings.ToLower(d.Name) + "-bmc"}
}

// rendered is the file of an entry, for dnsmasq.
func rendered(e dhcp.Entry) string {
	return dhcp.Render(plan.DHCPSettings{Service: "dnsmasq"}, e)
}

func at(name string) string { return path.Join(dir, name) }

// look plans with a provider.
func (b *bench) look(p *dhcp.Provider) *plan.Plan {
	b.t.Helper()
	kinds := dhcp.Kinds()
	resources := plan.Desired(b.scope, kinds)
	world := p.Read(context.Background(), b.scope, resources)
	for _, r := range resources {
		if _, answered := world[r.Address]; !answered {
			b.t.Fatalf("Read did not answer %s", r.Address)
		}
	}
	if b.scope.Parameters.PruneDHCP {
		b.scope.Stale = nil
		for _, m := range dhcp.Stale(b.scope, world) {
			b.scope.Stale = append(b.scope.Stale, m.File)
		}
		world.Merge(p.Read(context.Background(), b.scope, dhcp.StaleResources(b.scope)))
	}
	pl := plan.Build(plan.Input{Scope: b.scope, Kinds: kinds, World: world})
	pl.Steps = graphOrder(pl.Steps)
	return pl
}

// graphOrder puts every step after those that it needs.
func graphOrder(steps []*plan.Step) []*plan.Step {
	var out []*plan.Step
	done := map[string]bool{}
	for len(out) < len(steps) {
		before := len(out)
		for _, s := range steps {
			ready := !done[s.ID]
			for _, need := range s.Needs {
				ready = ready && done[need]
			}
			if ready {
				done[s.ID] = true
				out = append(out, s)
			}
		}
		if len(out) == before {
			panic("the steps need each other in a circle")
		}
	}
	return out
}

// fault is the first fault of a plan.
func fault(pl *plan.Plan) *plan.Fault {
	for _, d := range pl.Diagnostics {
		if d.Severity == plan.SeverityError {
			return d.Fault
		}
	}
	return nil
}

func addresses(pl *plan.Plan) string {
	var out []string
	for _, s := range pl.Steps {
		if s.Blocked == nil {
			out = append(out, s.Address.String())
		}
	}
	return strings.Join(out, " ")
}

// apply performs the steps of a plan as the contract says, once, and stops at
// the first fault.
func (b *bench) apply(p *dhcp.Provider, pl *plan.Plan) *plan.Fault {
	b.t.Helper()
	for _, step := range pl.Steps {
		if step.Blocked != nil {
			continue
		}
		if f := b.step(p, step); f != nil {
			return f
		}
	}
	return nil
}

func (b *bench) step(p *dhcp.Provider, step *plan.Step) *plan.Fault {
	b.t.Helper()
	ctx := context.Background()
	read := func() plan.Live { return p.Read(ctx, b.scope, []plan.Resource{{Address: step.Address}})[step.Address] }
	live := read()
	switch {
	case live.Fault != nil:
		return live.Fault
	case live.Presence == plan.Present && plan.Satisfies(step.After, live.Value), live.Presence == plan.Absent && step.After.IsNull():
		return nil
	case step.Before.IsNull() && live.Presence != plan.Absent,
		!step.Before.IsNull() && plan.Fingerprint(plan.Restrict(live.Value, step.Before)) != step.Guard:
		return plan.NewFault(plan.CodePlanStale, "%s moved", step.Address)
	}
	var memo plan.Memo
	for range 400 {
		r := p.Run(ctx, b.scope, step, memo)
		switch r.Outcome {
		case plan.OutcomeFailed:
			return r.Fault
		case plan.OutcomeWait:
			if r.After <= 0 {
				b.t.Fatalf("%s waits without a pause", step.Address)
			}
			if b.wait != nil {
				b.wait(r.After)
			} else {
				b.clock.pass(r.After)
			}
			memo = r.Memo
			continue
		case plan.OutcomeDone, plan.OutcomeAlready:
		}
		if live = read(); live.Fault != nil {
			return live.Fault
		}
		if !plan.Satisfies(step.After, live.Value) {
			return plan.NewFault(plan.CodeNotApplied, "%s: want %s, live %s", step.Address, plan.ToJSON(step.After), plan.ToJSON(live.Value))
		}
		return nil
	}
	b.t.Fatalf("%s does not end", step.Address)
	return nil
}

// converge looks and applies.
func (b *bench) converge(p *dhcp.Provider) *plan.Fault {
	b.t.Helper()
	pl := b.look(p)
	if f := fault(pl); f != nil {
		return f
	}
	return b.apply(p, pl)
}

// settled fails the test unless nothing is left to do.
func (b *bench) settled() {
	b.t.Helper()
	p := b.connect()
	defer func() { _ = p.Close(context.Background()) }()
	pl := b.look(p)
	if f := fault(pl); f != nil {
		b.t.Fatal(f)
	}
	if got := addresses(pl); got != "" {
		b.t.Errorf("still to do: %s", got)
	}
	if b.srv.Pending() {
		b.t.Error("the pending marker is still there")
	}
}

func (b *bench) wantFault(f *plan.Fault, code plan.Code, words ...string) {
	b.t.Helper()
	if f == nil {
		b.t.Fatalf("no fault, want %s", code)
	}
	if f.Code != code {
		b.t.Fatalf("%v, want %s", f, code)
	}
	text := f.Error() + "\n" + f.WayOut() + "\n" + strings.Join(f.EvidenceLines(), "\n")
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("the fault does not say %q:\n%s", w, text)
		}
	}
}

// temps lists the temporary files in the folder; what a marker keeps is none.
func (b *bench) temps() []string {
	var out []string
	for _, name := range b.srv.Files() {
		if strings.HasPrefix(name, ".") && name != ".enroll-pending" && name != ".enroll-lock" && !strings.HasSuffix(name, ".enroll-old") {
			out = append(out, name)
		}
	}
	return out
}
