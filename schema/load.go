package schema

import (
	"io/fs"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/enroll-dev/enroll/plan"
)

// Options are what a folder's meaning depends on beside its files.
type Options struct {
	// Vars are the values given for variables on the command line, by name. They
	// win over VarFiles, and those over Env, the values of the environment.
	Vars map[string]string
	// VarFiles are files of lines NAME = VALUE (with the ending .json: one object).
	// Later ones win.
	VarFiles []string
	// Env are the values of variables ENROLL_VAR_NAME, by NAME.
	Env map[string]string
	// Version is the program's own version, for required_version. Empty: the
	// constraint's form is checked only.
	Version string
	// Now is when the folder is read, for dates that have passed. Zero: none is
	// judged.
	Now time.Time
	// Files are read instead of the folder, which then only names them.
	Files fs.FS
}

// File is a folder that was read without a mistake. It is not changed after
// Load, so that many devices may be evaluated at once.
type File struct {
	site *plan.Site
	bmc  *rawBlock // nil: no bmc block
	// perDevice are its attributes that are evaluated for each device, uses the
	// attributes of device that they use.
	perDevice []*rawAttr
	uses      map[string]bool
	sources   map[string]*source
	flowing   map[string]bool // as in reporter
	scope     *scope
	root      *rawBlock // all folders, merged and evaluated
}

// Load reads all *.hcl and *.hcl.json files of a folder as one. The File is nil when a
// diagnostic is an error; warnings may come beside a File.
func Load(dir string, opts Options) (*File, Diagnostics) {
	r := newReporter()
	r.now = opts.Now
	folders := r.layers(dir, opts)
	if folders.unfit || len(folders.trees) == 0 {
		return nil, r.finish()
	}
	r.flow()
	root := folders.trees[0]
	for _, over := range folders.trees[1:] {
		r.merge(root, over)
	}
	r.checkRequired(root)
	sc := r.newScope(root, opts)
	for _, b := range root.named("site") {
		r.evaluateBlock(b, sc)
	}
	file := &File{sources: r.sources, flowing: r.flowing, scope: sc, root: root}
	for _, b := range root.named("site") { // there is one at most
		file.site = r.site(b)
		file.site.Dir, file.site.Files, file.site.Includes = dir, folders.read, folders.dirs
		for _, bmc := range b.named("bmc") {
			file.bmc, file.perDevice, file.uses = bmc, perDevice(bmc), deviceUses(bmc)
		}
	}
	for _, own := range folders.own {
		read := own.sources()
		if file.site != nil {
			file.site.Files = append(file.site.Files, read...)
		}
	}
	ds := r.finish()
	if ds.HasErrors() {
		return nil, ds
	}
	for _, src := range r.sources {
		src.hiddenSpans() // sorted now: Settings may run in many goroutines
		src.tokens, src.json = nil, nil
	}
	return file, ds
}

// Site is the site as plain data. Do not change it.
func (f *File) Site() *plan.Site { return f.site }

// place is where an attribute stands, as plan.Site.Set says it.
func place(at hcl.Range) string { return fromHCLRange(at).String() }
