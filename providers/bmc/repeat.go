package bmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// A step of several changes looks at the BMC after each, and would make one that was
// accepted and ignored again and again. None is made twice: the step waits a little
// for a BMC that shows its changes late, then ends, and what is read back is told as
// NOT_APPLIED.
const (
	memoMade    = "made:" // with the mark of a change that was accepted
	memoUnmoved = "unmoved"
	unmovedWait = 5 * time.Second
	unmovedMost = 3
)

// repeated stands for a change that the step has made before and that was not sent
// again.
var repeated = plan.NewFault(plan.CodeNotApplied, "the BMC accepted a change and does not show it") //nolint:gochecknoglobals // a mark, never changed

// markOf tells changes apart. Passwords take no part: their marks would stay in
// memos.
func markOf(method, path string, body any) string {
	raw, err := json.Marshal(withoutPassword(body)) // with sorted keys
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(method+" "+path+" "), raw...))
	return hex.EncodeToString(sum[:8])
}

func withoutPassword(body any) any {
	m, ok := body.(map[string]any)
	if !ok {
		return body
	}
	m = maps.Clone(m)
	delete(m, "Password")
	return m
}

// madeBefore are the marks of what earlier exchanges of the step have changed.
func madeBefore(memo plan.Memo) map[string]bool {
	made := map[string]bool{}
	for key := range memo {
		if mark, ok := strings.CutPrefix(key, memoMade); ok {
			made[mark] = true
		}
	}
	return made
}

// rememberMade carries the marks on while the step goes on.
func rememberMade(r plan.Result, made map[string]bool) plan.Result {
	if r.Outcome != plan.OutcomeWait {
		return r
	}
	memo := maps.Clone(r.Memo)
	if memo == nil {
		memo = plan.Memo{}
	}
	for mark := range made {
		memo[memoMade+mark] = "yes"
	}
	r.Memo = memo
	return r
}

// unmoved waits for a BMC that shows its changes late, a few times.
func unmoved(memo plan.Memo) plan.Result {
	looks, _ := strconv.Atoi(memo[memoUnmoved]) // nothing there is none yet
	if looks >= unmovedMost {
		return plan.Done()
	}
	memo = maps.Clone(memo)
	memo[memoUnmoved] = strconv.Itoa(looks + 1)
	return plan.Wait(unmovedWait, "the BMC accepted the change and does not show it yet", memo)
}
