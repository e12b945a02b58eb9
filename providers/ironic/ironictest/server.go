// Package ironictest is an Ironic for tests and the embedded lab, in the style
// of net/http/httptest: API 1.1 to 1.82 without Keystone over real HTTP, with
// real state. Statuses and words are those of Ironic 21.4.4; a node moves
// through its provision states by the clock, so that a test with a virtual
// clock needs no waiting. What it knows it refuses where the real service does;
// what it does not know is 404 or 501, never a kind answer.
//
// Three things differ from the real service on purpose: a locked node answers 409 at
// once (Ironic itself retries for two seconds), creating a port on a locked node
// is refused as in 21.4 (39.0 allows it), and policies are not evaluated (as
// with auth_strategy noauth).
package ironictest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// Durations are how long things take. Zero values become the times that were
// measured with fake hardware.
type Durations struct {
	Verify  time.Duration // verifying; default 60 ms
	Inspect time.Duration // from inspecting to the end; default 150 ms
	Clean   time.Duration // from cleaning to the end; default 150 ms
	Power   time.Duration // a power change; default 50 ms
	Release time.Duration // from the final state to the free lock; default 45 ms
}

// Options say what Ironic it is. The zero value is a healthy one with the real
// clock.
type Options struct {
	Now      func() time.Time
	Recorder *exchange.Recorder // nil: an own one
	Durations
	// Inventory gives what the ramdisk of a node posts at its inspection: the JSON
	// object {"inventory": …, "plugin_data": …}. False: the ramdisk never calls
	// back, and the inspection times out. Nil does the same. A node with
	// inspect_interface "fake" is not asked. It is called while the server is
	// locked: it must not send it requests.
	Inventory func(NodeView) (json.RawMessage, bool)
	// Verify says whether Ironic reaches the BMC with the given driver_info, the
	// password in clear; its error becomes last_error. Nil: it does. The same
	// restriction as for Inventory holds.
	Verify func(driverInfo map[string]any) error
	// PowerOffAfterInspection is Ironic's default [inspector] power_off.
	PowerOffAfterInspection bool
	// Without says which requests Keystone's middleware refuses because the
	// credential has no access rule for them; nil: none.
	Without func(*http.Request) bool
	// Before is called before a request is looked at, and may change the world as
	// somebody else would.
	Before func(*http.Request)
	// OnPower is told of every power change that was carried out.
	OnPower func(n NodeView)
}

// NodeView is a node as hooks and tests see it.
type NodeView struct {
	Name, UUID, Driver string
	ProvisionState     plan.ProvisionState
	PowerState         string
	InstanceUUID       string
	LastError          string
	Reservation        string
	Maintenance        bool
	DriverInfo         map[string]any // with the secrets
	Properties         map[string]any
	Extra              map[string]any
	Traits             []any
	MACs               []string // of its ports
	PXE                []string // those of them that have PXE
	HasInventory       bool
}

// Server is a running Ironic.
type Server struct {
	URL string // without /v1

	options  Options
	recorder *exchange.Recorder
	http     *http.Server
	done     chan struct{}

	mu         sync.Mutex
	newest     int // microversion that is offered
	nodes      []*simNode
	ports      []*object
	portgroups []*object
	serial     int
}

const (
	maxVersion = 82 // 1.82
	minVersion = 1
	conductor  = "localhost"
)

// New starts the service on a loopback port of the kernel's choice. Like
// httptest.NewServer it panics when there is none.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the real clock is the default
	}
	if o.Recorder == nil {
		o.Recorder = exchange.NewRecorder(o.Now, nil)
	}
	preset(&o.Durations.Verify, 60*time.Millisecond)
	preset(&o.Inspect, 150*time.Millisecond)
	preset(&o.Clean, 150*time.Millisecond)
	preset(&o.Power, 50*time.Millisecond)
	preset(&o.Release, 45*time.Millisecond)
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic("ironictest: " + err.Error())
	}
	s := &Server{URL: "http://" + listener.Addr().String(), options: o, recorder: o.Recorder, newest: maxVersion, done: make(chan struct{})}
	handler := s.recorder.Wrap(exchange.Describe{System: "ironic", Device: s.deviceOf}, http.HandlerFunc(s.serve))
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // always ErrServerClosed after Close
	}()
	return s
}

func preset(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Close ends the service and its connections.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.done
}

// Offer makes the service end at microversion 1.N, as an older one does.
func (s *Server) Offer(minor int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = minor
}

// Recorder gives access to records and faults.
func (s *Server) Recorder() *exchange.Recorder { return s.recorder }

// Settings are an ironic block that points at the server.
func (s *Server) Settings(name string, classes ...string) plan.IronicSettings {
	return plan.IronicSettings{
		Name: name, Endpoint: s.URL, DeviceClasses: classes,
		CleaningDeadline: time.Hour, InspectDeadline: time.Hour, LockMaxWait: time.Minute, LockBackoffMin: time.Second, LockBackoffMax: 5 * time.Second,
		Attempts: 3, Timeout: 10 * time.Second,
	}
}

// request is one request on its way to an answer.
type request struct {
	*http.Request
	server  *Server
	now     time.Time
	version int      // minor
	path    []string // below /v1
	body    []byte
}

// serve answers one request. Everything that is due by the clock has happened
// before.
func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(io.LimitReader(hr.Body, 1<<20))
	if err != nil {
		return // the connection is gone
	}
	if s.options.Before != nil {
		s.options.Before(hr)
	}
	if s.options.Without != nil && s.options.Without(hr) {
		unauthorized().write(w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	s.advance(now)
	s.serial++
	head := w.Header()
	head.Set("Openstack-Request-Id", fmt.Sprintf("req-%s", uuid(0, s.serial)))
	path := strings.Split(strings.Trim(hr.URL.Path, "/"), "/")
	if path[0] == "" {
		answer{status: http.StatusOK, body: s.root()}.write(w)
		return
	}
	if path[0] != "v1" {
		notFoundPath().write(w)
		return
	}
	head.Set("X-OpenStack-Ironic-API-Minimum-Version", fmt.Sprintf("1.%d", minVersion))
	head.Set("X-OpenStack-Ironic-API-Maximum-Version", fmt.Sprintf("1.%d", s.newest))
	version, refused := negotiate(hr.Header.Get("X-OpenStack-Ironic-API-Version"), s.newest)
	if refused != nil {
		refused.write(w)
		return
	}
	head.Set("X-OpenStack-Ironic-API-Version", fmt.Sprintf("1.%d", version))
	r := &request{Request: hr, server: s, now: now, version: version, path: path[1:], body: body}
	r.route().write(w)
}

// negotiate reads the version header: none means 1.1.
func negotiate(header string, newest int) (int, *answer) {
	switch header {
	case "":
		return minVersion, nil
	case "latest":
		return newest, nil
	}
	major, minor, _ := strings.Cut(header, ".")
	n, err := strconv.Atoi(minor)
	if err != nil || major != "1" || n < minVersion || n > newest {
		a := routing(http.StatusNotAcceptable, "Not Acceptable", fmt.Sprintf("Version %s was requested but the minor version is not supported by this service. The supported version range is: [1.%d, 1.%d].", header, minVersion, newest))
		return 0, &a
	}
	return n, nil
}

// route finds who answers.
func (r *request) route() answer {
	if len(r.path) == 0 {
		return r.only(http.MethodGet, func() answer { return answer{status: http.StatusOK, body: r.server.v1()} })
	}
	switch r.path[0] {
	case "nodes":
		return r.routeNodes()
	case "ports":
		return r.routeObjects(portShape())
	case "portgroups":
		return r.routeObjects(portgroupShape())
	}
	return notFoundPath()
}

func (r *request) only(method string, serve func() answer) answer {
	if r.Method != method {
		return notAllowed()
	}
	return serve()
}

func (r *request) routeNodes() answer {
	switch {
	case len(r.path) == 1 && r.Method == http.MethodPost:
		return r.createNode()
	case len(r.path) == 1 || (len(r.path) == 2 && r.path[1] == "detail"):
		return r.only(http.MethodGet, r.listNodes)
	}
	n := r.server.find(r.path[1])
	if n == nil {
		return fault(http.StatusNotFound, "Node %s could not be found.", r.path[1])
	}
	if len(r.path) == 4 && r.path[2] == "traits" {
		if r.version < since("traits") {
			return notAllowed()
		}
		return r.trait(n, r.path[3])
	}
	switch rest := strings.Join(r.path[2:], "/"); rest {
	case "":
		switch r.Method {
		case http.MethodGet:
			return r.showNode(n)
		case http.MethodPatch:
			return r.patchNode(n)
		case http.MethodDelete:
			return r.deleteNode(n)
		}
		return notAllowed()
	case "states":
		return r.only(http.MethodGet, func() answer { return answer{status: http.StatusOK, body: n.states()} })
	case "states/provision":
		return r.only(http.MethodPut, func() answer { return r.provision(n) })
	case "states/power":
		return r.only(http.MethodPut, func() answer { return r.power(n) })
	case "states/raid":
		return r.only(http.MethodPut, func() answer { return r.raid(n) })
	case "traits":
		return r.only(http.MethodGet, func() answer {
			return answer{status: http.StatusOK, body: map[string]any{"traits": n.fields["traits"]}}
		})
	case "inventory":
		if r.version < 81 {
			return notFoundPath()
		}
		return r.only(http.MethodGet, func() answer { return r.inventory(n) })
	case "history":
		if r.version < 78 {
			return notFoundPath()
		}
		return r.only(http.MethodGet, func() answer { return answer{status: http.StatusOK, body: map[string]any{"history": r.history(n)}} })
	case "maintenance":
		return r.maintenance(n)
	case "ports", "portgroups":
		shape := portShape()
		if rest == "portgroups" {
			shape = portgroupShape()
		}
		return r.only(http.MethodGet, func() answer { return r.listObjects(shape, n.uuid()) })
	}
	return notFoundPath()
}

// deviceOf names the node that a request is about, for the records.
func (s *Server) deviceOf(r *http.Request) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var body []byte
	if r.Method == http.MethodPost && len(path) == 2 {
		body, _ = io.ReadAll(io.LimitReader(r.Body, 1<<20))
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := func(ident string) string {
		if n := s.find(ident); n != nil {
			return n.text("name")
		}
		return ""
	}
	switch {
	case len(path) >= 3 && path[1] == "nodes":
		if found := name(path[2]); found != "" {
			return found
		}
		return path[2]
	case len(path) == 3:
		for _, o := range append(append([]*object(nil), s.ports...), s.portgroups...) {
			if o.text("uuid") == path[2] {
				return name(o.text("node_uuid"))
			}
		}
	case len(body) > 0:
		var b struct {
			Name string `json:"name"`
			Node string `json:"node_uuid"`
		}
		if json.Unmarshal(body, &b) != nil {
			return ""
		}
		if b.Node != "" {
			return name(b.Node)
		}
		return b.Name
	case r.URL.Query().Get("node") != "":
		return name(r.URL.Query().Get("node"))
	}
	return ""
}
