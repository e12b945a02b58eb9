package view

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// The form of JUnit's reports that build servers read: a suite for each device,
// a case for each step.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     float64      `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Time    float64      `xml:"time,attr"`
		Failure *junitResult `xml:"failure,omitempty"`
		Skipped *junitResult `xml:"skipped,omitempty"`
	}
	junitResult struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a report for build servers. What devices share is a suite of its
// own, named after the site.
func JUnit(w io.Writer, site string, r *apply.Report) error {
	all := junitSuites{Name: "enroll apply " + r.PlanID, Time: seconds(r.Spent)}
	at := map[string]int{}
	suite := func(name string) *junitSuite {
		i, known := at[name]
		if !known {
			i = len(all.Suites)
			at[name] = i
			all.Suites = append(all.Suites, junitSuite{Name: Clean(name)})
		}
		return &all.Suites[i]
	}
	for _, s := range r.Steps {
		name := s.Step.Address.Device
		if name == "" {
			name = site
		}
		suite(name).add(junitOf(s, name))
	}
	for _, d := range r.Devices {
		if d.Fault != nil && d.At == nil { // held from the beginning
			suite(d.Name).add(junitCase{Name: "plan", Class: Clean(d.Name), Failure: junitFault(d.Fault)})
		}
	}
	for _, o := range r.Obligations {
		if name := o.Obligation.Address.Device; o.Fault != nil {
			suite(name).add(junitCase{Name: Clean("put back " + o.Obligation.Address.Local()), Class: Clean(name), Failure: junitFault(o.Fault)})
		}
	}
	for _, s := range all.Suites {
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	s.Time += c.Time
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
}

func junitOf(s apply.StepReport, class string) junitCase {
	c := junitCase{Name: Clean(string(s.Step.Action) + " " + s.Step.Address.Local()), Class: Clean(class), Time: seconds(s.Spent)}
	switch s.State {
	case plan.StepDone, plan.StepAlready:
	case plan.StepFailed, plan.StepInDoubt:
		c.Failure = junitFault(s.Fault)
	case plan.StepSkipped, plan.StepBlocked, plan.StepNotRun, plan.StepLeft:
		c.Skipped = &junitResult{Message: Clean(string(s.State) + ": " + s.Text)}
	}
	return c
}

func junitFault(f *plan.Fault) *junitResult {
	if f == nil {
		return &junitResult{Message: "in doubt"}
	}
	var text strings.Builder
	Fault(&text, f, "", false)
	return &junitResult{Type: string(f.Code), Message: Clean(f.Summary), Text: "\n" + text.String()}
}
