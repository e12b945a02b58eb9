package plan

// Obligation is something that must be put back when the window between two
// exchanges of a step is left early: Ironic's maintenance flag around the
// recovery of a node that is clean failed. It is plain JSON, so that whoever
// continues after a crash finds it.
type Obligation struct {
	// ID tells obligations of a site apart; the interpreter gives it.
	ID      string  `json:"id"`
	Address Address `json:"address"` // of the step that opened it
	// Text is what has to be put back and how, for people: "maintenance of node
	// gpu-017: on, with the reason …".
	Text string `json:"text"`
	Memo Memo   `json:"memo,omitempty"` // what putting it back needs
}
