package secrets

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/1Password/connect-sdk-go/onepassword"

	"github.com/enroll-dev/enroll/plan"
)

// connect reads a vault of 1Password Connect.
//
// The types of the wire are those of 1Password's own SDK. Its client is not
// used: it takes neither a context nor a time limit nor a CA, starts a tracer
// for the whole process, and loses the status of an error whose JSON does not
// repeat it, so that 401, 403, 404 and 429 could not be told apart.
type connect struct {
	*wire
	settings plan.SecretsSettings
	token    plan.Secret

	memory memory

	mu    sync.Mutex
	vault string // the vault's id, once it is known
}

// connectID is the form of the ids of vaults and items.
var connectID = regexp.MustCompile(`^[a-z0-9]{26}$`)

func newConnect(s plan.SecretsSettings, o Options) (*connect, error) {
	w, err := newWire(s, o, "1Password Connect server")
	if err != nil {
		return nil, err
	}
	c := &connect{wire: w, settings: s}
	c.token, err = callerToken(o, orElse(s.TokenEnv, "OP_CONNECT_TOKEN"), s.TokenFile, "the Connect server's token", "token_env")
	return c, err
}

// read sends one request for the vault, one for the list of its items, which has
// titles and ids but no fields, and one for each item. A list costs less than
// the search for each title, and shows titles that stand twice.
func (c *connect) read(ctx context.Context, refs []plan.SecretRef, found *result) {
	if refs = c.memory.known(refs, found); len(refs) == 0 {
		return
	}
	ids, f := c.items(ctx)
	if f != nil {
		for _, ref := range refs {
			found.fail(ref, f)
		}
		return
	}
	byItem(refs, found, c.memory.reading(func(name string) (*entry, *plan.Fault) { return c.item(ctx, name, ids[name]) }))
}

func (c *connect) get(ctx context.Context, path string) (*answer, *plan.Fault) {
	return c.call(ctx, http.MethodGet, path, map[string]string{"Authorization": "Bearer " + c.token.Reveal()}, nil)
}

// vaultID finds the vault by its title. What has the form of an id is one.
func (c *connect) vaultID(ctx context.Context) (string, *plan.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vault == "" && connectID.MatchString(c.settings.Vault) {
		c.vault = c.settings.Vault
	}
	if c.vault != "" {
		return c.vault, nil
	}
	a, f := c.get(ctx, "/v1/vaults?filter="+url.QueryEscape(`title eq "`+c.settings.Vault+`"`))
	if f != nil {
		return "", f
	}
	if a.status != http.StatusOK {
		return "", c.refusal(a, "vault "+strconv.Quote(c.settings.Vault))
	}
	var vaults []onepassword.Vault
	if err := json.Unmarshal(a.body, &vaults); err != nil {
		return "", c.strange(a, "the list of vaults")
	}
	switch {
	case len(vaults) == 0:
		return "", c.evidence(plan.NewFault(plan.CodeSecretMissing, "the Connect server shows no vault %q to this token", c.settings.Vault).
			WithHint("Correct vault in the secrets block, or give the token access to it."), a, "")
	case len(vaults) > 1:
		return "", c.evidence(plan.NewFault(plan.CodeSecretInvalid, "the Connect server shows %d vaults %q", len(vaults), c.settings.Vault).
			WithHint("Write the vault's id into vault of the secrets block."), a, "")
	}
	c.vault = vaults[0].ID
	return c.vault, nil
}

// items gives the ids of the vault's items by title, and by id.
func (c *connect) items(ctx context.Context) (map[string][]string, *plan.Fault) {
	vault, f := c.vaultID(ctx)
	if f != nil {
		return nil, f
	}
	a, f := c.get(ctx, "/v1/vaults/"+url.PathEscape(vault)+"/items")
	if f != nil {
		return nil, f
	}
	if a.status != http.StatusOK {
		return nil, c.refusal(a, "vault "+strconv.Quote(c.settings.Vault))
	}
	var list []onepassword.Item
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, c.strange(a, "the list of items")
	}
	ids := map[string][]string{}
	for i := range list {
		ids[list[i].Title] = append(ids[list[i].Title], list[i].ID)
	}
	for i := range list {
		if len(ids[list[i].ID]) == 0 { // a title wins
			ids[list[i].ID] = []string{list[i].ID}
		}
	}
	return ids, nil
}

// item reads one item by its id.
func (c *connect) item(ctx context.Context, name string, ids []string) (*entry, *plan.Fault) {
	vault, f := c.vaultID(ctx)
	switch {
	case f != nil:
		return nil, f
	case len(ids) == 0:
		return nil, plan.NewFault(plan.CodeSecretMissing, "vault %q has no item %q", c.settings.Vault, name).
			WithHint("Create the item, or correct the reference in the site file. Titles are compared with upper and lower case.")
	case len(ids) > 1:
		return nil, plan.NewFault(plan.CodeSecretInvalid, "vault %q has %d items %q", c.settings.Vault, len(ids), name).
			WithHint("Rename or remove all but one of them: %s.", strings.Join(ids, ", "))
	}
	a, f := c.get(ctx, "/v1/vaults/"+url.PathEscape(vault)+"/items/"+url.PathEscape(ids[0]))
	if f != nil {
		return nil, f
	}
	if a.status != http.StatusOK {
		return nil, c.refusal(a, "item "+strconv.Quote(name)+" of vault "+strconv.Quote(c.settings.Vault))
	}
	var item onepassword.Item
	if err := json.Unmarshal(a.body, &item); err != nil || item.ID == "" {
		return nil, c.strange(a, "item "+strconv.Quote(name))
	}
	return itemEntry(name, &item), nil
}

func (c *connect) strange(a *answer, what string) *plan.Fault {
	return c.evidence(plan.NewFault(plan.CodeSecretInvalid, "the answer for %s is not that of a 1Password Connect server", what).
		WithHint("Check that url in the secrets block is the Connect server's base address, without /v1."), a, "")
}

// refusal classifies an answer that is no 200: 401 for a token that is no good,
// 403 for a vault that it does not cover, 404 for what is not there.
func (c *connect) refusal(a *answer, what string) *plan.Fault {
	var says onepassword.Error
	_ = json.Unmarshal(a.body, &says) // whatever is no JSON is not the server's own words
	var f *plan.Fault
	switch a.status {
	case http.StatusForbidden:
		f = plan.NewFault(plan.CodeSecretDenied, "the Connect server does not show %s to this token", what).
			WithHint("Give the token read access to vault %q.", c.settings.Vault)
	case http.StatusNotFound:
		f = plan.NewFault(plan.CodeSecretMissing, "the Connect server has no %s", what).
			WithHint("It may have been removed meanwhile. Correct the vault, or the reference in the site file.")
	default:
		if f = c.refused(a); f == nil {
			f = plan.NewFault(plan.CodeSecretInvalid, "the Connect server refused the request for %s (status %d)", what, a.status)
		}
	}
	return c.evidence(f, a, says.Message)
}

// itemEntry gives the fields of a 1Password item by the names under which a
// reference may find them: LABEL and SECTION.LABEL, and the id where no label is
// the same. A name that fits several fields is a fault of whoever asks for it.
func itemEntry(name string, item *onepassword.Item) *entry {
	e := &entry{fields: map[string]json.RawMessage{}, wrong: map[string]*plan.Fault{}}
	if item.Version > 0 {
		e.version = strconv.Itoa(item.Version)
	}
	sections := map[string]string{}
	for _, s := range item.Sections {
		if s != nil {
			sections[s.ID] = s.Label
		}
	}
	count := map[string]int{}
	put := func(key string, f *onepassword.ItemField) {
		if count[key]++; count[key] == 1 {
			e.fields[key], _ = json.Marshal(f.Value) // a text always becomes JSON
		}
	}
	for _, f := range item.Fields {
		if f == nil || f.Label == "" {
			continue
		}
		put(f.Label, f)
		if f.Section != nil && sections[f.Section.ID] != "" {
			put(sections[f.Section.ID]+"."+f.Label, f)
		}
	}
	for key, n := range count {
		if n > 1 {
			e.wrong[key] = plan.NewFault(plan.CodeSecretInvalid, "item %q has %d fields %q", name, n, key).
				WithHint("Write SECTION.FIELD where they stand in different sections, or give one of them another label.").With("version", e.version)
		}
	}
	ids := map[string]*onepassword.ItemField{}
	for _, f := range item.Fields {
		if f != nil && f.ID != "" && count[f.ID] == 0 {
			ids[f.ID] = f
		}
	}
	for id, f := range ids {
		put(id, f)
	}
	return e
}
