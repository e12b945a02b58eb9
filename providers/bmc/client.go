package bmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Credentials gives the login of each device's BMC.
type Credentials interface {
	// Credential gives user name and password of a device.
	Credential(ctx context.Context, device string) (user string, password plan.Secret, err error)
	// Ref names the device's password for display.
	Ref(device string) plan.SecretRef
}

// Options are what a program or a test may set.
type Options struct {
	// Now is the clock; it must be set.
	Now func() time.Time
	// UserAgent of every request; default "enroll".
	UserAgent string
	// DialContext opens connections; nil dials the address itself. The embedded
	// lab leads the addresses of its site to its simulators with it.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// AtOnce bounds how many BMCs are asked at once; default 128. One BMC gets one
	// request at a time.
	AtOnce int
	// Rotation changes passwords in the vault; nil: none is ever changed.
	Rotation Rotation
	// Refusals outlive a run; nil: refused logins are remembered in this run only.
	Refusals Refusals
	// Restarts outlive a run; nil: those that are due are remembered in this run only.
	Restarts Restarts
	// Monitoring gives the monitoring account; nil where no site has one.
	Monitoring Monitoring
	// IPMIPort is where BMCs take IPMI; default 623.
	IPMIPort int
}

const defaultAtOnce = 128

// Client speaks with the BMCs of one site.
type Client struct {
	settings    plan.BMCSettings
	credentials Credentials
	opt         Options
	trust       trust
	facets      map[string]facet // by kind
	requests    atomic.Int64

	mu     sync.Mutex
	conns  map[string]*conn // by device
	closed bool
}

// New makes a client; it opens no connection. A CA file that cannot be used is
// a CONFIG_INVALID fault.
func New(settings plan.BMCSettings, credentials Credentials, opts Options) (*Client, error) {
	if opts.Now == nil || credentials == nil {
		return nil, plan.NewFault(plan.CodeInternal, "bmc.New wants a clock and credentials")
	}
	if settings.Timeout <= 0 {
		settings.Timeout = 30 * time.Second
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "enroll"
	}
	if opts.Restarts == nil {
		opts.Restarts = &ownRestarts{all: map[string]Restart{}}
	}
	if opts.AtOnce <= 0 {
		opts.AtOnce = defaultAtOnce
	}
	trust, fault := newTrust(settings)
	if fault != nil {
		return nil, fault
	}
	if opts.DialContext == nil {
		opts.DialContext = (&net.Dialer{Timeout: min(10*time.Second, settings.Timeout)}).DialContext
	}
	c := &Client{settings: settings, credentials: credentials, opt: opts, trust: trust, facets: map[string]facet{}, conns: map[string]*conn{}}
	for _, f := range facets() {
		c.facets[f.kind.Name] = f
	}
	return c, nil
}

// transport makes the one connection to a BMC.
func (c *Client) transport(k *conn, host string) *http.Transport {
	return &http.Transport{
		DialContext: c.opt.DialContext, TLSClientConfig: c.trust.config(k, host), TLSHandshakeTimeout: c.settings.Timeout,
		// Some BMCs append "-gzip" to the ETag of a packed answer.
		DisableCompression: true,
		MaxConnsPerHost:    1, MaxIdleConnsPerHost: 1, IdleConnTimeout: 20 * time.Second,
		// A map that is not nil keeps HTTP/2 off: BMCs announce it and fail with it.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// Requests is how many HTTP requests were sent so far.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// conn gives the one connection of a device. The address comes from NetBox:
// the override of the config context, else the out-of-band address.
func (c *Client) conn(t *plan.Target) (*conn, *plan.Fault) {
	base, system, fault := address(t.Intent)
	if fault != nil {
		return nil, fault
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, plan.NewFault(plan.CodeInternal, "the BMC client is closed")
	}
	k, ok := c.conns[t.Name()]
	if !ok {
		k = &conn{client: c, device: t.Name(), base: base, wanted: system, using: stored, tried: map[candidate]bool{}}
		u, err := url.Parse(base)
		if err != nil {
			return nil, plan.NewFault(plan.CodeInternal, "the address of the BMC of %s cannot be read", t.Name()).Because(err)
		}
		k.transport = c.transport(k, u.Hostname())
		c.conns[t.Name()] = k
	}
	return k, nil
}

// address gives scheme, host and port of a BMC and, where the record names
// one, the path of the system.
func address(i *plan.Intent) (base, system string, fault *plan.Fault) {
	if override := i.Ironic.RedfishAddress; override != "" {
		u, err := url.Parse(override)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return "", "", plan.NewFault(plan.CodeIntentInvalid, "%s: redfish_address_override is not of the form https://host[:port][/redfish/v1/Systems/ID]", i.Name).With("device", i.URL)
		}
		path := strings.TrimSuffix(u.Path, "/")
		if path == "" || path == "/redfish" || path == "/redfish/v1" {
			path = ""
		}
		return u.Scheme + "://" + u.Host, path, nil
	}
	if !i.OOB.IsValid() {
		return "", "", plan.NewFault(plan.CodeIntentIncomplete, "%s has no out-of-band address in NetBox", i.Name).With("device", i.URL)
	}
	return "https://" + hostOf(i.OOB), "", nil
}

func hostOf(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// Close deletes every session that this client opened and gives up its
// connections. It does so also when ctx is cancelled. The error names the BMCs
// where a session may be left until it times out there.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	var list []*conn
	for _, k := range c.conns {
		list = append(list, k)
	}
	c.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	var mu sync.Mutex
	var errs []error
	each(c.opt.AtOnce, list, func(k *conn) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err := k.logout(ctx); err != nil {
			mu.Lock()
			errs = append(errs, fmt.Errorf("%s: %w", k.device, err))
			mu.Unlock()
		}
		k.transport.CloseIdleConnections()
	})
	return errors.Join(errs...)
}

// each calls do for all items, a number of them at once, and waits for all.
func each[T any](atOnce int, items []T, do func(T)) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(item)
		})
	}
	wg.Wait()
}
