package exchange

import (
	"strings"
	"time"
)

// Kind is what goes wrong at an exchange.
type Kind string

// The kinds of faults.
const (
	Delay     Kind = "delay"      // the answer comes Delay later
	Stall     Kind = "stall"      // no answer until the client gives up
	Late      Kind = "late"       // the request is served Delay later, whether or not anybody still waits
	Status    Kind = "status"     // Status and Body instead of the answer; nothing is done
	Reset     Kind = "reset"      // the connection is reset before anything is done
	HalfBody  Kind = "half_body"  // the request is served, the answer is cut in the middle
	LostReply Kind = "lost_reply" // the request is served, then the connection is reset
	Garbage   Kind = "garbage"    // 200 with an HTML page; nothing is done
)

// Fault hits the exchange with number At, or every one from number From on, or,
// when both are zero, each exchange that fits System, Method and Path, at most
// Times times (0: always).
type Fault struct {
	Kind   Kind
	At     int
	From   int
	System string
	Device string
	Method string
	Path   string // prefix of the path
	Times  int

	Delay  time.Duration
	Status int
	Header map[string]string
	Body   string

	hit int
}

func (f *Fault) hits(rec Record) bool {
	if f.Times > 0 && f.hit >= f.Times {
		return false
	}
	if f.At != 0 {
		if rec.Seq != f.At {
			return false
		}
	} else if rec.Seq < f.From {
		return false
	} else if !fits(f.System, rec.System) || !fits(f.Device, rec.Device) || !fits(f.Method, rec.Method) || !strings.HasPrefix(rec.Path, f.Path) {
		return false
	}
	f.hit++
	return true
}

func fits(want, got string) bool { return want == "" || want == got }
