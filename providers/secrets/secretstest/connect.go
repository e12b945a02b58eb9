package secretstest

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// DefaultConnectToken is the token of a Connect server whose options name none.
const DefaultConnectToken = "eyJhbGciOiJFUzI1NiJ9.connect-of-the-simulator"

// ConnectToken is a token of a Connect server.
type ConnectToken struct {
	Value  string
	Vaults []string // titles of the vaults that it may read; nil: all
}

// ConnectOptions of a Connect server.
type ConnectOptions struct {
	Vaults   []string       // titles; default: one vault "lon14"
	Tokens   []ConnectToken // default: DefaultConnectToken, all vaults
	Now      func() time.Time
	Recorder *exchange.Recorder
	TLS      *tls.Certificate // nil: HTTP
}

// ConnectField is a field of an item.
type ConnectField struct {
	ID      string // default: the label in small letters
	Label   string
	Value   string // empty: left out of answers, as Connect does
	Section string // label of its section
	Purpose string // USERNAME, PASSWORD or NOTES
}

// Connect is a running 1Password Connect server: vaults, lists of items without
// their fields, items, and the search by title, as connect-sdk-go 1.5 asks.
type Connect struct {
	URL      string
	Token    string // the first of the tokens
	Recorder *exchange.Recorder

	opt  ConnectOptions
	stop func()

	mu    sync.Mutex
	items []*connectItem
}

type connectItem struct {
	id, vault, title string
	version          int
	created, updated time.Time
	fields           []ConnectField
}

// NewConnect starts a server. It panics when it cannot listen, as httptest does.
// Call Close at the end.
func NewConnect(opt ConnectOptions) *Connect {
	if len(opt.Vaults) == 0 {
		opt.Vaults = []string{"lon14"}
	}
	if len(opt.Tokens) == 0 {
		opt.Tokens = []ConnectToken{{Value: DefaultConnectToken}}
	}
	if opt.Now == nil {
		opt.Now = time.Now //nolint:forbidigo // a test server's default clock, as in the other simulators
	}
	if opt.Recorder == nil {
		opt.Recorder = exchange.NewRecorder(opt.Now, nil)
	}
	c := &Connect{Token: opt.Tokens[0].Value, Recorder: opt.Recorder, opt: opt}
	c.URL, c.stop = listen("127.0.0.1:0", opt.TLS, c.Handler())
	return c
}

// Close stops the server and cuts its connections.
func (c *Connect) Close() { c.stop() }

// Handler is the server without its listener.
func (c *Connect) Handler() http.Handler {
	return c.Recorder.Wrap(exchange.Describe{System: "onepassword"}, http.HandlerFunc(c.serve))
}

// ID is the id of a vault, or of an item that Add added, by its title.
func (c *Connect) ID(title string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.items {
		if i.title == title {
			return i.id
		}
	}
	return connectID("vault", title)
}

// Add adds an item, also a second one of the same title, and gives its id.
func (c *Connect) Add(vault, title string, fields ...ConnectField) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opt.Now()
	i := &connectItem{id: connectID("item", fmt.Sprint(len(c.items))), vault: vault, title: title, version: 1, created: now, updated: now, fields: fields}
	c.items = append(c.items, i)
	return i.id
}

// Put writes texts into an item's fields of these labels, as a new version; an
// item that is not there is added.
func (c *Connect) Put(vault, title string, fields map[string]string) {
	c.mu.Lock()
	var item *connectItem
	for _, i := range c.items {
		if i.vault == vault && i.title == title {
			item = i
		}
	}
	c.mu.Unlock()
	if item == nil {
		c.Add(vault, title)
		c.Put(vault, title, fields)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(item.fields) > 0 {
		item.version++
	}
	item.updated = c.opt.Now()
	for label, value := range fields {
		found := false
		for n := range item.fields {
			if item.fields[n].Label == label {
				item.fields[n].Value, found = value, true
			}
		}
		if !found {
			item.fields = append(item.fields, ConnectField{Label: label, Value: value})
		}
	}
}

// connectID is an id in 1Password's form: 26 small letters and digits.
func connectID(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + " " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:26]
}

var (
	connectIDForm = regexp.MustCompile(`^[a-z0-9]{26}$`)
	titleFilter   = regexp.MustCompile(`^(?:title|name) eq "(.*)"$`)
)

func (c *Connect) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path == "/heartbeat" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(".")) // the connection may be gone
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "v1" || parts[1] != "vaults" {
		connectRefuse(w, http.StatusNotFound, "Not Found")
		return
	}
	token := c.tokenOf(r)
	switch {
	case r.Header.Get("Authorization") == "":
		connectRefuse(w, http.StatusUnauthorized, "Authentication: No token found")
	case token == nil:
		connectRefuse(w, http.StatusUnauthorized, "Authentication: Invalid token signature")
	case r.Method != http.MethodGet:
		connectRefuse(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	case len(parts) == 2:
		c.listVaults(w, r, token)
	default:
		c.inVault(w, r, token, parts[2:])
	}
}

func (c *Connect) tokenOf(r *http.Request) *ConnectToken {
	for i, t := range c.opt.Tokens {
		if r.Header.Get("Authorization") == "Bearer "+t.Value {
			return &c.opt.Tokens[i]
		}
	}
	return nil
}

func (t *ConnectToken) reads(vault string) bool {
	if t.Vaults == nil {
		return true
	}
	for _, v := range t.Vaults {
		if v == vault {
			return true
		}
	}
	return false
}

// filter gives the title that is searched for. ok is false after a refusal.
func filter(w http.ResponseWriter, r *http.Request) (title string, all, ok bool) {
	text := r.URL.Query().Get("filter")
	if text == "" {
		return "", true, true
	}
	m := titleFilter.FindStringSubmatch(text)
	if m == nil || strings.Contains(m[1], `"`) {
		connectRefuse(w, http.StatusBadRequest, "Invalid filter query")
		return "", false, false
	}
	return m[1], false, true
}

func (c *Connect) listVaults(w http.ResponseWriter, r *http.Request, token *ConnectToken) {
	title, all, ok := filter(w, r)
	if !ok {
		return
	}
	list := []any{}
	for _, v := range c.opt.Vaults {
		if token.reads(v) && (all || v == title) {
			list = append(list, c.vaultJSON(v))
		}
	}
	reply(w, http.StatusOK, list)
}

func (c *Connect) vaultJSON(title string) map[string]any {
	n := 0
	for _, i := range c.items {
		if i.vault == title {
			n++
		}
	}
	return map[string]any{"id": connectID("vault", title), "name": title, "items": n, "type": "USER_CREATED", "attributeVersion": 1, "contentVersion": n}
}

func (c *Connect) inVault(w http.ResponseWriter, r *http.Request, token *ConnectToken, parts []string) {
	vault := ""
	for _, v := range c.opt.Vaults {
		if connectID("vault", v) == parts[0] {
			vault = v
		}
	}
	switch {
	case !connectIDForm.MatchString(parts[0]):
		connectRefuse(w, http.StatusBadRequest, "Invalid Vault UUID")
	case vault == "":
		connectRefuse(w, http.StatusNotFound, "Vault not found")
	case !token.reads(vault):
		connectRefuse(w, http.StatusForbidden, "Authorization: token does not have access to requested vault")
	case len(parts) == 1:
		reply(w, http.StatusOK, c.vaultJSON(vault))
	case parts[1] != "items" || len(parts) > 3:
		connectRefuse(w, http.StatusNotFound, "Not Found")
	case len(parts) == 2:
		c.listItems(w, r, vault)
	case !connectIDForm.MatchString(parts[2]):
		connectRefuse(w, http.StatusBadRequest, "Invalid Item UUID")
	default:
		for _, i := range c.items {
			if i.vault == vault && i.id == parts[2] {
				reply(w, http.StatusOK, i.json(true))
				return
			}
		}
		connectRefuse(w, http.StatusNotFound, "Item not found")
	}
}

func (c *Connect) listItems(w http.ResponseWriter, r *http.Request, vault string) {
	title, all, ok := filter(w, r)
	if !ok {
		return
	}
	list := []any{}
	for _, i := range c.items {
		if i.vault == vault && (all || i.title == title) {
			list = append(list, i.json(false))
		}
	}
	reply(w, http.StatusOK, list)
}

// json is an item, or its summary without fields.
func (i *connectItem) json(whole bool) map[string]any {
	out := map[string]any{
		"id": i.id, "title": i.title, "version": i.version, "category": "LOGIN", "vault": map[string]any{"id": connectID("vault", i.vault)},
		"createdAt": i.created.UTC().Format(time.RFC3339), "updatedAt": i.updated.UTC().Format(time.RFC3339), "lastEditedBy": connectID("user", "editor"),
	}
	if !whole {
		return out
	}
	sections := []any{}
	seen := map[string]bool{}
	fields := []any{}
	for n, f := range i.fields {
		id := f.ID
		if id == "" {
			id = strings.ToLower(f.Label)
			if f.Section != "" {
				id = connectID("field", fmt.Sprint(i.id, n))
			}
		}
		field := map[string]any{"id": id, "label": f.Label, "type": "CONCEALED"}
		if f.Value != "" {
			field["value"] = f.Value
		}
		if f.Purpose != "" {
			field["purpose"] = f.Purpose
		}
		if f.Section != "" {
			section := map[string]any{"id": connectID("section", f.Section), "label": f.Section}
			field["section"] = section
			if !seen[f.Section] {
				seen[f.Section] = true
				sections = append(sections, section)
			}
		}
		fields = append(fields, field)
	}
	out["fields"] = fields
	if len(sections) > 0 {
		out["sections"] = sections
	}
	return out
}

func connectRefuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "message": message}) // the connection may be gone
}
