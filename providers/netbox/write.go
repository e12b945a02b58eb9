package netbox

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// subject is the device that a step writes to.
type subject struct {
	step *plan.Step
	memo plan.Memo
	name string
	id   int64
}

// edit is one kind's way of changing a device.
type edit struct {
	// decide looks at the device as it is now: what to send, or that nothing has to be.
	decide func(d liveDevice) (change, bool, *plan.Fault)
	// refused gives a better fault for an answer that refuses; nil keeps the general one.
	refused func(a *answer) *plan.Fault
	// kept names something that the write took away by mistake, "" when all is there.
	kept func(before, after liveDevice) string
	// stuck says wanted and found for a write that was accepted and did not stick.
	stuck func(d liveDevice) (want, found string)
}

// A write whose ETag somebody else outdated (412) is decided anew in the next
// exchange, this often in all.
//
// Without an ETag (before NetBox 4.6, or behind a proxy that drops it) NetBox
// writes the whole row back, so a writer that read the device before our write
// undoes it. Then the device is looked at once more after a pause; a write that
// was undone is decided anew in the same way. The window is smaller for that and
// not closed.
const (
	writeTries = 3
	memoTries  = "tries"
	memoLook   = "look" // a write without ETag is looked at again
	memoTags   = "tags" // the slugs that were there before it
	writeAgain = time.Second
)

// Run executes a step in one exchange: read the device, decide, PATCH what has
// to change under the ETag of that read, and look at the answer. At most four
// requests.
func (c *Client) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	kind, known := handlingOf(step.Address.KindName())
	t := sc.Target(step.Address.Device)
	if !known || t == nil || t.Intent.ID <= 0 {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s cannot be run: no such kind, or the device is not in scope", step.Address))
	}
	return kind.run(ctx, c, &subject{step: step, memo: memo, name: step.Address.Device, id: t.Intent.ID})
}

func (c *Client) write(ctx context.Context, s *subject, e edit) plan.Result {
	ids, err := narrow([]int64{s.id})
	if err != nil {
		return plan.Failed(plan.AsFault(err))
	}
	before, etag, fault := c.readDevice(ctx, s, ids[0])
	if fault != nil {
		return plan.Failed(fault)
	}
	ch, satisfied, fault := e.decide(before)
	switch {
	case fault != nil:
		return plan.Failed(fault)
	case satisfied && s.memo[memoLook] != "":
		return c.lookedAgain(s, e, before)
	case satisfied && s.memo != nil:
		return plan.Done() // by the other writer
	case satisfied:
		return plan.Already()
	case s.memo[memoLook] != "":
		return c.outdated(s, plan.NewFault(plan.CodeNotApplied, "what was written to %s is gone again", s.name).With("url", c.page("dcim/devices", s.id)))
	}
	ans, fail := c.once(ctx, call{fields: liveFields, ifMatch: etag}, func(ctx context.Context) error { return c.api.patchDevice(ctx, ids[0], ch) })
	switch {
	case fail == nil:
		return c.confirm(s, e, ans, before, etag != "")
	case ans != nil && ans.status == http.StatusPreconditionFailed && ans.readErr == nil:
		return c.outdated(s, c.about(ans, plan.CodeNetBoxRefused, "%s was changed by somebody else during each of %d tries to write it", s.name, writeTries))
	}
	return c.afterFailure(ctx, s, e, ids[0], ans, fail)
}

// lookedAgain ends a write without ETag: it is still there, and so is what was
// there before.
func (c *Client) lookedAgain(s *subject, e edit, now liveDevice) plan.Result {
	if e.kept == nil {
		return plan.Done()
	}
	var before liveDevice
	for _, slug := range strings.Fields(s.memo[memoTags]) {
		before.Tags = append(before.Tags, tag{Slug: slug})
	}
	if gone := e.kept(before, now); gone != "" {
		return plan.Failed(c.lostTag(s, gone))
	}
	return plan.Done()
}

func (c *Client) lostTag(s *subject, slug string) *plan.Fault {
	return plan.NewFault(plan.CodeNotApplied, "the tag %s of %s is gone after the write", clean(slug, 80), s.name).With("url", c.page("dcim/devices", s.id)).
		WithHint("Put the tag back in NetBox; the change log of the device shows who removed it.")
}

// outdated deals with a device that was written between our read and our write,
// or right after it: the step is decided anew, and last fails after the last try.
func (c *Client) outdated(s *subject, last *plan.Fault) plan.Result {
	tries, _ := strconv.Atoi(s.memo[memoTries]) // absent in the first exchange: 0
	if tries++; tries < writeTries {
		return plan.Wait(writeAgain, s.name+" was changed in NetBox by somebody else meanwhile", plan.Memo{memoTries: strconv.Itoa(tries)})
	}
	return plan.Failed(last.With("tries", strconv.Itoa(writeTries)).
		WithHint("See the device's change log in NetBox (%schangelog/); plan again when it is quiet.", c.page("dcim/devices", s.id)))
}

// afterFailure deals with a write that was refused or whose answer was lost. A
// lost one may have been done: one look tells.
func (c *Client) afterFailure(ctx context.Context, s *subject, e edit, id int32, ans *answer, fail *failure) plan.Result {
	lost := ans == nil || ans.readErr != nil || ans.tooBig || ans.status < http.StatusMultipleChoices || fail.retry
	if lost && ctx.Err() == nil {
		now, _, fault := c.readDevice(ctx, s, id)
		if fault != nil {
			return plan.Failed(fail.fault.With("write", "in doubt: the device could not be read afterwards"))
		}
		if _, satisfied, fault := e.decide(now); fault == nil && satisfied {
			return plan.Done()
		}
		return plan.Failed(fail.fault.With("write", "not seen in NetBox afterwards"))
	}
	if ans != nil && ans.status == http.StatusNotFound && !html(ans) {
		return plan.Failed(c.about(ans, plan.CodeNetBoxDenied, "NetBox shows %s and does not let the token change it", s.name).With("permission", "dcim.change_device").
			WithHint("The permission dcim.change_device of the token's user must hold for this device, whether it is staged or active."))
	}
	if e.refused != nil && ans != nil {
		if f := e.refused(ans); f != nil {
			return plan.Failed(f)
		}
	}
	return plan.Failed(fail.fault)
}

// readDevice reads the one device with its ETag, which only NetBox 4.6 and
// later give, and only if no proxy drops it.
func (c *Client) readDevice(ctx context.Context, s *subject, id int32) (liveDevice, string, *plan.Fault) {
	var d liveDevice
	ans, fail := c.once(ctx, call{fields: liveFields}, func(ctx context.Context) error { return c.api.device(ctx, id) })
	switch {
	case fail != nil && ans != nil && ans.status == http.StatusNotFound && !html(ans):
		return d, "", c.sameDevice(s.name, s.id, d, false)
	case fail != nil:
		return d, "", fail.fault
	}
	if f := c.decodeDevice(ans, &d); f != nil {
		return d, "", f
	}
	return d, ans.header.Get("ETag"), c.sameDevice(s.name, s.id, d, true)
}

func (c *Client) decodeDevice(ans *answer, d *liveDevice) *plan.Fault {
	err := json.Unmarshal(ans.body, d)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return c.about(ans, plan.CodeNetBoxProtocol, "NetBox's answer is no device").Because(err)
	}
	return nil
}

// confirm reads back from the answer of the PATCH: NetBox takes keys that it
// does not know with 200, and proxies answer for it.
func (c *Client) confirm(s *subject, e edit, ans *answer, before liveDevice, locked bool) plan.Result {
	var after liveDevice
	if f := c.decodeDevice(ans, &after); f != nil {
		return plan.Failed(f)
	}
	if f := c.sameDevice(s.name, s.id, after, true); f != nil {
		return plan.Failed(f)
	}
	if _, satisfied, fault := e.decide(after); fault != nil || !satisfied {
		want, found := e.stuck(after)
		return plan.Failed(c.about(ans, plan.CodeNotApplied, "NetBox accepted the write to %s and shows %s", s.name, found).With("want", want).With("found", found))
	}
	if e.kept != nil {
		if gone := e.kept(before, after); gone != "" {
			return plan.Failed(c.lostTag(s, gone).With("request_id", clean(ans.header.Get("X-Request-ID"), 64)))
		}
	}
	if locked {
		return plan.Done()
	}
	slugs := make([]string, len(before.Tags))
	for i, t := range before.Tags {
		slugs[i] = t.Slug
	}
	memo := plan.Memo{memoLook: "1", memoTags: strings.Join(slugs, " ")}
	if tries := s.memo[memoTries]; tries != "" {
		memo[memoTries] = tries
	}
	return plan.Wait(writeAgain, "NetBox gives no ETag, so "+s.name+" is looked at again after the write", memo)
}

// noteLimit is the length of NetBox's changelog_message; a longer one is a
// server error.
const noteLimit = 200

// note is the message for NetBox's change log.
func (c *Client) note(what string) string {
	begin := c.opt.ChangelogMessage
	if begin == "" {
		begin = "enroll"
	}
	text := []rune(clean(begin, noteLimit-len(what)-2-1) + ": " + what)
	return string(text[:min(len(text), noteLimit)])
}
