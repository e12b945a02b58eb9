package schema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// draft is the JSON Schema that editors, and NetBox's config context profiles,
// understand.
const draft = "https://json-schema.org/draft/2020-12/schema"

// node is one JSON Schema.
type node = map[string]any

// JSONSchema describes a site file in its JSON form, as hcl reads it: a block is
// an object below its type and labels, an expression is a text with ${…}. It is
// stamped with the version whose language it is. It requires nothing: what a file
// lacks may stand in another file of the folder, or in one that it includes;
// `enroll validate` knows.
func JSONSchema(version string) []byte {
	defs := node{"template": node{"type": "string", "pattern": `[$%]\{`, "description": "an expression: a text with ${…}"}}
	root := blockSchema(language(), "", defs)
	root["$schema"] = draft
	root["$id"] = "urn:enroll:site:" + version
	root["title"] = "Site file of enroll " + version
	root["$defs"] = defs
	return schemaText(root)
}

func schemaText(root node) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(root) // maps, lists and texts always encode
	return b.Bytes()
}

// definition puts the body of a block among the definitions, by its path, and
// gives a reference to it: bodies are used twice wherever a list of them is taken
// too.
func definition(b *block, path string, defs node) node {
	name := joinPath(path, b.name)
	if b.variant != "" {
		name = joinPath(name, b.variant)
	}
	if _, done := defs[name]; !done {
		defs[name] = nil // its place: names are not taken twice
		defs[name] = blockSchema(b, name, defs)
	}
	return node{"$ref": "#/$defs/" + name}
}

// blockSchema is the body of a block.
func blockSchema(b *block, path string, defs node) node {
	properties := node{"//": node{"description": "a comment"}}
	for i := range b.attrs {
		a := &b.attrs[i]
		if a.later {
			continue
		}
		properties[a.name] = attributeSchema(a)
	}
	for _, name := range b.blockNames() {
		rows := b.named(name)
		properties[name] = childSchema(rows, path, defs)
	}
	out := node{"type": "object", "properties": properties, "additionalProperties": false}
	if b.free {
		out["additionalProperties"] = true
	}
	if b.doc != "" {
		out["description"] = plain(b.doc)
	}
	return out
}

// childSchema puts the labels of a block around its body.
func childSchema(rows []*block, path string, defs node) node {
	first := rows[0]
	switch {
	case first.variant != "":
		bodies := node{}
		for _, row := range rows {
			if !row.later {
				bodies[row.variant] = oneOrMore(definition(row, path, defs), 1)
			}
		}
		return oneOrMore(node{"type": "object", "properties": bodies, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}, 1)
	case first.label != nil:
		body := oneOrMore(definition(first, path, defs), 1)
		labelled := node{"type": "object", "additionalProperties": body, "minProperties": 1, "description": "by the label: " + plain(first.label.doc)}
		if !first.many {
			labelled["maxProperties"] = 1
			return oneOrMore(labelled, 1)
		}
		return oneOrMore(labelled, 0)
	case first.many:
		return oneOrMore(definition(first, path, defs), 0)
	}
	return oneOrMore(definition(first, path, defs), 1)
}

// oneOrMore takes what hcl takes: a body, or a list of them. most is how many
// there may be, 0 for any number.
func oneOrMore(body node, most int) node {
	list := node{"type": "array", "items": body, "minItems": 1}
	if most > 0 {
		list["maxItems"] = most
	}
	return node{"anyOf": []node{body, list}}
}

const (
	durationPattern = `^(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+$|^0$`
	secretPattern   = `^\$\{.+\}$`
)

// attributeSchema takes the value itself, or an expression that gives it.
func attributeSchema(a *attribute) node {
	var out node
	switch a.typ {
	case boolType:
		out = orTemplate(node{"type": "boolean"})
	case intType:
		out = orTemplate(node{"type": "integer", "minimum": json.Number(a.min), "maximum": json.Number(a.max)})
	case durationType:
		out = orTemplate(durationSchema())
	case durationPairType:
		out = orTemplate(node{"type": "array", "items": orTemplate(durationSchema()), "minItems": 2, "maxItems": 2})
	case textType:
		out = textSchema(a)
	case textListType:
		list := node{"type": "array", "items": textSchema(a), "uniqueItems": !a.mayRepeat}
		if !a.mayBeEmpty {
			list["minItems"] = 1
		}
		out = orTemplate(list)
	case scalarMapType:
		out = orTemplate(node{"type": "object", "additionalProperties": node{"type": []string{"string", "number", "boolean"}}, "minProperties": 1})
	case secretType:
		out = node{"type": "string", "pattern": secretPattern, "examples": []string{"${" + a.example + "}"}}
	case conditionType:
		out = node{"anyOf": []node{{"type": "boolean"}, {"type": "string", "pattern": secretPattern}}, "examples": []string{"${" + a.example + "}"}}
	case constraintType:
		out = node{"type": "string", "examples": []string{a.example}}
	default:
		out = node{} // anything: what it is, is checked when the folder is read
	}
	out["description"] = attributeDoc(a)
	if v, ok := jsonDefault(a); ok {
		out["default"] = v
	}
	return out
}

func durationSchema() node { return node{"type": "string", "pattern": durationPattern} }

func textSchema(a *attribute) node {
	if len(a.enum) > 0 {
		return orTemplate(node{"enum": a.enum})
	}
	out := node{"type": "string"}
	if !a.mayBeEmpty {
		out["minLength"] = 1
	}
	return out
}

func orTemplate(s node) node {
	return node{"anyOf": []node{s, {"$ref": "#/$defs/template"}}}
}

func attributeDoc(a *attribute) string {
	text := plain(a.doc)
	if a.typ == durationType && a.min != "" {
		text += " From " + a.min + " to " + a.max + "."
	}
	if a.perDevice {
		text += " May use device.*."
	}
	if a.fallback == "" && a.fallbackDoc != "" {
		text += " Default: " + plain(a.fallbackDoc) + "."
	}
	if a.since != "" {
		text += " Since " + a.since + "."
	}
	return text
}

// jsonDefault is the default in the form in which JSON writes it.
func jsonDefault(a *attribute) (any, bool) {
	if a.fallback == "" {
		return nil, false
	}
	switch a.typ {
	case boolType:
		return a.fallback == "true", true
	case intType:
		return json.Number(a.fallback), true
	case durationPairType:
		return strings.Split(a.fallback, ", "), true
	case textType, durationType:
		return a.fallback, true
	default:
		return nil, false
	}
}

// plain takes the marks of Markdown out.
func plain(doc string) string { return strings.ReplaceAll(doc, "`", "") }
