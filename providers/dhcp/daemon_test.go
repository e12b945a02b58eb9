package dhcp_test

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// TestDaemonFaults are servers that do not do what they were told, and disks and
// people that get in the way. After each the former state is served, the report
// says both outcomes, and the next run converges once the cause is gone.
func TestDaemonFaults(t *testing.T) {
	set := func(change func(*dhcptest.Behaviour)) func(*scene) {
		return func(s *scene) { s.srv.Set(change) }
	}
	for _, c := range []struct {
		name     string
		services string
		arrange  func(*scene)
		code     plan.Code
		words    []string
		dead     bool // the server is down afterwards: nothing could bring it back
	}{
		{"the server refuses what its check passed", "kea isc", set(func(m *dhcptest.Behaviour) { m.Refuses = mac(1) }),
			plan.CodeDHCPUnhealthy, []string{"restored: ", "the former files stand again and the unit is active"}, false},
		{"it dies two seconds later", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.DiesOf = mac(1) }),
			plan.CodeDHCPUnhealthy, []string{"the former files stand again and the unit is active"}, false},
		{"the reload says ok and nobody is served", "kea", set(func(m *dhcptest.Behaviour) { m.DeafTo = mac(1) }),
			plan.CodeDHCPUnhealthy, []string{"without a DHCP socket", "the former files stand again and the unit is active"}, false},
		{"it dies whatever it is given", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.DieOnReload = true }),
			plan.CodeDHCPUnhealthy, []string{"NO HOST OF THIS SITE IS SERVED", "sudo systemctl restart", "journalctl"}, true},
		{"it does not come back from a restart", "isc", set(func(m *dhcptest.Behaviour) { m.HangRestart = true }),
			plan.CodeDHCPUnreachable, []string{"did not end within"}, true},
		{"the disk is full", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.Full = true }),
			plan.CodeDHCPTransfer, []string{"free bytes: 0"}, false},
		{"the disk is full at close", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.FullAtClose = true }),
			plan.CodeDHCPTransfer, []string{"close"}, false},
		{"nothing can be written", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.ReadOnly = true }),
			plan.CodeDHCPTransfer, []string{"writing to"}, false},
		{"the folder became a link", "dnsmasq kea isc", set(func(m *dhcptest.Behaviour) { m.SymlinkFolder = true }),
			plan.CodeDHCPForeignFile, []string{"symbolic link"}, false},
		{"sudo lets nothing", "dnsmasq isc", set(func(m *dhcptest.Behaviour) { m.NoSudo = true }),
			plan.CodeDHCPCommand, []string{"NOPASSWD: /usr/bin/systemctl re"}, false},
		{"the control agent does not run", "kea", set(func(m *dhcptest.Behaviour) { m.NoControl = true }),
			plan.CodeDHCPCommand, []string{"control channel", "kea-ctrl-agent"}, false},
		{"somebody's file breaks the configuration", "kea isc", func(s *scene) {
			main := s.scope.Site.DHCP.Config
			text, _ := s.srv.ReadFile(main)
			s.srv.PutFile(main, strings.Replace(text, "{", "{{", 1), 0o644)
		}, plan.CodeDHCPRefused, []string{"refuses its configuration"}, false},
	} {
		for _, service := range strings.Fields(c.services) {
			t.Run(service+"/"+c.name, func(t *testing.T) {
				s := arrange(t, service, 1)
				s.scope.Site.DHCP.Settle = 3 * time.Second
				s.p = s.connect()
				main, _ := s.srv.ReadFile(s.scope.Site.DHCP.Config)
				before := strings.Join(s.srv.Files(), " ")
				starts := s.srv.Starts()
				c.arrange(s)
				f := s.converge(s.p)
				s.wantFault(f, c.code, c.words...)
				if !c.dead {
					if got, _ := s.srv.Lease(s.old.MAC); !s.srv.Serving() || got != s.old.Address {
						t.Errorf("the former reservation is served with %v", got)
					}
				}
				if f.Code == plan.CodeDHCPUnhealthy && !c.dead {
					if at, want := s.file(s.old); mustRead(s, at) != want {
						t.Error("the former file does not stand there")
					}
					_ = s.p.Close(t.Context())
					if got := strings.Join(s.srv.Files(), " "); got != before {
						t.Errorf("the folder holds %q, before %q", got, before)
					}
					if s.srv.Pending() {
						t.Error("the marker stays although everything was undone")
					}
				}
				if n := s.srv.Starts() - starts; n > 4 {
					t.Errorf("%d starts: systemd would have refused", n)
				}
				s.srv.Set(func(m *dhcptest.Behaviour) { *m = dhcptest.Behaviour{} })
				s.srv.PutFile(s.scope.Site.DHCP.Config, main, 0o644)
				s.later()
				if c.dead && service != "isc" { // a server that is down is a person's; dhcpd's restart starts it
					s.srv.Start()
				}
				if f := s.converge(s.p); f != nil {
					t.Fatalf("the next run: %v\n%s", f, strings.Join(f.EvidenceLines(), "\n"))
				}
				_ = s.p.Close(t.Context())
				s.arrived("in the end")
			})
		}
	}
}

func mustRead(s *scene, at string) string {
	text, _ := s.srv.ReadFile(at)
	return text
}

// TestStartLimit: others started the server so often that systemd refuses the
// run's own start and leaves it down. It is started again when the limit is over.
func TestStartLimit(t *testing.T) {
	s := arrange(t, "isc", 1) // the first start
	for range 4 {
		s.srv.Restart()
	}
	pl := s.look(s.p)
	for _, step := range pl.Steps[:len(pl.Steps)-1] {
		if f := s.step(s.p, step); f != nil {
			t.Fatal(f)
		}
	}
	service := pl.Steps[len(pl.Steps)-1]
	r := s.p.Run(t.Context(), s.scope, service, nil)
	if r.Outcome != plan.OutcomeWait || r.After < 10*time.Second || s.srv.Serving() {
		t.Fatalf("%+v, serving %v", r, s.srv.Serving())
	}
	for r.Outcome == plan.OutcomeWait {
		s.clock.pass(r.After)
		r = s.p.Run(t.Context(), s.scope, service, r.Memo)
	}
	if r.Outcome != plan.OutcomeDone {
		t.Fatal(r.Fault)
	}
	_ = s.p.Close(t.Context())
	s.arrived("in the end")
}

// slow passes time on a clock at the end of every exchange whose record names
// one thing.
type slow struct {
	clock *clock
	by    time.Duration
	what  string
}

func (s slow) Write(record []byte) (int, error) {
	if strings.Contains(string(record), s.what) {
		s.clock.pass(s.by)
	}
	return len(record), nil
}

// TestSlowServer: on a server that takes its time for everything, or for one
// thing, nothing is taken for older than it is, least of all Kea's reload.
func TestSlowServer(t *testing.T) {
	for _, service := range services {
		for _, what := range []string{"", "journalctl", "date +", "status-get", "config-reload", "systemctl re"} {
			c := newClock()
			recorder := exchange.NewRecorder(c.now, slow{c, 29_999 * time.Millisecond, what})
			b := newBench(t, dhcptest.Options{Service: service, Now: c.now, HostKeys: hostKeys()[1:], Recorder: recorder}, device(1))
			if f := b.converge(b.p); f != nil {
				t.Fatalf("%s, slow %q: %v", service, what, f)
			}
			if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
				t.Errorf("%s, slow %q: lease %v", service, what, got)
			}
			b.end()
			b.settled()
		}
	}
}

// TestReloadNotTaken: Kea says that it reloads, and its last good reload is the
// one before: ours never came to anything.
func TestReloadNotTaken(t *testing.T) {
	s := arrange(t, "kea", 1)
	s.clock.pass(time.Hour)
	s.srv.Set(func(m *dhcptest.Behaviour) { m.LostReload = true })
	s.wantFault(s.converge(s.p), plan.CodeDHCPUnhealthy, "its last good reload is 36", "the former files stand again")
	s.sound("put back")
}

// TestReloadOfOldData: Kea calls itself freshly loaded, and has the data of before:
// a new entry is missing, or a removed one is still there.
func TestReloadOfOldData(t *testing.T) {
	set := func(s *scene) { s.srv.Set(func(m *dhcptest.Behaviour) { m.OldReload = true }) }
	s := arrange(t, "kea", 0)
	set(s)
	at, _ := s.file(entry(device(1)))
	s.wantFault(s.converge(s.p), plan.CodeDHCPUnhealthy, "its running configuration does not hold "+at, "the former files stand again")
	s = arrangePrune(t, "kea")
	set(s)
	at, _ = s.file(gone())
	s.wantFault(s.converge(s.p), plan.CodeDHCPUnhealthy, "its running configuration still holds "+path.Base(at)+", which was removed", "the former files stand again")
	s.sound("put back")
	s.srv.Set(func(m *dhcptest.Behaviour) { m.OldReload = false })
	s.end()
	if f := s.converge(s.p); f != nil {
		t.Fatal(f)
	}
	s.pruned("the next run")
}

// TestDeadAfterKill: dhcpd's unit says that it is active although dhcpd is gone;
// Kea says that it is ready although nobody is served. Neither is believed.
func TestDeadAfterKill(t *testing.T) {
	for service, word := range map[string]string{"isc": "active (exited)", "kea": "failed (failed)", "dnsmasq": "failed (failed)"} {
		s := arrange(t, service, 0)
		s.srv.Kill()
		s.wantFault(fault(s.look(s.p)), plan.CodeDHCPUnhealthy, word, "systemctl restart")
	}
}

// TestRolledBackByTheNext: the run that changed the files is dead, and what it
// left is not served. The next run knows what stood there before.
func TestRolledBackByTheNext(t *testing.T) {
	for _, service := range []string{"kea", "isc"} {
		s := arrange(t, service, 1)
		s.srv.Set(func(m *dhcptest.Behaviour) { m.Refuses = mac(1) })
		pl := s.look(s.p)
		for _, step := range pl.Steps[:len(pl.Steps)-1] { // all but the service
			if f := s.step(s.p, step); f != nil {
				t.Fatal(f)
			}
		}
		s.later()
		pl = s.look(s.p)
		if addresses(pl) != "lon14/dhcp.service" {
			t.Fatalf("planned %s", addresses(pl))
		}
		s.wantFault(s.apply(s.p, pl), plan.CodeDHCPUnhealthy, "restored: ", "the former files stand again and the unit is active")
		if got, _ := s.srv.Lease(s.old.MAC); got != s.old.Address {
			t.Errorf("%s: the former lease is %v", service, got)
		}
	}
}

// TestRollbackOnABadDisk: the server dies of what it was given, and the disk fails
// when the former files are put back. A full disk does not matter, for a rename
// needs no room; where nothing can be written the report says that nothing was put
// back, the marker stays, and the next run ends the matter once the disk is well.
func TestRollbackOnABadDisk(t *testing.T) {
	for _, service := range services {
		for name, c := range map[string]struct {
			disk  func(*dhcptest.Behaviour)
			words []string
		}{
			"full":      {func(m *dhcptest.Behaviour) { m.Full = true }, []string{"the former files stand again and the unit is active"}},
			"read-only": {func(m *dhcptest.Behaviour) { m.ReadOnly = true }, []string{"rollback: failed: ", "sudo systemctl restart"}},
		} {
			t.Run(service+"/"+name, func(t *testing.T) {
				for _, start := range []int{0, 1} { // a new file, a changed one
					s := arrange(t, service, start)
					s.scope.Site.DHCP.Settle = 3 * time.Second
					s.p = s.connect()
					s.srv.Set(func(m *dhcptest.Behaviour) { m.DiesOf = mac(1) })
					pl := s.look(s.p)
					for _, step := range pl.Steps[:len(pl.Steps)-1] {
						if f := s.step(s.p, step); f != nil {
							t.Fatal(f)
						}
					}
					s.srv.Set(c.disk)
					f := s.step(s.p, pl.Steps[len(pl.Steps)-1])
					s.wantFault(f, plan.CodeDHCPUnhealthy, c.words...)
					if name == "full" {
						s.sound("put back")
					} else if at, want := s.file(entry(device(1))); mustRead(s, at) != want || !s.srv.Pending() {
						t.Errorf("the file holds %q, and the marker stands: %t", mustRead(s, at), s.srv.Pending())
					}
					s.srv.Set(func(m *dhcptest.Behaviour) { *m = dhcptest.Behaviour{} })
					s.later()
					if !s.srv.Serving() {
						s.srv.Start() // by a person, as the report says
					}
					if f := s.converge(s.p); f != nil {
						t.Fatalf("the next run: %v\n%s", f, strings.Join(f.EvidenceLines(), "\n"))
					}
					_ = s.p.Close(t.Context())
					s.arrived("in the end")
				}
			})
		}
	}
}

// TestOneBadOfMany: an entry that the server's own check refuses stops its own
// device and no other.
func TestOneBadOfMany(t *testing.T) {
	var devices []*plan.Intent
	for n := 1; n <= 4; n++ {
		devices = append(devices, device(n))
	}
	// A subnet that the server declares, and not the one that has the index.
	devices[2].OOB = addr([4]byte{198, 51, 100, 13})
	s := &scene{bench: newBench(t, dhcptest.Options{Service: "kea"}, devices...)}
	s.stand(entry(device(3))) // its former address
	pl := s.look(s.p)
	done := make(chan string, len(devices))
	for _, step := range pl.Steps[:4] {
		go func() {
			r := s.p.Run(t.Context(), s.scope, step, nil)
			if r.Fault != nil && r.Fault.Code != plan.CodeDHCPRefused {
				t.Errorf("%s: %v", step.Address, r.Fault)
			}
			if r.Fault != nil {
				done <- step.Address.Device
			} else {
				done <- ""
			}
		}()
	}
	var refused []string
	for range pl.Steps[:4] {
		if name := <-done; name != "" {
			refused = append(refused, name)
		}
	}
	if strings.Join(refused, " ") != "gpu-003" {
		t.Errorf("refused: %v", refused)
	}
	for _, step := range pl.Steps[4:] {
		if f := s.step(s.p, step); f != nil {
			t.Fatal(f)
		}
	}
	for n := 1; n <= 4; n++ { // the refused one keeps what it had
		if got, _ := s.srv.Lease(mac(n)); got != device(n).OOB {
			t.Errorf("device %d gets %s", n, got)
		}
	}
}

// TestOnce: five hundred reservations cost one lock and one restart.
func TestOnce(t *testing.T) {
	for _, service := range services {
		b := newBench(t, dhcptest.Options{Service: service, HostKeys: hostKeys()[1:]}, fleet(100)...)
		pl := b.look(b.p)
		for _, step := range pl.Steps[:100] {
			if f := b.step(b.p, step); f != nil {
				t.Fatal(f)
			}
		}
		// A request is a command, a transfer of any number of files or a question to Kea:
		// each costs the round trips of a slow network. The index takes five, the service
		// six, and eight where Kea is told and asked.
		before := b.p.Requests()
		for _, step := range pl.Steps[100:] {
			r := b.p.Run(t.Context(), b.scope, step, nil)
			for ; r.Outcome == plan.OutcomeWait; r = b.p.Run(t.Context(), b.scope, step, r.Memo) {
				b.clock.pass(r.After)
			}
			if r.Outcome != plan.OutcomeDone {
				t.Fatal(r.Fault)
			}
		}
		if got, most := b.p.Requests()-before, map[string]int{"dnsmasq": 6, "kea": 13, "isc": 11}[service]; got > most {
			t.Errorf("%s: the shared steps take %d requests, no more than %d are needed", service, got, most)
		}
		count := func(is func(exchange.Record) bool) int { return b.srv.Recorder().Count(is) }
		told := count(func(r exchange.Record) bool {
			return r.Mutating && (r.Method == "ssh.exec" || r.Method == "kea.control")
		})
		if told != 1 {
			t.Errorf("%s was told %d times", service, told)
		}
		b.settled()
	}
}

// fleet makes devices with addresses of two subnets.
func fleet(n int) []*plan.Intent {
	var out []*plan.Intent
	for i := range n {
		d := device(1)
		d.Name, d.ID = "node-"+string(rune('a'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10)), int64(5000+i)
		d.BMCMAC = plan.MAC{2, 0, 0x5e, 0x20, byte(i >> 8), byte(i)}
		third := [4]byte{192, 0, 2, byte(1 + i%230)}
		if i >= 230 {
			third = [4]byte{10, byte(i >> 8), byte(i), 7}
		}
		d.OOB = addr(third)
		out = append(out, d)
	}
	return out
}
