package view

import (
	"encoding/json"
	"io"
)

// JSON writes a document for programs, in the one form that all commands have:
// indented, and with <, > and & as they are.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
