package plan

import (
	"encoding/json"
	"fmt"
)

// planForm is the plan as the file has it. Its parts have forms of their own where
// the file says more than the model: a step's kind, what a fault's code implies.
type planForm struct {
	*planAlias
	Steps       []*stepJSON       `json:"steps"`
	Observed    []observationJSON `json:"observed"`
	Diagnostics []diagnosticJSON  `json:"diagnostics"`
}

type planAlias Plan

type diagnosticJSON struct {
	Severity Severity   `json:"severity"`
	Device   string     `json:"device,omitempty"`
	Fault    *faultJSON `json:"fault"`
}

func formOf(p *Plan) planForm {
	whole := *p
	whole.Inputs.Files, whole.Inputs.Objects = list(p.Inputs.Files), list(p.Inputs.Objects)
	whole.Scope.Devices, whole.Devices, whole.Checks = list(p.Scope.Devices), list(p.Devices), list(p.Checks)
	form := planForm{planAlias: (*planAlias)(&whole), Steps: make([]*stepJSON, len(p.Steps)), Observed: make([]observationJSON, len(p.Observed)), Diagnostics: make([]diagnosticJSON, len(p.Diagnostics))}
	for i, s := range p.Steps {
		if s != nil {
			form.Steps[i] = s.form()
		}
	}
	for i, o := range p.Observed {
		form.Observed[i] = o.form()
	}
	for i, d := range p.Diagnostics {
		form.Diagnostics[i] = diagnosticJSON{Severity: d.Severity, Device: d.Device}
		if d.Fault != nil {
			form.Diagnostics[i].Fault = d.Fault.form()
		}
	}
	return form
}

type stepAlias Step

type stepJSON struct {
	*stepAlias
	Kind   string          `json:"kind"`   // of the address, for readers that filter
	Before json.RawMessage `json:"before"` // the live value; null: there is none, or it cannot be seen yet (before_unknown)
	After  json.RawMessage `json:"after"`  // the wanted value, null where it becomes known during apply
	// AfterUnknown lists the paths of after that become known during apply.
	AfterUnknown []string `json:"after_unknown"`
}

// form writes unknown parts as null and lists their paths.
func (s *Step) form() *stepJSON {
	before := s.Before
	if s.BeforeUnknown {
		before = Null
	}
	whole := *s
	whole.Because, whole.Effects, whole.Needs = list(s.Because), list(s.Effects), list(s.Needs)
	out := &stepJSON{stepAlias: (*stepAlias)(&whole), Kind: s.Address.KindName()}
	out.Before, _ = knownJSON(before)
	out.After, out.AfterUnknown = knownJSON(s.After)
	return out
}

// MarshalJSON writes the step as the plan file has it.
func (s *Step) MarshalJSON() ([]byte, error) { return json.Marshal(s.form()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Step) UnmarshalJSON(b []byte) error {
	in := stepJSON{stepAlias: (*stepAlias)(s)}
	err := json.Unmarshal(b, &in)
	if err != nil {
		return err
	}
	if s.Before, err = valueJSON(in.Before, nil); err != nil {
		return fmt.Errorf("step %s, before: %w", s.ID, err)
	}
	if s.BeforeUnknown {
		s.Before = Unknown
	}
	if s.After, err = valueJSON(in.After, in.AfterUnknown); err != nil {
		return fmt.Errorf("step %s, after: %w", s.ID, err)
	}
	return nil
}

type observationJSON struct {
	Address Address         `json:"address"`
	Rule    string          `json:"rule"`
	Text    string          `json:"text"`
	Want    json.RawMessage `json:"want"`
	Live    json.RawMessage `json:"live"`
}

func (o Observation) form() observationJSON {
	out := observationJSON{Address: o.Address, Rule: o.Rule, Text: o.Text}
	out.Want, _ = knownJSON(o.Want)
	out.Live, _ = knownJSON(o.Live)
	return out
}

// MarshalJSON writes the observation as the plan file has it.
func (o Observation) MarshalJSON() ([]byte, error) { return json.Marshal(o.form()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Observation) UnmarshalJSON(b []byte) error {
	var in observationJSON
	err := json.Unmarshal(b, &in)
	if err != nil {
		return err
	}
	*o = Observation{Address: in.Address, Rule: in.Rule, Text: in.Text}
	if o.Want, err = valueJSON(in.Want, nil); err != nil {
		return err
	}
	o.Live, err = valueJSON(in.Live, nil)
	return err
}
