package secrets

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

const (
	defaultTimeout = 30 * time.Second
	maxAnswer      = 8 << 20 // bytes; a vault's own limit of an entry is 1 MiB, lists of items are longer
)

// wire sends requests to a vault over HTTP.
type wire struct {
	base      string // the url of the secrets block
	name      string // of the system, for messages: "vault"
	client    *http.Client
	userAgent string
	sent      atomic.Int64
}

func newWire(s plan.SecretsSettings, o Options, name string) (*wire, error) {
	transport := o.Transport
	if transport == nil {
		t, err := newTransport(s.CAFile)
		if err != nil {
			return nil, err
		}
		transport = t
	}
	return &wire{base: s.URL, name: name, userAgent: o.UserAgent, client: &http.Client{
		Transport: transport, Timeout: o.Timeout,
		// A redirect would take the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: atOnce,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 5 * time.Second, // secrets are read once, in a batch
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the ca_file of the secrets block cannot be read").Because(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the ca_file of the secrets block, %s, holds no PEM certificate", caFile)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

func (w *wire) close() { w.client.CloseIdleConnections() }

func (w *wire) requests() int { return int(w.sent.Load()) }

// answer is a whole answer of any status.
type answer struct {
	request string // method and address, for evidence
	status  int
	header  http.Header
	body    []byte
}

// call sends one request and reads the whole answer. body nil means none; it is
// sent as JSON.
func (w *wire) call(ctx context.Context, method, path string, header map[string]string, body any) (*answer, *plan.Fault) {
	request := method + " " + w.base + path
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, plan.NewFault(plan.CodeInternal, "a request to the %s cannot be written", w.name).With("request", request)
		}
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, payload)
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the url of the secrets block is no address").Because(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if w.userAgent != "" {
		req.Header.Set("User-Agent", w.userAgent)
	}
	w.sent.Add(1)
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, w.noAnswer(ctx, request, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or the reading failed
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, w.noAnswer(ctx, request, err)
	}
	a := &answer{request: request, status: resp.StatusCode, header: resp.Header, body: text}
	if len(text) > maxAnswer {
		return nil, w.evidence(plan.NewFault(plan.CodeSecretInvalid, "the answer of the %s is longer than %d bytes", w.name, maxAnswer), a, "")
	}
	return a, nil
}

// evidence adds what was asked and what came back to a fault.
func (w *wire) evidence(f *plan.Fault, a *answer, words string) *plan.Fault {
	f = f.With("request", a.request)
	if a.status != 0 {
		f = f.With("status", strconv.Itoa(a.status))
	}
	return f.With("retry after", cut(a.header.Get("Retry-After"))).With(w.name+" says", cut(words))
}

// noAnswer classifies a request without a whole answer.
func (w *wire) noAnswer(ctx context.Context, request string, err error) *plan.Fault {
	if errors.Is(ctx.Err(), context.Canceled) {
		return interrupted()
	}
	var u *url.Error
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if errors.As(err, &u) {
		late = late || u.Timeout()
		err = u.Err // without the address, which the evidence has
	}
	f := plan.NewFault(plan.CodeSecretUnreachable, "the %s at %s did not answer", w.name, w.base).Because(err)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid):
		f.Summary = "the certificate of the " + w.name + " at " + w.base + " was refused"
		f = f.WithHint("Name the CA of the %s's certificate with ca_file in the secrets block, and write url with the name that the certificate has.", w.name)
	case late:
		f.Code, f.Cause = plan.CodeSecretTimeout, nil
		f.Summary = "the " + w.name + " at " + w.base + " did not answer within " + w.client.Timeout.String()
	}
	return w.evidence(f, &answer{request: request}, "")
}

func interrupted() *plan.Fault {
	return plan.NewFault(plan.CodeInterrupted, "the run was interrupted while secrets were read")
}

// refused classifies the statuses that mean the same at every vault; nil for the
// others.
func (w *wire) refused(a *answer) *plan.Fault {
	switch {
	case a.status == http.StatusUnauthorized:
		return plan.NewFault(plan.CodeSecretLogin, "the %s at %s refused the token", w.name, w.base).
			WithHint("The token is wrong, expired or revoked. Get a new one for this run.")
	case a.status == http.StatusTooManyRequests:
		return plan.NewFault(plan.CodeSecretBusy, "the %s at %s asks to come back later (status 429)", w.name, w.base)
	case a.status == http.StatusRequestTimeout || a.status == http.StatusGatewayTimeout:
		return plan.NewFault(plan.CodeSecretTimeout, "the %s at %s did not answer in time (status %d)", w.name, w.base, a.status)
	case a.status >= 500:
		return plan.NewFault(plan.CodeSecretUnreachable, "the %s at %s cannot answer now (status %d)", w.name, w.base, a.status)
	case a.status >= 300 && a.status < 400:
		return plan.NewFault(plan.CodeConfigInvalid, "the %s points to another address, and the token is not sent on", w.name).
			WithHint("Write the address that answers into url of the secrets block.").With("location", cut(a.header.Get("Location")))
	}
	return nil
}

// escaped makes path segments of a path's parts.
func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// cut bounds what a server says, and takes line ends and control characters out.
func cut(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
