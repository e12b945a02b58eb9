package bmc

import (
	"context"
	"net/http"

	"github.com/enroll-dev/enroll/plan"
)

func virtualMediaFacet() facet {
	return facet{kind: virtualMediaKind(), read: readVirtualMedia, set: setVirtualMedia}
}

// virtualMediaKind switches virtual media on or off, where a site wants that of
// its AMI BMCs.
func virtualMediaKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.virtual_media", Phase: plan.PhaseBMC,
		Doc: "Whether an AMI BMC serves virtual media.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.BMC.AMI == nil || t.Site.BMC.AMI.VirtualMedia == nil {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "virtual_media", ""),
				Want:    plan.Obj(map[string]plan.Value{"Enabled": plan.Bool(*t.Site.BMC.AMI.VirtualMedia)}),
				From:    from(t.Site.Set["bmc.ami.virtual_media"]),
			}}
		},
		Decide: observeUnsupported,
	}
}

// actionMedia and mediaKeys are AMI's. The words of the action differ from those
// of the status.
const actionMedia = "#AMIVirtualMedia.EnableRMedia"

func mediaKeys() []string { return []string{"Oem", "Ami", "VirtualMedia", "RMediaStatus"} }

func readVirtualMedia(ctx context.Context, k *conn, _ *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	m, fault := k.freshManager(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	word := m.text(mediaKeys()...)
	if k.family.name != amiFamily().name || word == "" {
		return plan.Null, nil, k.familyLacks("switch of virtual media")
	}
	return plan.Obj(map[string]plan.Value{"Enabled": plan.Bool(word == enabledWord)}), evidence{"url": k.base + m.path}, nil
}

func setVirtualMedia(ctx context.Context, k *conn, _ *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	m, fault := k.freshManager(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	target := m.text("Actions", "Oem", actionMedia, "target")
	if target == "" {
		return plan.Failed(k.lacks(m, "action "+actionMedia))
	}
	wanted := plan.Satisfies(plan.Bool(true), plan.Attr(step.After, "Enabled"))
	if (m.text(mediaKeys()...) == enabledWord) == wanted {
		return plan.Already()
	}
	word := "Disable"
	if wanted {
		word = "Enable"
	}
	return k.send(ctx, http.MethodPost, target, map[string]any{"RMediaState": word})
}

// freshManager reads the manager as it is now.
func (k *conn) freshManager(ctx context.Context) (document, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return m, fault
	}
	d, fault := k.get(ctx, m.path)
	if fault == nil {
		k.tree.manager = &d
	}
	return d, fault
}
