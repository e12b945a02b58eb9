package bmc

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// syslogRule is how a family sends its log to servers; each has a way of its own.
type syslogRule struct {
	most int // servers; the first ones are taken
	read func(ctx context.Context, k *conn) (syslogState, document, *plan.Fault)
	// write makes one change towards the wanted state.
	write func(ctx context.Context, k *conn, d document, have, want syslogState) plan.Result
}

// syslogState is what a BMC keeps, as all families can say it.
type syslogState struct {
	enabled bool
	servers []string
	port    int
}

func (s syslogState) value() plan.Value {
	return plan.Obj(map[string]plan.Value{"Enabled": plan.Bool(s.enabled), "Servers": plan.Strs(s.servers...), "Port": plan.Int(s.port)})
}

func syslogFacet() facet {
	return facet{kind: syslogKind(), read: readSyslog, set: setSyslog, more: true}
}

func syslogKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.syslog", Phase: plan.PhaseBMC,
		Doc: "The servers to which the BMC sends its log.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.BMC.Syslog == nil || len(t.Settings.SyslogServers) == 0 {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "syslog", ""),
				Want:    syslogState{true, t.Settings.SyslogServers, t.Site.BMC.Syslog.Port}.value(),
				From:    from(t.Settings.Set["bmc.syslog"]),
			}}
		},
		Decide: observeUnsupported,
	}
}

func readSyslog(ctx context.Context, k *conn, t *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	have, d, fault := k.syslog(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	seen := evidence{"url": k.base + d.path}
	wanted := stringsOf(want, "Servers")
	if most := k.family.syslog.most; len(wanted) > most && slices.Equal(have.servers, wanted[:most]) {
		// It holds the first ones, which is all that it can do.
		have.servers, seen["servers_held"] = wanted, strconv.Itoa(most)
	}
	return have.value(), seen, nil
}

func setSyslog(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	have, d, fault := k.syslog(ctx, t)
	if fault != nil {
		return plan.Failed(fault)
	}
	rule := k.family.syslog
	want := syslogState{enabled: true, servers: stringsOf(step.After, "Servers"), port: intOf(step.After, "Port")}
	want.servers = want.servers[:min(len(want.servers), rule.most)]
	if have.enabled == want.enabled && slices.Equal(have.servers, want.servers) && have.port == want.port {
		return plan.Already()
	}
	return rule.write(ctx, k, d, have, want)
}

func (k *conn) syslog(ctx context.Context, t *plan.Target) (syslogState, document, *plan.Fault) {
	rule := k.family.syslog
	if rule.read == nil {
		return syslogState{}, document{}, k.familyLacks("remote syslog")
	}
	if s := t.Site.BMC.Syslog; s != nil && s.Protocol != "" && s.Protocol != "udp" {
		return syslogState{}, document{}, k.familyLacks("syslog over " + s.Protocol)
	}
	return rule.read(ctx, k)
}

// The iDRAC's names.
const (
	attrSyslog       = "SysLog.1.SysLogEnable"
	attrSyslogServer = "SysLog.1.Server"
	attrSyslogPort   = "SysLog.1.Port"
)

func idracSyslog() syslogRule {
	const most = 3
	return syslogRule{
		most: most,
		read: func(ctx context.Context, k *conn) (syslogState, document, *plan.Fault) {
			d, fault := k.attributes(ctx)
			if fault == nil && !d.key("Attributes", attrSyslog) {
				fault = k.lacks(d, attrSyslog+", for which it may want a licence")
			}
			if fault != nil {
				return syslogState{}, d, fault
			}
			s := syslogState{enabled: d.text("Attributes", attrSyslog) == enabledWord}
			s.port, _ = d.number("Attributes", attrSyslogPort)
			for i := range most {
				if server := d.text("Attributes", attrSyslogServer+strconv.Itoa(i+1)); server != "" {
					s.servers = append(s.servers, server)
				}
			}
			return s, d, nil
		},
		write: func(ctx context.Context, k *conn, d document, _, want syslogState) plan.Result {
			attrs := map[string]any{attrSyslog: enabledWord, attrSyslogPort: want.port}
			for i := range most {
				server := ""
				if i < len(want.servers) {
					server = want.servers[i]
				}
				attrs[attrSyslogServer+strconv.Itoa(i+1)] = server
			}
			return k.writeAttributes(ctx, d, attrs)
		},
	}
}

// supermicroSyslog is one server in a resource of the maker's own.
func supermicroSyslog() syslogRule {
	return syslogRule{
		most: 1,
		read: func(ctx context.Context, k *conn) (syslogState, document, *plan.Fault) {
			d, fault := k.ofManagerOem(ctx, "Supermicro", "Syslog")
			if fault != nil {
				return syslogState{}, d, fault
			}
			s := syslogState{}
			s.enabled, _ = d.yes("EnableSyslog")
			s.port, _ = d.number("SyslogPortNumber")
			if server := d.text("SyslogServer"); server != "" {
				s.servers = []string{server}
			}
			return s, d, nil
		},
		write: func(ctx context.Context, k *conn, d document, have, want syslogState) plan.Result {
			body := map[string]any{}
			if !have.enabled {
				body["EnableSyslog"] = true
			}
			if !slices.Equal(have.servers, want.servers) {
				body["SyslogServer"] = want.servers[0]
			}
			if have.port != want.port {
				body["SyslogPortNumber"] = want.port
			}
			return k.write(ctx, change{on: d, body: body, same: func(now document) bool {
				on, _ := now.yes("EnableSyslog")
				return on == have.enabled && now.text("SyslogServer") == d.text("SyslogServer")
			}})
		},
	}
}

// xccRecipients is how many places an XCC has for receivers of all kinds.
const xccRecipients = 12

// xccSyslog is a list of receivers, of which those of type Syslog count; others
// are left alone.
func xccSyslog() syslogRule {
	return syslogRule{most: xccRecipients, read: readRecipients, write: writeRecipients}
}

func readRecipients(ctx context.Context, k *conn) (syslogState, document, *plan.Fault) {
	s := syslogState{enabled: true}
	m, fault := k.manager(ctx)
	if fault != nil {
		return s, m, fault
	}
	path := m.link("Oem", "Lenovo", "Recipients")
	if path == "" {
		return s, m, k.lacks(m, "list of receivers")
	}
	all, members, fault := k.members(ctx, path)
	if fault != nil {
		return s, all, fault
	}
	for _, d := range members {
		if d.unread != nil {
			return s, all, d.unread
		}
		if d.text("RecipientSettings", "AlertType") != "Syslog" {
			continue
		}
		server, port := hostPort(d.text("RecipientSettings", "Address"))
		if s.port != 0 && s.port != port {
			port = -1 // they differ: no port is wanted so
		}
		s.servers, s.port = append(s.servers, server), port
		if on, _ := d.yes("RecipientSettings", "Enabledstate"); !on {
			s.enabled = false
		}
	}
	s.enabled = s.enabled && len(s.servers) > 0
	return s, all, nil
}

// writeRecipients mends the first receiver that is not as wanted, or adds one.
func writeRecipients(ctx context.Context, k *conn, all document, _, want syslogState) plan.Result {
	taken := map[string]bool{}
	missing := slices.Clone(want.servers)
	var spare []document // receivers of syslog that nobody wants: they are used again
	all, members, fault := k.members(ctx, all.path)
	if fault != nil {
		return plan.Failed(fault)
	}
	for _, d := range members {
		if d.unread != nil {
			return plan.Failed(d.unread)
		}
		taken[name(d.path)] = true
		if d.text("RecipientSettings", "AlertType") != "Syslog" {
			continue
		}
		server, port := hostPort(d.text("RecipientSettings", "Address"))
		on, _ := d.yes("RecipientSettings", "Enabledstate")
		i := slices.Index(missing, server)
		switch {
		case i < 0:
			spare = append(spare, d)
		case port != want.port || !on:
			return next(k.patchRecipient(ctx, d, server, want.port), "a receiver of the log was mended")
		default:
			missing = slices.Delete(missing, i, i+1)
		}
	}
	switch {
	case len(missing) == 0 && len(spare) == 0:
		return plan.Done()
	case len(missing) == 0:
		return next(k.send(ctx, http.MethodDelete, spare[0].path, nil), "a receiver of the log that is not wanted was removed")
	case len(spare) > 0:
		return next(k.patchRecipient(ctx, spare[0], missing[0], want.port), "a receiver of the log was changed")
	}
	for i := 1; i <= xccRecipients; i++ {
		if id := strconv.Itoa(i); !taken[id] {
			return next(k.send(ctx, http.MethodPost, all.path, recipient(id, missing[0], want.port)), "a receiver of the log was added")
		}
	}
	return plan.Failed(k.fault(plan.CodeBMCRefused, request{method: "POST", path: all.path}, "all %d receivers of the XCC of %s are taken", xccRecipients, k.device))
}

func (k *conn) patchRecipient(ctx context.Context, d document, server string, port int) plan.Result {
	address := d.text("RecipientSettings", "Address")
	return k.write(ctx, change{on: d, body: map[string]any{"RecipientSettings": map[string]any{"Address": joinPort(server, port), "Enabledstate": true}}, same: func(now document) bool {
		return now.text("RecipientSettings", "Address") == address
	}})
}

// recipient asks for everything that is worth an alert. Some firmware refuses
// AllAuditEvents, none refuses AllOtherAuditEvents.
func recipient(id, server string, port int) map[string]any {
	events := func(names ...string) map[string]any {
		return map[string]any{"Enabled": true, "AcceptedEvents": names}
	}
	return map[string]any{"Id": id, "RecipientSettings": map[string]any{
		"AlertType": "Syslog", "Address": joinPort(server, port), "Enabledstate": true, "RecipientName": "enroll", "IncludeEventLog": false,
		"EnabledAlerts": map[string]any{
			"CriticalEvents": events("AllOtherCriticalEvents"), "WarningEvents": events("AllOtherWarningEvents"), "SystemEvents": events("AllOtherAuditEvents"),
		},
	}}
}

// ofManagerOem reads a resource of the maker's own below the manager.
func (k *conn) ofManagerOem(ctx context.Context, maker, property string) (document, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return m, fault
	}
	path := m.link("Oem", maker, property)
	if path == "" {
		return m, k.lacks(m, "resource "+property)
	}
	return k.get(ctx, path)
}

func stringsOf(v plan.Value, name string) []string {
	list := plan.Attr(v, name)
	if !list.IsKnown() || list.IsNull() {
		return nil
	}
	var out []string
	for _, s := range list.AsValueSlice() {
		out = append(out, s.AsString())
	}
	return out
}

func intOf(v plan.Value, name string) int {
	n := plan.Attr(v, name)
	if !n.IsKnown() || n.IsNull() || n.Type() != cty.Number {
		return 0
	}
	i, _ := n.AsBigFloat().Int64()
	return int(i)
}
