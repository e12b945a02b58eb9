package bmctest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// replayed answers a request with what the recorded BMC answered. Nobody knows
// what it would have said to a change, so none is taken.
func (b *BMC) replayed(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(trimSlash(r.URL.Path), sessionsPath) && !b.machine.Profile.NoSessions {
		b.route(w, r, trimSlash(r.URL.Path)) // those of now, not those of then
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		b.refuse(w, http.StatusMethodNotAllowed, b.base("OperationNotAllowed"), "A recording of a BMC takes no changes.", "Use a BMC or its simulator.")
		return
	}
	a, ok := b.machine.Recording.Find(r.URL.RequestURI())
	if !ok {
		b.notFound(w, r.URL.Path)
		return
	}
	for name, value := range map[string]string{"ETag": a.ETag, "Allow": a.Allow, "Content-Type": a.Type} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(a.Status)
	if a.Body == nil {
		_, _ = w.Write([]byte("<html>" + strings.Repeat(" ", min(max(a.Page-13, 0), 1<<20)) + "</html>")) // a page, of its size
		return
	}
	raw, err := json.Marshal(a.Body)
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	_, _ = w.Write(raw)
}
