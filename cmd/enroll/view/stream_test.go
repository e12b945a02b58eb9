package view

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

func TestStream(t *testing.T) {
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	s := NewStream(&out, func() time.Time { return now })
	step := &plan.Step{ID: "s7", Address: plan.Address{Site: "lon14", Device: "gpu-017", System: "bmc", Kind: "ntp"}, Action: plan.ActionUpdate}
	for i, k := range plan.EventKinds() {
		e := plan.Event{Time: now.Add(time.Duration(i) * 1500 * time.Millisecond), Kind: k, Text: "x", After: time.Second}
		if k != plan.EventAlive && k != plan.EventStop {
			e.Step = step
		}
		s.Event(e)
	}
	if err := s.Report(&apply.Report{PlanID: "p"}); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&out)
	last := 0.0
	for seq := 1; lines.Scan(); seq++ {
		var l map[string]any
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l["seq"] != float64(seq) || l["elapsed"].(float64) < 0 || l["kind"] == "" {
			t.Errorf("line %d: %v", seq, l)
		}
		if l["step"] == "s7" && (l["device"] != "gpu-017" || l["address"] != "lon14/gpu-017/bmc.ntp" || l["action"] != "update") {
			t.Errorf("line %d: %v", seq, l)
		}
		last = float64(seq)
	}
	if want := float64(len(plan.EventKinds()) + 1); last != want {
		t.Errorf("%v lines, want %v", last, want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAStreamThatCannotBeWrittenSaysSoAtTheEnd(t *testing.T) {
	s := NewStream(broken{}, time.Now)
	s.Event(plan.Event{Kind: plan.EventStop})
	if err := s.Report(nil); err == nil {
		t.Error("no error")
	}
}
