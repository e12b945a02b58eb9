package schema

// version01 is the first version that has an attribute.
const version01 = "0.1"

// language is the whole language as one table. A new attribute is a new row
// here and a line where convert.go reads it.
func language() *block {
	return &block{
		name: "",
		doc:  "All files with the ending .hcl of a site's folder are read as one, and so are those with the ending .hcl.json, the JSON form of HCL.",
		blocks: []*block{
			enrollBlock(), variableBlock(), localsBlock(), siteBlock(),
		},
	}
}

func enrollBlock() *block {
	return &block{
		name: "enroll", since: version01,
		doc: "Settings of the program itself.",
		attrs: []attribute{
			{name: "required_version", typ: textType, check: isVersionConstraint, fallbackDoc: "any version", example: `">= 0.1"`, since: version01,
				doc:    "The versions of enroll that may read this folder: comparisons with `=`, `!=`, `>`, `>=`, `<`, `<=` or `~>`, joined by commas.",
				effect: "another version refuses the folder"},
			{name: "include", typ: textListType, check: isIncludePath, fallbackDoc: "none", example: `["../common"]`, since: version01,
				doc:    "Folders that are read first, to share settings between sites. What this folder sets wins; blocks of the same type and label are merged attribute by attribute, lists and maps are replaced whole. In an included folder the site block has no label.",
				effect: "what is set where this folder sets nothing"},
		},
	}
}

func variableBlock() *block {
	return &block{
		name: "variable", many: true, since: version01,
		label: &label{name: "NAME", doc: "the name under which expressions find the value: `var.NAME`", example: "netbox_url", check: isIdentifier},
		doc:   "A value that differs between runs. It is given by `--var NAME=VALUE`, by a line `NAME = VALUE` in a file named by `--var-file`, or by the environment variable `ENROLL_VAR_NAME` (the first of these wins), else it has its default; a variable without either is an error.",
		attrs: []attribute{
			{name: "type", typ: constraintType, fallbackDoc: "any type; given values are texts", example: "string", since: version01,
				doc:    "`string`, `number`, `bool`, `list(string)`, `map(string)` and so on. Given values are read as that type.",
				effect: "a value of another type is refused"},
			{name: "default", typ: anyType, fallbackDoc: "none: a value must be given", example: `"https://netbox.example.net"`, since: version01,
				doc:    "The value when none is given. It may use functions, but neither variables nor locals.",
				effect: "the variable need not be given"},
			{name: "description", typ: textType, fallbackDoc: "none", mayBeEmpty: true, example: `"where NetBox answers"`, since: version01,
				doc:    "One sentence for people. It is shown when the value is missing.",
				effect: "messages only"},
		},
		blocks: []*block{{
			name: "validation", many: true, since: version01,
			doc: "A rule that the value must fulfil. There may be several.",
			attrs: []attribute{
				{name: "condition", typ: boolType, required: true, example: `length(var.netbox_url) > 0`, since: version01,
					doc: "An expression over `var.NAME`.", effect: "a value for which it is false is refused"},
				{name: "error_message", typ: textType, required: true, example: `"The address must not be empty."`, since: version01,
					doc: "One sentence that says what is wanted.", effect: "what is said about a refused value"},
			},
		}},
	}
}

func localsBlock() *block {
	return &block{
		name: "locals", many: true, free: true, since: version01,
		doc: "Named values for use in this folder: `local.NAME`. They may use variables and other locals, not `device`.",
	}
}

func siteBlock() *block {
	return &block{
		name: "site", required: true, since: version01,
		label: &label{name: "NAME", doc: "the first part of every address: `NAME/DEVICE/ironic.node`", example: "lon14", check: isSlug},
		doc:   "The site. A folder describes one.",
		attrs: []attribute{
			{name: "configure_dhcp", typ: boolType, fallback: "true", example: "true", since: version01,
				doc: "Whether the BMC's DHCP reservation is kept. Needs a `dhcp` block.", effect: "dhcp.reservation, dhcp.index, dhcp.service"},
			{name: "configure_bmc", typ: boolType, fallback: "true", example: "true", since: version01,
				doc: "Whether the BMC's settings are kept. Needs a `bmc` block.", effect: "bmc.credential, bmc.hostname, bmc.ntp, bmc.boot_order"},
			{name: "ironic_enrol", typ: boolType, fallback: "true", example: "true", since: version01,
				doc: "Whether the node is enrolled in Ironic. Needs a `bmc` block.", effect: "ironic.node, ironic.port, ironic.provision, ironic.power, check.inspection, check.lldp"},
			{name: "record_platform_class", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Whether the custom field `platform_class` of the device is filled in when it is empty.", effect: "netbox.platform_class"},
		},
		blocks: append([]*block{netboxBlock()}, append(secretsBlocks(),
			deviceClassBlock(), ironicBlock(), dhcpBlock(), bmcBlock(),
			policyBlock(), tolerateBlock(),
			limitsBlock(), ownedNodesBlock(), verificationBlock(), fleetManagerBlock(), workflowBlock(),
		)...),
	}
}

func netboxBlock() *block {
	return &block{
		name: "netbox", required: true, since: version01,
		doc: "The NetBox that records the site.",
		attrs: []attribute{
			{name: "url", typ: textType, required: true, check: isServiceURL, example: `"https://netbox.example.net"`, since: version01,
				doc: "NetBox's base address, without `/api`.", effect: "where intent is read, and platform class, status and tags are written"},
			{name: "token", typ: secretType, required: true, example: `secret("netbox-enroll", "credential")`, since: version01,
				doc: "The API token. It needs view rights on what is read and the right to change dcim.device.", effect: "login at NetBox"},
			{name: "site", typ: textType, check: isSlug, fallbackDoc: "the label of the site block", example: `"lon14"`, since: version01,
				doc: "The slug of the NetBox site.", effect: "which devices belong to the site"},
			{name: "allow_unplaced", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Whether a device may be enrolled that NetBox has in a rack without a position.", effect: "whether such a device has the fault DEVICE_NOT_PLACED"},
			caFile(), timeout("30s"),
		},
	}
}

func deviceClassBlock() *block {
	return &block{
		name: "device_class", many: true, required: true, since: version01,
		label: &label{name: "NAME", doc: "the name that `ironic.device_classes` lists", example: "COMPUTE_GPU", check: isName},
		doc:   "A class of devices, made of NetBox device roles. A role belongs to one class.",
		attrs: []attribute{
			{name: "roles", typ: textListType, required: true, check: isSlug, example: `["gpu-compute"]`, since: version01,
				doc: "Slugs of NetBox device roles.", effect: "which devices are of the class"},
			{name: "gpu", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Whether these devices have GPUs.", effect: "netbox.platform_class"},
		},
	}
}

// caFile is the same everywhere.
func caFile() attribute {
	return attribute{name: "ca_file", typ: textType, path: true, check: isPath, fallbackDoc: "the system's certificates", example: `"ca.pem"`, since: version01,
		doc: "PEM file with the certificates that the server's certificate must lead to. A relative path begins at the folder of the file that sets it.", effect: "which certificates are accepted"}
}

func timeout(fallback string) attribute {
	return attribute{name: "timeout", typ: durationType, fallback: fallback, min: "100ms", max: "1h", unit: "duration", example: `"` + fallback + `"`, since: version01,
		doc: "How long one request may take.", effect: "when a request counts as unanswered"}
}
