package dhcp

import (
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Sudoers is the file for /etc/sudoers.d of the DHCP server: what enroll runs as
// root there, and nothing else. No argument can be added to a command: sudo
// compares them as they stand.
func Sudoers(s plan.DHCPSettings) string {
	s = withDefaults(s)
	// What sudoers takes for more than a letter, as far as the names that are let in
	// may hold it.
	escape := strings.NewReplacer(":", `\:`, "=", `\=`, ",", `\,`)
	var b strings.Builder
	fmt.Fprintf(&b, "# /etc/sudoers.d/enroll on %s, made by: enroll doctor --sudoers\n", s.Host)
	fmt.Fprintf(&b, "# Owner root, mode 0440; check it first: visudo -cf FILE\n")
	for _, command := range SudoCommands(s) {
		fmt.Fprintf(&b, "%s ALL=(root) NOPASSWD: %s\n", s.User, escape.Replace(command))
	}
	return b.String()
}
