package plan

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestSecretEverywhere: in every verb, encoder and logger, also where it
// stands in something else.
func TestSecretEverywhere(t *testing.T) {
	const text = "hunter2-é"
	s := NewSecret(text, "7")
	type outer struct {
		Public  Secret
		private Secret
		Pointer *Secret
		list    []Secret
		byRef   map[SecretRef]Secret
		any     any
	}
	type element struct{ S Secret }
	ref := SecretRef{Item: "bmc", Field: "password"}
	o := outer{s, s, &s, []Secret{s}, map[SecretRef]Secret{ref: s}, s}
	var out []string
	for _, v := range []any{s, &s, o, &o, []any{o}, map[string]any{"x": o}, errors.New(fmt.Sprint(s)), StagedSecret{Ref: ref, Staged: ref, Version: "7"}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			out = append(out, fmt.Sprintf(verb, v))
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", v, slog.Group("g", "value", v))
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", v)
		out = append(out, log.String())
	}
	raw, err := xml.Marshal(element{s})
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, string(raw), s.String(), fmt.Sprint(ref))
	for _, form := range out {
		for _, trace := range []string{text, "hunter2", fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
			if strings.Contains(form, trace) {
				t.Errorf("%s", form)
			}
		}
	}
	if s.Reveal() != text || s.Version != "7" || (Secret{}).Reveal() != "" {
		t.Error("the secret itself is gone")
	}
	if ref.String() != `secret("bmc", "password")` || !(SecretRef{}).IsZero() || ref.IsZero() {
		t.Error(ref)
	}
}
