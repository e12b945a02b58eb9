package plan

import _ "embed" // for the schema

//go:embed plan.schema.json
var jsonSchema []byte

// JSONSchema describes a plan file of format 1.x (JSON Schema 2020-12). It is
// generated from the types of this package by `make docs`. Members that a later
// minor version adds are allowed.
func JSONSchema() []byte { return jsonSchema }
