// Package schema is the site language: it reads the HCL files of a folder and
// gives plain plan.Site and plan.Settings values, or diagnostics with file and
// line for every mistake of the folder.
//
// It works in three stages. Decoding lays the blocks and attributes of all
// files over the one table of the language (language.go) and keeps expressions
// with their ranges. Evaluation resolves variables, locals, functions and
// device.*, and turns each expression into a Go value of the attribute's type.
// Conversion builds the plain structs, which know nothing of HCL, and checks
// what single attributes cannot: blocks that contradict each other.
//
// The package has no clock, no environment and no network. What varies comes in
// through Options.
//
// Quirks of hcl v2.25 that are designed around here: gohcl panics on marked
// values (it is not used); two blocks with equal labels in two files are
// accepted (decode.go compares labels itself); "12" becomes the number 12
// (evaluate.go converts nothing); its parser and its evaluator recurse without
// a limit (guard.go looks at the tokens first).
package schema
