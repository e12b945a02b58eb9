package dhcptest

import (
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"
)

// node is a file or folder. Who has it open keeps it, unlinked or not.
type node struct {
	data  []byte
	mode  fs.FileMode // permission bits, and fs.ModeDir
	mtime time.Time
	owner string
}

// tree is the machine's disk, as far as anybody looks at it.
type tree struct {
	nodes map[string]*node // by clean absolute path
}

func newTree(now time.Time, user, dir string) tree {
	t := tree{nodes: map[string]*node{}}
	t.mkdirs(now, path.Dir(dir))
	t.nodes[dir] = &node{mode: fs.ModeDir | 0o755, mtime: now, owner: user}
	return t
}

// mkdirs makes a folder of root's with those above it.
func (t *tree) mkdirs(now time.Time, dir string) {
	for p := dir; t.nodes[p] == nil; p = path.Dir(p) {
		t.nodes[p] = &node{mode: fs.ModeDir | 0o755, mtime: now, owner: "root"}
		if p == "/" {
			break
		}
	}
}

// may reports whether a user has a right (4 read, 2 write, 1 search).
func (n *node) may(user string, right fs.FileMode) bool {
	if user == "root" {
		return true
	}
	if n.owner == user {
		return n.mode&(right<<6) != 0
	}
	return n.mode&right != 0
}

// list gives the names in a folder, sorted, dot files included.
func (t *tree) list(dir string) []string {
	var out []string
	for p := range t.nodes {
		if path.Dir(p) == dir && p != dir {
			out = append(out, path.Base(p))
		}
	}
	sort.Strings(out)
	return out
}

// glob expands "*" in a folder as a shell does; without a match it stays.
func (t *tree) glob(dir string) []string {
	var out []string
	for _, name := range t.list(dir) {
		if !strings.HasPrefix(name, ".") {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{"*"}
	}
	return out
}

// abs completes a name in the hostsdir to its path; paths stay as they are.
func (s *Server) abs(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(s.options.Directory, name)
	}
	return path.Clean(name)
}

// PutFile writes a file as root does with an editor: the server notices where it can. The name
// is, as in all methods here, a path or a name in the hostsdir.
func (s *Server) PutFile(name, content string, mode fs.FileMode) {
	s.locked(func() {
		s.tree.mkdirs(s.now(), path.Dir(s.abs(name)))
		s.tree.nodes[s.abs(name)] = &node{data: []byte(content), mode: mode.Perm(), mtime: s.now(), owner: "root"}
		s.notify(s.abs(name), eventWritten)
	})
}

// PutOld writes a file of the account with a time of change, without a notice.
func (s *Server) PutOld(name, content string, mtime time.Time) {
	s.locked(func() {
		s.tree.nodes[s.abs(name)] = &node{data: []byte(content), mode: 0o644, mtime: mtime, owner: s.options.User}
	})
}

// SetPending puts enroll's marker into the folder, or takes it away: the trace
// of a run that uploaded and ended before the reload.
func (s *Server) SetPending(pending bool) {
	name := path.Join(s.options.Directory, ".enroll-pending")
	s.locked(func() {
		delete(s.tree.nodes, name)
		if pending {
			s.tree.nodes[name] = &node{mode: 0o644, mtime: s.now(), owner: s.options.User}
		}
	})
}

// Pending reports whether the marker is in the folder.
func (s *Server) Pending() bool {
	_, there := s.ReadFile(path.Join(s.options.Directory, ".enroll-pending"))
	return there
}

// MakeDir makes a folder of root's.
func (s *Server) MakeDir(name string) {
	s.locked(func() {
		s.tree.nodes[s.abs(name)] = &node{mode: fs.ModeDir | 0o755, mtime: s.now(), owner: "root"}
	})
}

// Chown gives a file or folder to a user with a mode.
func (s *Server) Chown(name, owner string, mode fs.FileMode) {
	s.locked(func() {
		if n := s.tree.nodes[s.abs(name)]; n != nil {
			n.owner, n.mode = owner, n.mode&fs.ModeDir|mode.Perm()
		}
	})
}

// RemoveFile removes a file, or an empty folder.
func (s *Server) RemoveFile(name string) {
	s.locked(func() {
		delete(s.tree.nodes, s.abs(name))
		s.notify(s.abs(name), eventRemoved)
	})
}

// ReadFile gives a file's content.
func (s *Server) ReadFile(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[s.abs(name)]
	if n == nil || n.mode.IsDir() {
		return "", false
	}
	return string(n.data), true
}

// Mode gives a file's permission bits.
func (s *Server) Mode(name string) fs.FileMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.tree.nodes[s.abs(name)]; n != nil {
		return n.mode.Perm()
	}
	return 0
}

// Files lists the names in the hostsdir, dot files included.
func (s *Server) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.list(s.options.Directory)
}
