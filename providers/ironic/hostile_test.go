package ironic_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// pointedAt is a lab whose client talks to a server of the test's own.
func pointedAt(t *testing.T, serve http.HandlerFunc) *lab {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	l := newLab(t, 2)
	l.scope.Site.Ironics[0].Endpoint = server.URL
	l.client = l.connect()
	return l
}

// A list that leads round in a circle, however long that is, ends; its links lead to
// no other host.
func TestListsWithoutEnd(t *testing.T) {
	for _, pages := range []int{1, 2, 5} {
		var asked atomic.Int64
		l := pointedAt(t, func(w http.ResponseWriter, r *http.Request) {
			n := int(asked.Add(1)) - 1
			collection := strings.TrimPrefix(r.URL.Path, "/v1/")
			fmt.Fprintf(w, `{"next":"http://elsewhere.example.org/v1/nodes?marker=x","%s":[{"uuid":"u%d","name":"n%d","provision_state":"manageable"}]}`, collection, n%pages, n%pages)
			if n > 20 {
				t.Error("it does not end")
				http.Error(w, "{}", http.StatusTeapot)
			}
		})
		for _, o := range l.client.Ownership(t.Context(), l.scope) {
			if o.Unknown == nil || o.Unknown.Code != plan.CodeIronicProtocol {
				t.Errorf("%d pages: %+v", pages, o)
			}
		}
	}
}

// Of an error of a gigabyte no more is read than its words need.
func TestErrorsWithoutEnd(t *testing.T) {
	var sent atomic.Int64
	l := pointedAt(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 1 << 10 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			sent.Add(int64(len(chunk)))
		}
	})
	for _, o := range l.client.Ownership(t.Context(), l.scope) {
		if o.Unknown == nil || len(o.Unknown.Evidence["words"]) > 400 {
			t.Errorf("%+v", o)
		}
	}
	if n := sent.Load(); n > 100<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// swapped lets another node have the device's name.
func (l *lab) swapped() {
	l.sim.Set("gpu-001", "name", "renamed")
	l.sim.AddNode(ironictest.Node{Name: "gpu-001", State: plan.StateManageable})
}

// A name that moves to another node of the same state between any two exchanges of
// the walk leads to no write to that node: it is another machine.
func TestANameThatMoves(t *testing.T) {
	for at := int64(1); ; at++ {
		l := newLab(t, 1)
		steps := l.plan().Steps
		var n atomic.Int64
		var moved atomic.Bool
		l.before = func(*http.Request) {
			if n.Add(1) == at {
				if _, there := l.sim.Node("gpu-001"); there {
					l.swapped()
					moved.Store(true)
				}
			}
		}
		l.client = l.connect()
		for _, s := range steps {
			if f := l.step(s); f != nil {
				break
			}
		}
		if other, _ := l.sim.Node("gpu-001"); moved.Load() && (len(l.sim.Verbs("gpu-001")) != 0 || other.Maintenance || len(other.DriverInfo) != 0) {
			t.Errorf("at exchange %d: the other node got %v, %v", at, l.sim.Verbs("gpu-001"), other.DriverInfo)
		}
		if n.Load() < at {
			break
		}
	}
}
