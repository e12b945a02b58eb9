// Package recording is the form in which the answers of one real BMC are kept, so
// that a report of a user becomes a test: what was asked and what came back,
// without anything that names the machine, its place or its people. The walk that
// makes one is bmc.Client.Record; bmctest serves one.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Format is the first member of every file; another one is refused.
const Format = "enroll-bmc-recording/1"

// maxFile bounds a file that is read; a walk stops far below.
const maxFile = 256 << 20

// Recording is what one BMC answered. The same answers give the same file.
type Recording struct {
	Format string `json:"format"`
	Family string `json:"family"` // what enroll took the BMC for; "" when it could not tell
	// Stopped says why the walk ended before all was read; "" when it did not.
	Stopped string `json:"stopped,omitempty"`
	// Left is what the walk left out of what it saw.
	Left    []string `json:"left,omitempty"`
	Answers []Answer `json:"answers"` // sorted by URI

	replaced map[string]string
}

// Replaced is what Clean has put in the place of what. It is not written to the
// file, from which nothing leads back.
func (r *Recording) Replaced() map[string]string { return r.replaced }

// Answer is one GET and what came back.
type Answer struct {
	URI    string `json:"uri"` // path and query below /redfish
	Status int    `json:"status"`
	ETag   string `json:"etag,omitempty"`  // header
	Allow  string `json:"allow,omitempty"` // header
	Type   string `json:"type,omitempty"`  // header Content-Type
	// Body is the answer's JSON value, null when it was none; numbers stay as they
	// were written.
	Body any `json:"body"`
	// Page is the number of bytes of an answer that was no JSON. Its text is not kept.
	Page int `json:"page,omitempty"`
}

// Encode writes the one form of a recording: answers and keys sorted, indented.
func (r *Recording) Encode() ([]byte, error) {
	r.Format = Format
	slices.SortFunc(r.Answers, func(a, b Answer) int { return strings.Compare(a.URI, b.URI) })
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Decode reads a recording. Everything in it is foreign input: what is no path of
// a Redfish service, or twice there, is refused.
func Decode(r io.Reader) (*Recording, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("the recording is larger than %d MB", maxFile>>20)
	}
	var rec Recording
	if err := decode(raw, &rec); err != nil {
		return nil, fmt.Errorf("this is no recording of a BMC: %w", err)
	}
	if rec.Format != Format {
		return nil, fmt.Errorf("this is no recording of a BMC that this version reads: format is %q, want %q", rec.Format, Format)
	}
	seen := map[string]bool{}
	for _, a := range rec.Answers {
		switch {
		case a.URI != "/redfish" && !strings.HasPrefix(a.URI, "/redfish/"):
			return nil, fmt.Errorf("the recording has an answer of %q, which is no path of a Redfish service", a.URI)
		case a.Status < http.StatusOK || a.Status > 599:
			return nil, fmt.Errorf("the recording has status %d for %s", a.Status, a.URI)
		case seen[a.URI]:
			return nil, fmt.Errorf("the recording has two answers of %s", a.URI)
		}
		seen[a.URI] = true
	}
	if rec.root() == nil {
		return nil, errors.New("the recording lacks the service root /redfish/v1")
	}
	return &rec, nil
}

// decode reads one JSON value and keeps numbers as they are written.
func decode(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON value")
	}
	return nil
}

// JSON gives the value of a body; false when it is none.
func JSON(body []byte) (any, bool) {
	var v any
	err := decode(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf")), &v)
	return v, err == nil
}

// Key is the name under which answers are kept: a slash at the end and a fragment
// do not make another resource.
func Key(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	path, query, asked := strings.Cut(uri, "?")
	if path = strings.TrimRight(path, "/"); asked {
		path += "?" + query
	}
	return path
}

// Find gives the answer to a request: exactly that one, else that of the resource
// without its query.
func (r *Recording) Find(uri string) (Answer, bool) {
	key := Key(uri)
	bare, _, _ := strings.Cut(key, "?")
	for _, want := range []string{key, bare} {
		for _, a := range r.Answers {
			if Key(a.URI) == want {
				return a, true
			}
		}
	}
	return Answer{}, false
}

// HasSessions tells that the recorded BMC offered sessions.
func (r *Recording) HasSessions() bool {
	root := r.root()
	links, _ := root["Links"].(map[string]any)
	return links["Sessions"] != nil || root["SessionService"] != nil
}

func (r *Recording) root() map[string]any {
	a, _ := r.Find("/redfish/v1")
	d, _ := a.Body.(map[string]any)
	return d
}

// Serial is how a record calls the machine: the service tag of a Dell, else the
// serial number; "" when no system told one.
func (r *Recording) Serial() string {
	for _, d := range r.of("ComputerSystem.") {
		keys := []string{"SerialNumber"}
		if r.Family == "idrac" {
			keys = []string{"SKU", "SerialNumber"}
		}
		for _, key := range keys {
			if s, _ := d[key].(string); strings.TrimSpace(s) != "" && (d["Bios"] != nil || d["Boot"] != nil) {
				return strings.TrimSpace(s)
			}
		}
	}
	return ""
}

// Maker gives manufacturer and model of the host's system.
func (r *Recording) Maker() (manufacturer, model string) {
	for _, d := range r.of("ComputerSystem.") {
		manufacturer, _ = d["Manufacturer"].(string)
		model, _ = d["Model"].(string)
		if manufacturer != "" && model != "" {
			return strings.TrimSpace(manufacturer), strings.TrimSpace(model)
		}
	}
	return "", ""
}

// MACs are the addresses of the host's interfaces, in the order of their paths.
func (r *Recording) MACs() []string {
	var out []string
	for _, a := range r.Answers {
		d, _ := a.Body.(map[string]any)
		kind, _ := d["@odata.type"].(string)
		if !strings.Contains(a.URI, "/Systems/") || !strings.HasPrefix(kind, "#EthernetInterface.") || strings.HasSuffix(a.URI, "/ToManager") {
			continue
		}
		for _, key := range []string{"PermanentMACAddress", "MACAddress"} {
			if mac, _ := d[key].(string); macWhole.MatchString(mac) && !slices.Contains(out, mac) {
				out = append(out, mac)
				break
			}
		}
	}
	return out
}

// of gives the resources of a type in the order of their paths.
func (r *Recording) of(kind string) []map[string]any {
	var out []map[string]any
	for _, a := range r.Answers {
		d, _ := a.Body.(map[string]any)
		if t, _ := d["@odata.type"].(string); a.Status == http.StatusOK && strings.HasPrefix(t, "#"+kind) {
			out = append(out, d)
		}
	}
	return out
}
