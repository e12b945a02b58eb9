package plan

import "time"

// FormatVersion is the version of the plan file. Within one major version
// members are only added.
const FormatVersion = "1.0"

// DefaultLife is how long a plan may be applied after it was made.
const DefaultLife = 60 * time.Minute

// Plan is the document that people review: every step, check, observation and
// fault of one run.
type Plan struct {
	FormatVersion string `json:"format_version"`
	// ContentHash covers everything but the members before Tool and Statistics:
	// an unchanged world gives the same hash. It is what people approve.
	ContentHash string    `json:"content_hash"`
	PlanID      string    `json:"plan_id"` // unique; a plan is applied once
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires"`
	SiteDir     string    `json:"site_dir"` // the folder of the site files, as given

	Tool        Tool          `json:"tool"`
	Inputs      Inputs        `json:"inputs"`
	Scope       ScopeRecord   `json:"scope"`
	Devices     []DevicePlan  `json:"devices"`
	Racks       []RackPlan    `json:"racks"` // of the devices that are in one
	Steps       []*Step       `json:"steps"`
	Checks      []Check       `json:"checks"`
	Observed    []Observation `json:"observed"`
	Diagnostics []Diagnostic  `json:"diagnostics"`
	// Policies are what the site's policies say; absent where it has none.
	Policies   []PolicyResult `json:"policies,omitempty"`
	Summary    Summary        `json:"summary"`
	Statistics map[string]int `json:"statistics"` // requests per system while planning

	// Seal covers the whole file, so that a damaged or edited one is noticed also
	// where ContentHash does not look (id, life). It is no signature: who can write
	// the file can make a new seal.
	Seal string `json:"seal"`

	content *content // what ContentHash was taken of; nil: the plan may have changed since
}

// Tool names the program that made the plan.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Inputs are what the plan rests on.
type Inputs struct {
	Files   []SourceFile      `json:"files"`   // HCL files
	Objects []SourceObject    `json:"objects"` // NetBox objects
	Intents map[string]string `json:"intents"` // device → hash of its intent
	// Site is the hash of the evaluated site, and Settings that of each device's
	// settings: equal files may mean something else with other variables.
	Site     string            `json:"site"`
	Settings map[string]string `json:"settings"`
}

// ScopeRecord is what was asked for.
type ScopeRecord struct {
	Site     string   `json:"site"`
	Devices  []string `json:"devices"`
	Targets  []string `json:"targets,omitempty"`
	Excludes []string `json:"excludes,omitempty"`
	LeftOut  int      `json:"left_out,omitempty"` // steps that the selection leaves out
	// DevicesLeftOut counts the devices that the selection is not about: the plan
	// says nothing of them.
	DevicesLeftOut int               `json:"devices_left_out,omitempty"`
	Also           []Drawn           `json:"also_selected,omitempty"` // steps that no target fits, and others need
	Excluded       []Drawn           `json:"excluded,omitempty"`      // steps that an exclude takes out, and what comes after them
	Unmet          []string          `json:"unmet,omitempty"`         // targets of which excludes leave nothing
	Toggles        map[string]bool   `json:"toggles"`
	Parameters     map[string]string `json:"parameters,omitempty"`
}

// DeviceVerdict sums up a device.
type DeviceVerdict string

// The verdicts of a device.
const (
	VerdictClean      DeviceVerdict = "clean"      // nothing to do
	VerdictChanges    DeviceVerdict = "changes"    // steps to run
	VerdictBlocked    DeviceVerdict = "blocked"    // differences, and nothing that may run
	VerdictFailed     DeviceVerdict = "failed"     // a fault; nothing of it will run
	VerdictUnreadable DeviceVerdict = "unreadable" // a system that should have answered did not
)

// DevicePlan is the head of one device's part of the plan.
type DevicePlan struct {
	Name        string         `json:"name"`
	URL         string         `json:"url,omitempty"`
	Class       string         `json:"class"`
	Rack        string         `json:"rack,omitempty"`
	Vendor      string         `json:"vendor"` // manufacturer and model, from NetBox
	IronicState ProvisionState `json:"ironic_state"`
	IronicNode  string         `json:"ironic_node,omitempty"` // UUID: apply writes nothing for a device whose name another node has by then
	Owned       bool           `json:"owned"`
	OwnedReason string         `json:"owned_reason,omitempty"`
	Maintenance bool           `json:"maintenance,omitempty"` // Ironic's flag
	Verdict     DeviceVerdict  `json:"verdict"`
	Tally                      // of the device's own steps; what it shares counts in the summary only
	// UpTo is true when something could not be seen yet: the counts are then an
	// upper bound.
	UpTo bool `json:"up_to,omitempty"`
	// Unchanged counts the resources that are as wanted.
	Unchanged int `json:"unchanged"`
	// Unread counts the resources that could not be read or judged: nothing is
	// known of them.
	Unread int `json:"unread,omitempty"`
	// LeftOut counts the steps that the plan's selection leaves out.
	LeftOut int `json:"left_out,omitempty"`
}

// Severity of a diagnostic.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is a fault or a warning of a plan.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Device   string   `json:"device,omitempty"`
	Fault    *Fault   `json:"fault"`
}

// HasWork reports whether apply would run anything.
func (p *Plan) HasWork() bool { return p.Summary.Change+p.Summary.Run+p.Summary.Verify > 0 }

// Errors are the diagnostics of severity error.
func (p *Plan) Errors() []Diagnostic {
	var out []Diagnostic
	for _, d := range p.Diagnostics {
		if d.Severity == SeverityError {
			out = append(out, d)
		}
	}
	return out
}

// FailedChecks are the checks that failed on evidence at hand.
func (p *Plan) FailedChecks() []Check {
	var out []Check
	for _, c := range p.Checks {
		if c.Verdict == CheckFail && c.After == "" {
			out = append(out, c)
		}
	}
	return out
}

// Denied reports whether ownership or a policy forbids something that was asked
// for.
func (p *Plan) Denied() bool {
	for _, s := range p.Steps {
		if s.Blocked != nil && (s.Blocked.Rule == RuleOwned || s.Blocked.Rule == RulePolicy) {
			return true
		}
	}
	for _, d := range p.Errors() {
		if d.Fault.Code == CodeNodeOwned {
			return true
		}
	}
	return false
}
