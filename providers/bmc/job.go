package bmc

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// job is a configuration job in the queue of an iDRAC's Lifecycle Controller.
type job struct{ document }

func (j job) id() string    { return j.text("Id") }
func (j job) state() string { return j.text("JobState") }

// open tells that the job is not over.
func (j job) open() bool {
	switch j.state() {
	case "Completed", "Failed", "CompletedWithErrors", "RebootFailed", "RebootCompleted":
		return false
	}
	return true
}

// queued tells that the job has not begun.
func (j job) queued() bool {
	switch j.state() {
	case "New", "Scheduling", "Scheduled", "ReadyForExecution", "Waiting", "Paused", "PendingActivation":
		return true
	}
	return false
}

// words are what the iDRAC says, without the blanks that do not break.
func (j job) words() string {
	return strings.Join(strings.Fields(strings.ReplaceAll(j.text("Message"), "\u00a0", " ")), " ")
}

// stuck is what an iDRAC says of a scheduled job that will never run.
const stuck = "Job processing initialization failure"

// What a step remembers of its job.
const (
	memoJob      = "job"
	memoJobSince = "job_since"
	memoJobGone  = "job_gone"
)

// The patience with a job.
const (
	jobPause      = 10 * time.Second
	scheduleLimit = 10 * time.Minute // from New to Scheduled; longer means never
	pickUpLimit   = 30 * time.Minute // from the reset to Running
	jobGoneLooks  = 3                // it is not there for some seconds after it was made
)

// jobsPath is the queue of the iDRAC.
func (k *conn) jobsPath(ctx context.Context) (string, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return "", fault
	}
	if p := m.link("Links", "Oem", "Dell", "Jobs"); p != "" {
		return strings.TrimSuffix(resolve(p), "/"), nil
	}
	return strings.TrimSuffix(m.path, "/") + "/Jobs", nil
}

// openJobs are the BIOS configuration jobs that are not over. Reboot jobs (RID_)
// may stand at Running for ever and block nothing.
func (k *conn) openJobs(ctx context.Context) ([]job, *plan.Fault) {
	path, fault := k.jobsPath(ctx)
	if fault != nil {
		return nil, fault
	}
	_, members, fault := k.members(ctx, path)
	if fault != nil {
		return nil, fault
	}
	var out []job
	for _, d := range members {
		j := job{d}
		if d.unread != nil {
			return nil, d.unread
		}
		if strings.HasPrefix(j.id(), "JID_") && j.text("JobType") == "BIOSConfiguration" && j.open() {
			out = append(out, j)
		}
	}
	return out, nil
}

// jobOf finds the id of the job in an answer, "" when it names none.
func jobOf(ans *answer) string {
	id := name(resolve(ans.header.Get("Location")))
	if strings.HasPrefix(id, "JID_") {
		return id
	}
	return ""
}

// followJob takes a step through its job: until it is scheduled, then through the
// reset, then to its end. nil means that the job is over and the value can be read.
func (k *conn) followJob(ctx context.Context, h host, memo plan.Memo) *plan.Result {
	id, now := memo[memoJob], k.client.opt.Now()
	path, fault := k.jobsPath(ctx)
	if fault != nil {
		return failedWith(fault)
	}
	d, fault := k.get(ctx, path+"/"+id)
	if isCode(fault, plan.CodeBMCUnsupported) {
		memo[memoJobGone] += "x"
		if len(memo[memoJobGone]) <= jobGoneLooks {
			return waiting(jobPause, "the iDRAC does not show job "+id+" yet", memo)
		}
		return nil // finished and forgotten: the value tells
	}
	if fault != nil {
		return failedWith(fault)
	}
	j := job{d}
	switch {
	case j.state() == "Completed":
		return nil
	case !j.open():
		return failedWith(k.fault(plan.CodeBMCRefused, request{method: "GET", path: d.path}, "job %s of the iDRAC of %s ended with %s", id, k.device, j.state()).With("answer", k.clean(j.words())).With("message_id", j.text("MessageId")))
	case j.state() == "Scheduled" && strings.Contains(j.words(), stuck):
		return k.dropJob(ctx, j, "will never run: "+j.words())
	case j.state() == "Scheduled":
		return k.carryIn(ctx, h, j, memo)
	case j.queued():
		since := memoTime(memo, memoJobSince)
		if since.IsZero() {
			since = now
			memo[memoJobSince] = now.Format(time.RFC3339Nano)
		}
		if now.Sub(since) >= scheduleLimit {
			return k.dropJob(ctx, j, "was not scheduled within "+scheduleLimit.String())
		}
		return waiting(jobPause, "job "+id+" is "+j.state()+"; the host is not reset before it is scheduled", memo)
	}
	return waiting(bootPause, "job "+id+" is "+j.state()+" ("+j.words()+")", memo)
}

// carryIn resets the host for a scheduled job, once all others of the device are
// scheduled too: a boot walks past a job that is not, and it refuses every later
// change.
func (k *conn) carryIn(ctx context.Context, h host, j job, memo plan.Memo) *plan.Result {
	jobs, fault := k.openJobs(ctx)
	if fault != nil {
		return failedWith(fault)
	}
	if k.carried[j.id()] && memo[memoReset] == "" { // by the reset of another step of the device
		k.lastReset.into(memo)
		memo[memoStaged] = memo[memoReset]
	}
	was := k.lastReset
	for _, other := range jobs {
		if other.queued() && other.state() != "Scheduled" && memoTime(memo, memoReset).IsZero() {
			return waiting(jobPause, "job "+other.id()+" is "+other.state()+"; the host is not reset before it is scheduled", memo)
		}
	}
	r := k.reboot(ctx, h, memo, "job "+j.id()+" is scheduled")
	if k.lastReset != was {
		k.carried = map[string]bool{}
		for _, other := range jobs {
			k.carried[other.id()] = true
		}
	}
	if r != nil {
		return r
	}
	if k.client.opt.Now().Sub(memoTime(memo, memoReset)) > pickUpLimit {
		return k.dropJob(ctx, j, "was not begun within "+pickUpLimit.String()+" after the host's reset")
	}
	return waiting(bootPause, "the host was reset; job "+j.id()+" has not begun", memo)
}

// dropJob deletes a job that will never run, so that a later run can store its
// values again, and ends the step.
func (k *conn) dropJob(ctx context.Context, j job, why string) *plan.Result {
	f := k.fault(plan.CodeBMCRefused, request{method: "GET", path: j.path}, "job %s of the iDRAC of %s %s", j.id(), k.device, why).
		WithHint("The job was deleted; nothing waits for a boot. Look at the Lifecycle Controller's log, then plan again.").With("answer", k.clean(j.words()))
	if fault := k.deleteJob(ctx, j.id()); fault != nil {
		f = f.WithHint("The job could not be deleted: delete it in the iDRAC's job queue, or every later change is refused.").With("deletion", fault.Error())
	}
	return failedWith(f)
}

func (k *conn) deleteJob(ctx context.Context, id string) *plan.Fault {
	m, fault := k.manager(ctx)
	if fault != nil {
		return fault
	}
	service := m.link("Links", "Oem", "Dell", "DellJobService")
	if service == "" {
		return k.lacks(m, "job service")
	}
	_, fault = k.ask(ctx, http.MethodPost, strings.TrimSuffix(resolve(service), "/")+"/Actions/DellJobService.DeleteJobQueue", map[string]any{"JobID": id})
	return fault
}
