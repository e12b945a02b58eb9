package bmc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/enroll-dev/enroll/plan"
)

// conn is the one connection to a BMC. Whoever uses it holds mu, so that the
// BMC has one request in flight.
type conn struct {
	client *Client
	device string
	base   string // scheme://host[:port]
	wanted string // path of the system that the record names, "" when it names none

	transport *http.Transport
	shown     shown

	mu         sync.Mutex
	user       string
	password   plan.Secret
	known      bool               // user and password were asked for
	refused    *plan.Fault        // the BMC refused the credential: nothing is tried again
	using      candidate          // which password is used
	tried      map[candidate]bool // those that were refused
	refusals   int                // how many were refused since the last pause
	passwords  Passwords          // what the BMC may take beside the stored one
	looked     bool               // they were asked for
	next       plan.Secret        // what is being set
	mine       map[attempt]bool   // with what this process was refused
	made       map[string]bool    // marks of the changes of the step at work; nil: none is
	forcedAt   string             // the account of which the BMC demands another password; "": it did not say
	starting   bool               // this process restarted the BMC, and no login was taken since
	monitoring plan.Secret        // of the monitoring account, once it was used
	monitored  string             // what its login showed; "": not known
	login      login
	tree       *tree  // what was proven since the last login; nil: prove it again
	family     family // as it was proven last
	answered   bool   // the BMC answered something in this call of Read or Run
	expired    bool   // the BMC did not know the session any more
	restarted  bool   // this process restarted the BMC itself
	// lastReset is when this process last reset the host.
	lastReset hostReset
	carried   map[string]bool // jobs that were scheduled when that was
	storing   bool            // a step is storing a boot order piece by piece
	// readings are the resources read in this call of Read, so that two settings
	// of one resource cost one request; nil in Run, which wants them fresh.
	readings map[string]document
	tape     *tape // what Record keeps; nil otherwise
}

// answer is one HTTP answer, read whole.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         []byte
	broken       error // the connection ended inside the body
	change       bool  // of a request that changes a setting
}

// maxBody bounds an answer; the largest real ones are attribute tables of a few
// hundred kilobytes.
const maxBody = 8 << 20

// request is what is sent.
type request struct {
	method, path string
	header       map[string]string
	body         any
	basic        bool // send user and password
	change       bool // it changes a setting: not a read, not a login
	token        string
}

// exchange sends one request and reads the answer. The fault tells why there is
// none; sent tells whether the BMC may have received the request.
func (k *conn) exchange(ctx context.Context, r request) (ans *answer, sent bool, fault *plan.Fault) {
	if ctx.Err() != nil {
		return nil, false, k.noAnswer(ctx, r, ctx.Err())
	}
	limited, cancel := context.WithTimeout(ctx, k.client.settings.Timeout)
	defer cancel()
	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	var payload io.Reader
	if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, false, plan.NewFault(plan.CodeInternal, "a request to the BMC of %s could not be written", k.device).Because(err)
		}
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(traced, r.method, k.base+r.path, payload)
	if err != nil {
		return nil, false, k.fault(plan.CodeBMCProtocol, r, "the BMC of %s gave a link that is none", k.device).Because(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("OData-Version", "4.0")
	req.Header.Set("User-Agent", k.client.opt.UserAgent)
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("X-Auth-Token", r.token)
	}
	if r.basic {
		req.SetBasicAuth(k.user, k.password.Reveal())
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	k.client.requests.Add(1)
	resp, err := k.transport.RoundTrip(req)
	if err != nil {
		k.tree = nil // whoever answers next has to prove that it is the same machine
		return nil, wrote.Load(), k.noAnswer(ctx, r, err)
	}
	defer func() { _ = resp.Body.Close() }()
	k.answered = true
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		return nil, true, k.fault(plan.CodeBMCProtocol, r, "the BMC of %s sent an answer of more than %d MB", k.device, maxBody>>20)
	}
	ans = &answer{method: r.method, path: r.path, status: resp.StatusCode, header: resp.Header, body: body, broken: err, change: r.change}
	if k.tape != nil {
		k.tape.keep(ans)
	}
	return ans, true, nil
}

// fault makes a fault that names the request. The text of an answer is added by
// refusal, never here.
func (k *conn) fault(code plan.Code, r request, format string, args ...any) *plan.Fault {
	return plan.NewFault(code, format, args...).With("method", r.method).With("path", cut(r.path, 200)).With("url", k.base)
}

// noAnswer says why a request was not answered.
func (k *conn) noAnswer(ctx context.Context, r request, err error) *plan.Fault {
	err = k.scrub(err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return k.fault(plan.CodeInterrupted, r, "the request to the BMC of %s was abandoned", k.device).Because(err)
	}
	var timeout net.Error
	var record tls.RecordHeaderError
	switch {
	case certificate(err):
		return k.fault(plan.CodeBMCTLS, r, "the certificate of the BMC of %s at %s is refused", k.device, k.base).With("fingerprint", refusedPrint(err)).Because(err)
	case errors.As(err, &record):
		return k.fault(plan.CodeBMCTLS, r, "what answers for the BMC of %s at %s does not speak TLS", k.device, k.base).Because(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return k.fault(plan.CodeBMCUnreachable, r, "the BMC of %s accepts no connection at %s", k.device, k.base).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return k.fault(plan.CodeBMCUnreachable, r, "the BMC of %s at %s did not answer within %s", k.device, k.base, k.client.settings.Timeout).Because(err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return k.fault(plan.CodeBMCUnreachable, r, "the BMC of %s at %s takes no connection in time", k.device, k.base).Because(err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return k.fault(plan.CodeBMCUnreachable, r, "the BMC of %s at %s closed the connection before it answered", k.device, k.base).Because(err)
	}
	var alert tls.AlertError
	if errors.As(err, &alert) || strings.Contains(err.Error(), "tls: ") {
		return k.fault(plan.CodeBMCTLS, r, "no TLS connection with the BMC of %s at %s", k.device, k.base).Because(err)
	}
	return k.fault(plan.CodeBMCUnreachable, r, "the BMC of %s at %s cannot be reached", k.device, k.base).Because(err)
}

func certificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// authorized sends a request with the session, or with user and password where
// the BMC has no sessions.
func (k *conn) authorized(ctx context.Context, r request) (*answer, *plan.Fault) {
	r.token, r.basic = k.login.token, k.login.basic
	ans, _, fault := k.exchange(ctx, r)
	if fault != nil {
		return nil, fault
	}
	if ans.status == http.StatusUnauthorized {
		return ans, k.unauthorized(ctx, ans)
	}
	return ans, nil
}

// unauthorized judges status 401 to a request that carried a login. A session
// ends by itself after its idle timeout; a password does not.
func (k *conn) unauthorized(ctx context.Context, ans *answer) *plan.Fault {
	if k.login.basic {
		return k.refuse(ans, messages(ans.body))
	}
	// Should the session live after all, it must not stay behind.
	if k.login.session == "" || k.end(context.WithoutCancel(ctx), k.login.session) != nil {
		k.login.left = true
	}
	// First the fault: the answer may repeat the token, which redact knows until it is forgotten.
	fault := k.refusal(plan.CodeBMCRefused, ans, "the BMC of %s does not know the session that it gave", k.device)
	k.login.token, k.login.session, k.tree, k.expired = "", "", nil, true
	return fault
}

// get reads a resource. Redirects to another path of the same BMC are followed
// once. A resource that does not exist is BMC_UNSUPPORTED.
func (k *conn) get(ctx context.Context, path string) (document, *plan.Fault) {
	if d, ok := k.readings[path]; ok {
		return d, nil
	}
	d, fault := k.read(ctx, path, k.authorized)
	if fault == nil && k.readings != nil {
		k.readings[path] = d
	}
	return d, fault
}

func (k *conn) read(ctx context.Context, path string, send func(context.Context, request) (*answer, *plan.Fault)) (document, *plan.Fault) {
	path = resolve(path)
	ans, fault := send(ctx, request{method: http.MethodGet, path: path})
	if fault != nil {
		return document{}, fault
	}
	if ans.status >= 300 && ans.status < 400 && ans.header.Get("Location") != "" {
		to, err := url.Parse(ans.header.Get("Location"))
		if err != nil || (to.Host != "" && to.Scheme+"://"+to.Host != k.base) {
			return document{}, k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s sends %s to another host", k.device, cut(path, 120))
		}
		path = resolve(to.RequestURI())
		if ans, fault = send(ctx, request{method: http.MethodGet, path: path}); fault != nil {
			return document{}, fault
		}
	}
	if fault := k.judge(ans); fault != nil {
		return document{}, fault
	}
	d, ok := parse(path, ans.header.Get("ETag"), ans.body)
	if !ok {
		return d, k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s answered %s with something that is no resource", k.device, cut(path, 120))
	}
	d.allow = ans.header.Get("Allow")
	return d, nil
}

// judge turns an answer into a fault, nil when it is a success.
func (k *conn) judge(ans *answer) *plan.Fault {
	list := messages(ans.body)
	switch {
	case ans.broken != nil:
		return k.refusal(plan.CodeBMCUnreachable, ans, "the BMC of %s broke the connection off inside its answer", k.device).Because(k.scrub(ans.broken))
	case ans.status >= 200 && ans.status < 300:
		return nil
	case has(list, idsPasswordChange...):
		return k.wantsChange(ans, list)
	case has(list, idsLocked...):
		return k.refusal(plan.CodeBMCLocked, ans, "the BMC of %s has locked the account", k.device)
	case has(list, idsSessionLimit...):
		return k.refusal(plan.CodeBMCSessionLimit, ans, "the BMC of %s has no free session", k.device)
	case ans.status == http.StatusMethodNotAllowed:
		return k.refusal(plan.CodeBMCUnsupported, ans, "the BMC of %s takes no %s of %s", k.device, ans.method, cut(ans.path, 120))
	case missing(ans.status):
		return k.refusal(plan.CodeBMCUnsupported, ans, "the BMC of %s has no %s", k.device, cut(ans.path, 120))
	case comeBack(ans, list):
		f := k.refusal(plan.CodeBMCBusy, ans, "the BMC of %s is busy", k.device)
		f.After = pauseOf(ans, 0)
		return f
	case ans.status >= 400 && ans.status < 500:
		return k.refusal(plan.CodeBMCRefused, ans, "the BMC of %s refused %s %s", k.device, ans.method, cut(ans.path, 120))
	}
	return k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s answered %s %s with status %d", k.device, ans.method, cut(ans.path, 120), ans.status)
}

// comeBack tells that the BMC is busy, not refusing: it says so, or it answers a
// change with a 5xx (an AMI does while its host boots), or a proxy or a half
// started web server answers for it.
func comeBack(ans *answer, list []message) bool {
	if busy(list) || ans.status == http.StatusTooManyRequests || ans.status == http.StatusServiceUnavailable {
		return true
	}
	if ans.status < 500 {
		return false
	}
	return ans.change || !json.Valid(ans.body)
}

// missing tells that a resource or a method is not there.
func missing(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone || status == http.StatusNotImplemented
}

// refusal makes a fault with the words of an answer.
func (k *conn) refusal(code plan.Code, ans *answer, format string, args ...any) *plan.Fault {
	f := k.fault(code, request{method: ans.method, path: ans.path}, format, args...).With("status", strconv.Itoa(ans.status))
	list := messages(ans.body)
	said := words(list)
	if said == "" {
		said = string(ans.body)
	}
	if len(list) > 0 {
		m := list[0]
		f = f.With("message_id", k.clean(m.full)).With("message_args", k.clean(strings.Join(m.args, ", "))).With("resolution", k.clean(m.resolution))
	}
	return f.With("answer", k.clean(said)).With("retry_after", cut(k.clean(ans.header.Get("Retry-After")), 40))
}

// clean takes secrets out of what a BMC said, which may echo what it was sent,
// and cuts it.
func (k *conn) clean(s string) string {
	s = k.redact(strings.ToValidUTF8(s, "?"))
	return cut(strings.Join(strings.Fields(s), " "), 300)
}

// redact replaces password and token, plain and as JSON, URLs and Basic write
// them.
func (k *conn) redact(s string) string {
	if k.known {
		s = strings.ReplaceAll(s, base64.StdEncoding.EncodeToString([]byte(k.user+":"+k.password.Reveal())), "(secret)")
	}
	for _, secret := range []string{k.password.Reveal(), k.next.Reveal(), k.monitoring.Reveal(), k.login.token} {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, quoted(secret, true), quoted(secret, false), url.QueryEscape(secret), url.PathEscape(secret)} {
			s = strings.ReplaceAll(s, form, "(secret)")
		}
	}
	return s
}

func quoted(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// scrub replaces an error whose text holds a secret.
func (k *conn) scrub(err error) error {
	if err == nil || k.redact(err.Error()) == err.Error() {
		return err
	}
	return errors.New(k.redact(err.Error()))
}

// hostPort splits an address of a log server; port 514 where it has none.
func hostPort(s string) (string, int) {
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err == nil && bad == nil {
		return host, n
	}
	return s, 514
}

func joinPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// rootPath is where DSP0266 puts the service root.
const rootPath = "/redfish/v1/"

// resolve makes the path of a link. Links may be absolute with a host name of
// the BMC's own, or relative to the service root; a fragment names a part of
// the resource.
func resolve(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return rootPath
	}
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		path = rootPath + path
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}
