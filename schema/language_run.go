package schema

// The blocks about how a run goes, and about the systems beside the four.

func limitsBlock() *block {
	limit := func(name, fallback, most, unit, doc, effect string) attribute {
		return attribute{name: name, typ: intType, fallback: fallback, min: "1", max: most, unit: unit, example: fallback, since: version01, doc: doc, effect: effect}
	}
	return &block{
		name: "limits", since: version01,
		doc: "How much happens at once.",
		attrs: []attribute{
			limit("devices", "16", "500", "devices", "Devices with an exchange in flight at once. While NetBox, Ironic or the DHCP server cannot keep up, apply uses fewer.", "how fast apply is"),
			limit("requests_per_bmc", "1", "4", "requests", "Requests that one BMC has in flight at most. enroll sends each BMC one after the other, whatever stands here.", "how busy a BMC gets"),
			limit("reboots", "5", "1000", "hosts", "Hosts of the site that reboot at once; where it is not set, not fewer than `reboots_per_rack`. A host counts from the begin of its step, for ten minutes at most: one that cleans its disks for hours has long booted.", "when steps with the effect reboot wait"),
			limit("reboots_per_rack", "2", "100", "hosts", "Hosts of one rack that reboot at once. Not more than `reboots`; where it is not set, that many where they are fewer.", "when steps with the effect reboot wait"),
			limit("dhcp_batch", "50", "1000", "hosts", "Reservations that are written in one exchange, beside the `devices` at once. All of an apply share one restart.", "dhcp.reservation"),
		},
	}
}

func ownedNodesBlock() *block {
	return &block{
		name: "owned_nodes", since: version01,
		doc: "What may be changed on a node that Nova or a standalone deployment owns. Without it: nothing but the NetBox tag. Only nodes whose enrolment is over are meant; on all others nothing runs.",
		attrs: []attribute{
			{name: "release", typ: textListType, required: true, enum: harmlessKinds(), example: `["bmc.ntp"]`, since: version01,
				doc: "Kinds whose differences are mended on owned nodes. What can reboot, switch, reset or change a credential cannot be released.", effect: "which differences are not blocked"},
		},
	}
}

// harmlessKinds are the kinds without the effects reboot, bmc_reset, power and
// credential.
func harmlessKinds() []string {
	return []string{"netbox.platform_class", "dhcp.reservation", "dhcp.index", "dhcp.service", "bmc.hostname", "bmc.ntp", "bmc.time_zone", "bmc.syslog", "bmc.security", "bmc.virtual_media", "bmc.ipmi_lan"}
}

func verificationBlock() *block {
	return &block{
		name: "verification", since: version01,
		doc: "How what a switch announces is compared with NetBox.",
		blocks: []*block{{
			name: "port_names", many: true, since: version01,
			label: &label{name: "PLATFORM", doc: "the slug of the switch's platform in NetBox", example: "cumulus-linux", check: isSlug},
			doc:   "Differences between the names of ports that do not count, on switches of one platform. Every verdict that rests on one says so.",
			attrs: []attribute{
				{name: "ignore", typ: textListType, required: true, enum: []string{"case", "spaces", "abbreviation", "leading_zeros"}, example: `["case", "abbreviation"]`, since: version01,
					doc: "`case`: upper and lower case; `spaces`: blanks; `abbreviation`: `Eth1/1` is `Ethernet1/1`; `leading_zeros`: `swp01` is `swp1`.", effect: "check.lldp"},
			},
		}, {
			name: "switch_names", many: true, since: version01,
			label: &label{name: "PLATFORM", doc: "the slug of the switch's platform in NetBox", example: "arista-eos", check: isSlug},
			doc:   "Differences between the names of switches that do not count, on switches of one platform. Every verdict that rests on one says so.",
			attrs: []attribute{
				{name: "ignore", typ: textListType, required: true, enum: []string{"case", "domain"}, example: `["domain"]`, since: version01,
					doc: "`case`: upper and lower case; `domain`: `leaf1.example.net` is `leaf1`.", effect: "check.lldp"},
			},
		}},
	}
}

func fleetManagerBlock() *block {
	return &block{name: "fleet_manager", later: true, doc: "A fleet manager that is told the platform class.", instead: "Remove it; the class stands in NetBox's custom field platform_class, where the fleet manager can read it."}
}

func workflowBlock() *block {
	return &block{name: "workflow", later: true, doc: "A durable workflow engine (Temporal) that runs the steps of large fleets.", instead: "Remove it; enroll apply runs them itself; limits says how many at once."}
}
