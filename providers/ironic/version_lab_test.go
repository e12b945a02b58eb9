//go:build lab

package ironic_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// A real Ironic that is made to refuse every newer version: at the oldest that is
// used a device goes to available all the same, without its inspection.
func TestOldVersionLab(t *testing.T) {
	const offers = 65
	l, at, _ := realLab(t, "fake-hardware")
	behind, err := url.Parse(at.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}
	refused := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		minor, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("X-OpenStack-Ironic-API-Version"), "1."))
		if err != nil {
			t.Error(err)
		}
		if minor > offers {
			refused++ // there is one device, and one request at a time
			w.Header().Set("X-OpenStack-Ironic-API-Minimum-Version", "1.1")
			w.Header().Set("X-OpenStack-Ironic-API-Maximum-Version", "1."+strconv.Itoa(offers))
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	l.scope.Site.Ironics[0].Endpoint = front.URL
	l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
	connect := func() {
		if l.client, err = ironic.New(l.scope.Site.Ironics, credentials{}, ironic.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	connect()
	if errs := l.plan().Errors(); len(errs) == 0 || errs[0].Fault.Code != plan.CodeIronicUnsupported || errs[0].Fault.Evidence["needed"] != "1.81" {
		t.Errorf("%v", errs)
	}
	l.scope.Parameters.SkipInspection = true
	connect()
	refused = 0
	p := l.plan()
	if errs := p.Errors(); len(errs) > 0 {
		t.Fatal(errs[0].Fault)
	}
	if f, _ := l.walk(p); f != nil {
		t.Fatal(f)
	}
	if n := l.see(); n["provision_state"] != "available" || n["owner"] != "proj-enrol" || refused != 1 {
		t.Errorf("the node is %v, owner %v, %d requests were refused", n["provision_state"], n["owner"], refused)
	}
	if p := l.plan(); len(p.Steps) > 0 || len(p.Errors()) > 0 {
		t.Errorf("then: %v, %v", shown(p), p.Diagnostics)
	}
}
