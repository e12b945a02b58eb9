package apply

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// A journal that calls done what is not is found out by reading: what is as it was
// before the step is done now, what is as wanted or was moved on is left, a check is
// made again, and a transition is left to the guards of what comes after.
func TestAJournalThatLies(t *testing.T) {
	other := plan.Obj(map[string]plan.Value{"v": plan.Str("moved on")})
	for name, tc := range map[string]struct {
		action plan.Action
		live   plan.Value // the zero Value: absent, as before
		calls  int
		text   string
	}{
		"not done":          {plan.ActionCreate, plan.Value{}, 1, ""},
		"done":              {plan.ActionCreate, wanted, 0, doneBefore},
		"moved on":          {plan.ActionCreate, other, 0, doneBefore + ", and changed since"},
		"a check":           {plan.ActionVerify, plan.Value{}, 1, ""},
		"a transition":      {plan.ActionTransition, plan.Value{}, 0, doneBefore},
		"something started": {plan.ActionRun, plan.Value{}, 0, doneBefore},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := step("s1", "a", "one")
				st.Action = tc.action
				s := newSetup(t, []string{"a"}, st)
				if tc.live != (plan.Value{}) {
					s.world.set(st.Address, tc.live)
				}
				s.in.Done = map[string]bool{"s1": true}
				r := s.run(t, t.Context())
				if got := r.Steps[0]; !got.State.OK() || got.Text != tc.text || s.world.calls[st.Address] != tc.calls {
					t.Errorf("%s, %q, sent %d times; want %q, %d", got.State, got.Text, s.world.calls[st.Address], tc.text, tc.calls)
				}
			})
		})
	}
}

// A journal under the name of another plan, or of other content, begins nothing.
func TestAJournalOfAnotherPlan(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
	for name, tc := range map[string]struct{ line, want string }{
		"another id":       {`{"time":"` + at + `","what":"begin-plan","plan_id":"p2","site":"s","content_hash":"sha256:1"}`, "is that of plan p2"},
		"another content":  {`{"time":"` + at + `","what":"begin-plan","plan_id":"p1","site":"s","content_hash":"sha256:2"}`, "another content"},
		"no plan at all":   {`{"time":"` + at + `","what":"end","step":"s1","state":"done"}`, "another content"},
		"nothing readable": {"\x00\x00{", ""},
		"its own":          {`{"time":"` + at + `","what":"begin-plan","plan_id":"p1","site":"s","content_hash":"sha256:1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(journalPath(dir, "p1"), []byte(tc.line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := CheckUnused(dir, "p1", "sha256:1")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("before: %v, want %q", err, tc.want)
			}
			j, err := OpenJournal(dir, "p1", time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			in := Input{Scope: scope("a"), PlanID: "p1", ContentHash: "sha256:1"}
			_, err = Run(t.Context(), in, Deps{Clock: RealClock{}, Journal: j}, DefaultOptions())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("run: %v, want %q", err, tc.want)
			}
		})
	}
}
