package schema

import (
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// Options are what a folder's meaning depends on beside its files.
type Options struct {
	// Vars are the values given for variables, by name.
	Vars map[string]string
	// Version is the program's own version, for required_version. Empty: the
	// constraint's form is checked only.
	Version string
	// Files are read instead of the folder, which then only names them.
	Files fs.FS
}

// File is a folder that was read without a mistake. It is not changed after
// Load, so that many devices may be evaluated at once.
type File struct {
	site    *plan.Site
	bmc     *rawBlock // nil: no bmc block
	sources map[string]*source
	scope   *scope
}

// Load reads all *.hcl files of a folder as one. The File is nil when a
// diagnostic is an error; warnings may come beside a File.
func Load(dir string, opts Options) (*File, Diagnostics) {
	r := newReporter()
	files := r.folder(dir, opts.Files)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	root := r.decode(names)
	if !r.versionFits(root, opts.Version) {
		return nil, r.finish()
	}
	sc := r.newScope(root, opts.Vars)
	for _, b := range root.named("site") {
		r.evaluateBlock(b, sc)
	}
	file := &File{sources: r.sources, scope: sc}
	for _, b := range root.named("site") { // there is one at most
		file.site = r.site(b)
		file.site.Dir, file.site.Files = dir, below(files)
		for _, bmc := range b.named("bmc") {
			file.bmc = bmc
		}
	}
	ds := r.finish()
	if ds.HasErrors() {
		return nil, ds
	}
	resolvePaths(file.site, dir)
	for _, src := range r.sources {
		src.hiddenSpans() // sorted now: Settings may run in many goroutines
	}
	return file, ds
}

// below names files as they are called inside their folder: a plan that was made
// in one checkout may be applied in another.
func below(files []plan.SourceFile) []plan.SourceFile {
	out := make([]plan.SourceFile, len(files))
	for i, f := range files {
		out[i] = plan.SourceFile{Name: filepath.Base(f.Name), SHA256: f.SHA256}
	}
	return out
}

// Site is the site as plain data. Do not change it.
func (f *File) Site() *plan.Site { return f.site }

// resolvePaths lets relative paths begin at the site's folder.
func resolvePaths(s *plan.Site, dir string) {
	paths := append([]*string{&s.NetBox.CAFile}, secretsPaths(&s.Secrets)...)
	for i := range s.Ironics {
		paths = append(paths, &s.Ironics[i].CAFile, &s.Ironics[i].CloudsFile, &s.Ironics[i].SecureFile)
	}
	if s.DHCP != nil {
		paths = append(paths, &s.DHCP.IdentityFile, &s.DHCP.KnownHostsFile)
	}
	if s.BMC != nil {
		paths = append(paths, &s.BMC.CAFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// versionFits evaluates the enroll block, and reports a constraint that this
// version does not fulfil.
func (r *reporter) versionFits(root *rawBlock, version string) bool {
	fits := true
	for _, b := range root.named("enroll") {
		r.evaluateBlock(b, &scope{values: map[string]cty.Value{}})
		a := b.attr("required_version")
		if a == nil || a.value == nil {
			continue
		}
		if !versionFits(a.value.(string), version) {
			fits = false
			r.diags = nil // what else is wrong may only be so for this version
			r.error(a.expr.Range(), "Other version of enroll needed", "This folder is for enroll %s, and this is enroll %s. Use a version that fits; `enroll version` tells which one is installed.", a.value, version)
		}
	}
	return fits
}

// place is where an attribute stands, as plan.Site.Set says it.
func place(at hcl.Range) string { return fromHCLRange(at).String() }
