package ironic_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// keystone is an identity service that gives out tokens T1, T2, … for an
// application credential, and a catalogue with one baremetal endpoint.
func keystone(t *testing.T, baremetal string, tokens *atomic.Int64) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Auth struct {
				Identity struct {
					Credential struct {
						ID, Secret string
					} `json:"application_credential"`
				} `json:"identity"`
			} `json:"auth"`
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v3/auth/tokens" || json.NewDecoder(r.Body).Decode(&body) != nil {
			http.NotFound(w, r)
			return
		}
		if body.Auth.Identity.Credential.Secret != "good" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`)
			return
		}
		w.Header().Set("X-Subject-Token", fmt.Sprintf("T%d", tokens.Add(1)))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": {"expires_at": "2999-01-01T00:00:00.000000Z", "catalog": [{"type": "baremetal", "name": "ironic", "endpoints": [
			{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": %q}]}]}}`, baremetal)
	}))
	t.Cleanup(s.Close)
	return s
}

func cloudsFile(t *testing.T, auth, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	text := fmt.Sprintf("clouds:\n  lon14:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: %s/v3\n      application_credential_id: ID\n      application_credential_secret: %s\n    region_name: RegionOne\n    interface: public\n", auth, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A cloud of clouds.yaml: nothing is sent before the first question, a token
// that expired is renewed once, and every request carries the version.
func TestCloud(t *testing.T) {
	l := newLab(t, 1)
	l.sim.AddNode(available(l.scope.Targets[0], l))
	var tokens atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		public := r.URL.Path == "/" // the library's own look at the versions, once
		if r.Header.Get("X-OpenStack-Ironic-API-Version") != "1.82" && !public {
			t.Errorf("%s %s: version %q", r.Method, r.URL, r.Header.Get("X-OpenStack-Ironic-API-Version"))
		}
		if r.Header.Get("X-Auth-Token") != "T2" && !public { // T1 has expired
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`)
			return
		}
		r2, err := http.NewRequest(r.Method, l.sim.URL+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		r2.Header = r.Header
		resp, err := http.DefaultClient.Do(r2)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = fmt.Fprint(w, readAll(t, resp))
	}))
	t.Cleanup(proxy.Close)
	settings := l.scope.Site.Ironics[0]
	settings.Endpoint, settings.Cloud = "", "lon14"
	identity := keystone(t, proxy.URL, &tokens)
	c, err := ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{Now: l.clock.Now, CloudsFile: cloudsFile(t, identity.URL, "good")})
	if err != nil {
		t.Fatal(err)
	}
	if tokens.Load() != 0 || c.Requests() != 0 {
		t.Error("New sent a request")
	}
	o := c.Ownership(t.Context(), l.scope)["gpu-001"]
	if o.Unknown != nil || o.State != plan.StateAvailable {
		t.Errorf("%+v", o)
	}
	// Token, versions, refused look, token, look.
	if c.Requests() != 5 || tokens.Load() != 2 {
		t.Errorf("%d requests, %d tokens", c.Requests(), tokens.Load())
	}
	// A credential that Keystone refuses, and a request that a missing access
	// rule refuses.
	c, err = ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{Now: l.clock.Now, CloudsFile: cloudsFile(t, identity.URL, "bad")})
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Ownership(t.Context(), l.scope)["gpu-001"]; o.Unknown == nil || o.Unknown.Code != plan.CodeIronicDenied {
		t.Errorf("%+v", o)
	}
	tokens.Store(7)
	c, err = ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{Now: l.clock.Now, CloudsFile: cloudsFile(t, identity.URL, "good")})
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Ownership(t.Context(), l.scope)["gpu-001"]; o.Unknown == nil || o.Unknown.Code != plan.CodeIronicDenied || !strings.Contains(o.Unknown.Summary, "no access rule") {
		t.Errorf("%+v", o)
	}
	settings.Cloud = "nowhere"
	c, err = ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{Now: l.clock.Now, CloudsFile: cloudsFile(t, identity.URL, "good")})
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Ownership(t.Context(), l.scope)["gpu-001"]; o.Unknown == nil || o.Unknown.Code != plan.CodeConfigInvalid {
		t.Errorf("%+v", o)
	}
}

func TestCertificates(t *testing.T) {
	l := newLab(t, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/ports") {
			_, _ = w.Write([]byte(`{"ports": []}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	settings := l.scope.Site.Ironics[0]
	settings.Endpoint = s.URL
	ask := func() *plan.Fault {
		c, err := ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{Now: l.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return c.Ownership(t.Context(), l.scope)["gpu-001"].Unknown
	}
	if f := ask(); f == nil || !strings.Contains(f.Summary, "certificate") || !strings.Contains(f.Hint, "ca_file") {
		t.Errorf("%v", f)
	}
	settings.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(settings.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := ask(); f != nil {
		t.Error(f)
	}
	settings.CAFile += ".missing"
	if _, err := ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{}); plan.AsFault(err).Code != plan.CodeConfigInvalid {
		t.Error(err)
	}
	if _, err := ironic.New([]plan.IronicSettings{{Name: "x"}}, credentials{}, ironic.Options{}); plan.AsFault(err).Code != plan.CodeConfigInvalid {
		t.Error(err)
	}
}
