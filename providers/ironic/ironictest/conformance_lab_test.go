//go:build lab

package ironictest_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestConformanceLab runs the same exchanges against a real Ironic. Its nodes
// are named conf-… and are gone at the end, whatever happened.
func TestConformanceLab(t *testing.T) {
	url := os.Getenv("ENROLL_LAB_IRONIC_URL")
	if url == "" {
		t.Fatal("ENROLL_LAB_IRONIC_URL is not set: start the lab with make lab-up")
	}
	s := newSuite(t, url, rand.Uint32())
	t.Cleanup(func() {
		for _, name := range []string{"{a}", "{b}"} {
			s.remove(name)
		}
	})
	s.run()
}

// remove deletes a node from whatever state the suite left it in.
func (s *suite) remove(name string) {
	path := "/v1/nodes/" + name
	for range 50 {
		resp, _ := s.send(exchange{method: http.MethodDelete, path: path})
		if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotFound {
			return
		}
		s.send(exchange{method: http.MethodPatch, path: path, body: `[{"op": "remove", "path": "/instance_uuid"}]`})
		s.send(exchange{method: http.MethodPut, path: path + "/states/provision", body: `{"target": "abort"}`})
		s.send(exchange{method: http.MethodPut, path: path + "/states/provision", body: `{"target": "manage"}`}) // a failed node cannot be deleted
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Errorf("node %s is left behind", s.fill(name))
}
