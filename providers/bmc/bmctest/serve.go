package bmctest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sort"
	"strings"
)

// serve answers one request, one at a time as the small web servers of BMCs do.
func (b *BMC) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	w.Header().Set("OData-Version", "4.0")
	w.Header().Set("Cache-Control", "no-cache")
	path := trimSlash(r.URL.Path)
	if b.machine.Vendor == IDRAC && b.isLocked("") {
		cut(w) // an iDRAC blocks the address, not the account
		return
	}
	if b.now().Before(b.away) {
		cut(w)
		return
	}
	switch {
	case path == "/redfish" && r.Method == http.MethodGet:
		b.answer(w, http.StatusOK, object{"v1": rootPath + "/"})
		return
	case path == rootPath && r.Method == http.MethodGet && b.machine.Recording != nil:
		b.replayed(w, r)
		return
	case path == rootPath && r.Method == http.MethodGet:
		b.answer(w, http.StatusOK, b.resource(path))
		return
	case path == sessionsPath && r.Method == http.MethodPost && !b.machine.Profile.NoSessions:
		b.login(w, r)
		return
	}
	who := b.authorized(w, r)
	if who == nil {
		return
	}
	if who.passwordOnly && !b.mayWhilePasswordOnly(r, path) {
		b.respond(w, http.StatusForbidden, object{"error": object{
			"code": b.base("GeneralError"), "message": "A general error has occurred. See ExtendedInfo for more information.", "@Message.ExtendedInfo": []any{b.passwordChangeInfo(who.user)},
		}})
		return
	}
	if b.now().Before(b.warming) {
		b.busy(w)
		return
	}
	if b.machine.Profile.Busy > 0 && !strings.HasPrefix(path, sessionsPath) {
		b.machine.Profile.Busy--
		b.busy(w)
		return
	}
	if b.machine.Recording != nil {
		b.replayed(w, r)
		return
	}
	b.route(w, r, path)
}

func (b *BMC) route(w http.ResponseWriter, r *http.Request, path string) {
	if act := b.actionAt(path); act != nil && (r.Method == http.MethodPost || b.resource(path) == nil) {
		b.act(w, r, act)
		return
	}
	doc := b.resource(path)
	if doc == nil {
		b.notFound(w, r.URL.Path)
		return
	}
	writable := b.writable(path)
	deletable := strings.HasPrefix(path, sessionsPath+"/")
	allow := "GET, HEAD"
	if writable != nil {
		allow += ", PATCH"
	}
	if deletable {
		allow += ", DELETE"
	}
	w.Header().Set("Allow", allow)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if b.taskRunning(path) {
			b.answer(w, http.StatusAccepted, doc)
			return
		}
		if b.maker.expands && strings.HasPrefix(r.URL.Query().Get("$expand"), "*") {
			b.expand(doc)
		}
		b.answer(w, http.StatusOK, doc)
	case r.Method == http.MethodDelete && strings.HasPrefix(path, b.recipientsPath()+"/") && b.machine.Vendor == XCC:
		delete(b.recipients, last(path))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete && deletable:
		b.logout(w, last(path))
	case r.Method == http.MethodPatch && b.futureOnly(w, path):
	case r.Method == http.MethodPatch && writable != nil:
		b.patch(w, r, doc, writable)
	default:
		b.refuse(w, http.StatusMethodNotAllowed, b.base("OperationNotAllowed"), "The HTTP method is not allowed on this resource.", "Use another method.")
	}
}

// expand puts members into their list.
func (b *BMC) expand(doc object) {
	members, _ := doc["Members"].([]any)
	for i, m := range members {
		if d := b.resource(text(m.(object)["@odata.id"])); d != nil {
			if b.machine.Vendor == AMI {
				delete(d, "@odata.id") // as it does
			}
			members[i] = d
		}
	}
}

func (b *BMC) act(w http.ResponseWriter, r *http.Request, do action) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		b.refuse(w, http.StatusMethodNotAllowed, b.base("OperationNotAllowed"), "The HTTP method is not allowed on this resource.", "Use another method.")
		return
	}
	if body, ok := b.body(w, r); ok {
		do(w, body)
	}
}

// body reads a JSON object.
func (b *BMC) body(w http.ResponseWriter, r *http.Request) (object, bool) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		b.refuse(w, http.StatusUnsupportedMediaType, b.base("UnrecognizedRequestBody"), "The service detected a malformed request body that it was unable to interpret.", "Send JSON.")
		return nil, false
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var body object
	if err != nil || json.Unmarshal(raw, &body) != nil || body == nil {
		b.refuse(w, http.StatusBadRequest, b.base("MalformedJSON"), "The request body submitted was malformed JSON and could not be parsed by the receiving service.", "Ensure that the request body is valid JSON and resubmit the request.")
		return nil, false
	}
	return body, true
}

func info(id, text, resolution, severity string) object {
	return object{"@odata.type": "#Message.v1_1_1.Message", "MessageId": id, "Message": text, "MessageArgs": []any{}, "Resolution": resolution, "MessageSeverity": severity, "Severity": severity}
}

func (b *BMC) refuse(w http.ResponseWriter, status int, id, text, resolution string) {
	code, message := id, text
	if b.machine.Vendor == IDRAC {
		code, message = "Base.1.12.GeneralError", "A general error has occurred. See ExtendedInfo for more information."
	}
	b.respond(w, status, object{"error": object{"code": code, "message": message, "@Message.ExtendedInfo": []any{info(id, text, resolution, "Critical")}}})
}

func (b *BMC) notFound(w http.ResponseWriter, path string) {
	b.refuse(w, http.StatusNotFound, b.base("ResourceMissingAtURI"), "The resource at the URI "+path+" was not found.", "Place a valid resource at the URI or correct the URI and resubmit the request.")
}

func (b *BMC) busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "30")
	if b.machine.Vendor == IDRAC {
		b.refuse(w, http.StatusServiceUnavailable, "IDRAC.2.8.SYS518", "iDRAC is not ready. The configuration values cannot be accessed.", "Retry after a few minutes.")
		return
	}
	b.refuse(w, http.StatusServiceUnavailable, b.base("ServiceTemporarilyUnavailable"), "The service is temporarily unavailable.  Retry in 30 seconds.", "Wait for the indicated retry duration and retry the operation.")
}

// answer sends a resource with its ETag.
func (b *BMC) answer(w http.ResponseWriter, status int, doc object) {
	if tag := b.etag(doc); tag != "" {
		w.Header().Set("ETag", tag)
		if b.maker.bodyETag {
			doc["@odata.etag"] = tag
		}
	}
	b.respond(w, status, doc)
}

func (b *BMC) respond(w http.ResponseWriter, status int, doc object) {
	if b.machine.Profile.TrailingSlash {
		slashes(doc)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if b.machine.Profile.WrongType {
		w.Header().Set("Content-Type", "text/html")
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that went away
}

// etag is the hash of a resource; weak on the generic BMC, as many send it.
func (b *BMC) etag(doc object) string {
	if b.machine.Profile.NoETag || doc["@odata.id"] == nil {
		return ""
	}
	clean := object{}
	for k, v := range doc {
		if k != "@odata.etag" {
			clean[k] = v
		}
	}
	raw, err := json.Marshal(clean)
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	if b.maker.weakETag {
		return "W/" + tag
	}
	return tag
}

// slashes ends all links with a slash.
func slashes(v any) {
	switch v := v.(type) {
	case object:
		for k, inner := range v {
			if s, ok := inner.(string); ok && k == "@odata.id" && !strings.HasSuffix(s, "/") {
				v[k] = s + "/"
			}
			slashes(inner)
		}
	case []any:
		for _, inner := range v {
			slashes(inner)
		}
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}
