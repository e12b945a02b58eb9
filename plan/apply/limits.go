package apply

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// slots are the visits that may be under way at once. Each trouble of a system
// that the whole site shares halves them, each visit that went well gives one
// back: what made it worse was, most likely, us.
type slots struct {
	most, now int
}

func (s *slots) troubled() { s.now = max(s.now/2, 1) }
func (s *slots) eased()    { s.now = min(s.now+1, s.most) }

// lane is a kind of visits with room of its own: a provider that gathers the steps
// of many devices into one exchange needs them side by side.
type lane struct {
	system string // empty: all systems without a lane
	most   int    // 0: as many as there are slots
	ready  queue  // in the plan's order
	busy   int
}

func newLanes(o Options) []*lane {
	lanes := []*lane{{ready: queue{less: byIndex}}}
	for _, system := range slices.Sorted(maps.Keys(o.Batches)) {
		lanes = append(lanes, &lane{system: system, most: o.Batches[system], ready: queue{less: byIndex}})
	}
	return lanes
}

func (l *lane) room(s slots) int {
	if l.most > 0 {
		return l.most
	}
	return s.now
}

// lane is where a job waits to be visited.
func (r *run) lane(j *job) *lane {
	for _, l := range r.lanes[1:] {
		if l.system == j.step.Address.System {
			return l
		}
	}
	return r.lanes[0]
}

// troubles reports whether a fault says that a shared system cannot keep up. A
// locked node or a BMC that is starting is one machine's own affair.
func troubles(f *plan.Fault) bool {
	if f == nil {
		return false
	}
	switch f.Code { //nolint:exhaustive // all others concern one machine
	case plan.CodeNetBoxUnreachable, plan.CodeIronicUnreachable, plan.CodeDHCPUnreachable:
		return true
	}
	return false
}

// places limit the hosts that reboot at once, in the site and in each rack: for
// what they draw when they start, and for the services that they start from. A
// host holds its place from the begin of a step with the effect reboot to the
// step's end, or for Options.RebootWindow when that comes first: a host that
// inspects or cleans itself for hours has long booted.
type places struct {
	site, rack int // at most; 0 means no limit
	held       map[*job]string
	inRack     map[string]int
	waiting    map[string]*queue // rack → jobs, in the plan's order
	waits      int               // jobs in waiting
	freed      bool              // a place may be free since candidates was asked
	windows    queue             // places by the end of their window
}

func newPlaces(o Options) places {
	return places{site: o.Reboots, rack: o.RebootsPerRack, held: map[*job]string{}, inRack: map[string]int{}, waiting: map[string]*queue{}, windows: queue{less: byWindow}}
}

func byWindow(a, b *job) bool {
	if !a.window.Equal(b.window) {
		return a.window.Before(b.window)
	}
	return a.index < b.index
}

// reboots reports whether a step needs a place.
func reboots(s *plan.Step) bool {
	for _, e := range s.Effects {
		if e == plan.EffectReboot {
			return true
		}
	}
	return false
}

// full says why there is no place in the rack now; "" when there is one.
func (p *places) full(rack string) string {
	switch {
	case p.site > 0 && len(p.held) >= p.site:
		return fmt.Sprintf("waits for a place: %d of %d hosts of the site reboot", len(p.held), p.site)
	case p.rack > 0 && rack != "" && p.inRack[rack] >= p.rack:
		return fmt.Sprintf("waits for a place: %d of %d hosts of rack %s reboot", p.inRack[rack], p.rack, rack)
	}
	return ""
}

func (p *places) hold(j *job, until time.Time) {
	p.held[j] = j.rack
	p.inRack[j.rack]++
	j.window = until
	p.windows.put(j)
}

// release frees a job's place, if it holds one.
func (p *places) release(j *job) {
	rack, ok := p.held[j]
	if !ok {
		return
	}
	delete(p.held, j)
	p.inRack[rack]--
	p.freed = true
}

// wait queues a job for a place in its rack.
func (p *places) wait(j *job) {
	if p.waiting[j.rack] == nil {
		p.waiting[j.rack] = &queue{less: byIndex}
	}
	p.waiting[j.rack].put(j)
	p.waits++
}

// candidates takes the first waiting job of every rack that has a place, once
// after places were freed or passed up.
func (p *places) candidates(now time.Time) []*job {
	for p.windows.first() != nil && !p.windows.first().window.After(now) {
		p.release(p.windows.take())
	}
	if !p.freed || p.waits == 0 {
		p.freed = false
		return nil
	}
	p.freed = false
	var out []*job
	for rack, q := range p.waiting {
		if q.first() != nil && p.full(rack) == "" {
			out = append(out, q.take())
			p.waits--
		}
	}
	return out
}

// next is when the next window ends; the zero time when nobody waits for that.
func (p *places) next() time.Time {
	for p.waits > 0 && p.windows.first() != nil {
		if _, holds := p.held[p.windows.first()]; holds {
			return p.windows.first().window
		}
		p.windows.take() // its step is over
	}
	return time.Time{}
}
