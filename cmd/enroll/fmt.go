package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/schema"
)

type fmtFlags struct {
	check, diff, recursive bool
}

func (a *app) fmtCommand() *cobra.Command {
	var f fmtFlags
	cmd := &cobra.Command{
		Use: "fmt [DIR | FILE | -]…", Short: "Write site files in the one form",
		Long: "Rewrites the *.hcl files of a site's folder: indent, alignment, no runs of empty lines. Comments stay.\n" +
			"Prints the names of the files that it changes. With - it reads stdin and writes stdout. Files in the JSON form\n" +
			"(*.hcl.json) are written by programs; they are left alone.",
		Example: "  enroll fmt\n  enroll fmt --recursive sites\n  enroll fmt --check --diff sites/lon14\n  enroll fmt - < site.hcl",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{a.siteDir}
			}
			return a.format(f, args)
		},
		ValidArgsFunction: completeFolders,
	}
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing; exit 2 when a file is not in the form")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "print what changes, as a unified difference; what may be a secret is hidden")
	cmd.Flags().BoolVar(&f.recursive, "recursive", false, "also the folders below")
	return cmd
}

// maxSource is more than any site file may have; schema.Format says so.
const maxSource = 4 << 20

func (a *app) format(f fmtFlags, args []string) error {
	var changed, broken bool
	for _, arg := range args {
		if arg == "-" {
			if len(args) > 1 {
				return usageError{errors.New("- stands alone: stdin is one file")}
			}
			return a.formatStdin(f)
		}
		files, err := siteFiles(arg, f.recursive)
		if err != nil {
			return usageError{err}
		}
		for _, file := range files {
			moved, err := a.formatFile(f, file)
			switch {
			case errors.Is(err, errBadFile):
				broken = true
			case err != nil:
				return err
			}
			changed = changed || moved
		}
	}
	switch {
	case broken:
		return exitStatus(exitConfig)
	case changed && f.check:
		return exitStatus(exitChanges)
	}
	return nil
}

// errBadFile marks a file whose mistakes were printed.
var errBadFile = errors.New("the file has mistakes")

func (a *app) formatStdin(f fmtFlags) error {
	raw, err := io.ReadAll(io.LimitReader(a.sys.stdin, maxSource))
	if err != nil {
		return err
	}
	out, err := a.formatted("stdin", raw)
	switch {
	case errors.Is(err, errBadFile):
		return exitStatus(exitConfig)
	case err != nil:
		return err
	}
	switch {
	case f.diff:
		_, err = io.WriteString(a.sys.stdout, view.Unified("stdin", "stdin (formatted)", schema.Shown(raw), schema.Shown(out)))
	case !f.check:
		_, err = a.sys.stdout.Write(out)
	}
	if err == nil && f.check && !bytes.Equal(raw, out) {
		return exitStatus(exitChanges)
	}
	return err
}

// formatFile reports whether the file was not in the form.
func (a *app) formatFile(f fmtFlags, path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	out, err := a.formatted(path, raw)
	if err != nil || bytes.Equal(raw, out) {
		return false, err
	}
	fmt.Fprintln(a.sys.stdout, path)
	if f.diff {
		if _, err := io.WriteString(a.sys.stdout, view.Unified(path, path+" (formatted)", schema.Shown(raw), schema.Shown(out))); err != nil {
			return true, err
		}
	}
	if f.check {
		return true, nil
	}
	return true, replaceFile(path, out, info.Mode().Perm())
}

func (a *app) formatted(name string, raw []byte) ([]byte, error) {
	out, diags := schema.Format(name, raw)
	if diags.HasErrors() {
		if err := a.printDiagnostics(diags, "text"); err != nil {
			return nil, err
		}
		return nil, errBadFile
	}
	return out, nil
}

// replaceFile writes a file whole or not at all, with the mode that it had. A
// symbolic link keeps leading where it leads.
func replaceFile(path string, raw []byte, mode os.FileMode) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := writeFile(real, raw); err != nil {
		return fmt.Errorf("%s could not be written: %w", path, err)
	}
	return os.Chmod(real, mode)
}

// siteFiles lists what fmt works on: the file itself, or the *.hcl files of a
// folder that are read as a site's.
func siteFiles(arg string, recursive bool) ([]string, error) {
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, fmt.Errorf("there is no file or folder %q", arg)
	case info.Mode().IsRegular() && strings.HasSuffix(arg, ".hcl.json"):
		return nil, fmt.Errorf("%s is in the JSON form, which is written by programs; fmt leaves it alone", arg)
	case info.Mode().IsRegular() && !strings.HasSuffix(arg, ".hcl"):
		return nil, fmt.Errorf("%s is no site file: its name does not end with .hcl", arg)
	case info.Mode().IsRegular():
		return []string{arg}, nil
	case !info.IsDir():
		return nil, fmt.Errorf("%s is neither a file nor a folder", arg)
	}
	var out []string
	err = filepath.WalkDir(arg, func(path string, e fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(e.Name(), ".") && path != arg
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != arg && (hidden || !recursive):
			return fs.SkipDir
		case !hidden && e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".hcl"):
			out = append(out, path)
		}
		return nil
	})
	sort.Strings(out)
	return out, err
}
