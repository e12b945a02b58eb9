package schema

import (
	"strconv"
	"strings"
	"time"
)

// valueType is what an attribute takes, in the words of the reference page.
type valueType string

const (
	textType         valueType = "text"
	boolType         valueType = "true or false"
	intType          valueType = "whole number"
	durationType     valueType = "duration"
	secretType       valueType = "secret"
	textListType     valueType = "list of texts"
	durationPairType valueType = "pair of durations"
	scalarMapType    valueType = "map of texts, numbers, true and false"
	constraintType   valueType = "type"      // of a variable
	conditionType    valueType = "condition" // of a policy: over a plan
	anyType          valueType = "any value" // default of a variable, locals
)

// attribute is one row of the language's table. Decoding, suggestions,
// evaluation and the reference page all read it.
type attribute struct {
	name     string
	typ      valueType
	required bool
	// fallback is the default as it would be written, texts and durations
	// without quotes. fallbackDoc describes a default that depends on something.
	fallback    string
	fallbackDoc string
	unit        string
	perDevice   bool // the expression may use device.*
	path        bool // a file; relative to the site's folder
	enum        []string
	min, max    string // bounds, inclusive, in the form of the type
	mayBeEmpty  bool   // an empty text or list means something
	mayRepeat   bool   // a list may hold a text twice
	// check judges one text (or each text of a list). The error completes the
	// sentence "NAME …".
	check   func(string) error
	doc     string
	example string // as it is written after the equals sign
	effect  string // what it decides
	since   string
	later   bool // part of the language, not of this version
}

// block is one block of the language's table.
type block struct {
	name     string
	label    *label // nil: the block has no label
	variant  string // the one label this row is for, where the label chooses the attributes
	many     bool   // may stand more than once, with different labels
	required bool
	free     bool // any attribute name (locals)
	attrs    []attribute
	blocks   []*block
	doc      string
	since    string
	later    bool
	instead  string // what to do where it is later; empty: remove it
}

// label describes the label of a block.
type label struct {
	name    string
	doc     string
	example string
	check   func(string) error
}

// repeats reports whether a block may stand any number of times.
func (b *block) repeats() bool { return b.many && b.label == nil && !b.free }

func (b *block) attribute(name string) *attribute {
	for i := range b.attrs {
		if b.attrs[i].name == name {
			return &b.attrs[i]
		}
	}
	return nil
}

// named gives the rows of a block name: one, or one for each variant.
func (b *block) named(name string) []*block {
	var rows []*block
	for _, child := range b.blocks {
		if child.name == name {
			rows = append(rows, child)
		}
	}
	return rows
}

// attributeNames lists what may be set in this version, for suggestions.
func (b *block) attributeNames() []string {
	var names []string
	for i := range b.attrs {
		if !b.attrs[i].later {
			names = append(names, b.attrs[i].name)
		}
	}
	return names
}

func (b *block) blockNames() []string {
	var names []string
	seen := map[string]bool{}
	for _, child := range b.blocks {
		if !seen[child.name] && !child.later {
			seen[child.name] = true
			names = append(names, child.name)
		}
	}
	return names
}

// walkAttributes calls visit for every attribute of the language.
func (b *block) walkAttributes(visit func(*block, *attribute)) {
	for i := range b.attrs {
		visit(b, &b.attrs[i])
	}
	for _, child := range b.blocks {
		child.walkAttributes(visit)
	}
}

// defaultValue is the fallback in Go; a test keeps them readable.
func (a *attribute) defaultValue() any {
	if a.fallback == "" {
		return nil
	}
	switch a.typ {
	case boolType:
		return a.fallback == "true"
	case intType:
		n, _ := strconv.Atoi(a.fallback)
		return n
	case durationType:
		return bound(a.fallback)
	case durationPairType:
		first, second, _ := strings.Cut(a.fallback, ", ")
		return [2]time.Duration{bound(first), bound(second)}
	case textType, secretType, textListType, scalarMapType, constraintType, anyType, conditionType:
	}
	return a.fallback
}
