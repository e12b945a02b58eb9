package secretstest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// changes: a login writes nothing that anybody else sees.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/login") && !strings.HasSuffix(r.URL.Path, "/capabilities-self")
}

// inNamespace: the root, and the one that the server has.
func (s *Server) inNamespace(r *http.Request) bool {
	asked := strings.Trim(r.Header.Get("X-Vault-Namespace"), "/")
	return asked == "" || asked == s.opt.Namespace
}

// otherNamespace answers in the root when all is in a namespace: a token of the
// namespace is known there and may do nothing.
func (s *Server) otherNamespace(w http.ResponseWriter, r *http.Request, path string) {
	if known, _ := s.token(r, path); known {
		refuse(w, http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
		return
	}
	refuse(w, http.StatusForbidden, "permission denied")
}

type loginBody struct {
	RoleID   string `json:"role_id"`
	SecretID string `json:"secret_id"`
	Role     string `json:"role"`
	JWT      string `json:"jwt"`
}

// hasEngine: what is not mounted is hidden from those who have no token.
func (s *Server) hasEngine(r *http.Request, kubernetes bool) bool {
	for _, role := range s.opt.Login {
		if (role.ID == "") == kubernetes && strings.Trim(r.Header.Get("X-Vault-Namespace"), "/") == s.opt.Namespace {
			return true
		}
	}
	return false
}

func (s *Server) appRole(w http.ResponseWriter, r *http.Request) {
	var in loginBody
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case !s.hasEngine(r, false):
		refuse(w, http.StatusForbidden, "permission denied")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, "failed to parse JSON input: "+err.Error())
		return
	case in.RoleID == "":
		refuse(w, http.StatusInternalServerError, "missing role_id") // 500, as measured
		return
	case in.SecretID == "":
		refuse(w, http.StatusBadRequest, "missing secret_id")
		return
	}
	for i, role := range s.opt.Login {
		if role.ID != in.RoleID || role.ID == "" || role.SecretID != in.SecretID || role.Uses > 0 && s.uses[i] >= role.Uses {
			continue
		}
		s.uses[i]++
		s.issue(w, role)
		return
	}
	refuse(w, http.StatusBadRequest, "invalid role or secret ID")
}

func (s *Server) kubernetes(w http.ResponseWriter, r *http.Request) {
	var in loginBody
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case !s.hasEngine(r, true):
		refuse(w, http.StatusForbidden, "permission denied")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, "failed to parse JSON input: "+err.Error())
		return
	}
	if in.Role == "" || in.JWT == "" {
		missing := "role"
		if in.Role != "" {
			missing = "jwt"
		}
		refuse(w, http.StatusBadRequest, "missing "+missing)
		return
	}
	for _, role := range s.opt.Login {
		switch {
		case role.ID != "" || role.Name != in.Role:
		case role.JWT != in.JWT:
			refuse(w, http.StatusForbidden, "permission denied")
			return
		default:
			s.issue(w, role)
			return
		}
	}
	refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid role name %q", in.Role))
}

// issue answers with a new token.
func (s *Server) issue(w http.ResponseWriter, role Role) {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it does not fail
	token := Token{Value: "s." + hex.EncodeToString(b[:]), Read: role.Read}
	s.issued = append(s.issued, token)
	answerAuth(w, http.StatusOK, nil, nil, map[string]any{
		"client_token": token.Value, "accessor": "accessor-of-the-simulator", "policies": []string{"default"}, "token_policies": []string{"default"},
		"metadata": map[string]any{}, "lease_duration": 600, "renewable": true, "entity_id": "", "token_type": "service", "orphan": true, "mfa_requirement": nil, "num_uses": 0,
	})
}

// Issued are the tokens that logins gave, for tests that look for them where
// they must not be.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, t := range s.issued {
		out = append(out, t.Value)
	}
	return out
}
