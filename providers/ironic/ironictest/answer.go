package ironictest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// answer is what leaves the service.
type answer struct {
	status   int
	body     any // nil: empty
	location string
	early    bool // from the web framework: without Ironic's own headers
}

func (a answer) write(w http.ResponseWriter) {
	if a.early {
		for k := range w.Header() {
			if k != "Location" && a.status != http.StatusNotAcceptable {
				w.Header().Del(k)
			}
		}
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	raw, err := json.Marshal(a.body)
	if err != nil {
		panic("ironictest: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(raw) // a client that went away
}

// fault is an error of Ironic's own: a JSON text inside error_message.
func fault(status int, format string, args ...any) answer {
	code := "Client"
	if status >= http.StatusInternalServerError {
		code = "Server"
	}
	return wrapped(status, fmt.Sprintf(`{"faultcode": %q, "faultstring": %s, "debuginfo": null}`, code, quote(fmt.Sprintf(format, args...))))
}

// routing is an error of the web framework, before Ironic looked.
func routing(status int, title, description string) answer {
	a := wrapped(status, fmt.Sprintf(`{"code": %d, "title": %q, "description": %s}`, status, title, quote(description)))
	a.early = true
	return a
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic("ironictest: " + err.Error())
	}
	return string(raw)
}

func wrapped(status int, message string) answer {
	return answer{status: status, body: map[string]any{"error_message": message}}
}

func notFoundPath() answer { return routing(http.StatusNotFound, "Not Found", "") }

// unauthorized is what keystonemiddleware answers to a missing access rule, in the
// words of a bad token.
func unauthorized() answer {
	return answer{status: http.StatusUnauthorized, body: map[string]any{"error": map[string]any{"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}}
}

// tooNew is the answer to a field or parameter that the asked version does not have.
func tooNew() answer {
	return fault(http.StatusNotAcceptable, "Request not acceptable.")
}

func notAllowed() answer { return routing(http.StatusMethodNotAllowed, "Method Not Allowed", "") }

func locked(n *simNode) answer {
	return fault(http.StatusConflict, "Node %s is locked by host %s, please retry after the current operation is completed.", n.uuid(), n.text("reservation"))
}

func (s *Server) versionEntry() map[string]any {
	return map[string]any{
		"id": "v1", "links": []any{map[string]any{"href": s.URL + "/v1/", "rel": "self"}}, "status": "CURRENT",
		"min_version": fmt.Sprintf("1.%d", minVersion), "version": fmt.Sprintf("1.%d", s.newest),
	}
}

func (s *Server) root() map[string]any {
	return map[string]any{
		"name":            "OpenStack Ironic API",
		"description":     "Ironic is an OpenStack project which enables the provision and management of baremetal machines.",
		"default_version": s.versionEntry(), "versions": []any{s.versionEntry()},
	}
}

func (s *Server) v1() map[string]any {
	return map[string]any{
		"id": "v1", "version": s.versionEntry(),
		"links":       []any{map[string]any{"href": s.URL + "/v1/", "rel": "self"}},
		"media_types": map[string]any{"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"},
		"nodes":       s.links("nodes", ""), "ports": s.links("ports", ""), "portgroups": s.links("portgroups", ""),
	}
}

// links are the two links of an object, or of a collection without one.
func (s *Server) links(collection, uuid string) []any {
	return []any{
		map[string]any{"href": s.URL + "/v1/" + collection + "/" + uuid, "rel": "self"},
		map[string]any{"href": s.URL + "/" + collection + "/" + uuid, "rel": "bookmark"},
	}
}
