package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal inputs in virtual time give the same events in the same order, but for the
// times that systems name.
func TestTheSameEventsInTheSameOrder(t *testing.T) {
	for _, f := range families()[:2] {
		t.Run(f.vendor, func(t *testing.T) {
			t.Parallel()
			moments := regexp.MustCompile(`20[0-9T:.-]+Z`)
			var first []streamEvent
			for i := range 2 {
				e := newEstate(t, 1, f)
				r := e.apply("gpu-001")
				if r.code != exitDone {
					t.Fatalf("exit %d\n%s", r.code, r.text)
				}
				for i := range r.events {
					r.events[i].Plan, r.events[i].Report = nil, nil // ids and addresses of a run
					r.events[i].Text = moments.ReplaceAllString(r.events[i].Text, "then")
				}
				if i == 0 {
					first = slices.Clone(r.events)
				}
				if diff := cmp.Diff(first, r.events); diff != "" {
					t.Fatalf("run %d: %s", i, diff)
				}
			}
			if len(first) < 40 {
				t.Errorf("only %d events", len(first))
			}
		})
	}
}
