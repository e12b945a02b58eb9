package main

import (
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// accessRules prints the access rules that an application credential for Ironic
// needs: a table, or as JSON the list that `openstack application credential
// create --access-rules` takes.
func (a *app) accessRules(format string) error {
	rules := ironic.AccessRules()
	if format == "json" {
		return view.JSON(a.sys.stdout, rules)
	}
	var b strings.Builder
	b.WriteString("Access rules of an application credential for Ironic; --format json prints them for\n" +
		"openstack application credential create --access-rules. Planning and verifying need those with GET only.\n" +
		"Where Ironic is served below a prefix, the paths begin with it.\n\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "  %-6s  %-32s  %s\n", r.Method, r.Path, r.Use)
	}
	b.WriteString("\nKeystone's middleware enforces them only when [keystone_authtoken] service_type = baremetal is set in Ironic;\n" +
		"without it every credential that has rules is refused. A missing rule is answered with 401.\n")
	_, err := a.sys.stdout.Write([]byte(b.String()))
	return err
}
