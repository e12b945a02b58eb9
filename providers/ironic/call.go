package ironic

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/enroll-dev/enroll/plan"
)

// maxBody is the largest answer that is read: a page of 1000 detailed nodes has
// about 3 MB, an inventory of a large machine below 1 MB.
const maxBody = 64 << 20

// maxError is how much is read of an answer that is no success: enough for its words.
const maxError = 1 << 20

// maxWords bounds what a fault quotes of an answer.
const maxWords = 300

// call sends one request below /v1 and decodes the answer into out, unless out
// is nil. The status is that of the answer, 0 when there was none. The fault's
// evidence has method, path, status, Ironic's own words and its request id.
func (s *service) call(ctx context.Context, method, path string, body, out any) (int, *plan.Fault) {
	return s.callWith(ctx, method, path, nil, body, out)
}

func (s *service) callWith(ctx context.Context, method, path string, header map[string]string, body, out any) (int, *plan.Fault) {
	conn, f := s.connect(ctx)
	if f != nil {
		return 0, f
	}
	minor := s.minor()
	opts := &gophercloud.RequestOpts{
		KeepResponseBody: true, JSONBody: body, MoreHeaders: map[string]string{versionHeader: apiVersion(minor)},
		OkCodes: []int{success(method, path)},
	}
	maps.Copy(opts.MoreHeaders, header)
	resp, err := conn.Request(ctx, method, conn.ServiceURL(path), opts)
	if err != nil {
		status := 0
		var code gophercloud.ErrUnexpectedResponseCode
		if errors.As(err, &code) {
			status = code.Actual
		}
		if status == http.StatusNotAcceptable && s.lower(minor, code.ResponseHeader) {
			return s.callWith(ctx, method, path, header, body, out)
		}
		return status, s.classify(ctx, method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return 0, s.classify(ctx, method, path, err)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	if len(raw) > maxBody {
		return resp.StatusCode, s.senseless(method, path, resp.StatusCode, nil, fmt.Sprintf("an answer of more than %d bytes", maxBody))
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return resp.StatusCode, s.senseless(method, path, resp.StatusCode, raw, "an answer that is not the JSON expected").Because(err)
	}
	return resp.StatusCode, nil
}

// success is the one status with which Ironic grants what this package asks
// for; a proxy's 200 to a PUT is none.
func success(method, path string) int {
	switch {
	case method == http.MethodPost:
		return http.StatusCreated
	case method == http.MethodPut && (strings.Contains(path, "/traits/") || strings.HasSuffix(path, "/states/raid")):
		return http.StatusNoContent
	case method == http.MethodPut, method == http.MethodDelete:
		return http.StatusAccepted
	}
	return http.StatusOK
}

func (s *service) senseless(method, path string, status int, raw []byte, what string) *plan.Fault {
	return s.evidence(plan.NewFault(plan.CodeIronicProtocol, "ironic %s gave %s", s.settings.Name, what), method, path, status).With("body", cut(string(raw)))
}

// shown is a path for people: the list of fields that every read carries says
// nothing and hides the rest.
func shown(path string) string {
	before, fields, ok := strings.Cut(path, "fields=")
	if !ok {
		return path
	}
	if _, rest, more := strings.Cut(fields, "&"); more {
		return before + "fields=…&" + rest
	}
	return before + "fields=…"
}

func (s *service) evidence(f *plan.Fault, method, path string, status int) *plan.Fault {
	path = shown(path)
	text := ""
	if status != 0 {
		text = strconv.Itoa(status)
	}
	return f.With("method", method).With("path", "/v1/"+path).With("ironic", s.where()).With("status", text)
}

// where names the instance as the site file does.
func (s *service) where() string {
	if s.settings.Endpoint != "" {
		return s.settings.Name + " at " + s.settings.Endpoint
	}
	return s.settings.Name + " of cloud " + s.settings.Cloud
}

// classify turns whatever a request failed with into a fault.
func (s *service) classify(ctx context.Context, method, path string, err error) *plan.Fault {
	path = shown(path)
	var send *url.Error
	if errors.As(err, &send) {
		err = send.Err // without the address, which the fault has already
	}
	var code gophercloud.ErrUnexpectedResponseCode
	switch {
	case errors.As(err, &code):
		f := s.refusal(method, path, code.Actual, words(code.Body))
		if code.Actual == http.StatusNotAcceptable {
			f = s.unacceptable(method+" /v1/"+path, code.ResponseHeader)
		}
		if rule, ok := ruleFor(method, path); ok && code.Actual == http.StatusUnauthorized {
			f = f.With("access rule", rule.Method+" "+rule.Path).
				WithHint("When the credential is good and has access rules, it lacks the one for %s %s (%s); enroll doctor --access-rules prints all of them.", rule.Method, rule.Path, rule.Use)
		}
		return s.evidence(f, method, path, code.Actual).With("words", words(code.Body)).With("request_id", code.ResponseHeader.Get("Openstack-Request-Id"))
	case errors.Is(ctx.Err(), context.Canceled):
		return s.evidence(plan.NewFault(plan.CodeInterrupted, "the request to ironic %s was interrupted", s.settings.Name), method, path, 0)
	}
	f := plan.NewFault(plan.CodeIronicUnreachable, "ironic %s did not answer %s /v1/%s", s.where(), method, path)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) {
		f = plan.NewFault(plan.CodeIronicUnreachable, "the certificate of ironic %s was refused", s.where()).
			WithHint("Set ca_file of ironic %q to the authority that signed it.", s.settings.Name)
	}
	return s.evidence(f, method, path, 0).Because(err)
}

// refusal is the fault of a status. The statuses' meanings are Ironic's own;
// see the package comment for 401 and 409.
func (s *service) refusal(method, path string, status int, text string) *plan.Fault {
	request := method + " /v1/" + path
	switch {
	case status < http.StatusBadRequest:
		return plan.NewFault(plan.CodeIronicProtocol, "ironic %s answered %s with %d, which Ironic never does", s.settings.Name, request, status)
	case status == http.StatusUnauthorized:
		return plan.NewFault(plan.CodeIronicDenied, "token rejected for %s: expired credential, or no access rule for it", request)
	case status == http.StatusForbidden:
		return plan.NewFault(plan.CodeIronicDenied, "ironic %s denies %s to this credential", s.settings.Name, request)
	case status == http.StatusConflict && strings.Contains(text, "is locked by host"):
		return plan.NewFault(plan.CodeIronicLocked, "ironic %s refused %s: the node is locked", s.settings.Name, request)
	case status == http.StatusConflict && (strings.Contains(text, "already exists") || strings.Contains(text, "already associated")):
		return plan.NewFault(plan.CodeIronicConflict, "ironic %s refused %s: %s", s.settings.Name, request, cut(text))
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout, status == http.StatusTooManyRequests,
		status == http.StatusRequestTimeout: // Ironic's own server, when it is too busy to read a request in time
		return plan.NewFault(plan.CodeIronicUnreachable, "ironic %s is not available (%d) for %s", s.settings.Name, status, request)
	case text == "":
		return plan.NewFault(plan.CodeIronicProtocol, "ironic %s answered %s with %d and no reason", s.settings.Name, request, status)
	}
	return plan.NewFault(plan.CodeIronicRefused, "ironic %s refused %s: %s", s.settings.Name, request, cut(text))
}

// words finds the text for people in an error body: Ironic wraps a JSON text in
// error_message, its newer middleware answers flat, keystonemiddleware has its
// own form, and a proxy sends HTML. It never fails.
func words(body []byte) string {
	type reason struct {
		Fault       string `json:"faultstring"`
		Description string `json:"description"`
		Title       string `json:"title"`
	}
	pick := func(r reason) string {
		for _, text := range []string{r.Fault, r.Description, r.Title} {
			if text != "" {
				return cut(text)
			}
		}
		return ""
	}
	var outer struct {
		Message json.RawMessage `json:"error_message"`
		reason
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &outer); err != nil {
		return cut(strings.TrimSpace(string(body)))
	}
	var text string
	var inner reason
	if json.Unmarshal(outer.Message, &text) == nil {
		if json.Unmarshal([]byte(text), &inner) != nil {
			return cut(text)
		}
	} else if len(outer.Message) > 0 {
		_ = json.Unmarshal(outer.Message, &inner) // an object instead of a text; anything else leaves it empty
	}
	for _, found := range []string{pick(inner), pick(outer.reason), outer.Error.Message} {
		if found != "" {
			return cut(found)
		}
	}
	return cut(strings.TrimSpace(string(body)))
}

// cut bounds a quotation and keeps it one line of valid text.
func cut(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= maxWords {
		return text
	}
	text = text[:maxWords]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
