// Package ironic enrols nodes in the site's Ironic instances: it creates nodes
// and ports, walks a node from enroll to available, and compares the inspection
// inventory with NetBox's cables.
//
// What is peculiar about Ironic, and what the code does about it:
//
//   - A node shows its new provision state some 50 ms before its lock is free.
//     A transition is therefore finished when the state is reached and
//     reservation is null.
//   - A failed manage is no HTTP error: 202, verifying, then enroll again with
//     last_error. last_error also outlives a recovery, so it is read at the
//     moment of a failure only and never decides anything.
//   - 409 has many meanings; only "is locked by host" is contention.
//   - Secrets in driver_info read back as ******. Passwords are never compared,
//     and driver_info is never written back as a whole.
//   - Without the version header Ironic acts as API 1.1, in which new nodes skip
//     verification. Every request carries 1.82, or
//     the newest below it that this Ironic has.
//   - A missing access rule of an application credential is 401 with the words of
//     a bad token. The fault names the request.
//   - The inventory has no time, and an aborted inspection leaves the old one in
//     place. It counts only while the node has inspection_finished_at.
package ironic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"
	"github.com/gophercloud/gophercloud/v2/openstack/config"

	"github.com/enroll-dev/enroll/plan"
)

const defaultTimeout = 60 * time.Second

// Credentials gives each device's own BMC credential. Ironic never gets another.
type Credentials interface {
	// Credential gives user name and password of the device's BMC. The error is a
	// *plan.Fault or becomes INTERNAL.
	Credential(ctx context.Context, device string) (user string, password plan.Secret, err error)
	// Ref names the password for display.
	Ref(device string) plan.SecretRef
}

// Options are the client's ties to the world.
type Options struct {
	// Now is the program's clock: a record of a credential has its time, and an
	// attempt of a transition and the watch over its links count from it. All other
	// waiting and budgets are the interpreter's.
	Now func() time.Time
	// Links are watched while a node boots its ramdisk. Nil: nobody watches, as for
	// a site without a bmc block.
	Links Links
	// CloudsFile is read instead of the clouds.yaml of the usual places.
	CloudsFile string
	// Clouds are the files that a vault holds, by the name of the ironic block.
	Clouds map[string]CloudFiles
	// Learn is told the secrets of the clouds.yaml that is used, before they are
	// used, so that they can be kept out of output. Nil for nobody.
	Learn func(plan.Secret)
	// UserAgent is sent with every request; default "enroll".
	UserAgent string
	// AtOnce bounds the requests in flight to one Ironic; default 8.
	AtOnce int
}

// Client talks to the Ironic instances of one site. It is safe for concurrent
// use and fulfils providers.Reader, Runner, Owner and Closer. No connection is
// opened before the first request.
type Client struct {
	opt         Options
	credentials Credentials
	services    map[string]*service // by the name of the ironic block
	requests    atomic.Int64
	first       sync.Map // the UUID of the node that each device had first
}

// New makes a client for the ironic blocks of a site. The error is a
// *plan.Fault: a CA file that cannot be read, a block without endpoint and cloud.
func New(sites []plan.IronicSettings, credentials Credentials, opt Options) (*Client, error) {
	if opt.UserAgent == "" {
		opt.UserAgent = "enroll"
	}
	if opt.AtOnce <= 0 {
		opt.AtOnce = defaultAtOnce
	}
	c := &Client{opt: opt, credentials: credentials, services: map[string]*service{}}
	for _, s := range sites {
		if s.Timeout <= 0 {
			s.Timeout = defaultTimeout
		}
		if s.Endpoint == "" && s.Cloud == "" {
			return nil, plan.NewFault(plan.CodeConfigInvalid, "ironic %q has neither endpoint nor cloud", s.Name)
		}
		trust := &tls.Config{MinVersion: tls.VersionTLS12}
		if s.CAFile != "" {
			pool, err := authorities(s.CAFile)
			if err != nil {
				return nil, plan.NewFault(plan.CodeConfigInvalid, "the ca_file of ironic %q cannot be used", s.Name).With("file", s.CAFile).Because(err)
			}
			trust.RootCAs = pool
		}
		c.services[s.Name] = &service{client: c, settings: s, trust: trust}
	}
	return c, nil
}

func (c *Client) now() time.Time {
	if c.opt.Now != nil {
		return c.opt.Now()
	}
	return time.Now() //nolint:forbidigo // the real clock is the default
}

// Requests is the number of HTTP requests sent so far, those to Keystone included.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Close drops idle connections. There are no sessions to end: tokens of
// Keystone expire by themselves.
func (c *Client) Close(context.Context) error {
	for _, s := range c.services {
		s.mu.Lock()
		if s.transport != nil {
			s.transport.CloseIdleConnections()
		}
		s.mu.Unlock()
	}
	return nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the file holds no PEM certificate")
	}
	return pool, nil
}

// service is one Ironic of the site.
type service struct {
	client   *Client
	settings plan.IronicSettings
	trust    *tls.Config

	// lowered is the microversion 1.N that this Ironic was found to end at; 0 while it
	// has the newest one that is asked for.
	lowered atomic.Int32

	mu        sync.Mutex
	transport *http.Transport
	conn      *gophercloud.ServiceClient // nil before the first request
	// inventories are those that checks of this run have read, by node and the time
	// at which its inspection finished.
	inventories map[string]*inventory
}

// counted counts what goes over the wire, and bounds what comes back: an error is
// read as a whole by the libraries on top, whatever its size.
type counted struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	resp, err := c.next.RoundTrip(r)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxError), resp.Body}
	}
	return resp, err
}

// connect makes the service client, with a login where the block names a cloud.
func (s *service) connect(ctx context.Context) (*gophercloud.ServiceClient, *plan.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		return s.conn, nil
	}
	var conn *gophercloud.ServiceClient
	var f *plan.Fault
	if s.settings.Endpoint != "" {
		conn, f = s.standalone()
	} else {
		conn, f = s.cloud(ctx)
	}
	if f != nil {
		return nil, f
	}
	conn.UserAgent.Prepend(s.client.opt.UserAgent)
	s.conn = conn
	return conn, nil
}

func (s *service) httpClient(trust *tls.Config) http.Client {
	s.transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: s.client.opt.AtOnce, IdleConnTimeout: 90 * time.Second}
	return http.Client{
		Transport: counted{next: s.transport, n: &s.client.requests}, Timeout: s.settings.Timeout,
		// A redirect would carry passwords and tokens elsewhere, and Ironic sends none.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// standalone is an Ironic without Keystone. The endpoint may be given with or
// without /v1.
func (s *service) standalone() (*gophercloud.ServiceClient, *plan.Fault) {
	endpoint := strings.TrimSuffix(s.settings.Endpoint, "/")
	if !strings.HasSuffix(endpoint, "/v1") {
		endpoint += "/v1"
	}
	conn, err := noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: endpoint})
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the endpoint of ironic %q cannot be used", s.settings.Name).Because(err)
	}
	conn.HTTPClient = s.httpClient(s.trust)
	return conn, nil
}

// cloud logs in with an entry of clouds.yaml.
func (s *service) cloud(ctx context.Context) (*gophercloud.ServiceClient, *plan.Fault) {
	auth, endpoint, trust, f := s.parseCloud()
	if f != nil {
		return nil, f
	}
	auth.AllowReauth = true // tokens expire during a long cleaning
	if trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if s.trust.RootCAs != nil {
		trust.RootCAs = s.trust.RootCAs
	}
	ctx, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	// The transport carries the TLS settings: WithTLSConfig would replace it.
	provider, err := config.NewProviderClient(ctx, auth, config.WithHTTPClient(s.httpClient(trust)))
	if err != nil {
		return nil, s.classify(ctx, "POST", "the identity service of cloud "+s.settings.Cloud, err)
	}
	conn, err := openstack.NewBareMetalV1(provider, endpoint) // asks the endpoint which versions it has
	var none gophercloud.ErrEndpointNotFound
	switch {
	case err != nil && !errors.As(err, &none):
		return nil, s.classify(ctx, http.MethodGet, "", err)
	case err != nil:
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the catalogue of cloud %q has no usable baremetal service", s.settings.Cloud).Because(err)
	}
	return conn, nil
}
