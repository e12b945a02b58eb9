package netbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// call is what go-netbox has no way to say, and the place for the answer. It
// travels in the request's context.
type call struct {
	fields  []string
	ifMatch string
	answer  *answer
}

type callKey struct{}

// answer is one HTTP answer, read whole.
type answer struct {
	method  string
	path    string // with query, cut for people
	status  int
	header  http.Header
	body    []byte
	tooBig  bool
	readErr error // the connection broke, or the time ran out, inside the body
}

// transport adds what a call says and takes the answer away from go-netbox,
// whose models refuse real ones; go-netbox sees an empty 204.
type transport struct {
	client *Client
	inner  *http.Transport
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	cl, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("netbox: a request without a call in its context")
	}
	out := req.Clone(req.Context())
	out.URL.RawQuery = unescape(out.URL.RawQuery)
	if len(cl.fields) > 0 {
		// Commas stay as they are: they count once instead of three times in the URL.
		sep := "&"
		if out.URL.RawQuery == "" {
			sep = ""
		}
		out.URL.RawQuery += sep + "fields=" + strings.Join(cl.fields, ",")
	}
	out.Header.Set("Authorization", authorization(t.client.opt.Token.Reveal()))
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", t.client.opt.UserAgent)
	if cl.ifMatch != "" {
		out.Header.Set("If-Match", cl.ifMatch)
	}
	t.client.requests.Add(1)
	resp, err := t.inner.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	limit := t.client.opt.MaxBody
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	cl.answer = &answer{
		method: out.Method, path: clean(out.URL.RequestURI(), 200), status: resp.StatusCode,
		header: resp.Header, body: body, readErr: err, tooBig: int64(len(body)) > limit,
	}
	return &http.Response{
		StatusCode: http.StatusNoContent, Status: "204 No Content", Proto: resp.Proto, ProtoMajor: resp.ProtoMajor, ProtoMinor: resp.ProtoMinor,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req,
	}, nil
}

// authorization chooses the word by the token's form, as NetBox documents it.
func authorization(token string) string {
	if strings.HasPrefix(token, "nbt_") {
		return "Bearer " + token
	}
	return "Token " + token
}

// failure is a fault with what the retrying reader needs to know.
type failure struct {
	fault *plan.Fault
	retry bool
	after time.Duration // what Retry-After asked for
}

// Bulk reads are tried this often; the pauses double from the first one.
const (
	readAttempts = 3
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
)

// read sends a request of a bulk read, again if there is hope.
func (c *Client) read(ctx context.Context, cl call, send func(context.Context) error) (*answer, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		ans, fail := c.once(ctx, cl, send)
		if fail == nil {
			return ans, nil
		}
		if !fail.retry || attempt == readAttempts || ctx.Err() != nil {
			return nil, fail.fault.With("attempts", strconv.Itoa(attempt))
		}
		if err := c.opt.Sleep(ctx, min(max(pause, fail.after), longestPause)); err != nil {
			return nil, fail.fault.With("attempts", strconv.Itoa(attempt))
		}
		pause *= 2
	}
}

// once sends a request once. The answer is given together with the failure
// where there was one, for callers that look at status 412.
func (c *Client) once(ctx context.Context, cl call, send func(context.Context) error) (*answer, *failure) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, &failure{fault: plan.NewFault(plan.CodeInterrupted, "the request to NetBox was abandoned").Because(ctx.Err())}
	}
	limited, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	err := send(context.WithValue(limited, callKey{}, &cl))
	if cl.answer == nil {
		if err == nil {
			err = errors.New("go-netbox sent nothing")
		}
		return nil, c.noAnswer(ctx, err)
	}
	return cl.answer, c.judge(ctx, cl.answer)
}

// noAnswer classifies a request without an answer.
func (c *Client) noAnswer(ctx context.Context, err error) *failure {
	var sent *url.Error
	if !errors.As(err, &sent) {
		return &failure{fault: plan.NewFault(plan.CodeInternal, "a request to NetBox could not be built").Because(err)}
	}
	method, path := strings.ToUpper(sent.Op), sent.URL
	if u, perr := url.Parse(sent.URL); perr == nil {
		path = u.RequestURI()
	}
	f := func(code plan.Code, format string, args ...any) *plan.Fault {
		return plan.NewFault(code, format, args...).With("method", method).With("path", clean(path, 200)).With("url", c.base).Because(c.scrub(sent.Err))
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &failure{fault: f(plan.CodeInterrupted, "the request to NetBox was abandoned")}
	}
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return &failure{fault: f(plan.CodeNetBoxUnreachable, "the name of NetBox at %s cannot be resolved", c.base)}
	case certificateRefused(err):
		return &failure{fault: f(plan.CodeNetBoxUnreachable, "the certificate of NetBox at %s was refused", c.base).
			WithHint("Set ca_file in the netbox block to the authority that signed NetBox's certificate.")}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &failure{fault: f(plan.CodeNetBoxUnreachable, "NetBox at %s did not answer within %s", c.base, c.opt.Timeout)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &failure{fault: f(plan.CodeNetBoxUnreachable, "nothing accepts connections at %s", c.base)}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &failure{fault: f(plan.CodeNetBoxUnreachable, "NetBox at %s closed the connection before it answered", c.base), retry: true}
	}
	return &failure{fault: f(plan.CodeNetBoxUnreachable, "NetBox at %s cannot be reached", c.base)}
}

// scrub takes the token out of an error's text; the net package never prints
// headers, so this is a second fence.
func (c *Client) scrub(err error) error {
	if err == nil || !strings.Contains(err.Error(), c.opt.Token.Reveal()) {
		return err
	}
	return errors.New(c.redact(err.Error()))
}
