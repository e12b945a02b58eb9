package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// What a run that is at work looks like from elsewhere, and one that was killed.
func TestARunSeenFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "clean", "s1"), step("s3", "a", "last", "s2"))
		s.world.run[addr("a", "clean")] = func(nth int, _ plan.Memo) plan.Result {
			if nth < 4 {
				return plan.Wait(time.Minute, []string{"", "cleaning", "cleaning", "clean wait"}[nth], plan.Memo{"sent": "1"})
			}
			s.world.set(addr("a", "clean"), wanted)
			return plan.Done()
		}
		time.AfterFunc(30*time.Second, func() {
			past, err := ReadJournal(s.dir, "p1")
			if err != nil {
				t.Error(err)
				return
			}
			if !past.Running || past.Ended || past.Site != "s" || past.Total != 3 || past.PID == 0 || len(past.Steps) != 2 {
				t.Errorf("%+v", past)
			}
			if st := past.Steps[1]; st.State != "" || st.Text != "cleaning" || st.Address != "s/a/x.clean" || !past.Done["s1"] || !past.Begun["s2"] {
				t.Errorf("%+v", st)
			}
		})
		s.run(t, t.Context())
		all, err := ListJournals(s.dir)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		if p := all[0]; p.Running || !p.Ended || p.PlanID != "p1" || len(p.Steps) != 3 || p.Steps[2].State != plan.StepDone {
			t.Errorf("%+v", p)
		}
	})
}
