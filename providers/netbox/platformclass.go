package netbox

import (
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// The platform class (reference workflow, phase 0b) is
// GPUTYPE_DEVICETYPE_FABRICTYPE_NN. The fleet manager looks hardware up by it,
// so nothing of it is ever guessed.
const (
	noGPU       = "NOGPU"
	fabricNone  = "NORDMA"
	fabricIB    = "IB"
	classNumber = "01" // there is no handling of collisions

	// maxPlatformClass is the fleet manager's bound; NetBox would take more.
	maxPlatformClass = 128
)

// classInput is what a platform class is made of.
type classInput struct {
	gpu     bool           // the device's class has GPUs
	kind    deviceType     // with its custom fields
	context map[string]any // the rendered config context
}

// classGap is why there is no platform class.
type classGap struct {
	text string // completes "gpu-001 has no platform class: …"
	hint string
	// onType: the place to mend is the device type, not the config context.
	onType bool
}

// platformClass computes the class and the GPU type that it begins with, or
// gives every reason why there is none.
func platformClass(in classInput) (class, gpuType string, gaps []classGap) {
	gpuType, gap := in.gpuType()
	if gap != nil {
		gaps = append(gaps, *gap)
	}
	maker, model := classPart(in.kind.Manufacturer.name()), classPart(in.kind.Model)
	for _, part := range []struct{ what, text string }{{"manufacturer", maker}, {"model", model}} {
		if part.text == "" {
			gaps = append(gaps, classGap{"the " + part.what + " of its device type has no letter and no digit", "Name the " + part.what + " of the device type.", true})
		}
	}
	fabric, gap := fabricNone, (*classGap)(nil)
	if gpuType != noGPU {
		fabric, gap = fabricType(in.context)
	}
	if gap != nil {
		gaps = append(gaps, *gap)
	}
	if len(gaps) > 0 {
		return "", gpuType, gaps
	}
	class = strings.Join([]string{gpuType, maker + model, fabric, classNumber}, "_")
	if len(class) > maxPlatformClass {
		return "", gpuType, []classGap{{fmt.Sprintf("%s… would have %d characters, and the fleet manager takes %d", class[:24], len(class), maxPlatformClass),
			"Shorten gpu_type, manufacturer or model of the device type.", true}}
	}
	return class, gpuType, nil
}

// gpuType is custom field gpu_type of the device type as it is written there.
// Only a device without GPUs may have none.
func (in classInput) gpuType() (string, *classGap) {
	v, exists := in.kind.CustomFields["gpu_type"]
	text, isText := v.(string)
	text = strings.TrimSpace(text)
	fill := "Fill in gpu_type of the device type, for example H200."
	switch {
	case v != nil && !isText:
		return "", &classGap{"custom field gpu_type of its device type is " + kindOf(v) + ", not a text", fill, true}
	case text == "" && !in.gpu:
		return noGPU, nil
	case !exists:
		return "", &classGap{"NetBox has no custom field gpu_type on device types", "Make a custom field gpu_type for device types and fill it in.", true}
	case text == "":
		return "", &classGap{"custom field gpu_type of its device type is empty", fill, true}
	case placeholder(text):
		return "", &classGap{fmt.Sprintf("custom field gpu_type of its device type is the placeholder %q", text), fill, true}
	case strings.Trim(text, lettersAndDigits) != "" || strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(lettersAndDigits, r) }):
		return "", &classGap{fmt.Sprintf("custom field gpu_type of its device type is %q; a platform class takes letters and digits only", clean(text, 40)), fill, true}
	}
	return text, nil
}

const lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// classPart is upper case, without anything but letters and digits.
func classPart(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(lettersAndDigits, r) {
			return r
		}
		return -1
	}, strings.ToUpper(s))
}

// fabricType reads config context ztp: none (absent, or taken back with null) is
// no RDMA, one with a section infiniband is InfiniBand, any other is refused.
func fabricType(context map[string]any) (string, *classGap) {
	const mend = "Write ztp.infiniband in a config context of the device, or remove ztp from it."
	ztp := context["ztp"]
	if ztp == nil {
		return fabricNone, nil
	}
	section, isObject := ztp.(map[string]any)
	if !isObject {
		return "", &classGap{"config context ztp is " + kindOf(ztp) + ", not an object", mend, false}
	}
	switch section["infiniband"].(type) {
	case map[string]any:
		return fabricIB, nil
	case nil:
		return "", &classGap{"config context ztp has no section infiniband, so the fabric is open", mend, false}
	}
	return "", &classGap{"config context ztp.infiniband is " + kindOf(section["infiniband"]) + ", not an object", mend, false}
}

// recordedClass is custom field platform_class of a device: nil without such a
// field, "" when it is not set.
func recordedClass(fields map[string]any) (*string, error) {
	v, exists := fields["platform_class"]
	if !exists {
		return nil, nil //nolint:nilnil // no field is an answer
	}
	text, isText := v.(string)
	if v != nil && !isText {
		return nil, fmt.Errorf("custom field platform_class is %s, not a text", kindOf(v))
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return &text, nil
}

// platform computes the platform class of a draft. That there is none stops the
// device only where the site records it.
func (d *draft) platform() {
	recorded, err := recordedClass(d.CustomFields)
	if err != nil {
		d.gap(plan.CodeIntentInvalid, d.URL, "%s: %s", d.Name, err)
	}
	d.PlatformClass = recorded
	kind, ok := d.world.types[d.device.DeviceType.ID]
	at := d.world.client.page("dcim/device-types", d.device.DeviceType.ID)
	if !ok {
		if d.world.site.RecordPlatformClass {
			d.gap(plan.CodeNetBoxDenied, at, "NetBox does not show the device type %s of %s", clean(d.Model, 80), d.Name).
				hint("Give the token's user the permission dcim.view_devicetype.").with("permission", "dcim.view_devicetype")
		}
		return
	}
	class, _, gaps := platformClass(classInput{gpu: d.GPU, kind: kind, context: d.ConfigContext})
	d.ComputedClass = class
	if !d.world.site.RecordPlatformClass {
		return
	}
	for _, gap := range gaps {
		url := d.URL + "config-context/"
		if gap.onType {
			url = at
		}
		d.gap(plan.CodePlatformUnresolvable, url, "%s has no platform class: %s", d.Name, gap.text).hint("%s", gap.hint)
	}
	switch {
	case recorded == nil && err == nil:
		d.gap(plan.CodePlatformRecordFailed, d.URL, "NetBox has no custom field platform_class on devices, so that of %s cannot be recorded", d.Name).
			hint("Make a custom field platform_class of type text for dcim.device in NetBox.")
	case recorded != nil && len(*recorded) > maxPlatformClass:
		d.gap(plan.CodePlatformUnresolvable, d.URL, "%s has no platform class: the recorded one has %d characters, and the fleet manager takes %d", d.Name, len(*recorded), maxPlatformClass).
			hint("Clear platform_class of %s in NetBox.", d.Name)
	}
}
