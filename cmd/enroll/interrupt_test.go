package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// hung is a lab in which no time limit of the site ends an exchange that hangs.
func hung(t *testing.T) (*lab.Lab, string) {
	t.Helper()
	l, dir := startLab(t, 2)
	site := filepath.Join(dir, "site", "site.hcl")
	for _, block := range []string{"netbox {", "ironic \"baremetal\" {", "bmc {"} {
		replaceIn(t, site, block, block+"\n    timeout = \"1h\"")
	}
	replaceIn(t, site, "    settle ", "    timeouts {\n      connect = \"1h\"\n      login = \"1h\"\n      command = \"1h\"\n      transfer = \"1h\"\n    }\n    settle ")
	return l, dir
}

// Two signals while an exchange hangs, of any system: the run ends with what it has
// in doubt, as interrupted, and waits neither for that exchange nor for the sessions
// that hang with it. Those of the others are ended. The next run finds no lock and
// goes on.
func TestASecondSignalWhileAnExchangeHangs(t *testing.T) {
	for name, stall := range map[string]exchange.Fault{
		"a BMC's login":       {System: "bmc", Device: "gpu-001", Method: http.MethodPost, Path: "/redfish/v1/SessionService/Sessions"},
		"a BMC's setting":     {System: "bmc", Device: "gpu-001", Method: http.MethodPatch},
		"a command on DHCP":   {System: "dhcp", Method: "ssh.exec"},
		"an upload":           {System: "dhcp", Method: "sftp.write"},
		"a change in NetBox":  {System: "netbox", Method: http.MethodPatch},
		"a new node":          {System: "ironic", Method: http.MethodPost},
		"a transition":        {System: "ironic", Method: http.MethodPut},
		"who owns the device": {System: "ironic", Method: http.MethodGet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, dir := hung(t)
			signals := make(chan os.Signal, 2)
			var sent sync.Once
			l.Recorder.Before(func(r exchange.Record) {
				locks, err := apply.ListLocks(filepath.Join(dir, "state", "enroll", "locks"))
				begun := err == nil && len(locks) > 0
				if begun && r.System == stall.System && r.Method == stall.Method && strings.HasPrefix(r.Path, stall.Path) && (stall.Device == "" || stall.Device == r.Device) {
					sent.Do(func() {
						l.Recorder.Inject(&exchange.Fault{Kind: exchange.Stall, At: r.Seq})
						signals <- os.Interrupt
						signals <- os.Interrupt
					})
				}
			})
			code, out, errOut := invokeWith(t, l, dir, signals, "apply", "--all", "--auto-approve")
			if code != exitInterrupted {
				t.Fatalf("exit %d\n%s%s", code, out, errOut)
			}
			if strings.Contains(out, "Apply interrupted") {
				mutating := stall.Method != http.MethodGet && stall.Method != "ssh.exec" && !strings.Contains(stall.Path, "Sessions")
				if mutating && !strings.Contains(out, "in doubt") {
					t.Errorf("nothing is in doubt\n%s", out)
				}
			} else if !strings.Contains(errOut, "INTERRUPTED") {
				t.Errorf("not told\n%s%s", out, errOut)
			}
			if n := l.BMC.BMC("gpu-002").Sessions(); n > 0 {
				t.Errorf("%d sessions at the BMC of the other device", n)
			}
			l.Recorder.Reset()
			l.Recorder.Before(nil)
			if code, out, errOut = invoke(t, l, dir, "apply", "--all", "--auto-approve", "--lock-timeout", "1ms"); code != exitDone && !strings.Contains(out+errOut, "DHCP_LOCK_HELD") {
				t.Errorf("the next run: exit %d\n%s%s", code, out, errOut)
			}
		})
	}
}

// A time limit stops a run as the first signal does.
func TestTheTimeLimitOfACommand(t *testing.T) {
	e := newEstate(t, 1, families()[3])
	r := e.apply("gpu-001", "--timeout", "15s") // in virtual time: while it inspects
	if r.code != exitInterrupted || !strings.Contains(r.text, "the time limit of 15s is over") || !strings.Contains(r.text, "is still going on in ironic") || !strings.Contains(r.text, "Next    enroll apply gpu-001") {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
	if left := e.leaks(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Errorf("the next run: exit %d\n%s", r.code, r.text)
	}
}

// deaf is a reader of the output that goes away after some lines.
type deaf struct {
	bytes.Buffer
	lines int
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.lines <= 0 {
		return 0, io.ErrClosedPipe
	}
	d.lines -= bytes.Count(b, []byte{'\n'})
	return d.Buffer.Write(b)
}

// Whoever reads the output goes away at some line, any line: before the plan was
// approved nothing happens, after it the run stops in good order, and in no case is
// anything left behind.
func TestAnOutputThatIsClosed(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		e := newEstate(t, 1, families()[3])
		full := &deaf{lines: 1 << 20}
		if code := e.into(full, "apply", "--auto-approve", "--format", format, "gpu-001"); code != exitDone {
			t.Fatalf("exit %d\n%s", code, full.String())
		}
		all, plan := bytes.Count(full.Bytes(), []byte{'\n'}), 1 // a stream's first line
		if format == "text" {
			plan = bytes.Count(full.Bytes()[:bytes.Index(full.Bytes(), []byte("Approved by"))], []byte{'\n'})
		}
		for line := range sweep.Points(t, all, 29) {
			e := newEstate(t, 1, families()[3])
			code := e.into(&deaf{lines: line}, "apply", "--auto-approve", "--format", format, "gpu-001")
			if code == exitDone {
				t.Errorf("%s, closed after line %d of %d: exit %d", format, line, all, code)
			}
			for _, left := range e.leaks() {
				if !strings.HasSuffix(left, ".enroll-pending") { // the next run tells the service
					t.Errorf("%s, closed after line %d: left: %s", format, line, left)
				}
			}
			if n := e.lab.Recorder.Count(func(r exchange.Record) bool { return r.Mutating && r.System != "vault" }); n > 0 && line < plan {
				t.Errorf("%s, closed after line %d, while the plan was printed: %d requests that write", format, line, n)
			}
			if r := e.apply("gpu-001"); r.code != exitDone {
				t.Errorf("%s, closed after line %d: the next run: exit %d\n%s", format, line, r.code, r.text)
			}
		}
	}
}
