package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

// Parameters come back from a plan as they went in, and those of a later version
// are refused.
func TestParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		p := plan.Parameters{SkipInspection: flag("skip"), ForceInspection: flag("force"), ClearMaintenance: flag("clear"), RewriteCredentials: flag("rewrite"), PruneDHCP: flag("prune"), MaxAttempts: rapid.IntRange(0, 20).Draw(t, "attempts")}
		got, err := plan.ParseParameters(p.Record())
		if err != nil || got != p {
			t.Fatalf("%+v became %+v, %v", p, got, err)
		}
	})
	if (plan.Parameters{}).Record() != nil {
		t.Error("nothing asked is recorded")
	}
	for _, bad := range []map[string]string{{"of_tomorrow": "true"}, {"max_attempts": "many"}} {
		if _, err := plan.ParseParameters(bad); plan.AsFault(err).Code != plan.CodePlanInvalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
