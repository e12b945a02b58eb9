package bmc

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/redfish"

	"github.com/enroll-dev/enroll/plan"
)

// change is one PATCH.
type change struct {
	on   document
	body map[string]any
	// same tells that a newer reading of the resource still has what the change
	// was decided on.
	same func(document) bool
	// at writes to this path instead.
	at string
	// etagOf is the ETag of what stands there.
	etagOf string
	// direct writes to the resource itself although it names a settings object.
	direct bool
}

// write sends a change and follows what becomes of it.
func (k *conn) write(ctx context.Context, c change) plan.Result {
	ans, fault := k.patch(ctx, c)
	switch {
	case fault != nil:
		return plan.Failed(fault)
	case ans.status == http.StatusAccepted:
		return k.accepted(ans)
	}
	return plan.Done()
}

// patch sends a change under the resource's ETag and gives the answer that took
// it; a refusal comes with its answer too. Where the resource names a settings
// object, that is where DSP0266 wants writes to go.
func (k *conn) patch(ctx context.Context, c change) (*answer, *plan.Fault) {
	if c.on.expanded && c.at == "" {
		d, fault := k.get(ctx, c.on.path)
		if fault != nil {
			return nil, fault
		}
		c.on = d
	}
	path, etag := c.on.path, c.on.etag
	if c.at != "" {
		path, etag = c.at, c.etagOf
	}
	if settings := c.on.link("@Redfish.Settings", "SettingsObject"); settings != "" && !c.direct && c.at == "" {
		s, fault := k.get(ctx, settings)
		if fault != nil {
			return nil, fault
		}
		path, etag = s.path, s.etag
	}
	if k.family.anyMatch {
		etag = "*"
	}
	mark := markOf(http.MethodPatch, path, c.body)
	if k.made[mark] {
		return nil, repeated
	}
	lifted := false
	for attempt := 1; ; attempt++ {
		r := request{method: http.MethodPatch, path: path, body: c.body, change: true}
		if etag != "" {
			r.header = map[string]string{"If-Match": etag}
		}
		if fault := plan.Permit(ctx); fault != nil {
			return nil, fault
		}
		ans, fault := k.authorized(ctx, r)
		if fault != nil {
			return ans, inDoubt(fault)
		}
		switch {
		case ans.status == http.StatusPreconditionFailed && attempt <= 2:
			if etag, fault = k.newerETag(ctx, c, path); fault != nil {
				return ans, fault
			}
			if attempt == 2 {
				etag = "*" // some builds compare ETags wrongly; the value was just looked at
			}
		case ans.status == http.StatusPreconditionRequired && attempt <= 2:
			etag = "*" // wanted, and none was given
		case lockedDown(ans) && !lifted:
			if fault := k.liftLockdown(ctx, ans); fault != nil {
				return ans, fault
			}
			lifted = true
		case has(messages(ans.body), "PropertyNotWritable", "PropertyUnknown") && ans.status >= 400:
			return ans, k.refusal(plan.CodeBMCUnsupported, ans, "the BMC of %s does not let %s be changed at %s", k.device, keysOf(c.body), cut(path, 120))
		default:
			fault := k.taken(ans)
			k.note(mark, fault)
			return ans, fault
		}
	}
}

// note remembers a change that was accepted.
func (k *conn) note(mark string, fault *plan.Fault) {
	if fault == nil && k.made != nil {
		k.made[mark] = true
	}
}

// lockedDown tells that a change was refused because of a lockdown.
func lockedDown(ans *answer) bool {
	return ans != nil && ans.status >= 400 && has(messages(ans.body), idsLockdown...)
}

// liftLockdown takes a lockdown off for a change, where the site wants it: then
// bmc.security, which comes last, puts it back. Where the site says nothing, a
// person has to.
func (k *conn) liftLockdown(ctx context.Context, refused *answer) *plan.Fault {
	row := slices.IndexFunc(k.family.security, func(r securityRow) bool { return r.last })
	if s := k.family.settings(&k.client.settings); row < 0 || s == nil || s.Lockdown == nil || !*s.Lockdown {
		return k.refusal(plan.CodeBMCRefused, refused, "the BMC of %s is locked down", k.device).
			WithHint("Take the system lockdown off by hand, or let enroll keep it: lockdown = true in bmc.%s lifts it for changes and puts it back.", k.family.name)
	}
	lock := k.family.security[row]
	d, fault := k.placeOf(ctx, lock.place)
	if fault != nil {
		return fault
	}
	shown, _ := d.at(lock.keys...)
	off, _ := lock.wireOf(plan.Bool(false), shown)
	body := map[string]any{}
	put(body, lock.keys, off)
	r := request{method: http.MethodPatch, path: d.path, change: true, body: body}
	if d.etag != "" {
		r.header = map[string]string{"If-Match": d.etag}
	}
	if fault := plan.Permit(ctx); fault != nil {
		return fault
	}
	ans, fault := k.authorized(ctx, r)
	if fault != nil {
		return inDoubt(fault)
	}
	return k.taken(ans)
}

// taken judges the answer to a change; a web page is no success.
func (k *conn) taken(ans *answer) *plan.Fault {
	if fault := k.judge(ans); fault != nil {
		return inDoubt(fault)
	}
	if isPage(ans) {
		return k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s answered %s %s with a web page", k.device, ans.method, cut(ans.path, 120))
	}
	return nil
}

// inDoubt marks a change whose answer was lost.
func inDoubt(fault *plan.Fault) *plan.Fault {
	if isCode(fault, plan.CodeBMCUnreachable) {
		return fault.With("in_doubt", "whether the BMC took the change is not known; the next reading shows it")
	}
	return fault
}

// send makes a change that is no PATCH: an action, a new member, the end of one.
// It carries no If-Match: iDRAC 10 answers 412 to an action that has one.
func (k *conn) send(ctx context.Context, method, path string, body any) plan.Result {
	ans, fault := k.ask(ctx, method, path, body)
	switch {
	case fault != nil:
		return plan.Failed(fault)
	case ans.status == http.StatusAccepted:
		return k.accepted(ans)
	}
	return plan.Done()
}

// ask is send for those who need the answer itself.
func (k *conn) ask(ctx context.Context, method, path string, body any) (*answer, *plan.Fault) {
	r := request{method: method, path: resolve(path), body: body, change: true}
	if method == http.MethodDelete && k.family.anyMatch {
		r.header = map[string]string{"If-Match": "*"}
	}
	mark := markOf(method, r.path, body)
	if k.made[mark] {
		return nil, repeated
	}
	for lifted := false; ; lifted = true {
		if fault := plan.Permit(ctx); fault != nil {
			return nil, fault
		}
		ans, fault := k.authorized(ctx, r)
		if fault != nil {
			return ans, inDoubt(fault)
		}
		if !lockedDown(ans) || lifted {
			fault := k.taken(ans)
			k.note(mark, fault)
			return ans, fault
		}
		if fault := k.liftLockdown(ctx, ans); fault != nil {
			return ans, fault
		}
	}
}

// newerETag reads the resource again after it was found changed.
func (k *conn) newerETag(ctx context.Context, c change, path string) (string, *plan.Fault) {
	d, fault := k.get(ctx, c.on.path)
	if fault != nil {
		return "", fault
	}
	if !c.same(d) {
		return "", k.fault(plan.CodePlanStale, request{method: http.MethodPatch, path: path}, "somebody else changed %s on the BMC of %s just now", keysOf(c.body), k.device)
	}
	if path != d.path {
		if d, fault = k.get(ctx, path); fault != nil {
			return "", fault
		}
	}
	return strongForm(d.etag), nil
}

// strongForm is an ETag without what some servers add and then do not know again:
// the mark of weakness, and "-gzip" of a packed answer.
func strongForm(etag string) string {
	return strings.Replace(strings.TrimPrefix(etag, "W/"), `-gzip"`, `"`, 1)
}

func keysOf(body map[string]any) string {
	var out []string
	for _, key := range sortedKeys(body) {
		out = append(out, key)
		if inner, ok := body[key].(map[string]any); ok {
			out[len(out)-1] = key + "." + strings.Join(sortedKeys(inner), ", "+key+".")
		}
	}
	return strings.Join(out, ", ")
}

// next asks for a further change after one that was taken.
func next(r plan.Result, observed string) plan.Result {
	if r.Outcome != plan.OutcomeDone {
		return r
	}
	return plan.Wait(firstPause, observed, plan.Memo{})
}

// What a run remembers between two looks at a task.
const memoTask = "task"

// accepted hands a 202 on: the BMC works on it and says where that can be
// looked at. Without an address only reading back can tell.
func (k *conn) accepted(ans *answer) plan.Result {
	task := ans.header.Get("Location")
	if task == "" {
		d, _ := parse(ans.path, "", ans.body)
		task = d.text("@odata.id")
	}
	if task == "" || isPage(ans) {
		return plan.Done()
	}
	return plan.Wait(pauseOf(ans, time.Second), "BMC accepted the change and works on it", plan.Memo{memoTask: resolve(task), memoPauses: "1"})
}

// followTask looks at a task, or at its monitor, once. A monitor answers 202
// while the task runs and is gone, or has the final answer, afterwards.
func (k *conn) followTask(ctx context.Context, memo plan.Memo) plan.Result {
	ans, fault := k.authorized(ctx, request{method: http.MethodGet, path: memo[memoTask]})
	if fault != nil {
		return plan.Failed(fault)
	}
	return k.taskOf(ans, memo)
}

// taskOf judges the answer of a task or its monitor.
func (k *conn) taskOf(ans *answer, memo plan.Memo) plan.Result {
	if ans.status == http.StatusNotFound || ans.status == http.StatusGone {
		return plan.Done() // finished and forgotten; reading back shows what came of it
	}
	if fault := k.judge(ans); fault != nil {
		return plan.Failed(fault)
	}
	d, ok := parse(ans.path, "", ans.body)
	if !ok && len(strings.TrimSpace(string(ans.body))) > 0 {
		return plan.Failed(k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s answered for its task with something that is no resource", k.device))
	}
	state := redfish.TaskState(d.text("TaskState"))
	switch {
	case state == redfish.CompletedTaskState, state == "" && ans.status != http.StatusAccepted:
		return plan.Done()
	case state == redfish.ExceptionTaskState, state == redfish.KilledTaskState, state == redfish.CancelledTaskState, state == redfish.InterruptedTaskState:
		f := k.refusal(plan.CodeBMCRefused, ans, "the task of the BMC of %s ended with %s", k.device, state)
		if list := extended(d.top["Messages"]); len(list) > 0 {
			f = f.With("answer", k.clean(words(list)))
		}
		return plan.Failed(f)
	}
	pauses, _ := strconv.Atoi(memo[memoPauses]) // a memo without it starts over
	pause := time.Second
	for range min(pauses, 4) {
		pause = min(2*pause, longestPause)
	}
	observed := "BMC works on the change"
	if state != "" {
		observed += ": " + cut(string(state), 40)
	}
	return plan.Wait(pauseOf(ans, pause), observed, plan.Memo{memoTask: memo[memoTask], memoPauses: strconv.Itoa(pauses + 1)})
}

// pauseOf is what the BMC asks for, within reason, else the given pause. Some say
// it in a header, some as the argument of their message.
func pauseOf(ans *answer, pause time.Duration) time.Duration {
	asked := []string{ans.header.Get("Retry-After")}
	for _, m := range messages(ans.body) {
		if strings.HasPrefix(m.id, idBusyPrefix) && len(m.args) > 0 {
			asked = append(asked, m.args[0])
		}
	}
	for _, text := range asked {
		if s, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && s > 0 {
			return min(time.Duration(s)*time.Second, time.Minute)
		}
	}
	return pause
}
