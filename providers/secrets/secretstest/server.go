// Package secretstest holds vaults for tests and the embedded lab, in the style of
// net/http/httptest: New makes the reading and writing part of the KV engine,
// version 2, with the logins by AppRole and Kubernetes, as OpenBao 2.7 answers;
// NewConnect makes a 1Password Connect server.
package secretstest

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// DefaultToken is the token of a server whose options name none.
const DefaultToken = "s.root-of-the-simulator"

// Token is a vault token and what its policy lets it read.
type Token struct {
	Value string
	// Read are the beginnings of the paths that the policy grants read on, such as
	// "secret/data/lon14/". Nil means everything, writing included.
	Read []string
}

// Role is a way to a token.
type Role struct {
	// AppRole.
	ID, SecretID string
	Uses         int // how often the secret id may be used; 0: always
	// Kubernetes, where ID is empty.
	Name, JWT string
	// Read is what the token's policy grants, as in Token.
	Read []string
}

// Options of a server. The zero value is a vault with one token that may do
// everything.
type Options struct {
	Tokens []Token // default: DefaultToken, everything
	Mount  string  // of the KV engine, default "secret"
	// Namespace that the engine and the logins are in; empty is the root.
	Namespace string
	// Login are the roles of the engines mounted at auth/approle and
	// auth/kubernetes.
	Login    []Role
	Now      func() time.Time
	Recorder *exchange.Recorder
	Addr     string           // address to listen on, default 127.0.0.1:0
	TLS      *tls.Certificate // nil: HTTP
}

// Server is a running vault.
type Server struct {
	URL      string
	Token    string // the first of the tokens
	Recorder *exchange.Recorder

	opt  Options
	stop func()

	mu     sync.Mutex
	items  map[string][]version // by path below the mount
	sealed bool
	issued []Token     // by logins
	uses   map[int]int // of secret ids, by index in Options.Login
}

// New starts a server. It panics when it cannot listen, as httptest does. Call
// Close at the end.
func New(opt Options) *Server {
	if len(opt.Tokens) == 0 {
		opt.Tokens = []Token{{Value: DefaultToken}}
	}
	if opt.Mount == "" {
		opt.Mount = "secret"
	}
	if opt.Now == nil {
		opt.Now = time.Now //nolint:forbidigo // a test server's default clock, as in the other simulators
	}
	if opt.Recorder == nil {
		opt.Recorder = exchange.NewRecorder(opt.Now, nil)
	}
	if opt.Addr == "" {
		opt.Addr = "127.0.0.1:0"
	}
	s := &Server{
		Token: opt.Tokens[0].Value, Recorder: opt.Recorder, opt: opt, items: map[string][]version{}, uses: map[int]int{},
	}
	s.URL, s.stop = listen(opt.Addr, opt.TLS, s.Handler())
	return s
}

// Close stops the server and cuts its connections.
func (s *Server) Close() { s.stop() }

// Handler is the server without its listener.
func (s *Server) Handler() http.Handler {
	return s.Recorder.Wrap(exchange.Describe{System: "vault", Mutating: changes}, http.HandlerFunc(s.serve))
}

// Put writes a new version of an item; item is the path below the mount.
func (s *Server) Put(item string, fields map[string]string) {
	values := make(map[string]any, len(fields))
	for k, v := range fields {
		values[k] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(item, values)
}

// Field reads a field of the newest version of an item; "" where there is none.
func (s *Server) Field(item, field string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.items[item]
	if len(list) == 0 || !list[len(list)-1].deleted.IsZero() {
		return ""
	}
	text, _ := list[len(list)-1].fields[field].(string)
	return text
}

// Seal makes the vault answer nothing until Unseal.
func (s *Server) Seal() { s.setSealed(true) }

// Unseal ends Seal.
func (s *Server) Unseal() { s.setSealed(false) }

func (s *Server) setSealed(sealed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = sealed
}

// tokenOf finds who asks; nil when nobody knows.
func (s *Server) tokenOf(r *http.Request) *Token {
	value := r.Header.Get("X-Vault-Token")
	if value == "" {
		value = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	for _, t := range append(s.opt.Tokens[:len(s.opt.Tokens):len(s.opt.Tokens)], s.issued...) {
		if t.Value == value {
			return &t
		}
	}
	return nil
}

// reads tells that the policy grants read on a path.
func (t *Token) reads(path string) bool {
	return t.Read == nil || slices.ContainsFunc(t.Read, func(start string) bool { return strings.HasPrefix(path, start) })
}

// token finds who asks and whether a path may be used.
func (s *Server) token(r *http.Request, path string) (known, allowed bool) {
	t := s.tokenOf(r)
	if t == nil {
		return false, false
	}
	return true, t.Read == nil || r.Method == http.MethodGet && t.reads(path)
}
