package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/enroll-dev/enroll/providers/exchange"
)

func asExit(err error, target *interface{ ExitCode() int }) bool { return errors.As(err, target) }

// readEnv reads lines of the form: export NAME='VALUE'.
func readEnv(ts *testscript.TestScript, path string) [][2]string {
	raw, err := os.ReadFile(path)
	ts.Check(err)
	var out [][2]string
	for _, l := range strings.Split(string(raw), "\n") {
		name, value, ok := strings.Cut(strings.TrimPrefix(l, "export "), "=")
		if ok {
			out = append(out, [2]string{name, strings.Trim(value, "'")})
		}
	}
	return out
}

// readRequests counts the lab's recorded requests.
func readRequests(ts *testscript.TestScript, path string, mutating bool, system string) (int, []string) {
	f, err := os.Open(path)
	ts.Check(err)
	defer func() { _ = f.Close() }()
	n := 0
	var list []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var r exchange.Record
		ts.Check(json.Unmarshal(sc.Bytes(), &r))
		if (mutating && !r.Mutating) || (system != "" && r.System != system) {
			continue
		}
		n++
		list = append(list, sc.Text())
	}
	ts.Check(sc.Err())
	return n, list
}

// killedAtRequest runs a command and kills it when a lab has received a request:
//
//	killed lab PATCH '/AccountService/Accounts/' enroll apply gpu-001
//
// It is seen a moment later: what comes after must hold wherever the command was.
func killedAtRequest(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 4 {
		ts.Fatalf("usage: killed DIR METHOD PATH COMMAND…")
	}
	seen := func() bool {
		_, list := readRequests(ts, filepath.Join(ts.MkAbs(args[0]), "requests.jsonl"), true, "")
		return slices.ContainsFunc(list, func(line string) bool {
			return strings.Contains(line, `"method":"`+args[1]+`"`) && strings.Contains(line, args[2])
		})
	}
	if seen() {
		ts.Fatalf("there was such a request before")
	}
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, args[3])); err == nil {
			program = path
			break
		}
	}
	c := exec.Command(program, args[4:]...) //nolint:gosec,noctx // the script's own; it is killed
	c.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "NO_COLOR", "ENROLL_SITE", "ENROLL_LAB", "VAULT_TOKEN"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(c.Start())
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			if !seen() {
				ts.Fatalf("it ended before there was such a request")
			}
			return
		case <-time.After(10 * time.Millisecond):
			if seen() {
				ts.Check(c.Process.Kill())
				<-ended
				return
			}
		}
	}
}
