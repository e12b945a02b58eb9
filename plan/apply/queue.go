package apply

import (
	"container/heap"
	"slices"
	"time"
)

// queue holds jobs; the first one is the least by the given order.
type queue struct {
	jobs []*job
	less func(a, b *job) bool
}

// byIndex is the plan's order.
func byIndex(a, b *job) bool { return a.index < b.index }

// byDue is the order in which pauses end; equal ends keep the plan's order.
func byDue(a, b *job) bool {
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return a.index < b.index
}

func (q *queue) Len() int           { return len(q.jobs) }
func (q *queue) Less(i, j int) bool { return q.less(q.jobs[i], q.jobs[j]) }
func (q *queue) Swap(i, j int)      { q.jobs[i], q.jobs[j] = q.jobs[j], q.jobs[i] }
func (q *queue) Push(x any)         { q.jobs = append(q.jobs, x.(*job)) } //nolint:forcetypeassert // put is the only caller

// Pop is heap.Interface's.
func (q *queue) Pop() any {
	last := len(q.jobs) - 1
	j := q.jobs[last]
	q.jobs[last] = nil
	q.jobs = q.jobs[:last]
	return j
}

func (q *queue) put(j *job) { heap.Push(q, j) }

// take removes the first job; nil when there is none.
func (q *queue) take() *job {
	if len(q.jobs) == 0 {
		return nil
	}
	return heap.Pop(q).(*job) //nolint:forcetypeassert // only jobs are put in
}

// first is the job that take would give.
func (q *queue) first() *job {
	if len(q.jobs) == 0 {
		return nil
	}
	return q.jobs[0]
}

// expired takes out, in order, every job whose pause has ended.
func (q *queue) expired(now time.Time) []*job {
	var out []*job
	for q.first() != nil && !q.first().due.After(now) {
		out = append(out, q.take())
	}
	return out
}

// keep drops all jobs but those.
func (q *queue) keep(those func(*job) bool) {
	q.jobs = slices.DeleteFunc(q.jobs, func(j *job) bool { return !those(j) })
	heap.Init(q)
}
