package secrets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

const (
	defaultTimeout = 30 * time.Second
	maxAnswer      = 1 << 20 // bytes; a vault's own limit of an entry is 1 MiB
	atOnce         = 8       // requests
)

// vault reads version 2 of the KV engine of Vault or OpenBao.
type vault struct {
	settings  plan.SecretsSettings
	token     plan.Secret
	client    *http.Client
	userAgent string
	requests  atomic.Int64
}

func newVault(s plan.SecretsSettings, o Options) (*vault, error) {
	variable := s.TokenEnv
	if variable == "" {
		variable = "VAULT_TOKEN"
	}
	token, _ := o.Getenv(variable)
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return nil, plan.NewFault(plan.CodeSecretMissing, "the environment variable %s, which should hold the vault's token, is not set", variable).
			WithHint("Set %s, or name another variable with token_env in the secrets block.", variable)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= 0x20 || r >= 0x7f }):
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the environment variable %s holds something that is no vault token", variable)
	}
	if s.Mount == "" {
		s.Mount = "secret"
	}
	transport := o.Transport
	if transport == nil {
		t, err := newTransport(s.CAFile)
		if err != nil {
			return nil, err
		}
		transport = t
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &vault{settings: s, token: plan.NewSecret(token, ""), userAgent: o.UserAgent, client: &http.Client{
		Transport: transport, Timeout: o.Timeout,
		// A redirect would take the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: atOnce,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the ca_file of the secrets block cannot be read").Because(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the ca_file of the secrets block, %s, holds no PEM certificate", caFile)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// read sends one request for each item, however many fields are wanted. When the
// vault does not answer one, the rest is not asked for.
func (v *vault) read(ctx context.Context, refs []plan.SecretRef, found *result) {
	items := map[string][]plan.SecretRef{}
	var names []string
	for _, ref := range refs {
		if items[ref.Item] == nil {
			names = append(names, ref.Item)
		}
		items[ref.Item] = append(items[ref.Item], ref)
	}
	sort.Strings(names)
	var down atomic.Pointer[plan.Fault]
	queue := make(chan string)
	var workers sync.WaitGroup
	for range min(atOnce, len(names)) {
		workers.Go(func() {
			for name := range queue {
				fault := down.Load()
				var item *entry
				if fault == nil {
					if item, fault = v.item(ctx, name); fault != nil && stops(fault.Code) {
						down.CompareAndSwap(nil, fault)
					}
				}
				for _, ref := range items[name] {
					item.field(ref, fault, found)
				}
			}
		})
	}
	for _, name := range names {
		queue <- name
	}
	close(queue)
	workers.Wait()
}

func stops(c plan.Code) bool { return c == plan.CodeSecretUnreachable || c == plan.CodeInterrupted }

// entry is one version of an item.
type entry struct {
	fields  map[string]json.RawMessage
	version string
}

// field puts one field, or what is wrong with it, into the result.
func (e *entry) field(ref plan.SecretRef, fault *plan.Fault, found *result) {
	if fault != nil {
		found.fail(ref, fault)
		return
	}
	raw, ok := e.fields[ref.Field]
	if !ok {
		found.fail(ref, plan.NewFault(plan.CodeSecretMissing, "item %q has no field %q", ref.Item, ref.Field).With("version", e.version))
		return
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || string(raw) == "null" {
		found.fail(ref, plan.NewFault(plan.CodeSecretInvalid, "field %q of item %q is no text", ref.Field, ref.Item).
			WithHint("Store the value as a JSON string.").With("version", e.version))
		return
	}
	if text == "" {
		found.fail(ref, plan.NewFault(plan.CodeSecretInvalid, "field %q of item %q is empty", ref.Field, ref.Item).With("version", e.version))
		return
	}
	found.put(ref, plan.NewSecret(text, e.version))
}

// path is the request path of an item.
func (v *vault) path(item string) string {
	full := v.settings.Mount + "/data/"
	if v.settings.Prefix != "" {
		full += v.settings.Prefix + "/"
	}
	parts := strings.Split(full+item, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/v1/" + strings.Join(parts, "/")
}

// item reads one item.
func (v *vault) item(ctx context.Context, name string) (*entry, *plan.Fault) {
	path := v.path(name)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.settings.URL+path, nil)
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the url of the secrets block is no address").Because(err)
	}
	req.Header.Set("X-Vault-Token", v.token.Reveal())
	req.Header.Set("X-Vault-Request", "true")
	req.Header.Set("Accept", "application/json")
	if v.userAgent != "" {
		req.Header.Set("User-Agent", v.userAgent)
	}
	v.requests.Add(1)
	resp, err := v.client.Do(req)
	if err != nil {
		return nil, v.noAnswer(ctx, path, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or the reading failed
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, v.noAnswer(ctx, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, v.refusal(name, path, resp, body)
	}
	var answer struct {
		Data struct {
			Data     map[string]json.RawMessage `json:"data"`
			Metadata struct {
				Version int `json:"version"`
			} `json:"metadata"`
		} `json:"data"`
	}
	// The error of a failed decoding can quote the answer; it is not passed on.
	if err := json.Unmarshal(body, &answer); err != nil || len(body) > maxAnswer || answer.Data.Data == nil || answer.Data.Metadata.Version == 0 {
		return nil, v.evidence(plan.NewFault(plan.CodeSecretInvalid, "the answer for item %q is not that of a KV engine of version 2", name).
			WithHint("Check that url in the secrets block is the vault's base address and that mount names a KV engine of version 2."), path, resp.StatusCode, nil)
	}
	return &entry{fields: answer.Data.Data, version: strconv.Itoa(answer.Data.Metadata.Version)}, nil
}

func (v *vault) evidence(f *plan.Fault, path string, status int, words []string) *plan.Fault {
	f = f.With("request", "GET "+v.settings.URL+path)
	if status != 0 {
		f = f.With("status", strconv.Itoa(status))
	}
	return f.With("vault says", cut(strings.Join(words, "; ")))
}

// noAnswer classifies a request without a whole answer.
func (v *vault) noAnswer(ctx context.Context, path string, err error) *plan.Fault {
	if errors.Is(ctx.Err(), context.Canceled) {
		return plan.NewFault(plan.CodeInterrupted, "the run was interrupted while secrets were read")
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which the evidence has
	}
	f := plan.NewFault(plan.CodeSecretUnreachable, "the vault at %s did not answer", v.settings.URL).Because(err)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) {
		f.Summary = "the certificate of the vault at " + v.settings.URL + " was refused"
		f = f.WithHint("Name the CA of the vault's certificate with ca_file in the secrets block, and write url with the name that the certificate has.")
	}
	return v.evidence(f, path, 0, nil)
}

// refusal classifies an answer that is no 200. Vault's statuses: 403 for a wrong
// token and for a missing right alike, 404 for a missing or deleted item and for
// a mount that does not exist, 429 for a quota, 503 when sealed or in
// maintenance.
func (v *vault) refusal(name, path string, resp *http.Response, body []byte) *plan.Fault {
	var says struct {
		Errors   []string `json:"errors"`
		Warnings []string `json:"warnings"`
		Data     struct {
			Metadata struct {
				Deleted string `json:"deletion_time"`
			} `json:"metadata"`
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &says) // whatever is no JSON is not the vault's own words
	words := append(says.Errors, says.Warnings...)
	var f *plan.Fault
	switch status := resp.StatusCode; {
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		f = plan.NewFault(plan.CodeSecretDenied, "the vault refused to show item %q", name).
			WithHint("The token is wrong or expired, or its policy lacks read on %s.", strings.TrimPrefix(path, "/v1/"))
	case status == http.StatusNotFound && strings.Contains(strings.Join(words, " "), "no handler for route"):
		f = plan.NewFault(plan.CodeConfigInvalid, "the vault has no engine mounted at %q", v.settings.Mount).
			WithHint("Correct mount in the secrets block.")
	case status == http.StatusNotFound && says.Data.Metadata.Deleted != "":
		f = plan.NewFault(plan.CodeSecretMissing, "the newest version of item %q is deleted in the vault", name).
			WithHint("Write or undelete %s.", strings.TrimPrefix(path, "/v1/")).With("deleted", says.Data.Metadata.Deleted)
	case status == http.StatusNotFound:
		f = plan.NewFault(plan.CodeSecretMissing, "the vault has no item %q", name).
			WithHint("Create the item at %s, or correct the reference in the site file.", strings.TrimPrefix(path, "/v1/"))
	case status == http.StatusServiceUnavailable:
		f = plan.NewFault(plan.CodeSecretUnreachable, "the vault is sealed or in maintenance")
	case status == http.StatusTooManyRequests || status >= 500:
		f = plan.NewFault(plan.CodeSecretUnreachable, "the vault cannot answer now (status %d)", status)
	case status >= 300 && status < 400:
		f = plan.NewFault(plan.CodeConfigInvalid, "the vault points to another address, and the token is not sent on").
			WithHint("Write the address that answers into url of the secrets block.").With("location", cut(resp.Header.Get("Location")))
	default:
		f = plan.NewFault(plan.CodeSecretInvalid, "the vault refused the request for item %q (status %d)", name, status)
	}
	return v.evidence(f, path, resp.StatusCode, words)
}

// cut bounds what a server says, and takes line ends and control characters out.
func cut(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
