package secretstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// version is one version of an item.
type version struct {
	fields  map[string]any
	created time.Time
	deleted time.Time // zero: it is there
}

type metadata struct {
	Created  string  `json:"created_time"`
	Custom   *string `json:"custom_metadata"`
	Deletion string  `json:"deletion_time"`
	Gone     bool    `json:"destroyed"`
	Version  int     `json:"version"`
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, api := strings.CutPrefix(r.URL.Path, "/v1/")
	switch {
	case !api:
		w.WriteHeader(http.StatusNotFound)
	case path == "sys/health":
		s.health(w)
	case s.sealed:
		refuse(w, http.StatusServiceUnavailable, "Vault is sealed")
	case !s.inNamespace(r):
		refuse(w, http.StatusNotFound, "namespace not found")
	case path == "auth/approle/login":
		s.appRole(w, r)
	case path == "auth/kubernetes/login":
		s.kubernetes(w, r)
	case strings.Trim(r.Header.Get("X-Vault-Namespace"), "/") != s.opt.Namespace:
		s.otherNamespace(w, r, path)
	default:
		s.authorised(w, r, path)
	}
}

func (s *Server) health(w http.ResponseWriter) {
	status := http.StatusOK
	if s.sealed {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, map[string]any{"initialized": true, "sealed": s.sealed, "standby": false, "server_time_utc": s.opt.Now().Unix(), "version": "2.7.2"})
}

func (s *Server) authorised(w http.ResponseWriter, r *http.Request, path string) {
	known, allowed := s.token(r, path)
	item, data := strings.CutPrefix(path, s.opt.Mount+"/data/")
	switch {
	case !known:
		refuse(w, http.StatusForbidden, "permission denied")
	case path == "sys/capabilities-self":
		s.capabilities(w, r)
	case !allowed:
		refuse(w, http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
	case !strings.HasPrefix(path, s.opt.Mount+"/"):
		refuse(w, http.StatusNotFound, fmt.Sprintf("no handler for route %q. route entry not found.", path))
	case !data:
		answer(w, http.StatusNotFound, nil, []string{"Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints to use. If using the OpenBao CLI, use 'bao kv get' for this operation."})
	case r.Method == http.MethodGet:
		s.get(w, r, item)
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		s.post(w, r, item)
	case r.Method == http.MethodDelete:
		if list := s.items[item]; len(list) > 0 && list[len(list)-1].deleted.IsZero() {
			list[len(list)-1].deleted = s.opt.Now()
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusMethodNotAllowed, "unsupported operation")
	}
}

// capabilities tells what the token may do with paths; every token may ask.
func (s *Server) capabilities(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Paths []string `json:"paths"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Paths) == 0 {
		refuse(w, http.StatusBadRequest, "paths must be supplied")
		return
	}
	data := map[string]any{}
	for _, path := range in.Paths {
		granted := []string{"deny"}
		if t := s.tokenOf(r); t.Read == nil {
			granted = []string{"root"}
		} else if t.reads(path) {
			granted = []string{"read"}
		}
		data[path] = granted
		if len(in.Paths) == 1 {
			data["capabilities"] = granted
		}
	}
	answer(w, http.StatusOK, data, nil)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, item string) {
	list := s.items[item]
	n := len(list)
	if asked := r.URL.Query().Get("version"); asked != "" && asked != "0" {
		var err error
		if n, err = strconv.Atoi(asked); err != nil {
			refuse(w, http.StatusBadRequest, "Field validation failed: error converting input for field \"version\"")
			return
		}
	}
	if n < 1 || n > len(list) {
		refuse(w, http.StatusNotFound)
		return
	}
	v := list[n-1]
	if !v.deleted.IsZero() {
		answer(w, http.StatusNotFound, map[string]any{"data": nil, "metadata": v.metadata(n)}, nil)
		return
	}
	answer(w, http.StatusOK, map[string]any{"data": v.fields, "metadata": v.metadata(n)}, nil)
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, item string) {
	var in struct {
		Data    map[string]any `json:"data"`
		Options struct {
			CAS *int `json:"cas"`
		} `json:"options"`
	}
	dec := json.NewDecoder(r.Body)
	dec.UseNumber()
	if err := dec.Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "failed to parse JSON input: "+err.Error())
		return
	}
	if in.Data == nil {
		refuse(w, http.StatusBadRequest, "no data provided")
		return
	}
	if in.Options.CAS != nil && *in.Options.CAS != len(s.items[item]) {
		refuse(w, http.StatusBadRequest, "check-and-set parameter did not match the current version")
		return
	}
	v := s.write(item, in.Data)
	answer(w, http.StatusOK, v.metadata(len(s.items[item])), nil)
}

func (s *Server) write(item string, fields map[string]any) version {
	v := version{fields: fields, created: s.opt.Now()}
	s.items[item] = append(s.items[item], v)
	return v
}

func (v version) metadata(n int) metadata {
	m := metadata{Created: v.created.UTC().Format(time.RFC3339Nano), Version: n}
	if !v.deleted.IsZero() {
		m.Deletion = v.deleted.UTC().Format(time.RFC3339Nano)
	}
	return m
}

// refuse answers as the vault does when it has no answer.
func refuse(w http.ResponseWriter, status int, errs ...string) {
	if errs == nil {
		errs = []string{}
	}
	reply(w, status, map[string]any{"errors": errs})
}

func answer(w http.ResponseWriter, status int, data any, warnings []string) {
	answerAuth(w, status, data, warnings, nil)
}

func answerAuth(w http.ResponseWriter, status int, data any, warnings []string, auth any) {
	reply(w, status, map[string]any{
		"request_id": "00000000-0000-4000-8000-000000000000", "lease_id": "", "renewable": false, "lease_duration": 0,
		"data": data, "wrap_info": nil, "warnings": warnings, "auth": auth,
	})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the connection may be gone; the client sees that
}
