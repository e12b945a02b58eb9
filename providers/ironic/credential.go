package ironic

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// record is what enroll keeps in a node's extra.enroll about the credential that
// it last wrote: Ironic shows passwords masked, so nothing else could tell. It
// holds no material of the password, not even a hash.
type record struct {
	Item    string `json:"item"`
	Field   string `json:"field"`
	Version string `json:"version"` // the vault's; "" where it has none
	Written string `json:"written"` // when
}

const extraKey = "enroll"

// recordOf reads a node's record; zero when there is none.
func (n *node) record() record {
	own, _ := n.Extra[extraKey].(map[string]any)
	c, _ := own["credential"].(map[string]any)
	text := func(k string) string { s, _ := c[k].(string); return s }
	return record{Item: text("item"), Field: text("field"), Version: text("version"), Written: text("written")}
}

// extra is the record as the one top-level value that is written.
func (r record) extra() map[string]any {
	return map[string]any{"credential": map[string]any{"item": r.Item, "field": r.Field, "version": r.Version, "written": r.Written}}
}

func (c *Client) newRecord(device string, version string) record {
	ref := c.credentials.Ref(device)
	return record{Item: ref.Item, Field: ref.Field, Version: version, Written: c.now().UTC().Format(time.RFC3339Nano)}
}

// newer begins a wanted value that only something written after the plan can have.
const newer = "newer than "

// credentialKind is the BMC's credential in driver_info, overwritten when the vault
// has another version than the one last written, when nobody knows which was, or
// when the operator asks (reference, phase 4). It comes before manage, which needs
// it. Its value is the record, without the credential.
func credentialKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.credential",
		Phase: plan.PhaseManage,
		First: true,
		Want: func(t *plan.Target) []plan.Resource {
			ref := t.Settings.BMCPassword
			if !enrols(t) || ref.IsZero() {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address(systemIronic, kindCredential, ""), Want: plan.Obj(map[string]plan.Value{"item": plan.Str(ref.Item), "field": plan.Str(ref.Field)}),
				From: []string{t.Intent.URL, "driver_info: " + ref.String()}, Effects: []plan.Effect{plan.EffectCredential}, Sensitive: true,
			}}
		},
		Decide: decideCredential,
		Lived:  []string{"version", "written"},
		Doc:    "the BMC's credential in the node's driver_info is the vault's, by the version last written",
	}
}

func decideCredential(d plan.Decision) plan.Verdict {
	switch d.Live.Presence {
	case plan.Absent:
		return plan.Nothing() // written when the node is created
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		if settled(d) {
			return plan.Nothing()
		}
		return unreadable(d)
	case plan.Present:
	}
	live := d.Live.Value
	want := map[string]plan.Value{"item": plan.Attr(d.Resource.Want, "item"), "field": plan.Attr(d.Resource.Want, "field"), "version": plan.Attr(live, "current")}
	s := &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonDiffers}
	rotated := d.Planned("bmc.credential")
	switch {
	case d.Owner.Owned || settled(d):
	case d.Scope.Parameters.RewriteCredentials:
		s.Reason, s.Because = plan.ReasonForced, []string{"rewrite_credentials"}
		want["written"] = plan.Str(newer + plan.Text(live, "written"))
	case rotated != nil && rotated.Action.Mutates():
		// The version is only known after the rotation.
		s.Reason, s.Because = plan.ReasonChanged, []string{rotated.Address.String()}
		delete(want, "version")
		want["written"] = plan.Str(newer + plan.Text(live, "written"))
	}
	s.After = plan.Obj(want)
	if plan.Satisfies(s.After, live) {
		return plan.Nothing()
	}
	s.Before = plan.Restrict(live, s.After)
	if s.Because == nil {
		s.Because = plan.DiffPaths(s.Before, s.After)
	}
	switch {
	case settled(d) && plan.Attr(live, "item").IsNull():
		return plan.Nothing() // enrolled by something that kept no record; nothing is known to differ
	case settled(d):
		return plan.Verdict{Observed: []plan.Observation{{
			Address: d.Resource.Address, Rule: "kept", Want: s.After, Live: s.Before,
			Text: "another version of the credential than the vault's was written last; the node is " + string(d.Owner.State) + " and stays as it is",
		}}}
	case !legal(fieldDriverInfo, d.Owner.State):
		return later(d, "driver_info")
	}
	return plan.Verdict{Step: s}
}

// liveCredential is the record with the vault's current version beside it.
// written answers a wanted "newer than": the record is newer.
func liveCredential(r record, current string, want plan.Value) plan.Value {
	written := r.Written
	if w := plan.Text(want, "written"); strings.HasPrefix(w, newer) && written != "" && newer+written != w {
		written = w
	}
	return plan.Obj(map[string]plan.Value{
		"item": textOrNull(r.Item), "field": textOrNull(r.Field), "version": plan.Str(r.Version), "written": textOrNull(written), "current": plan.Str(current),
	})
}

// credentialPatch writes user name, password and record by the driver that the
// node has, or is about to have.
func (c *Client) credentialPatch(ctx context.Context, device, driver string) ([]map[string]any, *plan.Fault) {
	user, password, err := c.credentials.Credential(ctx, device)
	if err != nil {
		return nil, plan.AsFault(err)
	}
	return []map[string]any{
		add("/driver_info/"+userKey(driver), user),
		add("/driver_info/"+passwordKey(driver), password.Reveal()),
		add("/extra/"+extraKey, c.newRecord(device, password.Version).extra()),
	}, nil
}

// add is the operation that sets a value, whether there is one or not.
func add(path string, value any) map[string]any {
	return map[string]any{"op": "add", "path": path, "value": value}
}

func (c *Client) runCredential(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	patch, f := c.credentialPatch(ctx, r.target.Name(), n.Driver)
	if f != nil {
		return plan.Failed(f)
	}
	return r.patched(ctx, n, "", patch)
}

// patched sends a patch of the node and ends the step.
func (r run) patched(ctx context.Context, n *node, query string, patch []map[string]any) plan.Result {
	if _, f := r.service.call(ctx, http.MethodPatch, "nodes/"+url.PathEscape(n.UUID)+query, patch, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return plan.Done()
}
