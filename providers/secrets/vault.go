package secrets

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// vault reads version 2 of the KV engine of Vault or OpenBao.
type vault struct {
	*wire
	settings plan.SecretsSettings
	login    *vaultLogin
	memory   memory
}

func newVault(s plan.SecretsSettings, o Options) (*vault, error) {
	if s.Mount == "" {
		s.Mount = "secret"
	}
	w, err := newWire(s, o, "vault")
	if err != nil {
		return nil, err
	}
	v := &vault{wire: w, settings: s}
	v.login, err = newVaultLogin(v, s, o)
	return v, err
}

func (v *vault) read(ctx context.Context, refs []plan.SecretRef, found *result) {
	byItem(v.memory.known(refs, found), found, v.memory.reading(func(item string) (*entry, *plan.Fault) { return v.item(ctx, item) }))
}

// path is the request path of an item.
func (v *vault) path(item string) string {
	full := v.settings.Mount + "/data/"
	if v.settings.Prefix != "" {
		full += v.settings.Prefix + "/"
	}
	return "/v1/" + escaped(full+item)
}

// header is what every request carries beside the token.
func (v *vault) header(token plan.Secret) map[string]string {
	h := map[string]string{"X-Vault-Request": "true"}
	if v.settings.Namespace != "" {
		h["X-Vault-Namespace"] = v.settings.Namespace
	}
	if t := token.Reveal(); t != "" {
		h["X-Vault-Token"] = t
	}
	return h
}

// item reads the newest version of one item.
func (v *vault) item(ctx context.Context, name string) (*entry, *plan.Fault) {
	token, f := v.login.token(ctx)
	if f != nil {
		return nil, f
	}
	a, f := v.call(ctx, http.MethodGet, v.path(name), v.header(token), nil)
	if f != nil {
		return nil, f
	}
	if a.status != http.StatusOK {
		return nil, v.refusal(name, a, "read")
	}
	var body struct {
		Data struct {
			Data     map[string]json.RawMessage `json:"data"`
			Metadata struct {
				Version int `json:"version"`
			} `json:"metadata"`
		} `json:"data"`
	}
	// The error of a failed decoding can quote the answer; it is not passed on.
	if err := json.Unmarshal(a.body, &body); err != nil || body.Data.Data == nil || body.Data.Metadata.Version == 0 {
		return nil, v.evidence(plan.NewFault(plan.CodeSecretInvalid, "the answer for item %q is not that of a KV engine of version 2", name).
			WithHint("Check that url in the secrets block is the vault's base address and that mount names a KV engine of version 2."), a, "")
	}
	return &entry{fields: body.Data.Data, version: strconv.Itoa(body.Data.Metadata.Version)}, nil
}

// vaultWords is what a vault says in an answer that is no 200.
type vaultWords struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Data     struct {
		Metadata struct {
			Deleted string `json:"deletion_time"`
		} `json:"metadata"`
	} `json:"data"`
}

func wordsOf(a *answer) (vaultWords, string) {
	var says vaultWords
	_ = json.Unmarshal(a.body, &says) // whatever is no JSON is not the vault's own words
	return says, strings.Join(append(says.Errors, says.Warnings...), "; ")
}

// refusal classifies an answer that is no 200. Vault's statuses: 403 for a wrong
// token and for a missing right alike, 404 for a missing or deleted item and for
// a mount that does not exist, 429 for a quota, 503 when sealed or in
// maintenance. right is what the policy would have to grant.
//
// Only its words tell the two meanings of 403 apart. A token that is not known:
// "permission denied" alone (OpenBao 2.7), or with "invalid token" (Vault since
// 1.13). A right that is missing: a list, "1 error occurred: * permission denied".
func (v *vault) refusal(name string, a *answer, right string) *plan.Fault {
	says, words := wordsOf(a)
	path := strings.TrimPrefix(v.path(name), "/v1/")
	var f *plan.Fault
	switch {
	case a.status == http.StatusForbidden && (words == "permission denied" || strings.Contains(words, "invalid token")):
		f = plan.NewFault(plan.CodeSecretLogin, "the vault at %s refused the token", v.base).
			WithHint("The token is wrong, expired or revoked, or was issued by another vault. Get a new one for this run.")
	case a.status == http.StatusForbidden:
		f = plan.NewFault(plan.CodeSecretDenied, "the vault does not let this token %s item %q", right, name).
			WithHint("Its policy lacks %s on %s, or the token is of another namespace.", right, path)
	case a.status == http.StatusNotFound && strings.Contains(words, "no handler for route"):
		f = plan.NewFault(plan.CodeConfigInvalid, "the vault has no engine mounted at %q", v.settings.Mount).
			WithHint("Correct mount or namespace in the secrets block.")
	case a.status == http.StatusNotFound && strings.Contains(words, "namespace not found"):
		f = plan.NewFault(plan.CodeConfigInvalid, "the vault has no namespace %q", v.settings.Namespace).
			WithHint("Correct namespace in the secrets block.")
	case a.status == http.StatusNotFound && says.Data.Metadata.Deleted != "":
		f = plan.NewFault(plan.CodeSecretMissing, "the newest version of item %q is deleted in the vault", name).
			WithHint("Write or undelete %s.", path).With("deleted", says.Data.Metadata.Deleted)
	case a.status == http.StatusNotFound:
		f = plan.NewFault(plan.CodeSecretMissing, "the vault has no item %q", name).
			WithHint("Create the item at %s, or correct the reference in the site file.", path)
	case a.status == http.StatusServiceUnavailable:
		f = plan.NewFault(plan.CodeSecretUnreachable, "the vault at %s is sealed or in maintenance", v.base)
	case a.status == http.StatusBadRequest && strings.Contains(words, "check-and-set"):
		f = plan.NewFault(plan.CodeSecretConflict, "item %q was changed in the vault at the same time", name)
	default:
		if f = v.refused(a); f == nil {
			f = plan.NewFault(plan.CodeSecretInvalid, "the vault refused the request for item %q (status %d)", name, a.status)
		}
	}
	return v.evidence(f, a, words)
}
