package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"enroll": func() { os.Exit(run(context.Background(), os.Args[1:], system())) },
	})
}

// TestScripts runs the real command against the embedded lab. Each script in
// testdata/scripts is a story with its own lab.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "scripts"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_COLOR", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"lab":      labUp,
			"status":   exitStatusIs,
			"requests": countRequests,
			"killed":   killedAtRequest,
		},
	})
}

// labUp waits until the lab in a folder serves and takes over its environment:
//
//	exec enroll lab run --dir lab … &lab&
//	lab lab
func labUp(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: lab DIR")
	}
	dir := ts.MkAbs(args[0])
	for range 2400 { // a minute: machines may be busy
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			for _, kv := range readEnv(ts, filepath.Join(dir, "env")) {
				ts.Setenv(kv[0], kv[1])
			}
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	ts.Fatalf("the lab in %s did not come up", dir)
}

// exitStatusIs runs a command and wants an exact exit code:
//
//	status 13 enroll plan gpu-001
func exitStatusIs(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit interface{ ExitCode() int }
	if err != nil {
		if !asExit(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// countRequests compares how many requests of a lab fit:
//
//	requests lab mutating 0 [system]
func countRequests(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: requests DIR all|mutating COUNT [SYSTEM]")
	}
	system := ""
	if len(args) > 3 {
		system = args[3]
	}
	n, list := readRequests(ts, filepath.Join(ts.MkAbs(args[0]), "requests.jsonl"), args[1] == "mutating", system)
	if (strconv.Itoa(n) == args[2]) == neg {
		ts.Fatalf("%d %s requests %s:\n%s", n, args[1], system, fmt.Sprint(list))
	}
}
