package dhcptest

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// Packet types and status codes of SFTP version 3
// (draft-ietf-secsh-filexfer-02).
const (
	typeInit, typeVersion                             = 1, 2
	typeOpen, typeClose, typeRead, typeWrite          = 3, 4, 5, 6
	typeLstat, typeFstat, typeSetstat                 = 7, 8, 9
	typeFsetstat, typeOpendir, typeReaddir            = 10, 11, 12
	typeRemove, typeMkdir, typeRmdir                  = 13, 14, 15
	typeRealpath, typeStat, typeRename                = 16, 17, 18
	typeStatus, typeHandle, typeData, typeName        = 101, 102, 103, 104
	typeAttrs, typeExtended, typeExtendedReply        = 105, 200, 201
	statusOK, statusEOF, statusMissing                = 0, 1, 2
	statusDenied, statusFailure, statusBad            = 3, 4, 5
	statusUnsupported                                 = 8
	flagRead, flagWrite, flagCreate                   = 0x01, 0x02, 0x08
	flagTruncate, flagExclusive                       = 0x10, 0x20
	attrSize, attrOwner, attrMode, attrTime           = 0x1, 0x2, 0x4, 0x8
	modeRegular, modeDirectory                        = 0o100000, 0o040000
	maxPacket                                         = 256 << 10
	extRename, extFsync, extStatVFS                   = "posix-rename@openssh.com", "fsync@openssh.com", "statvfs@openssh.com"
	extLink                                           = "hardlink@openssh.com"
	blockSize                                         = 4096
	diskBytes, diskInodes                      uint64 = 1 << 30, 1 << 16
)

// names of the requests in the records.
var requestNames = map[byte]string{
	typeOpen: "open", typeClose: "close", typeRead: "read", typeWrite: "write", typeLstat: "lstat", typeFstat: "fstat",
	typeSetstat: "setstat", typeFsetstat: "fsetstat", typeOpendir: "opendir", typeReaddir: "readdir", typeRemove: "remove",
	typeMkdir: "mkdir", typeRmdir: "rmdir", typeRealpath: "realpath", typeStat: "stat", typeRename: "rename", typeInit: "init",
}

// handle is an open file or folder.
type handle struct {
	path    string
	node    *node
	flags   uint32
	written bool
	names   []string // of a folder, what readdir still has to tell
	dir     bool
}

// sftpServer serves one SFTP channel.
type sftpServer struct {
	c       *conn
	channel ssh.Channel
	handles map[string]*handle
	next    int
}

func newSFTP(c *conn, channel ssh.Channel) *sftpServer {
	return &sftpServer{c: c, channel: channel, handles: map[string]*handle{}}
}

// request is one decoded packet.
type request struct {
	kind       byte
	id         uint32
	name       string // of the request, for the record
	path, to   string
	handle     string
	offset     uint64
	length     uint32
	flags      uint32
	mode       uint32
	hasMode    bool
	owner      uint32
	hasOwner   bool
	mtime      uint32 // seconds since 1970
	hasTimes   bool
	data       []byte
	incomplete bool
}

func (v *sftpServer) serve() {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(v.channel, head); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head)
		if size == 0 || size > maxPacket {
			return
		}
		packet := make([]byte, size)
		if _, err := io.ReadFull(v.channel, packet); err != nil {
			return
		}
		if !v.answer(decode(packet)) {
			return
		}
	}
}

// answer serves one request and reports whether the channel goes on.
func (v *sftpServer) answer(r request) bool {
	at := r.path
	if h := v.handles[r.handle]; h != nil {
		at = h.path
	}
	rec := exchange.Record{System: "dhcp", Method: "sftp." + r.name, Path: at, Mutating: r.mutates()}
	if of := v.c.s.options.DeviceOf; of != nil && at != "" {
		rec.Device = of(at)
	}
	rec, fault := v.c.s.recorder.Begin(rec)
	var kind exchange.Kind
	if fault != nil {
		kind = fault.Kind
	}
	var reply []byte
	switch kind {
	case exchange.Stall:
		v.c.s.recorder.End(rec)
		<-v.c.ended
		return false
	case exchange.Reset:
		v.c.s.recorder.End(rec)
		v.c.reset()
		return false
	case exchange.Status:
		reply = status(r.id, uint32(fault.Status), fault.Body)
	case exchange.Garbage:
		reply = append([]byte{0xff}, "<html><body>It works!</body></html>"...)
	default:
		switch {
		case kind == exchange.Delay:
			v.c.pause(fault.Delay)
		case kind == exchange.HalfBody && r.kind == typeWrite:
			r.data = r.data[:len(r.data)/2]
		}
		v.c.s.locked(func() { reply = v.do(r) })
	}
	if kind == exchange.LostReply || kind == exchange.HalfBody {
		v.c.s.recorder.End(rec)
		v.c.reset()
		return false
	}
	rec.Status = outcome(reply)
	v.c.s.recorder.End(rec)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(reply)))
	_, err := v.channel.Write(append(frame, reply...))
	return err == nil && kind != exchange.Garbage // what talks nonsense does no more work
}

// outcome is the status code of a reply, 0 for replies that carry data.
func outcome(reply []byte) int {
	if len(reply) >= 9 && reply[0] == typeStatus {
		return int(binary.BigEndian.Uint32(reply[5:9]))
	}
	return 0
}

func (r request) mutates() bool {
	switch r.kind {
	case typeOpen:
		return r.flags&(flagWrite|flagCreate|flagTruncate) != 0
	case typeWrite, typeSetstat, typeFsetstat, typeRemove, typeMkdir, typeRmdir, typeRename:
		return true
	}
	return r.name == "posix-rename" || r.name == "hardlink"
}

// do serves a request with the machine's lock held.
func (v *sftpServer) do(r request) []byte {
	b := v.c.s.behaviour
	if r.incomplete {
		return status(r.id, statusBad, "bad message")
	}
	if b.ReadOnly && r.mutates() {
		return errno(r.id, errReadOnly)
	}
	switch r.kind {
	case typeInit:
		return v.version(b)
	case typeOpen:
		return v.open(r)
	case typeClose:
		return v.close(r)
	case typeRead:
		return v.read(r)
	case typeWrite:
		return v.write(r, b)
	case typeStat, typeLstat:
		return v.stat(r)
	case typeFstat:
		if h := v.handles[r.handle]; h != nil {
			return attributes(r.id, h.node)
		}
	case typeSetstat, typeFsetstat:
		return v.setstat(r)
	case typeOpendir:
		return v.opendir(r)
	case typeReaddir:
		return v.readdir(r)
	case typeRemove:
		return v.remove(r)
	case typeMkdir:
		return v.mkdir(r)
	case typeRmdir:
		return v.rmdir(r)
	case typeRealpath:
		return names(r.id, []string{r.path}, func(string) *node { return &node{} })
	case typeRename:
		return v.rename(r, false)
	case typeExtended:
		return v.extended(r, b)
	}
	return status(r.id, statusUnsupported, "Operation unsupported")
}

// version names the extensions, in OpenSSH's order.
func (v *sftpServer) version(b Behaviour) []byte {
	out := binary.BigEndian.AppendUint32([]byte{typeVersion}, 3)
	for _, e := range []struct {
		name, data string
		missing    bool
	}{{extRename, "1", b.NoPosixRename}, {extStatVFS, "2", b.NoStatVFS}, {extLink, "1", b.NoLink}, {extFsync, "1", b.NoFsync}} {
		if !e.missing {
			out = text(text(out, e.name), e.data)
		}
	}
	return out
}

func (v *sftpServer) extended(r request, b Behaviour) []byte {
	switch {
	case r.name == "posix-rename" && !b.NoPosixRename:
		return v.rename(r, true)
	case r.name == "hardlink" && !b.NoLink:
		return v.link(r)
	case r.name == "fsync" && !b.NoFsync && v.handles[r.handle] != nil:
		return status(r.id, statusOK, "Success")
	case r.name == "statvfs" && !b.NoStatVFS:
		free := diskBytes / blockSize
		if b.Full {
			free = uint64(max(b.FreeBytes, 0)) / blockSize
		}
		out := binary.BigEndian.AppendUint32([]byte{typeExtendedReply}, r.id)
		for _, n := range []uint64{blockSize, blockSize, diskBytes / blockSize, free, free, diskInodes, diskInodes / 2, diskInodes / 2, 1, 0, 255} {
			out = binary.BigEndian.AppendUint64(out, n)
		}
		return out
	}
	return status(r.id, statusUnsupported, "Operation unsupported")
}

// errno makes the status that OpenSSH makes of an error: only two have their
// own code, everything else is "Failure".
func errno(id uint32, err error) []byte {
	switch {
	case err == nil:
		return status(id, statusOK, "Success")
	case errors.Is(err, fs.ErrNotExist):
		return status(id, statusMissing, "No such file")
	case errors.Is(err, fs.ErrPermission):
		return status(id, statusDenied, "Permission denied")
	}
	return status(id, statusFailure, "Failure")
}

func status(id, code uint32, message string) []byte {
	out := binary.BigEndian.AppendUint32([]byte{typeStatus}, id)
	return text(text(binary.BigEndian.AppendUint32(out, code), message), "")
}

func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func attrs(b []byte, n *node) []byte {
	mode := uint32(n.mode.Perm()) | modeRegular
	if n.mode.IsDir() {
		mode = uint32(n.mode.Perm()) | modeDirectory
	}
	uid := uidOf(n.owner)
	var seconds uint32
	if n.mtime.After(time.Unix(0, 0)) {
		seconds = uint32(n.mtime.Unix()) //nolint:gosec // the protocol's own width
	}
	b = binary.BigEndian.AppendUint32(b, attrSize|attrOwner|attrMode|attrTime)
	b = binary.BigEndian.AppendUint64(b, uint64(len(n.data)))
	for _, x := range []uint32{uid, uid, mode, seconds, seconds} {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func attributes(id uint32, n *node) []byte {
	return attrs(binary.BigEndian.AppendUint32([]byte{typeAttrs}, id), n)
}

func names(id uint32, list []string, at func(string) *node) []byte {
	out := binary.BigEndian.AppendUint32([]byte{typeName}, id)
	out = binary.BigEndian.AppendUint32(out, uint32(len(list)))
	for _, name := range list {
		out = attrs(text(text(out, name), name), at(name))
	}
	return out
}

// decode reads a packet. What is cut short is marked, not guessed.
func decode(packet []byte) request {
	d := &decoder{rest: packet[1:]}
	r := request{kind: packet[0], id: d.u32(), name: requestNames[packet[0]]}
	switch r.kind {
	case typeInit: // its only field is the version, read as the id
	case typeOpen:
		r.path, r.flags = d.path(), d.u32()
		d.attrs(&r)
	case typeClose, typeReaddir, typeFstat:
		r.handle = d.text()
	case typeRead:
		r.handle, r.offset, r.length = d.text(), d.u64(), d.u32()
	case typeWrite:
		r.handle, r.offset, r.data = d.text(), d.u64(), []byte(d.text())
	case typeSetstat:
		r.path = d.path()
		d.attrs(&r)
	case typeFsetstat:
		r.handle = d.text()
		d.attrs(&r)
	case typeLstat, typeStat, typeOpendir, typeRemove, typeRmdir, typeRealpath:
		r.path = d.path()
	case typeMkdir:
		r.path = d.path()
		d.attrs(&r)
	case typeRename:
		r.path, r.to = d.path(), d.path()
	case typeExtended:
		switch ext := d.text(); ext {
		case extRename:
			r.name, r.path, r.to = "posix-rename", d.path(), d.path()
		case extFsync:
			r.name, r.handle = "fsync", d.text()
		case extLink:
			r.name, r.path, r.to = "hardlink", d.path(), d.path()
		case extStatVFS:
			r.name, r.path = "statvfs", d.path()
		default:
			r.name = "extended " + ext
		}
	default:
		r.name = "type " + strconv.Itoa(int(r.kind))
	}
	r.incomplete = d.short
	return r
}

// decoder takes fields off a packet; once it was short it gives zeros.
type decoder struct {
	rest  []byte
	short bool
}

func (d *decoder) take(n uint32) []byte {
	if d.short || uint64(n) > uint64(len(d.rest)) {
		d.short = true
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) text() string { return string(d.take(d.u32())) }

func (d *decoder) path() string { return path.Clean("/" + d.text()) }

// attrs takes the attributes that a request sets.
func (d *decoder) attrs(r *request) {
	flags := d.u32()
	if flags&attrSize != 0 {
		d.u64()
	}
	if flags&attrOwner != 0 {
		r.owner, r.hasOwner = d.u32(), true
		d.u32()
	}
	if flags&attrMode != 0 {
		r.mode, r.hasMode = d.u32()&0o777, true
	}
	if flags&attrTime != 0 {
		d.u32() // of the last access
		r.mtime, r.hasTimes = d.u32(), true
	}
}
