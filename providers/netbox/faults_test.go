package netbox_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// noSecret fails when any part of the token is in what a person could see.
func noSecret(t *testing.T, f *plan.Fault) {
	t.Helper()
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	_, half, _ := strings.Cut(netboxtest.DefaultToken, ".")
	for _, text := range []string{string(raw), f.Error(), fmt.Sprintf("%+v", f)} {
		if strings.Contains(text, half) || strings.Contains(text, netboxtest.DefaultToken) {
			t.Errorf("the token is in %s", text)
		}
	}
}

// What NetBox, a proxy or the network can do at an exchange. Bodies and headers
// repeat the token, as careless proxies do.
type mishap struct {
	name  string
	fault exchange.Fault
	read  plan.Code // "" : a bulk read gets over it
	write plan.Code // of the PATCH; "": the step is done
}

func mishaps() []mishap {
	body := func(key string) string { return `{"` + key + `":"you sent ` + netboxtest.DefaultToken + `"}` }
	status := func(code int, body string, header map[string]string) exchange.Fault {
		if header == nil {
			header = map[string]string{"Content-Type": "application/json"}
		}
		return exchange.Fault{Kind: exchange.Status, Status: code, Body: body, Header: header}
	}
	web := map[string]string{"Content-Type": "text/html"}
	pageBody := "<html><head><title>Error " + netboxtest.DefaultToken + "</title></head></html>"
	return []mishap{
		{"delay", exchange.Fault{Kind: exchange.Delay, Delay: 20 * time.Millisecond}, "", ""},
		{"stall", exchange.Fault{Kind: exchange.Stall}, plan.CodeNetBoxUnreachable, plan.CodeNetBoxUnreachable},
		{"reset", exchange.Fault{Kind: exchange.Reset}, "", plan.CodeNetBoxUnreachable},
		{"half a body", exchange.Fault{Kind: exchange.HalfBody}, "", ""},
		{"lost reply", exchange.Fault{Kind: exchange.LostReply}, "", ""},
		{"garbage", exchange.Fault{Kind: exchange.Garbage}, plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"301", status(301, "", map[string]string{"Location": "https://other.example.net/" + netboxtest.DefaultToken}), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"400", status(400, body("status"), nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxRefused},
		{"401", status(401, body("detail"), nil), plan.CodeNetBoxDenied, plan.CodeNetBoxDenied},
		{"403", status(403, body("detail"), nil), plan.CodeNetBoxDenied, plan.CodeNetBoxDenied},
		{"403 page", status(403, pageBody, web), plan.CodeNetBoxDenied, plan.CodeNetBoxDenied},
		{"404", status(404, body("detail"), nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxDenied},
		{"404 page", status(404, pageBody, web), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"429", status(429, body("detail"), map[string]string{"Content-Type": "application/json", "Retry-After": "1"}), "", plan.CodeNetBoxUnreachable},
		{"500", status(500, body("error"), nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxRefused},
		{"502 page", status(502, pageBody, web), "", plan.CodeNetBoxUnreachable},
		{"503", status(503, "", nil), "", plan.CodeNetBoxUnreachable},
		{"200 empty", status(200, "", nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"200 null", status(200, "null", nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"200 array", status(200, "[]", nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"200 error", status(200, body("detail"), nil), plan.CodeNetBoxProtocol, plan.CodeNetBoxProtocol},
		{"200 of another", status(200, `{"id":4711,"name":"x","count":1,"results":[{"id":0}],"status":{"value":"active"},"tags":[],"custom_fields":{}}`, nil), plan.CodeNetBoxProtocol, plan.CodeDeviceNotFound},
	}
}

// client makes the client that meets a mishap. Only for stalls does it give up
// soon.
func (m mishap) client(t *testing.T, url string) *netbox.Client {
	t.Helper()
	if m.fault.Kind != exchange.Stall {
		return client(t, url, netboxtest.DefaultToken)
	}
	c, err := netbox.New(netbox.Options{
		URL: url, Token: plan.NewSecret(netboxtest.DefaultToken, ""), Timeout: 300 * time.Millisecond, Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each mishap at each exchange of the bulk reads: a classified fault, or the
// whole answer. Never a part of it.
func TestFaultsReading(t *testing.T) {
	for _, m := range mishaps() {
		for at := 1; at <= 7; at++ {
			t.Run(fmt.Sprintf("%s at %d", m.name, at), func(t *testing.T) {
				t.Parallel()
				s := serve(t, netboxtest.Options{}, host(1))
				f := m.fault
				f.At = at
				s.Recorder.Inject(&f)
				intents, failed, err := m.client(t, s.URL).Intents(context.Background(), site(), []string{"gpu-001"})
				if m.read == "" {
					if err != nil || len(failed) > 0 || len(intents) != 1 || len(intents[0].Faults) > 0 {
						t.Fatalf("%v %v %v", intents, failed, err)
					}
					return
				}
				if intents != nil {
					t.Error("a part was given together with the error")
				}
				noSecret(t, faultOf(t, err, m.read))
			})
		}
		t.Run(m.name+" at Read", func(t *testing.T) {
			t.Parallel()
			s := serve(t, netboxtest.Options{}, host(1))
			sc := scopeOf(site(), intent(t, client(t, s.URL, s.Token), site(), "gpu-001"))
			s.Recorder.Reset()
			f := m.fault
			f.At = 1
			s.Recorder.Inject(&f)
			res := desired(sc)
			snap := m.client(t, s.URL).Read(context.Background(), sc, res)
			for _, r := range res {
				live := snap.Get(r.Address)
				if m.read == "" {
					if live.Presence != plan.Present {
						t.Errorf("%s: %s %v", r.Address, live.Presence, live.Fault)
					}
					continue
				}
				if live.Presence != plan.Unreadable {
					t.Fatalf("%s: %s", r.Address, live.Presence)
				}
				noSecret(t, faultOf(t, live.Fault, m.read))
			}
		})
	}
}

// Each mishap at the read and at the PATCH of each kind, on a NetBox with and
// without add_tags. Whatever happens, the device is written once at most, and
// the outcome says the truth about it.
func TestFaultsWriting(t *testing.T) {
	for _, local := range writable() {
		for _, m := range mishaps() {
			for _, method := range []string{"GET", "PATCH"} {
				t.Run(local+" "+m.name+" at "+method, func(t *testing.T) {
					t.Parallel()
					s := serve(t, netboxtest.Options{}, host(1))
					c := client(t, s.URL, s.Token)
					sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
					step := stepFor(t, c, sc, local)
					s.Recorder.Reset()
					f := m.fault
					f.Method, f.Path, f.Times = method, "/api/dcim/devices/1/", 1
					s.Recorder.Inject(&f)
					r := m.client(t, s.URL).Run(context.Background(), sc, step, nil)
					applied := shows(t, c, sc, step)
					done := m.write == ""
					if method == "GET" {
						// The exchange ends where its read does: trying again is the
						// interpreter's business. Go itself sends a GET again when the
						// connection that it kept was cut.
						kind := m.fault.Kind
						done = kind == exchange.Delay || (kind == exchange.Reset || kind == exchange.LostReply) && r.Outcome == plan.OutcomeDone
					}
					if done {
						if r.Outcome != plan.OutcomeDone || !applied {
							t.Fatalf("%s, applied %t, %v", r.Outcome, applied, r.Fault)
						}
						return
					}
					if r.Outcome != plan.OutcomeFailed || applied {
						t.Fatalf("%s, applied %t, %v", r.Outcome, applied, r.Fault)
					}
					noSecret(t, r.Fault)
					if method == "PATCH" {
						wantCode(t, r.Fault, m.write)
					}
					if n := s.Recorder.Count(func(rec exchange.Record) bool { return rec.Mutating }); n > 1 {
						t.Errorf("%d writes", n)
					}
				})
			}
		}
	}
}

// A write that NetBox answers with 200 and does not store is seen.
func TestNotApplied(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	for _, local := range writable() {
		s.Recorder.Reset()
		s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 200, Body: `{"id":1,"name":"gpu-001","status":{"value":"staged","label":"x"},"tags":[],"custom_fields":{"platform_class":null},"last_updated":"x"}`})
		f := faultOf(t, c.Run(context.Background(), sc, stepFor(t, c, sc, local), nil).Fault, plan.CodeNotApplied)
		if f.Evidence["want"] == "" || f.Evidence["found"] == "" {
			t.Errorf("evidence %v", f.Evidence)
		}
	}
}

// Rights: the fault names the one that is missing.
func TestRights(t *testing.T) {
	d := host(1)
	opt := netboxtest.Options{Tokens: []netboxtest.Token{{Value: netboxtest.DefaultToken}, {Value: netboxtest.DefaultReadOnlyToken, ReadOnly: true}, {Value: "nbt_k.stagedOnlyToken00000000", ChangeStatus: "staged"}, {Value: "nbt_k.activeOnlyToken00000000", ChangeStatus: "active"}}}
	s := serve(t, opt, d)
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	step := stepFor(t, c, sc, "netbox.status")
	for _, token := range []string{s.ReadOnlyToken, "nbt_k.stagedOnlyToken00000000", "nbt_k.activeOnlyToken00000000"} {
		f := faultOf(t, client(t, s.URL, token).Run(context.Background(), sc, step, nil).Fault, plan.CodeNetBoxDenied)
		if f.Evidence["permission"] != "dcim.change_device" {
			t.Errorf("evidence %v", f.Evidence)
		}
	}
	_, _, err := client(t, s.URL, "nbt_wrong.0123456789abcdef").Intents(context.Background(), site(), []string{"gpu-001"})
	f := faultOf(t, err, plan.CodeNetBoxDenied)
	if !strings.Contains(f.Summary, "Invalid v2 token") || f.Evidence["status"] != "403" || f.Evidence["permission"] != "dcim.view_site" {
		t.Errorf("%v %v", f, f.Evidence)
	}
	if got, _ := s.Device("gpu-001"); got.Status != "staged" {
		t.Errorf("status %s", got.Status)
	}
}

// A tag that does not exist is a server error in NetBox; the fault says what it is.
func TestUnknownTag(t *testing.T) {
	for _, version := range []string{"4.5", "4.7"} {
		s := netboxtest.New(netboxtest.Options{Version: version})
		t.Cleanup(s.Close)
		s.AddDevice(host(1))
		c := client(t, s.URL, s.Token)
		sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
		f := faultOf(t, c.Run(context.Background(), sc, stepFor(t, c, sc, "netbox.tag[ironic]"), nil).Fault, plan.CodeNetBoxRefused)
		if !strings.Contains(f.WayOut(), "Create a tag with the slug ironic") {
			t.Errorf("%s: hint %q", version, f.WayOut())
		}
	}
}

// An interrupted run is no unreachable NetBox.
func TestInterrupted(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	step := stepFor(t, c, sc, "netbox.status")
	for _, method := range []string{"GET", "PATCH"} {
		s.Recorder.Reset()
		s.Recorder.Inject(&exchange.Fault{Kind: exchange.Stall, Method: method})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		wantCode(t, c.Run(ctx, sc, step, nil).Fault, plan.CodeInterrupted)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := c.Intents(ctx, site(), []string{"gpu-001"})
	wantCode(t, err, plan.CodeInterrupted)
}

// Where there is no NetBox at all.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	_ = l.Close()
	_, _, err = client(t, closed, netboxtest.DefaultToken).Intents(context.Background(), site(), []string{"gpu-001"})
	f := faultOf(t, err, plan.CodeNetBoxUnreachable)
	if !strings.Contains(f.Summary, "nothing accepts connections at "+closed) {
		t.Errorf("%v", f)
	}
	_, _, err = client(t, "http://netbox.invalid", netboxtest.DefaultToken).Intents(context.Background(), site(), []string{"gpu-001"})
	wantCode(t, err, plan.CodeNetBoxUnreachable)
}

// TLS: the site's own authority, and none.
func TestTLS(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	secure := httptest.NewUnstartedServer(s.Handler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is wanted
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	_, _, err := client(t, secure.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-001"})
	f := faultOf(t, err, plan.CodeNetBoxUnreachable)
	if !strings.Contains(f.Summary, "certificate") || !strings.Contains(f.WayOut(), "ca_file") {
		t.Errorf("%v: %s", f, f.WayOut())
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := netbox.New(netbox.Options{URL: secure.URL, Token: plan.NewSecret(s.Token, ""), CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	intent(t, c, site(), "gpu-001")
}

func TestOptions(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := plan.NewSecret(netboxtest.DefaultToken, "")
	for name, tc := range map[string]struct {
		opt  netbox.Options
		code plan.Code
	}{
		"no url":       {netbox.Options{Token: good}, plan.CodeConfigInvalid},
		"ftp":          {netbox.Options{URL: "ftp://netbox", Token: good}, plan.CodeConfigInvalid},
		"password":     {netbox.Options{URL: "https://root:" + netboxtest.DefaultToken + "@netbox", Token: good}, plan.CodeConfigInvalid},
		"no token":     {netbox.Options{URL: "https://netbox"}, plan.CodeSecretInvalid},
		"token + line": {netbox.Options{URL: "https://netbox", Token: plan.NewSecret(netboxtest.DefaultToken+"\n", "")}, plan.CodeSecretInvalid},
		"ca missing":   {netbox.Options{URL: "https://netbox", Token: good, CAFile: filepath.Join(t.TempDir(), "none.pem")}, plan.CodeConfigInvalid},
		"ca no PEM":    {netbox.Options{URL: "https://netbox", Token: good, CAFile: notPEM}, plan.CodeConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := netbox.New(tc.opt)
			noSecret(t, faultOf(t, err, tc.code))
		})
	}
}

// An old NetBox is refused; a newer one than tested and one that hides its
// version are warned about.
func TestVersions(t *testing.T) {
	read := func(url string) ([]plan.Diagnostic, error) {
		_, failed, err := client(t, url, strings.Repeat("0123456789", 4)).Intents(context.Background(), site(), []string{"gpu-001"})
		return failed, err
	}
	opt := func(v string) netboxtest.Options {
		return netboxtest.Options{Version: v, Tokens: []netboxtest.Token{{Value: strings.Repeat("0123456789", 4)}}}
	}
	_, err := read(serve(t, opt("4.1"), host(1)).URL)
	wantCode(t, err, plan.CodeNetBoxUnsupported)
	failed, err := read(serve(t, opt("4.9"), host(1)).URL)
	if err != nil || len(failed) != 1 || failed[0].Severity != plan.SeverityWarning || failed[0].Device != "" {
		t.Errorf("4.9: %v %v", failed, err)
	}
	s := serve(t, opt("4.7"), host(1))
	inner := s.Handler()
	hidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	t.Cleanup(hidden.Close)
	failed, err = read(hidden.URL)
	if err != nil || len(failed) != 1 || failed[0].Severity != plan.SeverityWarning {
		t.Errorf("hidden: %v %v", failed, err)
	}
	c := client(t, hidden.URL, strings.Repeat("0123456789", 4))
	sc := scopeOf(site(), intent2(t, c))
	if r := through(t, c, sc, stepFor(t, c, sc, "netbox.tag[ironic]")); r.Outcome != plan.OutcomeDone {
		t.Errorf("tag behind a proxy: %s %v", r.Outcome, r.Fault)
	}
}

// intent2 is intent where a warning about NetBox is expected.
func intent2(t *testing.T, c *netbox.Client) *plan.Intent {
	t.Helper()
	intents, _, err := c.Intents(context.Background(), site(), []string{"gpu-001"})
	if err != nil {
		t.Fatal(err)
	}
	return intents[0]
}

// A list that moves while it is read is read once more, then refused.
func TestMovingList(t *testing.T) {
	s := serve(t, netboxtest.Options{PageCap: 2})
	for n := 1; n <= 5; n++ {
		s.AddDevice(host(n))
	}
	c := client(t, s.URL, s.Token)
	names, err := c.Names(context.Background(), site(), netbox.Filter{})
	if err != nil || len(names) != 5 {
		t.Fatalf("%v %v", names, err)
	}
	body := `{"count":5,"next":null,"previous":null,"results":[]}`
	s.Recorder.Reset()
	s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, At: 4, Status: 200, Body: body})
	if names, err = c.Names(context.Background(), site(), netbox.Filter{}); err != nil || len(names) != 5 {
		t.Errorf("moved once: %v %v", names, err)
	}
	s.Recorder.Reset()
	s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Path: "/api/dcim/devices/", Status: 200, Body: body})
	_, err = c.Names(context.Background(), site(), netbox.Filter{})
	wantCode(t, err, plan.CodeNetBoxProtocol)
}

// Retry-After is waited for, within a bound.
func TestRetryAfter(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 500 * time.Millisecond, "3": 3 * time.Second, "86400": 10 * time.Second, now.Add(7 * time.Second).Format(http.TimeFormat): 7 * time.Second,
	} {
		var slept []time.Duration
		c, err := netbox.New(netbox.Options{URL: s.URL, Token: plan.NewSecret(s.Token, ""), Now: func() time.Time { return now }, Sleep: func(_ context.Context, d time.Duration) error {
			slept = append(slept, d)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.Recorder.Reset()
		s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Status: 429, Header: map[string]string{"Retry-After": header}, At: 1})
		intent(t, c, site(), "gpu-001")
		if len(slept) != 1 || slept[0] != want {
			t.Errorf("Retry-After %q: slept %v, not %s", header, slept, want)
		}
	}
	s.Recorder.Reset()
	s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Status: 503})
	_, _, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-001"})
	if f := faultOf(t, err, plan.CodeNetBoxUnreachable); f.Evidence["attempts"] != "3" {
		t.Errorf("evidence %v", f.Evidence)
	}
	if errors.Is(err, plan.CodeNetBoxProtocol) {
		t.Error("two codes at once")
	}
}
