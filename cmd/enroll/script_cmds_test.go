package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"

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
