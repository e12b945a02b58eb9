package netbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Defaults of Options.
const (
	defaultTimeout = 30 * time.Second
	defaultMaxBody = 64 << 20
	defaultAgent   = "enroll"
)

// Options says how NetBox is reached.
type Options struct {
	URL       string // base address, with or without a final slash
	Token     plan.Secret
	CAFile    string        // PEM; empty means the system's authorities
	Timeout   time.Duration // of one request; default 30 s
	UserAgent string
	Now       func() time.Time // the clock, for Retry-After dates; nil means such dates are ignored
	// Sleep waits between the attempts of a bulk read that NetBox or a proxy
	// answered with 429, 502, 503 or 504, or whose connection broke; nil means
	// real time. Run never waits.
	Sleep func(ctx context.Context, d time.Duration) error
	// ChangelogMessage begins the note in NetBox's change log, for example
	// "enroll 01J…"; what was done is appended.
	ChangelogMessage string
	// MaxBody is the largest answer in bytes that is read; default 64 MiB.
	MaxBody int64
	// AtOnce is how many requests run at the same time; default 2: more than NetBox
	// has workers buys nothing.
	AtOnce int
}

// Client talks to one NetBox. It is safe for concurrent use.
type Client struct {
	opt      Options
	base     string
	http     *http.Client
	idle     func() // ends connections that wait
	api      *requests
	requests atomic.Int64

	slots  chan struct{} // one for each request in flight
	memory memory

	mu      sync.Mutex
	version version // of the first answer
}

// New makes a client; nothing is sent yet. The error is a *plan.Fault.
func New(opt Options) (*Client, error) {
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	if opt.MaxBody <= 0 {
		opt.MaxBody = defaultMaxBody
	}
	if opt.UserAgent == "" {
		opt.UserAgent = defaultAgent
	}
	if opt.AtOnce <= 0 {
		opt.AtOnce = defaultAtOnce
	}
	if opt.Sleep == nil {
		opt.Sleep = sleep
	}
	base, err := baseURL(opt.URL)
	if err != nil {
		return nil, err
	}
	if opt.Token.Reveal() == "" || strings.ContainsAny(opt.Token.Reveal(), " \t\r\n") {
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the NetBox token is empty or contains white space").
			WithHint("Store the token as one word: nbt_KEY.SECRET or 40 hexadecimal digits.")
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if opt.CAFile != "" {
		if trust.RootCAs, err = authorities(opt.CAFile); err != nil {
			return nil, err
		}
	}
	c := &Client{opt: opt, base: base, slots: make(chan struct{}, opt.AtOnce)}
	inner := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     trust,
		MaxIdleConnsPerHost: 2 * opt.AtOnce,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
		// A proxy that compresses an answer also rewrites its ETag, and NetBox
		// refuses the rewritten one.
		DisableCompression: true,
	}
	c.http = &http.Client{
		Transport:     &transport{client: c, inner: inner},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.idle = inner.CloseIdleConnections
	c.api = newRequests(base, c.http)
	return c, nil
}

// Close ends the connections that wait for further requests.
func (c *Client) Close(context.Context) error {
	c.idle()
	return nil
}

func baseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The raw text is not repeated when it holds a user: that part may be a password.
		if err == nil && u.User != nil {
			raw = u.Redacted()
		}
		return "", plan.NewFault(plan.CodeConfigInvalid, "the NetBox url %q is not http(s)://HOST[:PORT][/PATH]", clean(raw, 200))
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file) //nolint:gosec // the file that the site file names
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "ca_file of the netbox block cannot be read").Because(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "ca_file %s of the netbox block holds no PEM certificate", file)
	}
	return pool, nil
}

// Requests counts the requests that were sent so far, repeated ones included.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Version is NetBox's API version ("4.7") once something was read, else "".
func (c *Client) Version() string { return c.seen().String() }

// sleep waits in real time, or until the run is interrupted.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// page is the address of an object's page, for people: "dcim/devices", 7.
func (c *Client) page(kind string, id int64) string {
	return c.base + "/" + kind + "/" + itoa(id) + "/"
}
