package dhcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// far is a connection over which every byte takes half a round trip.
type far struct {
	net.Conn
	in  *io.PipeReader
	out chan parcel
}

type parcel struct {
	due  time.Time
	data []byte
}

func delayed(conn net.Conn, oneWay time.Duration) net.Conn {
	if oneWay == 0 {
		return conn
	}
	r, w := io.Pipe()
	f := &far{Conn: conn, in: r, out: make(chan parcel, 1<<16)}
	arriving := make(chan parcel, 1<<16)
	go func() { // reads at once, so that nothing waits in the kernel
		for {
			b := make([]byte, 64<<10)
			n, err := conn.Read(b)
			if n > 0 {
				arriving <- parcel{time.Now().Add(oneWay), b[:n]}
			}
			if err != nil {
				close(arriving)
				return
			}
		}
	}()
	go func() {
		for p := range arriving {
			time.Sleep(time.Until(p.due))
			_, _ = w.Write(p.data)
		}
		_ = w.CloseWithError(io.EOF)
	}()
	go func() {
		for p := range f.out {
			time.Sleep(time.Until(p.due))
			if _, err := conn.Write(p.data); err != nil {
				return
			}
		}
	}()
	return f
}

func (f *far) Read(b []byte) (int, error) { return f.in.Read(b) }

type farWriter struct {
	*far
	oneWay time.Duration
}

func (f *farWriter) Write(b []byte) (int, error) {
	f.out <- parcel{time.Now().Add(f.oneWay), append([]byte(nil), b...)}
	return len(b), nil
}

// BenchmarkChanged writes 500 reservations, each step asked for by itself as apply
// does, over a network with a latency. It reports how many round trips one run took,
// and what part that is of the bound: 1.5 times what the bytes and the machine's own
// work take without a latency, 12 round trips, and one for each 32 reservations.
func BenchmarkChanged(b *testing.B) {
	for _, service := range services {
		var own time.Duration // of the last run without a latency
		for _, latency := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/%s", service, latency), func(b *testing.B) {
				for b.Loop() {
					srv, scope, p := far500(b, service, latency)
					b.StopTimer()
					kinds := dhcp.Kinds()
					world := p.Read(context.Background(), scope, plan.Desired(scope, kinds))
					pl := plan.Build(plan.Input{Scope: scope, Kinds: kinds, World: world})
					var first, then []*plan.Step
					for _, s := range graphOrder(pl.Steps) {
						if s.Address.Device != "" {
							first = append(first, s)
						} else {
							then = append(then, s)
						}
					}
					if len(first) != 500 {
						b.Fatalf("%d steps, %v", len(first), fault(pl))
					}
					began := time.Now()
					b.StartTimer()
					var wait sync.WaitGroup
					for _, s := range first {
						wait.Go(func() {
							if r := p.Run(context.Background(), scope, s, nil); r.Fault != nil {
								b.Error(r.Fault)
							}
						})
					}
					wait.Wait()
					for _, s := range then {
						for r := p.Run(context.Background(), scope, s, nil); r.Outcome != plan.OutcomeDone; r = p.Run(context.Background(), scope, s, r.Memo) {
							if r.Fault != nil {
								b.Fatal(r.Fault)
							}
						}
					}
					b.StopTimer()
					told := srv.Recorder().Count(func(r exchange.Record) bool {
						return r.Mutating && (r.Method == "ssh.exec" || r.Method == "kea.control")
					})
					if told != 1 {
						b.Errorf("the service was told %d times", told)
					}
					took := time.Since(began)
					if latency == 0 {
						own = took
					} else {
						b.ReportMetric(float64(took)/float64(latency), "roundtrips/op")
						b.ReportMetric(float64(took)/(1.5*(float64(own)+(12+500./32)*float64(latency))), "of-the-bound/op")
					}
					_ = p.Close(context.Background())
					_ = srv.Close()
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkUnchanged looks at 500 reservations that are as wanted, and reports the
// requests after the login.
func BenchmarkUnchanged(b *testing.B) {
	for _, service := range services {
		b.Run(service, func(b *testing.B) {
			srv, scope, p := far500(b, service, 0)
			var names []string
			for _, t := range scope.Targets {
				e := entry(t.Intent)
				srv.PutOld(dhcp.FileName(*scope.Site.DHCP, e), dhcp.Render(*scope.Site.DHCP, e), time.Now())
				names = append(names, dhcp.FileName(*scope.Site.DHCP, e))
			}
			if at, content := dhcp.RenderIndex(*scope.Site.DHCP, names); at != "" {
				srv.PutOld(at, content, time.Now())
			}
			kinds := dhcp.Kinds()
			resources := plan.Desired(scope, kinds)
			for b.Loop() {
				before := p.Requests()
				world := p.Read(context.Background(), scope, resources)
				if pl := plan.Build(plan.Input{Scope: scope, Kinds: kinds, World: world}); len(pl.Steps) != 0 {
					b.Fatalf("%d steps: %v", len(pl.Steps), pl.Steps[0].Address)
				}
				b.ReportMetric(float64(p.Requests()-before), "requests/op")
			}
			if n := srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "sftp.read" }); n != 0 {
				b.Errorf("%d reads of files", n)
			}
			_ = p.Close(context.Background())
			_ = srv.Close()
		})
	}
}

func far500(b *testing.B, service string, latency time.Duration) (*dhcptest.Server, *plan.Scope, *dhcp.Provider) {
	b.Helper()
	main := map[string]string{
		"dnsmasq": "port=0\n",
		"isc":     "subnet 10.0.0.0 netmask 255.0.0.0 { }\ninclude \"/etc/dhcp/enroll.d/index.conf\";\n",
		"kea":     `{ "Dhcp4": { "subnet4": [ { "subnet": "10.0.0.0/8", "reservations": <?include "/etc/kea/enroll.d/index.json"?> } ] } }`,
	}[service]
	srv := dhcptest.New(dhcptest.Options{Service: service, HostKeys: hostKeys()[1:], Main: main})
	settings := srv.Settings()
	settings.Settle = time.Millisecond
	site := &plan.Site{Name: "lon14", ConfigureDHCP: true, DHCP: &settings}
	scope := &plan.Scope{Site: site}
	for i, d := range fleet(500) {
		d.OOB = addr([4]byte{10, 1, byte(i >> 8), byte(i)})
		scope.Targets = append(scope.Targets, &plan.Target{Site: site, Intent: d})
	}
	p, err := dhcp.New(settings, dhcp.Credentials{Identity: plan.NewSecret(string(srv.IdentityPEM), ""), KnownHosts: srv.KnownHosts}, dhcp.Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil || latency == 0 {
				return conn, err
			}
			return &farWriter{delayed(conn, latency/2).(*far), latency / 2}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return srv, scope, p
}
