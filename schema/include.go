package schema

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

const (
	maxIncludeDepth = 8
	maxFolders      = 50
)

// folderReader reads a site's folder and what it includes, each folder once.
type folderReader struct {
	r       *reporter
	version string
	files   fs.FS        // nil: the operating system's
	active  []openFolder // the chain of includes that is being read
	done    map[string]bool
	trees   []*rawBlock // bases first
	read    []plan.SourceFile
	own     []*folderFiles        // what file and templatefile read, one for each folder
	unfit   bool                  // a folder is for another version of enroll
	dirs    []plan.IncludedFolder // all folders but the site's own
}

type openFolder struct{ key, dir string }

// layers gives the decoded folders, those that are included first.
func (r *reporter) layers(dir string, opts Options) *folderReader {
	f := &folderReader{r: r, version: opts.Version, files: opts.Files, done: map[string]bool{}}
	f.folder(dir, ".", nil)
	return f
}

// folder reads one folder. rel is where it stands, seen from the site's folder;
// include is the attribute that names it, nil for the site's own.
func (f *folderReader) folder(dir, rel string, include *listElement) {
	key := f.key(dir, rel)
	f.active = append(f.active, openFolder{key, dir})
	defer func() { f.active = f.active[:len(f.active)-1] }()
	root, closeRoot, err := f.open(dir, rel)
	if err != nil {
		f.r.broken = true
		if include != nil {
			f.r.error(include.at, "Folder cannot be read", "The folder that is included, %s, cannot be opened: %s. The path begins at the folder of this file.", quote(dir), reason(err))
			return
		}
		f.r.add(Error, inFile(dir), "Folder cannot be read", "The site's folder cannot be opened: "+reason(err)+". Name the folder that holds the site's files.")
		return
	}
	defer closeRoot()
	files := f.r.folder(dir, root)
	own := &folderFiles{dir: dir, rel: rel, texts: map[string][]byte{}}
	if f.files != nil {
		own.given = root
	}
	f.r.files[dir] = own
	f.own = append(f.own, own)
	if include != nil {
		f.dirs = append(f.dirs, plan.IncludedFolder{Dir: dir, Rel: rel})
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name
		f.r.sources[file.Name].folder = dir
		f.read = append(f.read, plan.SourceFile{Name: path.Join(rel, filepath.Base(file.Name)), SHA256: file.SHA256})
	}
	f.r.included = include != nil
	tree := f.r.decode(names)
	f.r.included = false
	if !f.r.versionFits(tree, f.version) {
		f.unfit = true
		return
	}
	for _, e := range listElements(tree.named("enroll"), "include") {
		f.include(dir, rel, e)
		if f.unfit {
			return
		}
	}
	f.done[key] = true
	f.trees = append(f.trees, tree)
}

// include reads one folder of an include list.
func (f *folderReader) include(dir, rel string, e listElement) {
	next, nextRel := filepath.Join(dir, filepath.FromSlash(e.text)), path.Join(rel, e.text)
	key := f.key(next, nextRel)
	for i, open := range f.active {
		if open.key == key {
			var dirs []string
			for _, folder := range f.active[i:] {
				dirs = append(dirs, folder.dir)
			}
			f.r.error(e.at, "Folders include each other", "The folders include each other in a circle: %s. Take one include out of it.", strings.Join(circle(dirs), " → "))
			return
		}
	}
	switch {
	case f.done[key]:
		return // two folders may share a third
	case f.files == nil && leadsAway(dir, e.text):
		f.r.broken = true
		f.r.error(e.at, "Folder cannot be read", "The path of the folder that is included, %s, goes through a symbolic link that leads out of this folder: what is read would not be what is reviewed. Write the path of the folder itself.", quote(e.text))
		return
	case len(f.active) > maxIncludeDepth || len(f.done) >= maxFolders:
		f.r.error(e.at, "Too many folders", "Folders may include each other %d deep, and %d at most.", maxIncludeDepth, maxFolders)
		return
	}
	f.folder(next, nextRel, &e)
}

// leadsAway reports whether a symbolic link stands in the path of an include, and
// leads to another place than the path says and out of the folder. How the folder
// itself was reached does not matter.
func leadsAway(dir, text string) bool {
	here, err := realPath(dir)
	if err != nil {
		return false // it was read, and cannot be any more; opening says why
	}
	as, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(text)))
	if err != nil {
		return false
	}
	there, err := realPath(as)
	if err != nil {
		return false // opening says why
	}
	rel, err := filepath.Rel(here, there)
	inside := err == nil && filepath.IsLocal(rel)
	return !inside && there != filepath.Join(here, filepath.FromSlash(text)) && there != as
}

// realPath is the whole path without symbolic links.
func realPath(dir string) (string, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(whole)
}

// circle closes a path of names.
func circle(names []string) []string {
	return append(append([]string{}, names...), names[0])
}

// key tells folders apart, whatever way leads to them.
func (f *folderReader) key(dir, rel string) string {
	if f.files != nil {
		return rel
	}
	if real, err := realPath(dir); err == nil {
		return real
	}
	return filepath.Clean(dir) // it does not exist
}

// open gives a folder's files. Nothing outside of the folder can be reached
// through them.
func (f *folderReader) open(dir, rel string) (fs.FS, func(), error) {
	if f.files != nil {
		if !fs.ValidPath(rel) {
			return nil, nil, fs.ErrNotExist
		}
		sub, err := fs.Sub(f.files, rel)
		if err == nil && rel != "." {
			_, err = fs.ReadDir(sub, ".")
		}
		return sub, func() {}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), func() { _ = root.Close() }, nil // nothing was written
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

// merge lays a folder over the ones that it includes: attributes replace,
// blocks of the same type and label are merged, others are added.
func (r *reporter) merge(base, over *rawBlock) {
	base.at = over.at
	for name := range over.meant {
		base.misspelt(name)
	}
	for _, a := range over.attrs {
		base.set(a)
	}
	for _, child := range over.blocks {
		switch old := base.same(child); {
		case child.spec.free:
			r.mergeFree(base, child)
		case old == nil:
			base.blocks = append(base.blocks, child)
		case old.spec.variant != child.spec.variant: // secrets "env" instead of secrets "vault"
			child.replaced = append(old.replaced, old)
			base.replace(old, child)
		case child.spec.name == "site" && old.label != "" && child.label != "" && old.label != child.label:
			r.error(child.at, "Other site included", "This folder is of the site %s, and it includes a folder of the site %s (%s). A folder that sites share has a site block without a label: site { … }", quote(child.label), quote(old.label), place(old.at))
		default:
			if child.label == "" {
				child.label = old.label
			}
			old.label = child.label
			r.merge(old, child)
		}
	}
}

// mergeFree lays a locals block over all others.
func (r *reporter) mergeFree(base, over *rawBlock) {
	for _, a := range over.attrs {
		for _, old := range base.named(over.spec.name) {
			if before := old.attr(a.name); before != nil {
				a.overridden = append([]*rawAttr{before}, before.overridden...)
				old.remove(before)
			}
		}
	}
	base.blocks = append(base.blocks, over)
}

// set puts an attribute in, over the one that was there.
func (b *rawBlock) set(a *rawAttr) {
	for i, old := range b.attrs {
		if old.name == a.name {
			a.overridden = append([]*rawAttr{old}, old.overridden...)
			b.attrs[i] = a
			return
		}
	}
	b.attrs = append(b.attrs, a)
}

func (b *rawBlock) remove(a *rawAttr) {
	for i := range b.attrs {
		if b.attrs[i] == a {
			b.attrs = append(b.attrs[:i:i], b.attrs[i+1:]...)
			return
		}
	}
}

// same finds the block that another one is laid over.
func (b *rawBlock) same(child *rawBlock) *rawBlock {
	if child.spec.repeats() {
		return nil
	}
	for _, old := range b.blocks {
		if old.spec.name == child.spec.name && (!child.spec.many || old.label == child.label) {
			return old
		}
	}
	return nil
}

func (b *rawBlock) replace(old, with *rawBlock) {
	for i := range b.blocks {
		if b.blocks[i] == old {
			b.blocks[i] = with
		}
	}
}

// isIncludePath wants a path that begins at the folder: a checkout may stand
// anywhere.
func isIncludePath(s string) error {
	switch {
	case filepath.IsAbs(s) || strings.HasPrefix(s, "~"):
		return errAbsoluteInclude
	case strings.Contains(s, "\\"):
		return errIncludeForm
	}
	return nil
}
