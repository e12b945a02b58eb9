package dhcp

import (
	"context"
	"path"
	"slices"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// Reservations that are asked for while the connection is in use are written
// together by whoever gets it next: five hundred of them cost as many round trips
// as one.

// mostPerBatch keeps the commands that name every file below what a server takes.
const mostPerBatch = 1000

// job is one reservation's step that waits for its turn.
type job struct {
	ctx    context.Context // of the step: it carries the permit
	step   *plan.Step
	memo   plan.Memo
	entry  Entry
	file   upload
	former string // path of the file under a former name, "" when there is none
	result *plan.Result
	done   chan struct{} // closed with the result
}

func (j *job) answer(r plan.Result) {
	if j.result == nil {
		j.result = &r
		close(j.done)
	}
}

func (j *job) fail(f *plan.Fault) { j.answer(plan.Failed(f)) }

// runReservation has a device's file uploaded, with those of others that wait.
func (p *Provider) runReservation(ctx context.Context, step *plan.Step, memo plan.Memo) plan.Result {
	j, f := p.newJob(ctx, step, memo)
	if f != nil {
		return plan.Failed(f)
	}
	p.mu.Lock()
	p.queue = append(p.queue, j)
	p.mu.Unlock()
	entered := false
	f = p.exchange(ctx, func(l *link) *plan.Fault {
		entered = true
		if p.waiting() == 0 {
			return nil // another one's turn served this one too
		}
		jobs, f := p.uploadAll(ctx, l)
		for _, j := range jobs {
			if f == nil { // a defect, but nobody waits for ever
				f = plan.NewFault(plan.CodeInternal, "%s was not answered", j.step.Address)
			}
			j.fail(f)
		}
		return f
	})
	if f != nil && !entered {
		for _, other := range p.takeAfter(j, f) {
			other.fail(f)
		}
	}
	<-j.done
	return *j.result
}

// waiting is how many wait.
func (p *Provider) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// take empties the queue, as far as one exchange can serve it.
func (p *Provider) take() []*job {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), mostPerBatch)
	jobs := p.queue[:n:n]
	p.queue = p.queue[n:]
	return jobs
}

// takeAfter gives those that a fault of the connection ends: all that wait, when
// there is no connection; else the one that got none of the turn.
func (p *Provider) takeAfter(j *job, f *plan.Fault) []*job {
	if f.Code != plan.CodeInterrupted && f.Code != plan.CodeTimeout {
		return p.take()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.queue, j)
	if i < 0 {
		return nil // somebody is at it
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	return []*job{j}
}

// newJob checks that the step is one that this provider plans.
func (p *Provider) newJob(ctx context.Context, step *plan.Step, memo plan.Memo) (*job, *plan.Fault) {
	dir := p.settings.Directory
	at, content := plan.Text(step.After, "path"), plan.Text(step.After, "content")
	j := &job{ctx: ctx, step: step, memo: memo, file: upload{at: at, content: content}, done: make(chan struct{})}
	var err error
	j.entry, err = p.flavour.parse(content, p.settings.Options)
	if err != nil || path.Join(dir, j.entry.Name+p.flavour.extension) != at {
		return nil, plan.NewFault(plan.CodePlanInvalid, "%s: the planned file %q is not one that enroll makes for %s", step.Address, at, dir).Because(err)
	}
	if former := plan.Text(step.Before, "path"); former != "" && former != at {
		if path.Dir(former) != dir || !safeName.MatchString(path.Base(former)) {
			return nil, plan.NewFault(plan.CodePlanInvalid, "%s: the former file %q is not in %s", step.Address, former, dir)
		}
		j.former = former
	}
	return j, nil
}

// uploadAll takes what waits, as late as it can, and gives what it took. Its
// fault is one of the connection; then what was not answered has it.
func (p *Provider) uploadAll(ctx context.Context, l *link) ([]*job, *plan.Fault) {
	held, note, f := p.acquire(ctx, l)
	if f != nil {
		return p.take(), f
	}
	if held != nil || note != "" {
		jobs := p.take()
		for _, j := range jobs {
			if held != nil {
				j.answer(p.wait(*held, j.memo))
			} else {
				j.answer(plan.Wait(lockPause, note, remember(j.memo)))
			}
		}
		return jobs, nil
	}
	fo, had, f := p.survey(ctx, l)
	jobs := p.take()
	if f != nil {
		return jobs, f
	}
	var uploads []*upload
	for _, j := range jobs {
		uploads = append(uploads, &j.file)
	}
	if f := p.before(ctx, l, fo, uploads); f != nil {
		return jobs, f
	}
	var ready []*job
	for _, j := range jobs {
		if f := p.mayReplace(fo, j); f != nil {
			j.fail(f)
			continue
		}
		ready = append(ready, j)
	}
	return jobs, p.uploadReady(ctx, l, fo, had, ready)
}

// survey looks at the folder before it is changed, with the lock held, and at
// what an earlier change left.
func (p *Provider) survey(ctx context.Context, l *link) (*folder, changes, *plan.Fault) {
	parts := []part{p.lockPart(), {"link", "test -h " + p.settings.Directory}, stalePart(), markerPart()}
	a, f := p.run(ctx, l, "looking at the reservations", p.settings.Directory, append(parts, folderParts(p.flavour, p.settings)...))
	if f == nil {
		f = p.lost(a)
	}
	if f == nil && a.sections["link"].status == 0 {
		f = plan.NewFault(plan.CodeDHCPForeignFile, "%s on %s is a symbolic link: what is written there ends somewhere else", p.settings.Directory, p.address).
			WithHint("Name the real folder in the dhcp block, here and in the server's configuration, or put the folder back.")
	}
	if f != nil {
		return nil, changes{}, f
	}
	fo, f := p.folder(a)
	if f != nil {
		return nil, changes{}, f
	}
	p.sweep(ctx, l, a.sections["stale"].body)
	return fo, parseChanges(markerText(a)), nil
}

// uploadReady writes the files of jobs that may be written. When the server's own
// check refuses them together, each is tried alone: one bad entry stops one device.
func (p *Provider) uploadReady(ctx context.Context, l *link, fo *folder, had changes, jobs []*job) *plan.Fault {
	if len(jobs) == 0 {
		return nil
	}
	var uploads []*upload
	var formers []string
	var more changes
	for _, j := range jobs {
		if p.flavour.index == "" && j.former != "" {
			formers = append(formers, path.Base(j.former))
			more.replaced = append(more.replaced, path.Base(j.former))
		}
		if j.file.old.existed && j.file.old.content == j.file.content {
			continue // it stands there already: an answer was lost, or a former file was left
		}
		uploads = append(uploads, &j.file)
		if j.file.old.existed {
			more.replaced = append(more.replaced, j.file.name())
		} else {
			more.created = append(more.created, j.file.name())
		}
	}
	f := p.name(uploads)
	if f != nil {
		return f
	}
	try, f := p.candidate(fo, uploads, nil)
	if f != nil {
		return f
	}
	temps := append(uploads[:len(uploads):len(uploads)], try.temps...)
	if f = p.prepare(ctx, l, temps, had, more); f == nil {
		f = p.proved(ctx, l, uploads, try)
	}
	if f != nil {
		p.discard(ctx, l, temps)
		if f.Code == plan.CodeDHCPRefused && len(jobs) > 1 {
			for _, j := range jobs {
				if f := p.uploadReady(ctx, l, fo, had.with(more), []*job{j}); f != nil {
					j.fail(f)
				}
			}
			return nil
		}
		return f
	}
	allowed := uploads[:0:0]
	var refused []*upload
	for _, j := range jobs {
		if f := plan.Permit(j.ctx); f != nil { //nolint:contextcheck // each job has the permit of its own step
			j.fail(f)
			refused = append(refused, &j.file)
		} else if slices.Contains(uploads, &j.file) {
			allowed = append(allowed, &j.file)
		}
	}
	p.discard(ctx, l, refused)
	if f := p.publish(ctx, l, allowed, try.temps); f != nil {
		p.discard(ctx, l, append(allowed, try.temps...))
		return f
	}
	// A file under a former name goes only after the new one stands.
	if f := p.removeKept(ctx, l, formers); f != nil {
		return f
	}
	for _, j := range jobs {
		j.answer(plan.Done())
	}
	return nil
}

// removeKept removes files whose content the marker keeps.
func (p *Provider) removeKept(ctx context.Context, l *link, names []string) *plan.Fault {
	if len(names) == 0 {
		return nil
	}
	return p.transfer(ctx, l, "removing files under former names", func(files *sftp.Client) error {
		return each(names, func(name string) error {
			return p.explain(files, gone(stage("remove", files.Remove(path.Join(p.settings.Directory, name)))))
		})
	})
}

// mayReplace looks once more at what stands at the path and around it, with the
// lock held, in the moment before it is replaced. The wanted content may stand
// there already.
func (p *Provider) mayReplace(fo *folder, j *job) *plan.Fault {
	at, old := j.file.at, j.file.old
	planned := plan.Text(j.step.Before, "path") == at
	id, ours := p.flavour.owner(old.content)
	switch {
	case j.file.err != nil:
		return p.unreadable(at, j.file.err)
	case old.existed && old.content == j.file.content:
	case planned && (!old.existed || old.content != plan.Text(j.step.Before, "content")):
		return plan.NewFault(plan.CodePlanStale, "%s on %s was changed since it was read", at, p.address).
			With("planned", plan.Text(j.step.Before, "content")).With("found", excerpt(old.content))
	case !planned && old.existed && (!ours || id != j.entry.DeviceID):
		return plan.NewFault(plan.CodeDHCPForeignFile, "%s appeared on %s since the folder was read, and is not the file of NetBox device %d", at, p.address, j.entry.DeviceID).
			With("content", excerpt(old.content))
	}
	return fo.conflict(j.entry, fo.former(j.entry))
}
