package netbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// The rules of the reference workflow's phase 0b, one by one: what NetBox says
// and the class that it comes to, or why it comes to none.
func TestPlatformClass(t *testing.T) {
	gpuType := func(v any) func(*netboxtest.Device) {
		return func(d *netboxtest.Device) { d.Type.CustomFields = map[string]any{"gpu_type": v} }
	}
	ztp := func(v any) func(*netboxtest.Device) {
		return func(d *netboxtest.Device) { d.Context["ztp"] = v }
	}
	model := func(maker, model string) func(*netboxtest.Device) {
		return func(d *netboxtest.Device) { d.Type.Manufacturer, d.Type.Model = maker, model }
	}
	cpu := func(d *netboxtest.Device) { d.Role = "compute" }
	recorded := func(v any) func(*netboxtest.Device) {
		return func(d *netboxtest.Device) { d.CustomFields = map[string]any{"platform_class": v} }
	}
	const plain = "H200_LENOVOHG635NV2_NORDMA_01"
	for name, tc := range map[string]struct {
		change []func(*netboxtest.Device)
		fields []netboxtest.Field
		want   string // the class, or
		says   string // the only fault's text
		code   plan.Code
	}{
		"no ztp":                   {want: plain},
		"ztp null":                 {change: []func(*netboxtest.Device){ztp(nil)}, want: plain},
		"infiniband":               {change: []func(*netboxtest.Device){ztp(map[string]any{"infiniband": map[string]any{"partition": "0x8001"}})}, want: "H200_LENOVOHG635NV2_IB_01"},
		"infiniband empty":         {change: []func(*netboxtest.Device){ztp(map[string]any{"infiniband": map[string]any{}})}, want: "H200_LENOVOHG635NV2_IB_01"},
		"ztp empty":                {change: []func(*netboxtest.Device){ztp(map[string]any{})}, says: "config context ztp has no section infiniband", code: plan.CodePlatformUnresolvable},
		"ztp without infiniband":   {change: []func(*netboxtest.Device){ztp(map[string]any{"url": "http://x"})}, says: "config context ztp has no section infiniband", code: plan.CodePlatformUnresolvable},
		"infiniband null":          {change: []func(*netboxtest.Device){ztp(map[string]any{"infiniband": nil})}, says: "config context ztp has no section infiniband", code: plan.CodePlatformUnresolvable},
		"infiniband true":          {change: []func(*netboxtest.Device){ztp(map[string]any{"infiniband": true})}, says: "ztp.infiniband is a boolean, not an object", code: plan.CodePlatformUnresolvable},
		"ztp a list":               {change: []func(*netboxtest.Device){ztp([]any{})}, says: "config context ztp is a list, not an object", code: plan.CodePlatformUnresolvable},
		"ztp false":                {change: []func(*netboxtest.Device){ztp(false)}, says: "config context ztp is a boolean, not an object", code: plan.CodePlatformUnresolvable},
		"GPU without type":         {change: []func(*netboxtest.Device){gpuType(nil)}, says: "custom field gpu_type of its device type is empty", code: plan.CodePlatformUnresolvable},
		"GPU with empty type":      {change: []func(*netboxtest.Device){gpuType("")}, says: "custom field gpu_type of its device type is empty", code: plan.CodePlatformUnresolvable},
		"GPU type placeholder":     {change: []func(*netboxtest.Device){gpuType("None")}, says: `is the placeholder "None"`, code: plan.CodePlatformUnresolvable},
		"GPU type with underscore": {change: []func(*netboxtest.Device){gpuType("RTX_PRO 6000")}, says: `is "RTX_PRO 6000"; a platform class takes letters and digits only`, code: plan.CodePlatformUnresolvable},
		"GPU type a list":          {change: []func(*netboxtest.Device){gpuType([]any{"H200"})}, says: "gpu_type of its device type is a list, not a text", code: plan.CodePlatformUnresolvable},
		"GPU type with space":      {change: []func(*netboxtest.Device){gpuType(" GB300\n")}, want: "GB300_LENOVOHG635NV2_NORDMA_01"},
		"no such field": {fields: []netboxtest.Field{{Object: "dcim.device", Name: "platform_class"}},
			says: "NetBox has no custom field gpu_type on device types", code: plan.CodePlatformUnresolvable},
		"CPU":                      {change: []func(*netboxtest.Device){cpu, gpuType(nil)}, want: "NOGPU_LENOVOHG635NV2_NORDMA_01"},
		"CPU never reads ztp":      {change: []func(*netboxtest.Device){cpu, gpuType(""), ztp([]any{})}, want: "NOGPU_LENOVOHG635NV2_NORDMA_01"},
		"CPU without such a field": {change: []func(*netboxtest.Device){cpu}, fields: []netboxtest.Field{{Object: "dcim.device", Name: "platform_class"}}, want: "NOGPU_LENOVOHG635NV2_NORDMA_01"},
		"maker and model stripped": {change: []func(*netboxtest.Device){model("Super Micro (Inc.)", "SYS-821GE/tnhr é")}, want: "H200_SUPERMICROINCSYS821GETNHR_NORDMA_01"},
		"model without letters":    {change: []func(*netboxtest.Device){model("Dell", "---")}, says: "the model of its device type has no letter and no digit", code: plan.CodePlatformUnresolvable},
		"128 characters":           {change: []func(*netboxtest.Device){model("D", strings.Repeat("x", 112))}, want: "H200_D" + strings.Repeat("X", 112) + "_NORDMA_01"},
		"129 characters":           {change: []func(*netboxtest.Device){model("D", strings.Repeat("x", 113))}, says: "would have 129 characters", code: plan.CodePlatformUnresolvable},
		"recorded equal":           {change: []func(*netboxtest.Device){recorded(plain)}, want: plain},
		"recorded other":           {change: []func(*netboxtest.Device){recorded("OTHER")}, want: plain},
		"recorded too long":        {change: []func(*netboxtest.Device){recorded(strings.Repeat("X", 129))}, says: "the recorded one has 129 characters", code: plan.CodePlatformUnresolvable},
		"recorded a number":        {change: []func(*netboxtest.Device){recorded(7)}, says: "custom field platform_class is a number, not a text", code: plan.CodeIntentInvalid},
		"no field to record it in": {fields: []netboxtest.Field{{Object: "dcim.devicetype", Name: "gpu_type"}},
			says: "NetBox has no custom field platform_class on devices", code: plan.CodePlatformRecordFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := host(1)
			for _, change := range tc.change {
				change(&d)
			}
			s := serve(t, netboxtest.Options{Fields: tc.fields}, d)
			st := site()
			st.Classes = append(st.Classes, plan.DeviceClass{Name: "COMPUTE_CPU", Roles: []string{"compute"}})
			st.Ironics[0].DeviceClasses = append(st.Ironics[0].DeviceClasses, "COMPUTE_CPU")
			in := intent(t, client(t, s.URL, s.Token), st, "gpu-001")
			if tc.says == "" {
				if in.ComputedClass != tc.want || len(in.Faults) > 0 {
					t.Errorf("%q\n%s", in.ComputedClass, texts(in.Faults))
				}
				return
			}
			if len(in.Faults) != 1 || in.Faults[0].Code != tc.code || !strings.Contains(in.Faults[0].Error(), tc.says) || in.Faults[0].Evidence["url"] == "" || in.Faults[0].WayOut() == "" {
				t.Errorf("faults:\n%s", texts(in.Faults))
			}
			// A site that does not record it is not stopped by it.
			st.RecordPlatformClass = false
			in = intent(t, client(t, s.URL, s.Token), st, "gpu-001")
			if len(in.Faults) > 0 && tc.code != plan.CodeIntentInvalid {
				t.Errorf("not recorded, and yet:\n%s", texts(in.Faults))
			}
			if sc := scopeOf(st, in); slices.ContainsFunc(desired(sc), func(r plan.Resource) bool { return r.Address.Kind == "platform_class" }) {
				t.Error("not recorded, and yet wanted")
			}
		})
	}
}

// A failure of NetBox has the code of the reference workflow; what NetBox said
// stays beside it.
func TestPlatformClassRecordFailed(t *testing.T) {
	d := host(1)
	s := serve(t, netboxtest.Options{}, d)
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	step := stepFor(t, c, sc, "netbox.platform_class")
	// A token without the right.
	r := client(t, s.URL, s.ReadOnlyToken).Run(context.Background(), sc, step, nil)
	if r.Fault == nil || r.Fault.Code != plan.CodePlatformRecordFailed || r.Fault.Evidence["permission"] != "dcim.change_device" || r.Fault.Owner() != plan.OwnerFleet {
		t.Errorf("%v %v", r.Fault, r.Fault.Evidence)
	}
	wantCode(t, r.Fault, plan.CodeNetBoxDenied)
	// Some releases take an unknown field with 200 and drop it.
	s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Method: "PATCH", Times: 1, Status: 200, Body: `{"id":1,"name":"gpu-001","status":"staged","tags":[],"custom_fields":{},"last_updated":"x"}`})
	wantCode(t, c.Run(context.Background(), sc, step, nil).Fault, plan.CodeNotApplied)
	// Somebody else was first: it is kept.
	s.Update("gpu-001", func(d *netboxtest.Device) { d.CustomFields = map[string]any{"platform_class": "THEIRS"} })
	wantCode(t, c.Run(context.Background(), sc, step, nil).Fault, plan.CodePlanStale)
	if d, _ := s.Device("gpu-001"); d.CustomFields["platform_class"] != "THEIRS" {
		t.Errorf("overwritten: %v", d.CustomFields)
	}
	// The field is gone.
	s2 := serve(t, netboxtest.Options{Fields: []netboxtest.Field{}}, d)
	f := client(t, s2.URL, s2.Token).Run(context.Background(), sc, step, nil).Fault
	if f == nil || f.Code != plan.CodePlatformRecordFailed || !strings.Contains(f.Summary, "no custom field platform_class") {
		t.Errorf("%v", f)
	}
}

// A device in a rack without a position is refused, unless the site waives it.
func TestAllowUnplaced(t *testing.T) {
	d := host(1)
	d.Position = 0
	s := serve(t, netboxtest.Options{}, d)
	st := site()
	if in := intent(t, client(t, s.URL, s.Token), st, "gpu-001"); len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeDeviceNotPlaced || !strings.Contains(in.Faults[0].WayOut(), "allow_unplaced") {
		t.Errorf("faults:\n%s", texts(in.Faults))
	}
	st.NetBox.AllowUnplaced = true
	if in := intent(t, client(t, s.URL, s.Token), st, "gpu-001"); len(in.Faults)+len(in.Warnings) > 0 {
		t.Errorf("waived, and yet:\n%s", texts(append(in.Faults, in.Warnings...)))
	}
}
