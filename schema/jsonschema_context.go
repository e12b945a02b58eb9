package schema

import "encoding/json"

// contextKey is one key of a config-context document that NetBox holds. The
// provider decodes the documents; this table feeds the JSON Schemas and explain.
type contextKey struct {
	name     string
	typ      contextType
	required bool
	enum     []string
	doc      string
	example  string       // as it is written in JSON
	keys     []contextKey // of an object
	free     bool         // an object may have other keys
	// check judges one text (or each of a list); its error completes the sentence
	// "PATH …".
	check func(string) error
}

type contextType string

const (
	contextText    contextType = "string"
	contextBool    contextType = "boolean"
	contextCount   contextType = "integer"
	contextTexts   contextType = "list of strings"
	contextObject  contextType = "object"
	contextStrings contextType = "object of strings"
	// contextPairs are written as an object of strings, or as "a:b,c:d".
	contextPairs contextType = "object of strings, or NAME:VALUE,NAME:VALUE"
)

// contextDocuments are the documents that enroll reads, each a key of the
// rendered config context.
func contextDocuments() []contextKey {
	return []contextKey{
		{name: "ironic_settings", typ: contextObject, required: true, doc: "How the device becomes a node in Ironic.", example: `{"driver": "redfish", "interface_type": "25gbase-x-sfp28", "raid_interface": "no-raid"}`,
			keys: ironicSettingsKeys()},
		{name: "inspection_validation", typ: contextObject, doc: "What an inspection must have found. What has no key is not asked, but for the carrier and the LLDP neighbours of the frontend interfaces, which are always checked. What the inspection did not report is not proven, and keeps a node from being cleaned.", example: `{"gpus": 8}`,
			keys: inspectionValidationKeys()},
		{name: "ztp", typ: contextObject, free: true, doc: "How the host's network is set up. For the platform class enroll looks whether there is such an object, and whether it has an infiniband part; an object without one leaves the fabric open, which is refused for devices with GPUs.", example: `{"infiniband": {}}`,
			keys: []contextKey{
				{name: "infiniband", typ: contextObject, free: true, doc: "The fabric is InfiniBand.", example: `{}`, keys: []contextKey{
					{name: "partition", typ: contextText, doc: "The partition key.", example: `"0x8001"`},
				}},
				{name: "enabled", typ: contextBool, doc: "Whether the host is set up so. enroll does nothing with it.", example: `true`},
				{name: "url", typ: contextText, check: isServiceURL, doc: "Where the host gets its setup. enroll does nothing with it.", example: `"http://192.0.2.30/ztp"`},
			}},
	}
}

func ironicSettingsKeys() []contextKey {
	keys := []contextKey{
		{name: "driver", typ: contextText, required: true, doc: "Ironic's driver of the node. Applied when the node is created.", example: `"redfish"`},
		{name: "interface_type", typ: contextText, required: true, doc: "NetBox's type value of the frontend interfaces; the first of them is the provisioning NIC.", example: `"25gbase-x-sfp28"`},
		{name: "raid_interface", typ: contextText, required: true, doc: "Ironic's RAID interface.", example: `"no-raid"`},
	}
	for _, kind := range []string{"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "rescue", "storage", "vendor"} {
		doc := "Ironic's " + kind + " interface. Applied when the node is created; unset leaves it to Ironic."
		example := `"redfish"`
		switch kind {
		case "network":
			doc, example = "Ironic's network interface; \"noop\" where there is no Neutron. Applied when the node is created; unset leaves it to Ironic.", `"noop"`
		case "deploy":
			example = `"direct"`
		case "inspect":
			example = `"agent"`
		case "boot":
			example = `"redfish-virtual-media"`
		}
		keys = append(keys, contextKey{name: kind + "_interface", typ: contextText, doc: doc, example: example})
	}
	return append(keys,
		contextKey{name: "resource_class", typ: contextText, doc: "The node's resource class, by which Nova's flavors find it.", example: `"baremetal-gpu"`},
		contextKey{name: "cpu_arch", typ: contextText, doc: "The node's CPU architecture.", example: `"x86_64"`},
		contextKey{name: "capabilities", typ: contextPairs, doc: "The node's capabilities.", example: `{"boot_mode": "uefi"}`},
		contextKey{name: "root_device", typ: contextObject, free: true, doc: "The hint by which Ironic finds the disk of the operating system.", example: `{"name": "/dev/nvme0n1"}`},
		contextKey{name: "bond", typ: contextObject, doc: "The bond of the frontend interfaces. Without it the node's ports stand alone.", example: `{"mode": "802.3ad", "miimon": 100}`, keys: []contextKey{
			{name: "mode", typ: contextText, required: true, enum: []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}, doc: "The mode, by the names of the Linux bonding driver.", example: `"802.3ad"`},
			{name: "miimon", typ: contextCount, doc: "How often the links are looked at, in milliseconds.", example: `100`},
			{name: "xmit_hash_policy", typ: contextText, doc: "By what outgoing packets are spread.", example: `"layer3+4"`},
			{name: "interfaces", typ: contextTexts, doc: "The members, by their names in NetBox. Without it all frontend interfaces are members.", example: `["eth0", "eth1"]`},
		}},
		contextKey{name: "skip_cable_verification", typ: contextBool, doc: "Leaves out the comparison of LLDP with the cables in NetBox, for example for emulated nodes.", example: `false`},
		contextKey{name: "redfish_address_override", typ: contextText, check: isRedfishAddress, doc: "Where Redfish is reached instead of oob_ip: scheme://host:port[/redfish/v1/Systems/ID].", example: `"https://192.0.2.10:8443"`},
		contextKey{name: "ironic_driver_info", typ: contextObject, free: true, doc: "More of the node's driver_info. What enroll manages itself wins.", example: `{}`},
		contextKey{name: "target_raid_config", typ: contextObject, free: true, doc: "The RAID configuration that Ironic shall build.", example: `{"logical_disks": []}`},
		contextKey{name: "run_inspection", typ: contextBool, doc: "A parameter of an older workflow, which enroll takes as a flag of a run; it has no effect here.", example: `true`},
		contextKey{name: "force_inspection", typ: contextBool, doc: "A parameter of an older workflow, which enroll takes as a flag of a run; it has no effect here.", example: `false`},
	)
}

// ContextNames lists the config-context documents, in the order of the table.
func ContextNames() []string {
	var names []string
	for _, d := range contextDocuments() {
		names = append(names, d.name)
	}
	return names
}

// ContextSchema is the JSON Schema of one config-context document, to be pasted
// into a NetBox config context profile. False: there is no such document.
func ContextSchema(name, version string) ([]byte, bool) {
	for _, d := range contextDocuments() {
		if d.name != name {
			continue
		}
		return schemaText(node{
			"$schema": draft, "$id": "urn:enroll:context:" + name + ":" + version, "title": "Config context " + name + " of enroll " + version,
			"type": "object", "properties": node{name: contextSchema(d)},
		}), true
	}
	return nil, false
}

// placeholderPattern fits placeholders: "None", "null" and their like are what a
// template leaves when it had nothing to write.
const placeholderPattern = `^\s*(?:[Nn]one|NONE|[Nn]ull|NULL|[Nn]il|NIL|[Nn]/[Aa]|[Uu]ndefined|UNDEFINED)?\s*$`

func contextSchema(k contextKey) node {
	out := node{"description": k.doc}
	text := node{"type": "string", "not": node{"pattern": placeholderPattern}}
	switch k.typ {
	case contextText:
		out["type"] = "string"
		if len(k.enum) > 0 {
			out["enum"] = k.enum
			break
		}
		out["not"] = node{"pattern": placeholderPattern}
	case contextBool:
		out["type"] = "boolean"
	case contextCount:
		out["type"], out["minimum"], out["maximum"] = "integer", 0, 1000000
	case contextTexts:
		out["type"], out["items"] = "array", text
	case contextStrings:
		out["type"], out["additionalProperties"] = "object", text
	case contextPairs:
		out["anyOf"] = []node{{"type": "object", "additionalProperties": text}, {"type": "string", "pattern": `^\s*[^:,\s]+:[^,]+(?:,\s*[^:,\s]+:[^,]+)*$`}}
	case contextObject:
		properties, required := node{}, []string{}
		for _, child := range k.keys {
			properties[child.name] = contextSchema(child)
			if child.required {
				required = append(required, child.name)
			}
		}
		out["type"], out["additionalProperties"] = "object", k.free
		if len(properties) > 0 {
			out["properties"] = properties
		}
		if len(required) > 0 {
			out["required"] = required
		}
	}
	if k.example != "" {
		out["examples"] = []json.RawMessage{json.RawMessage(k.example)}
	}
	return out
}
