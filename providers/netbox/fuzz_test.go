package netbox_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// FuzzAnswers gives one foreign body to every list of a reading. Whatever it is,
// the reading ends with a classified fault or with intents, never with a panic,
// never for ever; and no fault shows a terminal more than printable text.
func FuzzAnswers(f *testing.F) {
	s := netboxtest.New(netboxtest.Options{})
	f.Cleanup(s.Close)
	s.AddDevice(host(1))
	var mu sync.Mutex            // requests run side by side
	paths := map[string]string{} // of each body
	inner := s.Handler()
	record := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		mu.Lock()
		paths[rec.Body.String()] = r.URL.Path
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("API-Version", "4.7")
		_, _ = w.Write(rec.Body.Bytes())
	}))
	c, err := netbox.New(netbox.Options{URL: record.URL, Token: plan.NewSecret(netboxtest.DefaultToken, "")})
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := c.Intents(context.Background(), site(), []string{"gpu-001"}); err != nil {
		f.Fatal(err)
	}
	record.Close()
	for _, body := range slices.Sorted(maps.Keys(paths)) {
		f.Add(paths[body], body)
	}
	samples, err := filepath.Glob("netboxtest/testdata/samples/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range samples {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("/api/dcim/devices/", string(raw))
		f.Add("/api/dcim/interfaces/", string(raw))
	}
	for _, body := range []string{"", "null", "[]", "{}", `{"count":1,"results":[null]}`, `{"count":1,"results":[{"id":1,"name":"\u202e\u001b[2J"}]}`, "<html>", `{"detail":"x"}`} {
		f.Add("/api/dcim/devices/", body)
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				inner.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("API-Version", "4.7")
			_, _ = w.Write([]byte(body))
		}))
		defer front.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		c, err := netbox.New(netbox.Options{URL: front.URL, Token: plan.NewSecret(netboxtest.DefaultToken, ""), Sleep: func(context.Context, time.Duration) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		intents, failed, err := c.Intents(ctx, site(), []string{"gpu-001"})
		if err != nil {
			printable(t, plan.AsFault(err))
			if intents != nil {
				t.Error("intents beside an error")
			}
			return
		}
		for _, d := range failed {
			printable(t, d.Fault)
		}
		for _, in := range intents {
			for _, f := range append(in.Faults, in.Warnings...) {
				printable(t, f)
			}
		}
	})
}

// printable wants summaries and hints that a terminal can show as they are.
func printable(t *testing.T, f *plan.Fault) {
	t.Helper()
	for _, text := range []string{f.Summary, f.WayOut()} {
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q in %q", text[i:min(len(text), i+4)], text)
		}
	}
}

// Names that want to be more than text: nothing of them reaches a summary or a
// hint but printable characters, wherever in the record they stand.
func TestHostileNames(t *testing.T) {
	const evil = "x\x1b[31m\u202egpu\u200f\n::error::\x07"
	for name, change := range map[string]func(d *netboxtest.Device){
		"nothing":      func(*netboxtest.Device) {},
		"serial":       func(d *netboxtest.Device) { d.Serial = "None" },
		"status, rack": func(d *netboxtest.Device) { d.Rack, d.Position, d.Status = evil, 0, "failed" },
		"role":         func(d *netboxtest.Device) { d.Role = evil },
		"type":         func(d *netboxtest.Device) { d.Type = netboxtest.Type{Manufacturer: evil, Model: evil} },
		"gpu_type": func(d *netboxtest.Device) {
			d.Type = netboxtest.Type{Model: evil, CustomFields: map[string]any{"gpu_type": evil}}
		},
		"recorded class": func(d *netboxtest.Device) { d.CustomFields = map[string]any{"platform_class": evil} },
		"interface": func(d *netboxtest.Device) {
			d.Interfaces[1].Name, d.Interfaces[1].MAC, d.Interfaces[1].Peer = evil, "", netboxtest.Peer{}
		},
		"two interfaces": func(d *netboxtest.Device) {
			d.Interfaces[1].Name, d.Interfaces[1].MAC = evil, d.Interfaces[2].MAC
		},
		"MAC":      func(d *netboxtest.Device) { d.Interfaces[0].MAC = evil },
		"far ends": func(d *netboxtest.Device) { d.Interfaces[1].More = []netboxtest.Peer{{Device: evil, Port: evil}} },
		"LAG": func(d *netboxtest.Device) {
			d.Interfaces[1].Peer = netboxtest.Peer{Device: evil, Port: evil, LAG: ""}
		},
		"planned": func(d *netboxtest.Device) { d.Interfaces[1].Peer.Device, d.Interfaces[1].Planned = evil, true },
		"console": func(d *netboxtest.Device) {
			d.Interfaces[1].Peer = netboxtest.Peer{Device: evil, Port: evil, Kind: "dcim.consoleport"}
		},
		"address": func(d *netboxtest.Device) { d.OOB.Address, d.OOB.Status = evil, evil },
		"parent":  func(d *netboxtest.Device) { d.Parent = evil },
		"settings": func(d *netboxtest.Device) {
			d.Context["ironic_settings"] = map[string]any{evil: evil, "driver": evil, "bond": map[string]any{"mode": evil}, "interface_type": evil}
		},
		"ztp": func(d *netboxtest.Device) { d.Context["ztp"], d.Context["ntp"] = evil, evil },
	} {
		t.Run(name, func(t *testing.T) {
			d := host(1)
			d.Name = "gpu" + evil
			change(&d)
			s := serve(t, netboxtest.Options{}, d)
			intents, failed, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{d.Name})
			if err != nil {
				printable(t, plan.AsFault(err))
			}
			for _, d := range failed {
				printable(t, d.Fault)
			}
			for _, in := range intents {
				for _, f := range append(in.Faults, in.Warnings...) {
					printable(t, f)
				}
			}
		})
	}
}
