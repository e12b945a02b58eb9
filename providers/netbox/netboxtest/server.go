package netboxtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// The tokens of a server whose Options name none.
const (
	DefaultToken         = "nbt_enrollLab001.x7Rk2mQ9vT4sLw8nZc6yHd1bJf5gPa3eUoKiXr0t" //nolint:gosec // a token of the simulator
	DefaultReadOnlyToken = "nbt_enrollLab002.p3Wd8fYq1zN6kXb4jRm7tVc9hSg2aLu5eOoIiTyE" //nolint:gosec // a token of the simulator
)

// Token is an API token.
type Token struct {
	Value    string
	ReadOnly bool // write_enabled is false
	// ChangeStatus, when set, limits the user's right to change devices to those
	// of this status, before and after the change.
	ChangeStatus string
}

// Options of a server. The zero value is a NetBox 4.7 with the default tokens.
type Options struct {
	Version  string // "4.2" … "4.7"; default "4.7"
	Site     string // slug of the NetBox site that devices without one are in; default "lab1"
	Tokens   []Token
	Now      func() time.Time // default time.Now
	Recorder *exchange.Recorder
	Addr     string // address to listen on; default 127.0.0.1:0
	// RequestLine is the longest request line in bytes, as gunicorn's
	// --limit-request-line; default 4094.
	RequestLine int
	// PageCap is MAX_PAGE_SIZE; default 1000.
	PageCap int
	// Host is the host that "next" and "url" of answers name, as behind a proxy
	// that does not pass it on; default: the one of the request.
	Host string
	// NoETag drops the ETag header, as some proxies do.
	NoETag bool
	// Fields are the custom fields; nil means platform_class on devices, gpu_type
	// on device types, ntp_servers and syslog_servers on sites.
	Fields []Field
}

// Server is a running simulator.
type Server struct {
	URL           string
	Token         string // the first token that may write
	ReadOnlyToken string // the first that may not
	Recorder      *exchange.Recorder

	opt      Options
	major    int
	minor    int
	listener net.Listener
	server   *http.Server
	done     chan struct{}

	mu          sync.Mutex
	requests    int
	beforePatch func(device string)
	duringPatch func(device string)
	state
}

// New starts a server. It panics when it cannot listen or the options make no
// sense, as httptest does. Call Close at the end.
func New(opt Options) *Server {
	if opt.Version == "" {
		opt.Version = "4.7"
	}
	if opt.Site == "" {
		opt.Site = "lab1"
	}
	if opt.Now == nil {
		opt.Now = time.Now //nolint:forbidigo // the default clock of a simulator
	}
	if opt.Tokens == nil {
		opt.Tokens = []Token{{Value: DefaultToken}, {Value: DefaultReadOnlyToken, ReadOnly: true}}
	}
	if opt.RequestLine == 0 {
		opt.RequestLine = 4094
	}
	if opt.PageCap == 0 {
		opt.PageCap = 1000
	}
	if opt.Addr == "" {
		opt.Addr = "127.0.0.1:0"
	}
	if opt.Recorder == nil {
		opt.Recorder = exchange.NewRecorder(opt.Now, nil)
	}
	if opt.Fields == nil {
		opt.Fields = []Field{
			{Object: "dcim.device", Name: "platform_class"},
			{Object: "dcim.devicetype", Name: "gpu_type", Choices: []string{"H100", "H200", "B200", "GB200", "GB300"}},
			{Object: "dcim.site", Name: "ntp_servers"}, {Object: "dcim.site", Name: "syslog_servers"},
		}
	}
	s := &Server{opt: opt, Recorder: opt.Recorder, done: make(chan struct{})}
	for _, t := range opt.Tokens {
		switch {
		case t.ReadOnly && s.ReadOnlyToken == "":
			s.ReadOnlyToken = t.Value
		case !t.ReadOnly && s.Token == "":
			s.Token = t.Value
		}
	}
	major, minor, _ := strings.Cut(opt.Version, ".")
	var errA, errB error
	s.major, errA = strconv.Atoi(major)
	s.minor, errB = strconv.Atoi(minor)
	if errA != nil || errB != nil {
		panic(fmt.Sprintf("netboxtest: version %q is not MAJOR.MINOR", opt.Version))
	}
	s.reset()
	listener, err := net.Listen("tcp", opt.Addr) //nolint:noctx // a constructor without a context, as in httptest
	if err != nil {
		panic(fmt.Sprintf("netboxtest: cannot listen on %s: %v", opt.Addr, err))
	}
	s.listener, s.URL = listener, "http://"+listener.Addr().String()
	s.server = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 30 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ends with Close
	}()
	return s
}

// Close stops the server and cuts its connections.
func (s *Server) Close() {
	_ = s.server.Close()
	<-s.done
}

// Handler is the server without its listener, for a test's own (TLS, a proxy).
func (s *Server) Handler() http.Handler {
	return s.Recorder.Wrap(exchange.Describe{System: "netbox", Device: s.describe}, http.HandlerFunc(s.serve))
}

// describe names the device of a request about one.
func (s *Server) describe(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/dcim/devices/")
	if !ok {
		return ""
	}
	id, err := strconv.ParseInt(strings.Trim(rest, "/"), 10, 64)
	if err != nil {
		return ""
	}
	for _, d := range s.devices {
		if d.id == id {
			return d.Name
		}
	}
	return ""
}

func (s *Server) atLeast(major, minor int) bool {
	return s.major > major || s.major == major && s.minor >= minor
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := len(r.Method) + 1 + len(r.URL.RequestURI()) + len(" HTTP/1.1\r\n")
	if line > s.opt.RequestLine {
		page(w, http.StatusBadRequest, "Bad Request", fmt.Sprintf("Request Line is too large (%d &gt; %d)", line, s.opt.RequestLine))
		return
	}
	s.requests++
	x := &request{Server: s, w: w, r: r, id: fmt.Sprintf("5f0c0000-0000-4000-8000-%012d", s.requests)}
	w.Header().Set("X-Request-ID", x.id)
	path := r.URL.Path
	if !strings.HasSuffix(path, "/") {
		if _, found := s.route(path + "/"); found {
			target := path + "/"
			if r.URL.RawQuery != "" {
				target += "?" + r.URL.RawQuery
			}
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
	}
	handle, found := s.route(path)
	if !found {
		page(w, http.StatusNotFound, "Page Not Found", "The requested page does not exist.")
		return
	}
	w.Header().Set("API-Version", s.opt.Version)
	token, words := s.authenticate(r.Header.Get("Authorization"))
	if words != "" {
		x.fail(http.StatusForbidden, words)
		return
	}
	x.token = token
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions && token.ReadOnly {
		x.fail(http.StatusForbidden, "You do not have permission to perform this action.")
		return
	}
	handle(x)
}

// authenticate gives the token, or NetBox's words of refusal.
func (s *Server) authenticate(header string) (Token, string) {
	word, value, _ := strings.Cut(header, " ")
	value = strings.TrimSpace(value)
	known := strings.EqualFold(word, "token") || s.atLeast(4, 5) && strings.EqualFold(word, "bearer")
	if value == "" || !known {
		return Token{}, "Authentication credentials were not provided."
	}
	for _, t := range s.opt.Tokens {
		if t.Value == value && (s.atLeast(4, 5) || !strings.HasPrefix(value, "nbt_")) {
			return t, ""
		}
	}
	switch {
	case !s.atLeast(4, 5):
		return Token{}, "Invalid token"
	case strings.HasPrefix(value, "nbt_") && !strings.Contains(value, "."):
		return Token{}, "Invalid authorization header: Could not parse key from v2 token. Did you mean to use 'Token' instead of 'Bearer'?"
	case strings.HasPrefix(value, "nbt_"):
		return Token{}, "Invalid v2 token"
	}
	return Token{}, "Invalid v1 token"
}

// route finds the handler of a path that ends with a slash.
func (s *Server) route(path string) (func(*request), bool) {
	rest, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		return nil, false
	}
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	switch {
	case rest == "status/":
		return (*request).status, true
	case rest == "authentication-check/" && s.atLeast(4, 5):
		return (*request).authenticationCheck, true
	case len(parts) < 2 || len(parts) > 4:
		return nil, false
	}
	t, ok := s.table(parts[0] + "/" + parts[1])
	if !ok {
		return nil, false
	}
	if len(parts) == 2 {
		return func(x *request) { x.list(t) }, true
	}
	id, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return nil, false
	}
	switch {
	case len(parts) == 3:
		return func(x *request) { x.detail(t, id) }, true
	case t.name == "dcim/interfaces" && parts[3] == "trace":
		return func(x *request) { x.trace(id) }, true
	}
	return nil, false
}

// request is one request being answered.
type request struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	id    string
	token Token
}

// base is what URLs in answers begin with.
func (x *request) base() string {
	if x.opt.Host != "" {
		return "http://" + x.opt.Host
	}
	return "http://" + x.r.Host
}

func (x *request) answer(status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("netboxtest: %v", err)) // a seeded value that JSON does not have
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(text)
}

func (x *request) fail(status int, detail string) {
	x.answer(status, map[string]any{"detail": detail})
}

// crash is the answer of a NetBox that raised an exception.
func (x *request) crash(exception, text string) {
	x.answer(http.StatusInternalServerError, map[string]any{
		"error": text, "exception": exception, "netbox_version": x.opt.Version + ".3", "python_version": "3.12.1",
	})
}

func (x *request) notSimulated(what string) {
	x.fail(http.StatusNotImplemented, "netboxtest does not simulate "+what)
}

func page(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	//nolint:gosec // title and text are constants and a number
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>%s</title></head>\n<body><h1>%s</h1><p>%s</p></body>\n</html>\n", title, title, text)
}

func (x *request) status() {
	out := map[string]any{"django-version": "6.1.2", "installed_apps": map[string]any{}, "netbox-version": x.opt.Version + ".3", "plugins": map[string]any{}, "python-version": "3.12.1", "rq-workers-running": 0}
	if x.atLeast(4, 3) {
		out["netbox-full-version"] = x.opt.Version + ".3"
	}
	if x.atLeast(4, 4) {
		out["hostname"] = "netboxtest"
	}
	x.answer(http.StatusOK, out)
}

func (x *request) authenticationCheck() {
	x.answer(http.StatusOK, map[string]any{"id": 1, "url": x.base() + "/api/users/users/1/", "display": "lab", "username": "lab"})
}
