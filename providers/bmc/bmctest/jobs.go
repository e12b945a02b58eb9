package bmctest

import (
	"fmt"
	"net/http"
	"strings"
)

// job is a configuration job of an iDRAC.
type job struct {
	id, state string
	polls     int // looks until it is scheduled
	apply     func()
	message   string
}

func (b *BMC) jobsPath() string { return b.managerPath() + "/Oem/Dell/Jobs" }

// openJob is the configuration job that is not over, nil when there is none.
func (b *BMC) openJob() *job {
	for _, j := range b.jobs {
		if j.open() {
			return j
		}
	}
	return nil
}

func (j *job) open() bool { return j.state == "New" || j.state == "Scheduled" || j.state == "Running" }

// addJob commits what is pending.
func (b *BMC) addJob() *job {
	b.nextJob++
	j := &job{id: fmt.Sprintf("JID_%012d", 400000000000+b.nextJob), state: "New", polls: b.machine.Profile.JobPolls}
	j.apply = func() { b.applyBIOS(); b.applyBoot() }
	b.jobs = append(b.jobs, j)
	return j
}

// look moves a job on: the Lifecycle Controller needs a while to schedule it.
func (b *BMC) look(j *job) {
	if j.state != "New" || b.machine.Profile.JobsNeverSchedule || b.inPOST() {
		return
	}
	if j.polls > 0 {
		j.polls--
		return
	}
	j.state = "Scheduled"
}

// startJobs: a boot carries in what is scheduled. What is not, stays behind and
// refuses every later change.
func (b *BMC) startJobs() {
	for _, j := range b.jobs {
		switch j.state {
		case "Scheduled":
			j.state = "Running"
		case "New":
			j.polls = 1 << 30
		}
	}
}

func (b *BMC) endJobs() {
	for _, j := range b.jobs {
		if j.state != "Running" {
			continue
		}
		j.state = "Completed"
		if b.machine.Profile.JobFails {
			j.state, j.message = "Failed", "Unable to apply the configuration."
			continue
		}
		j.apply()
	}
}

func (b *BMC) jobDoc(j *job) object {
	message := map[string][2]string{
		"New": {"JCP000", "Job created."}, "Scheduled": {"JCP001", "Task successfully scheduled."}, "Running": {"PR20", "Job in progress."},
		"Completed": {"PR19", "Job completed successfully."}, "Failed": {"PR21", "Job failed."},
	}[j.state]
	percent := 0
	if j.state == "Completed" || j.state == "Failed" {
		percent = 100
	}
	return object{
		"@odata.id": b.jobsPath() + "/" + j.id, "@odata.type": "#DellJob.v1_4_0.DellJob", "Id": j.id, "Name": "Configure: BIOS.Setup.1-1", "JobState": j.state, "JobType": "BIOSConfiguration",
		"Message": strings.ReplaceAll(message[1], " ", "\u00a0"), "MessageArgs": []any{}, "MessageId": message[0], "PercentComplete": percent,
		"StartTime": "TIME_NOW", "EndTime": "TIME_NA", "CompletionTime": nil, "TargetSettingsURI": nil, "Description": "Job Instance",
	}
}

// jobResource are the queue and its jobs. A reboot job that was never cleared
// stands in it and blocks nothing.
func (b *BMC) jobResource(path string) object {
	if path == b.jobsPath() {
		members := []any{object{
			"@odata.id": path + "/RID_000000000001", "@odata.type": "#DellJob.v1_4_0.DellJob", "Id": "RID_000000000001", "Name": "Reboot3", "JobState": "Running", "JobType": "RebootForce",
			"Message": "Reboot is complete.", "MessageArgs": []any{}, "MessageId": "RED030", "PercentComplete": 100, "StartTime": "TIME_NOW", "EndTime": "TIME_NA", "TargetSettingsURI": nil,
		}}
		for _, j := range b.jobs {
			b.look(j)
			members = append(members, b.jobDoc(j))
		}
		return object{"@odata.id": path, "@odata.type": "#DellJobCollection.DellJobCollection", "Id": "JobQueue", "Name": "JobQueue", "Members": members, "Members@odata.count": len(members)}
	}
	for _, j := range b.jobs {
		if path == b.jobsPath()+"/"+j.id {
			b.look(j)
			return b.jobDoc(j)
		}
	}
	return nil
}

func (b *BMC) deleteJob(w http.ResponseWriter, id string) {
	for i, j := range b.jobs {
		if j.id != id {
			continue
		}
		if j.state == "Running" {
			b.refuse(w, http.StatusBadRequest, "IDRAC.2.8.JCP031", "Unable to delete the job because it is being committed.", "Wait until the job is over.")
			return
		}
		if j.open() {
			b.pendingBIOS, b.pendingOrder, b.pendingOff = map[string]any{}, nil, map[string]bool{}
		}
		b.jobs = append(b.jobs[:i], b.jobs[i+1:]...)
		b.respond(w, http.StatusOK, object{"@Message.ExtendedInfo": []any{info("IDRAC.2.8.SUP020", "The specified job was deleted.", "None", "Informational")}})
		return
	}
	b.refuse(w, http.StatusNotFound, "IDRAC.2.8.SUP011", "The job does not exist.", "Use the id of a job in the queue.")
}

// Jobs lists the states of the configuration jobs, oldest first.
func (b *BMC) Jobs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	var out []string
	for _, j := range b.jobs {
		out = append(out, j.state)
	}
	return out
}

// StageJob leaves a job of somebody else in the queue.
func (b *BMC) StageJob(attributes map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, value := range attributes {
		b.pendingBIOS[name] = value
	}
	b.addJob()
}

// jobLocation answers a change that waits for the next boot.
func (b *BMC) jobLocation(w http.ResponseWriter, j *job) {
	if !b.machine.Profile.NoJobLocation {
		w.Header().Set("Location", b.jobsPath()+"/"+j.id)
	}
	b.respond(w, http.StatusAccepted, object{"@Message.ExtendedInfo": []any{info("IDRAC.2.8.SYS413", "The operation successfully completed.", "No response action is required.", "Informational")}})
}

// committed refuses a change while another waits for the next boot.
func (b *BMC) committed(w http.ResponseWriter) bool {
	if b.openJob() == nil {
		return false
	}
	b.refuse(w, http.StatusBadRequest, "IDRAC.2.8.SYS011", "Pending configuration values are already committed, unable to perform another set operation.", "Wait for the scheduled job to complete or delete the configuration jobs before attempting more set attribute operations.")
	return true
}
