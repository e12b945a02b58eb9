package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// classConfig is the class of steps without an effect: they change a setting and
// no more.
const classConfig = "config"

// approvable lists what --approve takes beside policies.
func approvable() string { return strings.Join(classNames(), ", ") }

func classNames() []string {
	names := []string{classConfig}
	for _, e := range plan.Effects() {
		names = append(names, string(e))
	}
	return names
}

// classes are the classes of effects among what --approve names.
func classes(approved []string) []string {
	var out []string
	for _, name := range approved {
		if slices.Contains(classNames(), name) {
			out = append(out, name)
		}
	}
	return out
}

// approveClasses approves a plan whose steps have none but these effects.
func approveClasses(w io.Writer, p *plan.Plan, allowed []string) error {
	missing := map[string][]string{}
	for _, s := range p.Steps {
		if s.Blocked != nil || !s.Action.Mutates() {
			continue
		}
		if len(s.Effects) == 0 && !slices.Contains(allowed, classConfig) {
			missing[classConfig] = append(missing[classConfig], s.Address.String())
		}
		for _, e := range s.Effects {
			if !slices.Contains(allowed, string(e)) {
				missing[string(e)] = append(missing[string(e)], s.Address.String())
			}
		}
	}
	if len(missing) == 0 {
		fmt.Fprintf(w, "Approved by --approve %s: %s\n", strings.Join(allowed, ","), stakes(p))
		return nil
	}
	var lacking []string
	f := plan.NewFault(plan.CodeNotApproved, "")
	for _, class := range classNames() {
		if at := missing[class]; at != nil {
			lacking = append(lacking, class)
			f = f.With(class, someOf(at))
		}
	}
	f.Summary = "the plan does more than --approve allows: " + strings.Join(lacking, ", ") + "; nothing was done"
	return f.WithHint("Review the plan, then allow that too: --approve %s.", strings.Join(append(slices.Clone(allowed), lacking...), ","))
}

// someOf lists the first few of many.
func someOf(addresses []string) string {
	const few = 5
	if len(addresses) <= few {
		return strings.Join(addresses, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(addresses[:few], ", "), len(addresses)-few)
}

// approve asks the person at the terminal. The words to type grow with what is
// at stake.
func (a *app) approve(ctx context.Context, w io.Writer, p *plan.Plan, f applyFlags) error {
	switch {
	case f.resumed != nil:
		fmt.Fprintf(w, "%s\n", continued(*f.resumed, a.sys.now()))
		return nil
	case f.expect != "":
		fmt.Fprintf(w, "Approved by --expect %s: %s\n", f.expect, stakes(p))
		return nil
	case f.autoApprove:
		fmt.Fprintf(w, "Approved by --auto-approve, whatever it does: %s\n", stakes(p))
		return nil
	case len(classes(f.approved)) > 0:
		return approveClasses(w, p, classes(f.approved))
	}
	if !a.sys.terminal {
		return usageError{errors.New("nobody can be asked here: stdin or stdout is no terminal; review the plan and say what it may do (--approve config,reboot), which content it has to have (--expect HASH), or --auto-approve")}
	}
	want := "yes"
	if p.Summary.HostReboots > 0 {
		want = strconv.Itoa(p.Summary.HostReboots)
		fmt.Fprintf(w, "%s\nType the number of hosts that will reboot to apply this plan: ", stakes(p))
	} else {
		fmt.Fprintf(w, "%s\nType yes to apply this plan: ", stakes(p))
	}
	return a.answered(ctx, want)
}

// answered reads a line of the person at the terminal, and wants these words.
func (a *app) answered(ctx context.Context, want string) error {
	if a.answers == nil {
		a.answers = bufio.NewReader(a.sys.stdin) // one for all questions: it reads ahead
	}
	answers := make(chan string, 1)
	go func() {
		answer, _ := a.answers.ReadString('\n') // no answer is "", which approves nothing
		answers <- answer
	}()
	var answer string
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return plan.NewFault(plan.CodeInterrupted, "interrupted before the plan was approved; nothing was done")
	}
	if strings.TrimSpace(answer) != want {
		return plan.NewFault(plan.CodeNotApproved, "%q was wanted, %q was typed", want, strings.TrimSpace(answer))
	}
	return nil
}

// stakes names what a plan costs.
func stakes(p *plan.Plan) string {
	s := p.Summary
	return fmt.Sprintf("%s, %s, %s.",
		counted(s.HostReboots, "host reboots", "hosts reboot"),
		counted(s.DiskErases, "host loses the content of its disks", "hosts lose the content of their disks"),
		counted(s.ServiceRestarts, "shared service restarts or reloads", "shared services restart or reload"))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
