package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// planSchema is where the schema of plan files stands inside that of streams, by
// its own $id.
const planSchema = "urn:enroll:plan:1"

// StreamSchema describes a line of a Stream (JSON Schema 2020-12), stamped with a
// version. Members that a later version adds are allowed. The schema of plan files
// is part of it.
func StreamSchema(version string) ([]byte, error) {
	var planFile map[string]any
	if err := json.Unmarshal(plan.JSONSchema(), &planFile); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(jsonNode{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:enroll:events:1", "title": "A line of the event stream of enroll apply",
		"$comment":    "enroll " + version,
		"description": "enroll apply --format json and --json-into write one object a line: the plan, each event as it happens, and the report as the last line. A stream without a report is that of a run that was killed.",
		"type":        "object", "required": []string{"seq", "time", "elapsed", "kind"},
		"properties": lineProperties(), "allOf": kindRules(),
		"$defs": jsonNode{"plan": planFile, "step": stepSchema(), "device": deviceSchema(), "report": reportSchema(), "obligation": obligationSchema()},
	}, "", "  ")
	return append(raw, '\n'), err
}

type jsonNode = map[string]any

func word(doc string) jsonNode   { return jsonNode{"type": "string", "description": doc} }
func number(doc string) jsonNode { return jsonNode{"type": "number", "minimum": 0, "description": doc} }
func natural(doc string) jsonNode {
	return jsonNode{"type": "integer", "minimum": 0, "description": doc}
}
func boolean(doc string) jsonNode { return jsonNode{"type": "boolean", "description": doc} }
func span(doc string) jsonNode {
	return jsonNode{"type": "string", "pattern": `^[0-9].*[a-zµ]$`, "description": doc + ", for example 5m0s"}
}
func here(name string) jsonNode    { return jsonNode{"$ref": "#/$defs/" + name} }
func ofPlan(name string) jsonNode  { return jsonNode{"$ref": planSchema + "#/$defs/" + name} }
func arrayOf(of jsonNode) jsonNode { return jsonNode{"type": "array", "items": of} }
func moment() jsonNode             { return jsonNode{"type": "string", "format": "date-time"} }
func address() jsonNode {
	return word("SITE/DEVICE/SYSTEM.KIND[KEY], or SITE/SYSTEM.KIND of what devices share")
}

// kindDocs say what each line tells.
func kindDocs() map[plan.EventKind]string {
	return map[plan.EventKind]string{
		StreamPlan: "the plan document, first", plan.EventBegin: "a step's first exchange starts", plan.EventHold: "a step waits for a place",
		plan.EventWait: "a system is at work; asked again after that long", plan.EventRetry: "an exchange failed in a way that may pass",
		plan.EventEnd: "a step came to its end", plan.EventAlive: "nothing else was told for a while", plan.EventStop: "nothing new is started",
		plan.EventRestore: "what a step had changed for a moment is put back", StreamReport: "what the run came to, last",
	}
}

func streamKinds() []plan.EventKind {
	return append(append([]plan.EventKind{StreamPlan}, plan.EventKinds()...), StreamReport)
}

func lineProperties() jsonNode {
	docs := ""
	for _, k := range streamKinds() {
		docs += fmt.Sprintf("%s: %s. ", k, kindDocs()[k])
	}
	return jsonNode{
		"seq": jsonNode{"type": "integer", "minimum": 1, "description": "1, 2, 3, without a gap"}, "time": moment(),
		"elapsed": number("seconds since the stream began"), "kind": jsonNode{"enum": streamKinds(), "description": docs[:len(docs)-1]},
		"device": word("absent for what devices share, and for what is told of the whole run"),
		"step":   word("its id in the plan"), "address": address(), "action": jsonNode{"enum": plan.Actions()},
		"text": word("for people: what a system is doing, or why a step was not run"), "state": jsonNode{"enum": plan.StepStates()},
		"fault": ofPlan("Fault"), "after": number("seconds until the next look"), "spent": number("seconds since the step began"),
		"plan": jsonNode{"$ref": planSchema}, "report": here("report"),
	}
}

// kindRules say which members the lines of a kind have at least.
func kindRules() []jsonNode {
	always := map[plan.EventKind][]string{
		StreamPlan: {"plan"}, plan.EventBegin: {"step", "address", "action"}, plan.EventHold: {"step", "address", "text"},
		plan.EventWait: {"step", "address"}, plan.EventRetry: {"step", "address", "fault"}, plan.EventEnd: {"step", "address", "state"},
		plan.EventAlive: {"text"}, plan.EventStop: {"text"}, plan.EventRestore: {"step", "address", "text"},
	}
	var rules []jsonNode
	for _, k := range streamKinds() {
		if always[k] != nil {
			rules = append(rules, jsonNode{"if": jsonNode{"properties": jsonNode{"kind": jsonNode{"const": k}}}, "then": jsonNode{"required": always[k]}})
		}
	}
	return rules
}

// object describes one whose members are all there but for the optional ones.
func object(members jsonNode, optional ...string) jsonNode {
	required := []string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(optional, name) {
			required = append(required, name)
		}
	}
	return jsonNode{"type": "object", "required": required, "properties": members}
}

func reportSchema() jsonNode {
	return object(jsonNode{
		"plan_id": word("of the plan"), "began": moment(), "spent": span("how long the run took"),
		"interrupted": boolean("stopped in good order; enroll apply --resume PLANFILE goes on"),
		"devices":     arrayOf(here("device")), "steps": arrayOf(here("step")), "obligations": arrayOf(here("obligation")),
	})
}

func deviceSchema() jsonNode {
	return object(jsonNode{
		"name": word("in NetBox"), "ok": boolean("everything that the plan wanted of the device came about"), "fault": ofPlan("Fault"),
		"done": natural("of its own steps"), "already": natural("steps that were right before anything was sent"), "not_run": natural("steps that failed or were not run"),
		"blocked": natural("steps that the plan, or what became known on the way, forbids"),
	}, "fault")
}

func stepSchema() jsonNode {
	return object(jsonNode{
		"id": word("in the plan"), "address": address(), "action": jsonNode{"enum": plan.Actions()}, "state": jsonNode{"enum": plan.StepStates()},
		"text": word("why it was not run"), "fault": ofPlan("Fault"), "spent": span("from the first exchange to the end"),
		"exchanges": natural("visits of its system"), "retries": natural("of an unreachable system"), "busy_spent": span("waited for a busy system"),
		"checks": arrayOf(ofPlan("Check")),
	}, "text", "fault")
}

func obligationSchema() jsonNode {
	return object(jsonNode{
		"obligation": object(jsonNode{
			"id": word("unique in a journal folder"), "address": address(), "text": word("what had to be put back"),
			"memo": jsonNode{"type": "object", "additionalProperties": jsonNode{"type": "string"}},
		}, "memo"),
		"fault": ofPlan("Fault"),
	}, "fault")
}
