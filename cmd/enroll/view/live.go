package view

import (
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/cupwriter"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/enroll-dev/enroll/plan"
)

// maxRows keeps the block on one screen; what is over is counted.
const maxRows = 16

// Live is Progress on a terminal: what came to an end is a line above a block
// that is drawn anew at most five times a second, with a row for each device that
// is at work: the step, what it waits for, what it has spent of its budget.
type Live struct {
	*Progress
	block *mpb.Progress
	bars  []*mpb.Bar
	now   func() time.Time
}

// NewLive draws on w, which leads to the terminal of this file descriptor. End
// it before anything else is written there.
func NewLive(w io.Writer, fd int, p *plan.Plan, color bool, now func() time.Time) *Live {
	console := cupwriter.New(w, false)
	console.SetTermFd(fd)
	block := mpb.New(mpb.WithConsoleWriter(console), mpb.WithRefreshRate(200*time.Millisecond))
	l := &Live{Progress: NewProgress(block, p, color), block: block, now: now}
	l.waits = false // they stand in the block
	return l
}

// Event takes one event, and gives the block as many rows as devices are at work.
func (l *Live) Event(e plan.Event) {
	l.Progress.Event(e)
	rows := len(l.text())
	for len(l.bars) < rows {
		i := len(l.bars)
		l.bars = append(l.bars, l.block.New(0, mpb.NopStyle(), mpb.BarPriority(i), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return l.row(i) }))))
	}
	for len(l.bars) > rows {
		last := len(l.bars) - 1
		l.bars[last].Abort(true)
		l.bars = l.bars[:last]
	}
}

// End takes the block away.
func (l *Live) End() {
	for _, b := range l.bars {
		b.Abort(true)
	}
	l.block.Wait()
}

// row is what a row shows now; the block may have got shorter since it was made.
func (l *Live) row(i int) string {
	if rows := l.text(); i < len(rows) {
		return rows[i]
	}
	return ""
}

// text is the text of the block: a row per device, the oldest step of each.
func (l *Live) text() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var out []string
	devices := map[string]bool{}
	width := 0
	var shown []activeStep
	for _, a := range l.rows() {
		if d := a.step.Address.Device; !devices[d] {
			devices[d] = true
			if len(shown) < maxRows {
				shown = append(shown, a)
				width = max(width, utf8.RuneCountInString(place(a.step)))
			}
		}
	}
	for _, a := range shown {
		out = append(out, fmt.Sprintf("  %-*s  %s%s", width, place(a.step), ago(now, a.since), spentOf(a.step, now.Sub(a.since), a.text)))
	}
	if n := len(devices) - len(shown); n > 0 {
		out = append(out, fmt.Sprintf("  and %s more at work; %d of %d steps over", plural(n, "device"), l.over, l.total))
	}
	return out
}
