package netbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/enroll-dev/enroll/plan"
)

// judge classifies an answer by its status and form. Nil means: a 2xx answer
// that holds a JSON object.
func (c *Client) judge(ctx context.Context, a *answer) *failure {
	switch {
	case a.readErr != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return &failure{fault: c.about(a, plan.CodeInterrupted, "the request to NetBox was abandoned")}
	case a.readErr != nil:
		return &failure{fault: c.about(a, plan.CodeNetBoxUnreachable, "NetBox's answer broke off after %d bytes", len(a.body)).Because(c.scrub(a.readErr)), retry: true}
	case a.tooBig:
		return &failure{fault: c.about(a, plan.CodeNetBoxProtocol, "NetBox's answer is larger than %d bytes and was not read further", c.opt.MaxBody)}
	case a.status >= 200 && a.status < 300:
		return c.judgeBody(a)
	}
	words := c.words(a)
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &failure{fault: c.denied(a, words)}
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f := c.about(a, plan.CodeNetBoxUnreachable, "NetBox, or a proxy before it, answered %s%s", status(a), tail(words))
		return &failure{fault: f, retry: true, after: c.retryAfter(a.header.Get("Retry-After"))}
	}
	switch {
	case a.status >= 300 && a.status < 400:
		to, _, _ := strings.Cut(a.header.Get("Location"), "?")
		return &failure{fault: c.about(a, plan.CodeNetBoxProtocol, "NetBox redirects to %s; enroll follows no redirect, because a write would be lost on the way", clean(c.redact(to), 200)).
			WithHint("Write the address that NetBox redirects to as url in the netbox block, with the right scheme and host.")}
	case a.status == http.StatusNotFound && html(a):
		return &failure{fault: c.about(a, plan.CodeNetBoxProtocol, "there is no NetBox API at %s: the answer to %s is a web page with status 404", c.base, a.path).
			WithHint("Set url in the netbox block to the address under which /api/ answers.")}
	case a.method != http.MethodGet:
		return &failure{fault: c.about(a, plan.CodeNetBoxRefused, "NetBox refused the write with %s%s", status(a), tail(words))}
	}
	return &failure{fault: c.about(a, plan.CodeNetBoxProtocol, "NetBox answered a read with %s%s", status(a), tail(words))}
}

// judgeBody looks at the form of a 2xx answer.
func (c *Client) judgeBody(a *answer) *failure {
	body := bytes.TrimSpace(a.body)
	bad := func(format string, args ...any) *failure {
		return &failure{fault: c.about(a, plan.CodeNetBoxProtocol, format, args...)}
	}
	switch {
	case len(body) == 0:
		return bad("NetBox answered %s with an empty body", status(a))
	case body[0] == '<' || html(a):
		return bad("NetBox answered %s with a web page%s; a login page or another service is at %s", status(a), tail(c.words(a)), c.base)
	case !json.Valid(body):
		return bad("NetBox answered %s with %d bytes that are not JSON, or were cut", status(a), len(body))
	case body[0] != '{':
		return bad("NetBox answered %s with %s where an object was due", status(a), clean(string(body), 40))
	}
	if f := c.noteVersion(a.header); f != nil {
		return &failure{fault: f}
	}
	// An error body under status 200 is what some proxies make of an error.
	var probe map[string]json.RawMessage
	if err := json.Unmarshal(body, &probe); err != nil {
		return bad("NetBox answered %s with JSON that cannot be read", status(a))
	}
	_, detail := probe["detail"]
	_, exception := probe["exception"]
	_, results := probe["results"]
	_, id := probe["id"]
	if (detail || exception) && !results && !id {
		return bad("NetBox answered %s with an error%s", status(a), tail(c.words(a)))
	}
	return nil
}

func (c *Client) denied(a *answer, words string) *plan.Fault {
	right := permission(a.method, a.path)
	f := c.about(a, plan.CodeNetBoxDenied, "NetBox refused %s %s%s", a.method, firstPart(a.path), tail(words)).With("permission", right)
	switch {
	case html(a):
		return f.WithHint("The answer is a web page: a proxy before NetBox may have refused. Otherwise check the token and its permission %s.", right)
	case a.method != http.MethodGet:
		return f.WithHint("Give the token's user the permission %s, for devices of either status, and the token write access.", right)
	}
	return f.WithHint("Check that the token is right, enabled, not expired and allowed from this address, and that its user has the permission %s.", right)
}

// about makes a fault with the evidence that every answer leaves.
func (c *Client) about(a *answer, code plan.Code, format string, args ...any) *plan.Fault {
	return plan.NewFault(code, format, args...).
		With("method", a.method).With("path", a.path).With("status", strconv.Itoa(a.status)).
		With("request_id", clean(a.header.Get("X-Request-ID"), 64)).
		With("netbox_version", c.Version()).With("netbox_says", c.words(a)).With("url", c.base)
}

// wordsLimit caps what a person is shown of NetBox's own words.
const wordsLimit = 400

// words are NetBox's own words about an error: detail, error, or the messages
// of all fields; the title of a web page. Cleaned, redacted and capped.
func (c *Client) words(a *answer) string {
	if a.status >= 200 && a.status < 300 && !html(a) && !bytes.Contains(a.body, []byte(`"detail"`)) && !bytes.Contains(a.body, []byte(`"exception"`)) {
		return ""
	}
	body := a.body
	if len(body) > 64<<10 {
		body = body[:64<<10]
	}
	if html(a) {
		return clean(c.redact(title(string(body))), wordsLimit)
	}
	var decoded any
	if json.Unmarshal(body, &decoded) != nil {
		return clean(c.redact(string(body)), 120)
	}
	if object, ok := decoded.(map[string]any); ok {
		for _, key := range []string{"detail", "error"} {
			text, ok := object[key].(string)
			if !ok {
				continue
			}
			if inner, ok := object["exception"].(string); ok {
				text = inner + ": " + text
			}
			if more, ok := object["errors"]; ok {
				text += " " + flatten(more)
			}
			return clean(c.redact(text), wordsLimit)
		}
	}
	return clean(c.redact(flatten(decoded)), wordsLimit)
}

// flatten writes {"field": ["message"]} as "field: message".
func flatten(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = k + ": " + flatten(v[k])
		}
		return strings.Join(parts, "; ")
	case []any:
		parts := make([]string, len(v))
		for i, el := range v {
			parts[i] = flatten(el)
		}
		return strings.Join(parts, " ")
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// redact removes the token, whole or its secret half, from foreign text.
func (c *Client) redact(s string) string {
	token := c.opt.Token.Reveal()
	s = strings.ReplaceAll(s, token, "(secret)")
	if _, secret, found := strings.Cut(token, "."); found && len(secret) >= 8 {
		s = strings.ReplaceAll(s, secret, "(secret)")
	}
	return s
}

// clean makes foreign text fit for a terminal: no control or format
// characters, white space folded, at most limit characters.
func clean(s string, limit int) string {
	var b strings.Builder
	space, n := false, 0
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			continue
		}
		if n >= limit {
			return b.String() + "…"
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// title is the text of a web page's <title>.
func title(page string) string {
	_, rest, found := strings.Cut(page, "<title>")
	text, _, ended := strings.Cut(rest, "</title>")
	if !found || !ended {
		return ""
	}
	return text
}

func tail(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}

func status(a *answer) string {
	return strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
}

func html(a *answer) bool {
	return strings.Contains(strings.ToLower(a.header.Get("Content-Type")), "html")
}

func firstPart(path string) string {
	first, _, _ := strings.Cut(path, "?")
	return first
}

// permission names the right that a request needs, as NetBox writes it.
func permission(method, path string) string {
	action := "view"
	if method != http.MethodGet {
		action = "change"
	}
	for _, row := range []struct{ part, app, model string }{
		{"/dcim/devices/", "dcim", "device"}, {"/dcim/interfaces/", "dcim", "interface"}, {"/dcim/device-types/", "dcim", "devicetype"},
		{"/dcim/device-roles/", "dcim", "devicerole"}, {"/dcim/sites/", "dcim", "site"}, {"/ipam/ip-addresses/", "ipam", "ipaddress"}, {"/extras/tags/", "extras", "tag"},
	} {
		if strings.Contains(path, row.part) {
			return row.app + "." + action + "_" + row.model
		}
	}
	return ""
}

// retryAfter reads both forms of the header: seconds and a date.
func (c *Client) retryAfter(h string) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(h)); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(h); err == nil && c.opt.Now != nil {
		return max(0, at.Sub(c.opt.Now()))
	}
	return 0
}

func certificateRefused(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
