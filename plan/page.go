package plan

import (
	"fmt"
	"sort"
	"strings"
)

// FaultsPage is FAULTS.md: the table of all fault codes, generated from the
// table in codes.go.
func FaultsPage() string {
	var b strings.Builder
	b.WriteString("# Faults\n\nGenerated from `plan/codes.go` by `make docs`; `enroll explain CODE` prints one row.\n" +
		"Every failure that reaches a person carries one of these codes. *Retry* says whether the same step may pass later\n" +
		"without anybody acting; the interpreter itself retries only what its class allows.\n\n" +
		"| code | class | owner | retry | meaning | what to do |\n|---|---|---|---|---|---|\n")
	codes := make([]string, 0, len(codeTable))
	for c := range codeTable {
		codes = append(codes, string(c))
	}
	sort.Strings(codes)
	for _, c := range codes {
		i := codeTable[Code(c)]
		retry := "no"
		if i.Retry {
			retry = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c, i.Class, i.Owner, retry, i.Text, i.Hint)
	}
	return b.String()
}
