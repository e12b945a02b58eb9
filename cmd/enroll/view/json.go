package view

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/enroll-dev/enroll/plan"
)

// JSON writes a document for programs, in the one form that all commands have:
// indented, with <, > and & as they are, and with what a terminal would obey or an
// eye not see as escapes.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(plan.VisibleJSON(b.Bytes()))
	return err
}
