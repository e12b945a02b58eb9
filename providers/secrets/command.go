package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/1Password/connect-sdk-go/onepassword"

	"github.com/enroll-dev/enroll/plan"
)

// itemWord is what stands for the item's name in an argument.
const itemWord = "{item}"

// command runs a program that prints secrets as JSON: for op, sops, or a script
// around pass. There is no shell. An argument with {item} makes it run once for
// each item and print that item; without, it runs once and prints all items.
type command struct {
	argv  []string
	limit time.Duration
	runs  atomic.Int64

	memory memory // of a command that prints one item

	mu    sync.Mutex
	items map[string]*entry // of a command that prints all; nil before it has run
}

func newCommand(s plan.SecretsSettings, o Options) (*command, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the secrets block names no program")
	}
	return &command{argv: s.Argv, limit: o.Timeout}, nil
}

func (c *command) requests() int { return int(c.runs.Load()) }

func (c *command) perItem() bool {
	for _, arg := range c.argv[1:] {
		if strings.Contains(arg, itemWord) {
			return true
		}
	}
	return false
}

func (c *command) read(ctx context.Context, refs []plan.SecretRef, found *result) {
	if c.perItem() {
		byItem(c.memory.known(refs, found), found, c.memory.reading(func(name string) (*entry, *plan.Fault) { return c.one(ctx, name) }))
		return
	}
	items, fault := c.all(ctx)
	byItem(refs, found, func(name string) (*entry, *plan.Fault) {
		switch {
		case fault != nil:
			return nil, fault
		case items[name] == nil:
			return nil, plan.NewFault(plan.CodeSecretMissing, "%s printed no item %q", c.title(), name).
				WithHint("Add the item where the program reads, or correct the reference in the site file.")
		}
		return items[name], nil
	})
}

// all runs the command for all items, unless it has run. A run without an answer
// may be tried again.
func (c *command) all(ctx context.Context) (map[string]*entry, *plan.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items != nil {
		return c.items, nil
	}
	out, f := c.run(ctx, c.argv)
	if f != nil {
		return nil, f
	}
	var printed map[string]json.RawMessage
	if err := json.Unmarshal(out, &printed); err != nil || printed == nil {
		return nil, c.strange(`{"ITEM": {"FIELD": "value"}}`)
	}
	items := map[string]*entry{}
	for name, raw := range printed {
		if e := printedEntry(name, raw); e != nil {
			items[name] = e
		} // what is no item is left out; it is missed when it is asked for
	}
	c.items = items
	return items, nil
}

// one runs the command for one item.
func (c *command) one(ctx context.Context, name string) (*entry, *plan.Fault) {
	if strings.HasPrefix(name, "-") {
		// It may come from NetBox, and the program would take it for an option.
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the item %q begins with a hyphen, which %s would take for an option", name, c.title())
	}
	argv := make([]string, len(c.argv))
	for i, arg := range c.argv {
		argv[i] = arg
		if i > 0 {
			argv[i] = strings.ReplaceAll(arg, itemWord, name)
		}
	}
	out, f := c.run(ctx, argv)
	if f != nil {
		if f.Code == plan.CodeSecretInvalid {
			f.Summary += " for item " + strconv.Quote(name)
		}
		return nil, f
	}
	e := printedEntry(name, out)
	if e == nil {
		return nil, c.strange(`{"FIELD": "value"}`)
	}
	return e, nil
}

// printedEntry reads an object of texts, or an item as `op item get --format json`
// prints it. Nil: it is neither.
func printedEntry(name string, raw []byte) *entry {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil
	}
	if list := bytes.TrimSpace(fields["fields"]); len(list) > 0 && list[0] == '[' {
		var item onepassword.Item
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil
		}
		return itemEntry(name, &item)
	}
	return &entry{fields: fields}
}

func (c *command) title() string { return "the program " + c.argv[0] }

func (c *command) strange(form string) *plan.Fault {
	return plan.NewFault(plan.CodeSecretInvalid, "%s did not print what a secrets command prints", c.title()).
		WithHint("Its standard output must be one JSON object: %s, or an item as `op item get --format json` prints it.", form)
}

// run runs the program and gives its standard output. What it writes to standard
// error is not kept: a script that shows its own lines shows secrets there.
func (c *command) run(ctx context.Context, argv []string) ([]byte, *plan.Fault) {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	out := &bounded{left: maxAnswer}
	cmd := exec.CommandContext(limited, argv[0], argv[1:]...) //nolint:gosec // the site file names the program; no shell takes part
	cmd.Stdout = out
	cmd.WaitDelay = time.Second // for children that keep the pipe open
	c.runs.Add(1)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, interrupted()
	case limited.Err() != nil:
		return nil, plan.NewFault(plan.CodeSecretTimeout, "%s did not end within %s", c.title(), c.limit).
			WithHint("Run it by hand: it may wait for a password. timeout in the secrets block is the limit.")
	case out.full:
		return nil, plan.NewFault(plan.CodeSecretInvalid, "%s prints more than %d bytes", c.title(), maxAnswer)
	case errors.As(err, &exit):
		return nil, plan.NewFault(plan.CodeSecretInvalid, "%s failed (%s)", c.title(), exit.ProcessState).
			WithHint("Run it by hand with the same arguments and environment to see what it says.")
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, plan.NewFault(plan.CodeSecretInvalid, "%s left something running that keeps its output open", c.title())
	case err != nil:
		return nil, plan.NewFault(plan.CodeConfigInvalid, "%s cannot be run", c.title()).Because(err).
			WithHint("Correct argv in the secrets block, or install the program.")
	}
	return out.text.Bytes(), nil
}

// bounded takes so many bytes and drops the rest, so that a program which never
// stops writing is ended by its time limit and not by the machine's memory.
type bounded struct {
	text bytes.Buffer
	left int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if n > b.left {
		p, b.full = p[:b.left], true
	}
	b.left -= len(p)
	b.text.Write(p)
	return n, nil
}
