package plan

// LinkState is what is known about the link of a network interface. What a
// system does not tell, or cannot know, is unknown, and never taken for down.
type LinkState string

// The states.
const (
	LinkUp      LinkState = "up"
	LinkDown    LinkState = "down"
	LinkUnknown LinkState = "unknown"
)
