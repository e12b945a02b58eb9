package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
)

// shape is how a plan is printed.
type shape struct {
	format   string
	full     bool
	maxBytes int
}

func (s *shape) flags(cmd *cobra.Command) {
	s.forms(cmd, "text, json, markdown or html", "text", "json", "markdown", "html")
	cmd.Flags().IntVar(&s.maxBytes, "max-bytes", view.MaxMarkdown, "largest size of the Markdown form")
}

// forms are the flags of a command that prints a plan in these forms.
func (s *shape) forms(cmd *cobra.Command, usage string, forms ...string) {
	cmd.Flags().StringVar(&s.format, "format", "text", usage)
	cmd.Flags().BoolVar(&s.full, "full", false, "show long values whole and passed checks in detail")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func (s *shape) check() error {
	if s.format == "markdown" && s.maxBytes < view.MinMarkdown {
		return usageError{fmt.Errorf("--max-bytes wants at least %d: the head of a plan takes that", view.MinMarkdown)}
	}
	switch s.format {
	case "text", "json", "markdown", "html":
		return nil
	}
	return usageError{fmt.Errorf("--format is text, json, markdown or html, not %q", s.format)}
}

func (a *app) print(p *plan.Plan, s shape) error {
	switch s.format {
	case "json":
		raw, err := plan.Encode(p)
		if err != nil {
			return err
		}
		_, err = a.sys.stdout.Write(raw)
		return err
	case "markdown":
		return view.Markdown(a.sys.stdout, p, s.maxBytes)
	case "html":
		return view.HTML(a.sys.stdout, p)
	}
	return view.Text(a.sys.stdout, p, view.TextOptions{Color: a.sys.color(), Full: s.full, Width: a.sys.width})
}

type showFlags struct {
	shape
	selectFlags
	hash bool
	out  string
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show PLANFILE", Short: "Print a plan file, or derive a smaller one",
		Long: "Prints a plan file. With --select and --exclude it is the smaller plan that the same flags of enroll plan would\n" +
			"have made, with an id and a hash of its own and the life of the whole one; --out writes it for enroll apply.\n" +
			"What a policy denied stays denied in it.",
		Example: "  enroll show gpu-017.plan --format markdown\n  enroll show gpu-017.plan --select 'kind:bmc.*' --out bmc.plan\n  enroll show gpu-017.plan --hash",
		Args:    exactlyOne("one plan file"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.show(f, args[0]) },
	}
	f.flags(cmd)
	f.register(cmd, "select")
	cmd.Flags().BoolVar(&f.hash, "hash", false, "print the content hash and no more; it is what enroll apply --expect wants")
	cmd.Flags().StringVar(&f.out, "out", "", "also write the smaller plan to this file")
	return cmd
}

func (a *app) show(f showFlags, path string) error {
	if err := errors.Join(f.shape.check(), f.selectFlags.check()); err != nil {
		return err
	}
	if f.out != "" && f.selection().None() {
		return usageError{errors.New("--out writes what --select or --exclude leave; a copy of a plan file is the same plan")}
	}
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	if !f.selection().None() {
		if p, err = derive(p, f.selectFlags); err != nil {
			return err
		}
	}
	if f.out != "" {
		if err := writePlan(f.out, p, nil); err != nil {
			return err
		}
	}
	if f.hash {
		_, err := fmt.Fprintln(a.sys.stdout, p.ContentHash)
		return err
	}
	return a.print(p, f.shape)
}

// derive makes a smaller plan with an id of its own.
func derive(p *plan.Plan, f selectFlags) (*plan.Plan, error) {
	addresses := make([]plan.Address, 0, len(p.Steps))
	for _, s := range p.Steps {
		addresses = append(addresses, s.Address)
	}
	if err := f.fit(addresses); err != nil {
		return nil, err
	}
	small, err := p.Select(f.selection())
	if err != nil {
		return nil, usageError{err}
	}
	small.PlanID, err = newID()
	return small, err
}

// maxPlanFile bounds what is read as a plan: the 30,000 steps of 2,000 fresh devices take about 40 MB.
const maxPlanFile = 64 << 20

// readPlan reads and proves a plan file.
func readPlan(path string) (*plan.Plan, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("there is no plan file %q", path)}
	}
	if err != nil {
		return nil, plan.NewFault(plan.CodePlanInvalid, "the plan file cannot be read").Because(err)
	}
	if !info.Mode().IsRegular() {
		return nil, plan.NewFault(plan.CodePlanInvalid, "%s is no regular file", path)
	}
	if info.Size() > maxPlanFile {
		return nil, plan.NewFault(plan.CodePlanInvalid, "%s has %d bytes; no plan is that large", path, info.Size())
	}
	if info.Mode().Perm()&0o026 != 0 {
		can := "written"
		if info.Mode().Perm()&0o022 == 0 {
			can = "read"
		}
		return nil, plan.NewFault(plan.CodePlanInvalid, "%s can be %s by others than its owner (mode %04o)", path, can, info.Mode().Perm()).
			WithHint("Make a new plan in a place that only you can use, or chmod 0600 it if you know who wrote it.")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, plan.NewFault(plan.CodePlanInvalid, "the plan file cannot be read").Because(err)
	}
	p, err := plan.Decode(raw)
	if err != nil {
		return nil, plan.AsFault(err).With("file", path)
	}
	return p, nil
}

// writePlan writes a plan file, once check has nothing against its bytes.
func writePlan(path string, p *plan.Plan, check func([]byte) error) error {
	raw, err := plan.Encode(p)
	if err == nil && check != nil {
		if fault := check(raw); fault != nil {
			return fault
		}
	}
	if err == nil {
		err = writeFile(path, raw)
	}
	if err != nil {
		return fmt.Errorf("the plan could not be written: %w", err)
	}
	return nil
}

// writeFile writes a file whole or not at all, mode 0600.
func writeFile(path string, raw []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file; it would be replaced", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".enroll-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone after the rename
	if _, err := tmp.Write(raw); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Sync(); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
