package dhcp

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
)

// Probe logs in, and looks with one command whether the account may write into
// the folder, what of the server's configuration it may read, what state the service is in, whether sudo lets the account reload
// it, whether the service's log can be read, and who holds the lock. It changes
// nothing.
func (p *Provider) Probe(ctx context.Context, _ *plan.Site) []providers.Finding {
	login := providers.Finding{What: "DHCP: login as " + p.settings.User + " at " + p.address}
	folder := providers.Finding{What: "DHCP: write into " + p.settings.Directory}
	unit := providers.Finding{What: "DHCP: service " + p.settings.Unit}
	commands := SudoCommands(p.settings)
	sudo := providers.Finding{What: "DHCP: " + strings.TrimPrefix(commands[0], "/usr/bin/systemctl ")}
	log := providers.Finding{What: "DHCP: log of " + p.settings.Unit}
	lock := providers.Finding{What: "DHCP: lock of " + p.settings.Directory, Note: "nobody holds it"}
	config := providers.Finding{What: "DHCP: configuration " + p.settings.Config, Note: "read with all that it includes"}
	parts := []part{
		mainsPart(p.flavour, p.settings.Directory, p.settings.Config),
		{"write", "test -w ."},
		showPart(p.settings.Unit),
		{"log", "journalctl -u " + p.settings.Unit + " --since @0 -o cat --no-pager -n 1"},
	}
	for i, c := range commands {
		parts = append(parts, part{"sudo" + strconv.Itoa(i), "sudo -n -l " + c})
	}

	in := false
	f := p.exchange(ctx, func(l *link) *plan.Fault {
		in = true
		a, f := p.run(ctx, l, "looking at the rights of "+p.settings.User, p.settings.Directory, append(parts, holderParts()...))
		if f != nil {
			return f
		}
		if a.sections["write"].status != 0 {
			folder.Fault = plan.NewFault(plan.CodeDHCPCommand, "user %s may not write into %s on %s", p.settings.User, p.settings.Directory, p.address).
				WithHint("Make %s the owner of the folder: chown %s %s", p.settings.User, p.settings.User, p.settings.Directory)
		}
		live := p.serviceLive(a)
		switch state := plan.Text(live.Value, "state"); {
		case live.Fault != nil:
			unit.Fault = live.Fault
		case state != stateActive:
			unit.Fault = unhealthy(p.settings, "%s on %s is %s", p.settings.Unit, p.address, state)
		default:
			unit.Note = state
		}
		for i, c := range commands {
			if a.sections["sudo"+strconv.Itoa(i)].status != 0 {
				sudo.Fault = plan.NewFault(plan.CodeDHCPCommand, "sudo on %s does not let %s run %s", p.address, p.settings.User, c).With("stderr", strings.TrimSpace(a.stderr)).
					WithHint("Install on the server what enroll doctor --sudoers prints, as a file in /etc/sudoers.d.")
				break
			}
		}
		if holder, held := holderOf(a); held {
			lock.Note = fmt.Sprintf("held by %s; last sign of life %s ago; should that run be dead: enroll doctor --break-dhcp-lock", holder, holder.Age)
		}
		if _, unread := p.flavour.follow(p.settings.Config, p.settings.Directory, parseLines(a.sections["mains"].body)); len(unread) > 0 {
			config.Note = "not compared, since it is not read: " + strings.Join(unread, ", ")
		}
		if a.sections["log"].status != 0 {
			log.Note = "cannot be read: a reload will be judged by the unit's state alone; put " + p.settings.User + " into the group systemd-journal"
		}
		return nil
	})
	switch {
	case f != nil && in:
		folder.Fault = f
		return []providers.Finding{login, folder}
	case f != nil:
		login.Fault = f
		return []providers.Finding{login}
	}
	return []providers.Finding{login, folder, unit, config, sudo, log, lock}
}
