package secrets_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// BenchmarkAdd is what learning one password costs.
func BenchmarkAdd(b *testing.B) {
	r := secrets.NewRedactor()
	for i := range b.N {
		r.Add(plan.NewSecret(fmt.Sprintf("p&%d-correct'horse\"battery/ä", i), ""))
	}
}

// BenchmarkWrite is what output costs when the passwords of a thousand hosts are
// known.
func BenchmarkWrite(b *testing.B) {
	r := secrets.NewRedactor()
	for i := range 1000 {
		r.Add(plan.NewSecret(fmt.Sprintf("p&%d-correct'horse\"battery/ä", i), ""))
	}
	text := []byte(strings.Repeat("  ~ bmc.hostname             update, differs\n      HostName  \"by-hand\" → \"gpu-001\"\n", 1000))
	w := r.Writer(io.Discard)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
