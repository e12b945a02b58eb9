package secrets

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// vaultLogin has the token that requests carry: one that was given, or one that
// a login gives. It logs in once per run, when the first item is read.
type vaultLogin struct {
	vault *vault
	path  string         // of the login; empty: the token was given
	body  map[string]any // of the login
	by    string         // "app_role" or "kubernetes", for messages
	learn func(plan.Secret)

	mu     sync.Mutex
	have   plan.Secret
	failed *plan.Fault // a login is tried once
}

// newVaultLogin reads what is needed to log in, so that a missing variable or
// file is found before anything is sent.
func newVaultLogin(v *vault, s plan.SecretsSettings, o Options) (*vaultLogin, error) {
	l := &vaultLogin{vault: v, learn: o.Learn}
	switch {
	case s.AppRole != nil:
		id, err := callerToken(o, orElse(s.AppRole.SecretIDEnv, "VAULT_SECRET_ID"), s.AppRole.SecretIDFile, "the AppRole's secret id", "secret_id_env")
		if err != nil {
			return nil, err
		}
		l.by, l.path = "app_role", "/v1/auth/"+escaped(orElse(s.AppRole.Mount, "approle"))+"/login"
		l.body = map[string]any{"role_id": s.AppRole.RoleID, "secret_id": id.Reveal()}
	case s.Kubernetes != nil:
		jwt, err := callerToken(o, "", orElse(s.Kubernetes.TokenFile, serviceAccountToken), "the service account's token", "")
		if err != nil {
			return nil, err
		}
		l.by, l.path = "kubernetes", "/v1/auth/"+escaped(orElse(s.Kubernetes.Mount, "kubernetes"))+"/login"
		l.body = map[string]any{"role": s.Kubernetes.Role, "jwt": jwt.Reveal()}
	default:
		token, err := callerToken(o, orElse(s.TokenEnv, "VAULT_TOKEN"), s.TokenFile, "the vault's token", "token_env")
		if err != nil {
			return nil, err
		}
		l.have = token
	}
	return l, nil
}

// serviceAccountToken is where Kubernetes puts a pod's token.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// token gives the token, after a login where one is needed.
func (l *vaultLogin) token(ctx context.Context) (plan.Secret, *plan.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" || l.have.Reveal() != "" {
		return l.have, nil
	}
	if l.failed != nil {
		return plan.Secret{}, l.failed
	}
	token, f := l.logIn(ctx)
	if f != nil {
		if f.Code != plan.CodeInterrupted {
			l.failed = f
		}
		return plan.Secret{}, f
	}
	l.learn(token)
	l.have = token
	return token, nil
}

func (l *vaultLogin) logIn(ctx context.Context) (plan.Secret, *plan.Fault) {
	v := l.vault
	a, f := v.call(ctx, http.MethodPost, l.path, v.header(plan.Secret{}), l.body)
	if f != nil {
		return plan.Secret{}, f
	}
	if a.status != http.StatusOK {
		return plan.Secret{}, l.refusal(a)
	}
	var body struct {
		Auth struct {
			ClientToken string `json:"client_token"`
		} `json:"auth"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || body.Auth.ClientToken == "" {
		return plan.Secret{}, v.evidence(plan.NewFault(plan.CodeSecretInvalid, "the vault's answer to the login by %s has no token", l.by).
			WithHint("Check that url in the secrets block is the vault's base address."), a, "")
	}
	return plan.NewSecret(body.Auth.ClientToken, ""), nil
}

// refusal classifies a login that failed. A wrong role or secret id is 400, a
// service account that the role does not name 403, an engine that is not
// mounted 404 in Vault and 403 for those who have no token in OpenBao.
func (l *vaultLogin) refusal(a *answer) *plan.Fault {
	v := l.vault
	_, words := wordsOf(a)
	var f *plan.Fault
	switch a.status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnauthorized, http.StatusNotFound:
		f = plan.NewFault(plan.CodeSecretLogin, "the vault at %s refused the login by %s", v.base, l.by).
			WithHint("Check in the %s block that role and mount are right, beside it that namespace is, and that the credential is not used up or expired.", l.by)
	case http.StatusServiceUnavailable:
		f = plan.NewFault(plan.CodeSecretUnreachable, "the vault at %s is sealed or in maintenance", v.base)
	default:
		if f = v.refused(a); f == nil {
			f = plan.NewFault(plan.CodeSecretInvalid, "the vault refused the login by %s (status %d)", l.by, a.status)
		}
	}
	return v.evidence(f, a, words)
}
