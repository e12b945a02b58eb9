// Package schema is the site language: it reads the HCL files of a folder and
// gives plain plan.Site and plan.Settings values, or diagnostics with file and
// line for every mistake of the folder.
//
// It works in three stages. Decoding lays the blocks and attributes of all
// files over the one table of the language (language*.go), keeps expressions
// with their ranges, and lays the site's folder over those that it includes
// (include.go). Evaluation resolves variables, locals, functions and device.*,
// and turns each expression into a Go value of the attribute's type. Conversion
// builds the plain structs, which know nothing of HCL, and checks what single
// attributes cannot: blocks that contradict each other. Where each value comes
// from is kept for explain (origin.go).
//
// The config-context documents that NetBox holds have a table of their own
// (jsonschema_context.go), which judges them and describes them (context.go).
//
// The package has no clock, no environment and no network. What varies comes in
// through Options; files are read below the folders of the site only, and while
// the site is loaded.
//
// Quirks of hcl v2.25 that are designed around here: gohcl panics on marked
// values (it is not used); two blocks with equal labels in two files are
// accepted (decode.go compares labels itself); "12" becomes the number 12
// (evaluate.go converts nothing); its parser and its evaluator recurse without
// a limit (guard.go looks at the tokens first), and values may double with every
// local (bounds.go measures what expressions refer to); its reader of JSON hides
// the expressions (jsonform.go reads JSON into the native form).
package schema
