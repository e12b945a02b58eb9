package dhcptest

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"time"
)

var (
	errExists   = errors.New("file exists")
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
	errNoSpace  = errors.New("no space left on device")
	errReadOnly = errors.New("read-only file system")
)

// parentAllows reports whether the account may change the folder of a path.
func (v *sftpServer) parentAllows(p string) error {
	dir := v.c.s.tree.nodes[path.Dir(p)]
	switch {
	case dir == nil || !dir.mode.IsDir():
		return fs.ErrNotExist
	case !dir.may(v.c.s.options.User, 2):
		return fs.ErrPermission
	}
	return nil
}

func (v *sftpServer) open(r request) []byte {
	s := v.c.s
	n := s.tree.nodes[r.path]
	switch {
	case n != nil && r.flags&flagExclusive != 0:
		return errno(r.id, errExists)
	case n != nil && n.mode.IsDir():
		return errno(r.id, errIsDir)
	case n == nil && r.flags&flagCreate == 0:
		return errno(r.id, fs.ErrNotExist)
	case n == nil:
		if err := v.parentAllows(r.path); err != nil {
			return errno(r.id, err)
		}
		n = &node{mode: 0o644, mtime: s.now(), owner: s.options.User} // umask 022
		if r.hasMode {
			n.mode = fs.FileMode(r.mode &^ 0o022)
		}
		s.tree.nodes[r.path] = n
	case r.flags&flagRead != 0 && !n.may(s.options.User, 4), r.flags&flagWrite != 0 && !n.may(s.options.User, 2):
		return errno(r.id, fs.ErrPermission)
	}
	if r.flags&flagTruncate != 0 {
		n.data = nil
	}
	return v.newHandle(r.id, &handle{path: r.path, node: n, flags: r.flags, written: r.flags&flagWrite != 0})
}

func (v *sftpServer) newHandle(id uint32, h *handle) []byte {
	v.next++
	name := strconv.Itoa(v.next)
	v.handles[name] = h
	return text(binary.BigEndian.AppendUint32([]byte{typeHandle}, id), name)
}

// close is when inotify tells dnsmasq about a file written in place.
func (v *sftpServer) close(r request) []byte {
	h := v.handles[r.handle]
	if h == nil {
		return status(r.id, statusFailure, "Failure")
	}
	delete(v.handles, r.handle)
	if h.written && v.c.s.behaviour.FullAtClose && len(h.node.data) > 0 {
		h.node.data = h.node.data[:len(h.node.data)/2] // what was only promised
		return errno(r.id, errNoSpace)
	}
	if h.written && v.c.s.tree.nodes[h.path] == h.node {
		v.c.s.notify(h.path, eventWritten)
	}
	return errno(r.id, nil)
}

func (v *sftpServer) read(r request) []byte {
	h := v.handles[r.handle]
	switch {
	case h == nil || h.dir || h.flags&flagRead == 0:
		return status(r.id, statusFailure, "Failure")
	case r.offset >= uint64(len(h.node.data)):
		return status(r.id, statusEOF, "End of file")
	}
	data := h.node.data[r.offset:]
	if uint64(r.length) < uint64(len(data)) {
		data = data[:r.length]
	}
	return text(binary.BigEndian.AppendUint32([]byte{typeData}, r.id), string(data))
}

// write obeys the disk: what does not fit is not written, and the answer does
// not say why.
func (v *sftpServer) write(r request, b Behaviour) []byte {
	s := v.c.s
	h := v.handles[r.handle]
	if h == nil || h.flags&flagWrite == 0 || r.offset > maxFileSize {
		return status(r.id, statusFailure, "Failure")
	}
	end := int(r.offset) + len(r.data)
	if grow := end - len(h.node.data); b.Full && grow > 0 {
		if grow > b.FreeBytes {
			r.data = r.data[:max(0, len(r.data)-(grow-b.FreeBytes))]
			s.store(h.node, r)
			s.behaviour.FreeBytes = 0
			return errno(r.id, errNoSpace)
		}
		s.behaviour.FreeBytes -= grow
	}
	s.store(h.node, r)
	return errno(r.id, nil)
}

const maxFileSize = 64 << 20

func (s *Server) store(n *node, r request) {
	if len(r.data) == 0 {
		return
	}
	for len(n.data) < int(r.offset)+len(r.data) {
		n.data = append(n.data, 0)
	}
	copy(n.data[r.offset:], r.data)
	n.mtime = s.now()
}

func (v *sftpServer) stat(r request) []byte {
	n := v.c.s.tree.nodes[r.path]
	if n == nil {
		return errno(r.id, fs.ErrNotExist)
	}
	return attributes(r.id, n)
}

func (v *sftpServer) setstat(r request) []byte {
	n := v.c.s.tree.nodes[r.path]
	if h := v.handles[r.handle]; h != nil {
		n = h.node
	}
	switch {
	case n == nil:
		return errno(r.id, fs.ErrNotExist)
	case n.owner != v.c.s.options.User, r.hasOwner && r.owner != uidOf(n.owner):
		return errno(r.id, fs.ErrPermission) // only root gives files away
	}
	if r.hasMode {
		n.mode = n.mode&fs.ModeDir | fs.FileMode(r.mode)
	}
	if r.hasTimes {
		n.mtime = time.Unix(int64(r.mtime), 0)
	}
	return errno(r.id, nil)
}

func (v *sftpServer) opendir(r request) []byte {
	n := v.c.s.tree.nodes[r.path]
	switch {
	case n == nil || !n.mode.IsDir():
		return errno(r.id, fs.ErrNotExist)
	case !n.may(v.c.s.options.User, 4):
		return errno(r.id, fs.ErrPermission)
	}
	return v.newHandle(r.id, &handle{path: r.path, node: n, dir: true, names: append([]string{".", ".."}, v.c.s.tree.list(r.path)...)})
}

// readdir tells 100 names at a time, as OpenSSH does.
func (v *sftpServer) readdir(r request) []byte {
	h := v.handles[r.handle]
	switch {
	case h == nil || !h.dir:
		return status(r.id, statusFailure, "Failure")
	case len(h.names) == 0:
		return status(r.id, statusEOF, "End of file")
	}
	n := min(len(h.names), 100)
	list := h.names[:n]
	h.names = h.names[n:]
	return names(r.id, list, func(name string) *node {
		if found := v.c.s.tree.nodes[path.Join(h.path, name)]; found != nil {
			return found
		}
		return &node{mode: 0o644} // removed meanwhile
	})
}

func (v *sftpServer) remove(r request) []byte {
	n := v.c.s.tree.nodes[r.path]
	if n == nil {
		return errno(r.id, fs.ErrNotExist)
	}
	if n.mode.IsDir() {
		return errno(r.id, errIsDir)
	}
	if err := v.parentAllows(r.path); err != nil {
		return errno(r.id, err)
	}
	delete(v.c.s.tree.nodes, r.path)
	v.c.s.notify(r.path, eventRemoved)
	return errno(r.id, nil)
}

func (v *sftpServer) rmdir(r request) []byte {
	t := &v.c.s.tree
	n := t.nodes[r.path]
	switch {
	case n == nil:
		return errno(r.id, fs.ErrNotExist)
	case !n.mode.IsDir():
		return errno(r.id, errNotDir)
	case len(t.list(r.path)) > 0:
		return errno(r.id, errNotEmpty)
	}
	if err := v.parentAllows(r.path); err != nil {
		return errno(r.id, err)
	}
	delete(t.nodes, r.path)
	return errno(r.id, nil)
}

// mkdir is atomic: it refuses a name that exists.
func (v *sftpServer) mkdir(r request) []byte {
	if v.c.s.tree.nodes[r.path] != nil {
		return errno(r.id, errExists)
	}
	if err := v.parentAllows(r.path); err != nil {
		return errno(r.id, err)
	}
	v.c.s.tree.nodes[r.path] = &node{mode: fs.ModeDir | 0o755, mtime: v.c.s.now(), owner: v.c.s.options.User}
	return errno(r.id, nil)
}

// link gives a file a second name.
func (v *sftpServer) link(r request) []byte {
	t := &v.c.s.tree
	n := t.nodes[r.path]
	switch {
	case n == nil:
		return errno(r.id, fs.ErrNotExist)
	case t.nodes[r.to] != nil:
		return errno(r.id, errExists)
	}
	if err := v.parentAllows(r.to); err != nil {
		return errno(r.id, err)
	}
	t.nodes[r.to] = n
	v.c.s.notify(r.to, eventWritten)
	return errno(r.id, nil)
}

// rename replaces an existing file only in its POSIX form.
func (v *sftpServer) rename(r request, posix bool) []byte {
	t := &v.c.s.tree
	n, over := t.nodes[r.path], t.nodes[r.to]
	switch {
	case n == nil:
		return errno(r.id, fs.ErrNotExist)
	case over != nil && (!posix || over.mode.IsDir()):
		return errno(r.id, errExists)
	}
	for _, p := range []string{r.path, r.to} {
		if err := v.parentAllows(p); err != nil {
			return errno(r.id, err)
		}
	}
	delete(t.nodes, r.path)
	t.nodes[r.to] = n
	v.c.s.notify(r.to, eventWritten)
	return errno(r.id, nil)
}

func uidOf(owner string) uint32 {
	if owner == "root" {
		return 0
	}
	return 1000
}
