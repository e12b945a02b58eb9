package dhcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// The lock on the server keeps two runs from writing at once. It is a file that
// is made under another name and gets its own by a rename that replaces nothing
// (SSH_FXP_RENAME), so that it is never seen without its content. Whoever holds
// it touches it from time to time; one that was not touched for as long as its
// lease is given up, and may be taken over. All times are the server's.
const lockName = ".enroll-lock"

const (
	leastLease = 5 * time.Minute
	mostLease  = 6 * time.Hour
	lockPause  = 2 * time.Second // between two looks at a lock that somebody holds
)

// Holder says who holds a lock.
type Holder struct {
	Owner string    `json:"owner"` // account and host that enroll runs on, and its process
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Plan  string    `json:"plan,omitempty"`
	Since time.Time `json:"since"`
	Lease string    `json:"lease"`
	Token string    `json:"token"`
	// Age is how long ago the holder last showed that it lives.
	Age time.Duration `json:"-"`
}

// String names the holder for people.
func (h Holder) String() string {
	if h.Token == "" {
		return "an unknown holder"
	}
	text := fmt.Sprintf("%s@%s (process %d", h.Owner, h.Host, h.PID)
	if h.Plan != "" {
		text += ", plan " + h.Plan
	}
	return text + ", since " + h.Since.UTC().Format(time.RFC3339) + ")"
}

// lease is how long the holder may be silent.
func (h Holder) lease(least time.Duration) time.Duration {
	if d, err := time.ParseDuration(h.Lease); err == nil && d > 0 && d <= mostLease {
		return d
	}
	return least
}

// leaseOf is longer than any two exchanges: who found the lock to be its own
// may finish what it began with this look.
func leaseOf(s plan.DHCPSettings) time.Duration {
	return min(max(leastLease, 2*(s.Timeouts.Command+s.Timeouts.Transfer)), mostLease)
}

func parseHolder(content string) Holder {
	var h Holder
	if err := json.Unmarshal([]byte(content), &h); err != nil {
		return Holder{}
	}
	return h
}

func (p *Provider) lockPath() string { return path.Join(p.settings.Directory, lockName) }

// What a step remembers about the lock.
const (
	memoLockSince = "waits for the lock since" // the server's clock in seconds
	memoLock      = "lock"                     // the token, so that another process can go on with it
)

var tokenForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// locked sees to it that the lock is this run's before a step goes on. The
// result is what the step answers when it is not, nil when it is.
func (p *Provider) locked(ctx context.Context, l *link, memo plan.Memo) (*plan.Result, *plan.Fault) {
	if token := memo[memoLock]; p.token == "" && tokenForm.MatchString(token) {
		p.token = token
	}
	held, note, f := p.acquire(ctx, l)
	switch {
	case f != nil:
		return nil, f
	case held != nil:
		r := p.wait(*held, memo)
		return &r, nil
	case note != "":
		r := plan.Wait(lockPause, note, remember(memo))
		return &r, nil
	}
	return nil, nil
}

// remember copies a memo, so that there is one.
func remember(memo plan.Memo) plan.Memo {
	next := maps.Clone(memo)
	if next == nil {
		next = plan.Memo{}
	}
	return next
}

// busy is a lock that somebody else holds.
type busy struct {
	holder  Holder
	now     time.Time // of the server
	expired string    // what is said of a lock that had expired, and went to the holder
}

// acquire takes the lock, or finds that this run has it. note says that it was
// taken over from somebody.
func (p *Provider) acquire(ctx context.Context, l *link) (held *busy, note string, f *plan.Fault) {
	if p.held {
		return nil, "", nil
	}
	if p.token == "" {
		if p.token, f = p.random(8); f != nil {
			return nil, "", f
		}
	}
	mine := Holder{
		Owner: p.options.Owner.Owner, Host: p.options.Owner.Host, PID: p.options.Owner.PID, Plan: p.options.Owner.Plan,
		Since: p.options.Now().UTC().Truncate(time.Second), Lease: leaseOf(p.settings).String(), Token: p.token,
	}
	content, err := json.Marshal(mine)
	if err != nil {
		return nil, "", plan.NewFault(plan.CodeInternal, "the lock's content cannot be written").Because(err)
	}
	suffix, f := p.random(8)
	if f != nil {
		return nil, "", f
	}
	claim := p.lockPath() + ".enroll-" + suffix
	var other, expired Holder
	var now time.Time
	got := false
	f = p.transfer(ctx, l, "taking the lock "+p.lockPath(), func(files *sftp.Client) error {
		defer func() {
			if !got && gone(files.Remove(claim)) != nil {
				p.litter = append(p.litter, claim)
			}
		}()
		f, err := p.create(files, claim, string(content)+"\n", previous{mode: modeNew})
		if f == nil {
			return err
		}
		if closeErr := f.Close(); err == nil {
			err = stage("close", closeErr)
		}
		if err != nil {
			return p.explain(files, err)
		}
		for range 2 {
			if got = files.Rename(claim, p.lockPath()) == nil; got {
				return nil
			}
			info, err := files.Stat(claim)
			if err != nil {
				return stage("stat "+claim, err)
			}
			now = info.ModTime()
			var text string
			other, text, err = p.lookAtLock(files, now)
			switch {
			case errors.Is(err, fs.ErrNotExist): // released in this moment
				continue
			case err != nil:
				return err
			case other.Token == p.token: // an answer was lost, or another process goes on
				got = true
				return gone(files.Remove(claim))
			case other.Age <= other.lease(leaseOf(p.settings)):
				return nil
			}
			// Two that find it expired move it to the same name: one of them alone can,
			// and nobody's fresh lock can be moved there after it. It is made young first,
			// or the heir would sweep it up as old litter and so open that name again.
			grave := p.lockPath() + ".enroll-" + hash(text)[:16]
			expired = other
			if err := files.Chtimes(p.lockPath(), now, now); err != nil {
				continue // gone in this moment
			}
			_ = files.Rename(p.lockPath(), grave) // the next try to get the name finds out
		}
		return nil
	})
	if f != nil {
		return nil, "", f
	}
	if expired.Age > 0 {
		note = fmt.Sprintf("the lock of %s was taken over: its last sign of life is %s old", expired, expired.Age.Round(time.Second))
	}
	if !got {
		return &busy{other, now, note}, "", nil
	}
	p.hold()
	return nil, note, nil
}

// wait answers for a step that does not get the lock.
func (p *Provider) wait(b busy, memo plan.Memo) plan.Result {
	next := remember(memo)
	if next[memoLockSince] == "" {
		next[memoLockSince] = strconv.FormatInt(b.now.Unix(), 10)
	}
	since, err := strconv.ParseInt(next[memoLockSince], 10, 64)
	if err != nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "the time %q is none", next[memoLockSince]))
	}
	if waited := b.now.Sub(time.Unix(since, 0)); waited >= p.options.LockTimeout {
		return plan.Failed(plan.NewFault(plan.CodeDHCPLockHeld, "%s is locked by %s", p.settings.Directory, b.holder).
			With("server", p.address).With("last sign of life", b.holder.Age.Round(time.Second).String()+" ago").With("lease", b.holder.lease(leaseOf(p.settings)).String()).
			With("waited", waited.Round(time.Second).String()).
			WithHint("Wait for that run to end. If it is known to be dead: enroll doctor --break-dhcp-lock, or wait for the lease to end."))
	}
	text := "waits for the lock of " + b.holder.String()
	if b.expired != "" {
		text += "; " + b.expired
	}
	return plan.Wait(lockPause, text, next)
}

// lookAtLock reads who holds the lock, and how long ago it was touched: both of
// the file that was opened, which may be replaced meanwhile.
func (p *Provider) lookAtLock(files *sftp.Client, now time.Time) (Holder, string, error) {
	f, err := files.Open(p.lockPath())
	if err != nil {
		return Holder{}, "", err
	}
	info, err := f.Stat()
	var raw []byte
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(f, maxFile))
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Holder{}, "", err
	}
	h := parseHolder(string(raw))
	h.Age = now.Sub(info.ModTime())
	return h, string(raw), nil
}

// hold notes that the lock is this run's and keeps it alive until it is
// released.
func (p *Provider) hold() {
	p.held = true
	p.mu.Lock()
	p.beating = true
	p.mu.Unlock()
	p.beat()
}

// beat arms the next sign of life.
func (p *Provider) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beating {
		p.stopBeat = p.options.After(leaseOf(p.settings)/4, p.signOfLife)
	}
}

func (p *Provider) signOfLife() {
	select {
	case <-p.turn:
		if p.held && p.link != nil {
			ctx, cancel := context.WithTimeout(context.Background(), p.settings.Timeouts.Command)
			_ = p.owned(ctx, p.link) // the next exchange finds the same, and has somebody to tell
			cancel()
		}
		p.turn <- struct{}{}
	default: // an exchange is under way, and it looks at the lock itself
	}
	p.beat()
}

// silence ends the signs of life.
func (p *Provider) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating = false
	if p.stopBeat != nil {
		p.stopBeat()
	}
}

// lockPart touches the lock when it is this run's; its status tells.
func (p *Provider) lockPart() part {
	return part{"lock", "grep -q " + p.token + " " + lockName + " && touch " + lockName}
}

// lost is the fault of a run that finds its lock taken over.
func (p *Provider) lost(a answer) *plan.Fault {
	if a.sections["lock"].status == 0 {
		return nil
	}
	p.held = false
	p.silence()
	return plan.NewFault(plan.CodeDHCPLockHeld, "the lock on %s is no longer this run's: it was broken, or taken over after a long silence", p.settings.Directory).
		With("server", p.address).WithHint("Nothing was written after that. Run enroll again.")
}

// owned looks whether the lock is still this run's, and touches it.
func (p *Provider) owned(ctx context.Context, l *link) *plan.Fault {
	a, f := p.run(ctx, l, "looking at the lock", p.settings.Directory, []part{p.lockPart()})
	if f != nil {
		return f
	}
	return p.lost(a)
}

// release gives the lock back. While that fails it stays this run's: Close tries
// once more, and after that it is given up by its lease. seen says that the command
// before found it to be this run's, and touched it.
func (p *Provider) release(ctx context.Context, l *link, seen bool) *plan.Fault {
	if !p.held {
		return nil
	}
	p.silence()
	f := p.transfer(ctx, l, "releasing "+p.lockPath(), func(files *sftp.Client) error {
		var err error
		h := Holder{Token: p.token}
		if !seen {
			h, _, err = p.lookAtLock(files, time.Time{})
		}
		switch {
		case err == nil && h.Token == p.token:
			err = files.Remove(p.lockPath())
		case err == nil && h.Token == "":
			err = errors.New("the lock that was read is none of enroll's")
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody broke it, or an earlier try came through
		}
		return err
	})
	p.held = f != nil
	return f
}

// holderParts look who holds the lock, and when it was last touched.
func holderParts() []part {
	return []part{{"lock", `grep -HaZ "" -- ` + lockName}, {"touched", "stat -c %Y " + lockName}, {"now", "date +%s.%N"}}
}

// holderOf reads their answer; false when there is no lock.
func holderOf(a answer) (Holder, bool) {
	if a.sections["touched"].status != 0 {
		return Holder{}, false
	}
	text := parseLines(a.sections["lock"].body)[lockName]
	h := parseHolder(text)
	if h.Token == "" {
		h.Owner = strings.TrimSpace(excerpt(text))
	}
	touched, err := strconv.ParseInt(strings.TrimSpace(a.sections["touched"].body), 10, 64)
	now, _, _ := strings.Cut(a.sections["now"].body, ".")
	if seconds, nowErr := strconv.ParseInt(now, 10, 64); err == nil && nowErr == nil {
		h.Age = time.Duration(max(0, seconds-touched)) * time.Second
	}
	return h, true
}

// LockHolder says who holds the lock; false when nobody does. It changes
// nothing.
func (p *Provider) LockHolder(ctx context.Context) (holder Holder, held bool, f *plan.Fault) {
	f = p.exchange(ctx, func(l *link) *plan.Fault {
		a, f := p.run(ctx, l, "looking at the lock", p.settings.Directory, holderParts())
		if f == nil {
			holder, held = holderOf(a)
		}
		return f
	})
	return holder, held, f
}

// BreakLock takes the lock from a holder that LockHolder named; another one's is
// left alone, and one that is gone is no fault. It is for people who know that
// the holder is dead.
func (p *Provider) BreakLock(ctx context.Context, holder Holder) *plan.Fault {
	return p.exchange(ctx, func(l *link) *plan.Fault {
		return p.transfer(ctx, l, "breaking "+p.lockPath(), func(files *sftp.Client) error {
			now, _, err := p.lookAtLock(files, time.Time{})
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return stage("read", err)
			case now.Token != holder.Token:
				return plan.NewFault(plan.CodeDHCPLockHeld, "the lock on %s has another holder by now: %s", p.settings.Directory, now).
					WithHint("Look again who holds it.")
			}
			return stage("remove", files.Remove(p.lockPath()))
		})
	})
}
