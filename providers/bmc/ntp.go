package bmc

import (
	"context"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// ntpRule is how a family keeps time servers.
type ntpRule struct {
	most        int  // how many it holds; 0: not known
	enableFirst bool // servers are refused while NTP is off
}

func ntpFacet() facet {
	return facet{kind: ntpKind(), read: readNTP, set: setNTP, more: true}
}

// ntpKind keeps the time servers of the BMC and that it uses them.
func ntpKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.ntp", Phase: plan.PhaseBMC,
		Doc: "The time servers of the BMC.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || len(t.Settings.NTPServers) == 0 {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "ntp", ""),
				Want:    ntpValue(plan.Bool(true), t.Settings.NTPServers),
				From:    from(t.Settings.Set["bmc.ntp"]),
			}}
		},
	}
}

func ntpValue(enabled plan.Value, servers []string) plan.Value {
	return plan.Obj(map[string]plan.Value{"ProtocolEnabled": enabled, "NTPServers": plan.Strs(servers...)})
}

// The iDRAC's names. The registry gives NTP1 to NTP3.
const (
	attrNTPEnable = "NTPConfigGroup.1.NTPEnable"
	attrNTPServer = "NTPConfigGroup.1.NTP"
	enabledWord   = "Enabled"
	disabledWord  = "Disabled"
)

func readNTP(ctx context.Context, k *conn, t *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	d, fault := k.ntpPlace(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	if limit := k.family.ntp.most; limit > 0 && len(serversOf(want)) > limit {
		return plan.Null, nil, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the BMC of %s holds %d time servers and %d are wanted", k.device, limit, len(serversOf(want)))
	}
	seen := evidence{"url": k.base + d.path}
	if k.family.attributes {
		enabled := plan.Null
		if word := d.text("Attributes", attrNTPEnable); word != "" {
			enabled = plan.Bool(word == enabledWord)
		}
		return ntpValue(enabled, k.attributeServers(d)), seen, nil
	}
	enabled := plan.Null
	if on, ok := d.yes("NTP", "ProtocolEnabled"); ok {
		enabled = plan.Bool(on)
	}
	return ntpValue(enabled, d.list("NTP", "NTPServers")), seen, nil
}

func setNTP(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	d, fault := k.ntpPlace(ctx, t)
	if fault != nil {
		return plan.Failed(fault)
	}
	servers := serversOf(step.After)
	if k.family.attributes {
		attrs := map[string]any{attrNTPEnable: enabledWord}
		for i := range k.family.ntp.most {
			server := ""
			if i < len(servers) {
				server = servers[i]
			}
			attrs[attrNTPServer+strconv.Itoa(i+1)] = server
		}
		return k.writeAttributes(ctx, d, attrs)
	}
	body := map[string]any{}
	on, known := d.yes("NTP", "ProtocolEnabled")
	have := d.list("NTP", "NTPServers")
	if !known || !on {
		body["ProtocolEnabled"] = true
	}
	if strings.Join(have, "\n") != strings.Join(servers, "\n") {
		body["NTPServers"] = servers
	}
	if len(body) == 0 {
		return plan.Already()
	}
	first := k.family.ntp.enableFirst && len(body) == 2
	if first {
		delete(body, "NTPServers")
	}
	r := k.write(ctx, change{on: d, body: map[string]any{"NTP": body}, same: func(now document) bool {
		nowOn, nowKnown := now.yes("NTP", "ProtocolEnabled")
		return nowOn == on && nowKnown == known && strings.Join(now.list("NTP", "NTPServers"), "\n") == strings.Join(have, "\n")
	}})
	if first {
		return next(r, "NTP is on; its servers come next")
	}
	return r
}

// ntpPlace reads the resource that holds the time servers.
func (k *conn) ntpPlace(ctx context.Context, t *plan.Target) (document, *plan.Fault) {
	if k.family.attributes {
		d, fault := k.attributes(ctx)
		if fault == nil && (!d.key("Attributes", attrNTPEnable) || !d.key("Attributes", attrNTPServer+"1")) {
			fault = k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the iDRAC of %s has no NTPConfigGroup attributes", k.device)
		}
		return d, fault
	}
	d, fault := k.networkProtocol(ctx, t)
	switch {
	case fault != nil:
		return d, fault
	case !d.key("NTP"):
		return d, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the network protocol of the BMC of %s has no NTP", k.device)
	case d.readOnly():
		return d, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the network protocol of the BMC of %s cannot be changed", k.device).With("allow", d.allow)
	}
	return d, nil
}

func (k *conn) attributeServers(d document) []string {
	var out []string
	for i := range k.family.ntp.most {
		if s := strings.TrimSpace(d.text("Attributes", attrNTPServer+strconv.Itoa(i+1))); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func serversOf(want plan.Value) []string { return stringsOf(want, "NTPServers") }
