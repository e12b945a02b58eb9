package schema

func ironicBlock() *block {
	return &block{
		name: "ironic", many: true, since: version01,
		label: &label{name: "NAME", doc: "a name for messages", example: "baremetal", check: isName},
		doc:   "An Ironic and the device classes that it manages. Exactly one of `cloud` and `endpoint` is set.",
		attrs: []attribute{
			{name: "cloud", typ: textType, check: isName, fallbackDoc: "none", example: `"lon14"`, since: version01,
				doc: "An entry of clouds.yaml: an Ironic behind Keystone.", effect: "how Ironic is reached"},
			{name: "clouds", typ: secretType, fallbackDoc: "none; else clouds_file, else the usual places of OpenStack's clients", example: `secret("openstack-lon14", "clouds_yaml")`, since: version01,
				doc: "The text of clouds.yaml. At most one of `clouds` and `clouds_file` is set.", effect: "login at Keystone"},
			{name: "clouds_file", typ: textType, path: true, check: isPath, fallbackDoc: "none; else clouds, else the usual places of OpenStack's clients", example: `"clouds.yaml"`, since: version01,
				doc: "A file with clouds.yaml. A secure.yaml beside it is read too. A relative path begins at the site's folder.", effect: "login at Keystone"},
			{name: "secure", typ: secretType, fallbackDoc: "none", example: `secret("openstack-lon14", "secure_yaml")`, since: version01,
				doc: "The text of secure.yaml, whose entries complete those of clouds.yaml. Needs `clouds` or `clouds_file`.", effect: "login at Keystone"},
			{name: "secure_file", typ: textType, path: true, check: isPath, fallbackDoc: "none", example: `"/run/enroll/secure.yaml"`, since: version01,
				doc: "A file with secure.yaml. Needs `clouds` or `clouds_file`. A relative path begins at the site's folder.", effect: "login at Keystone"},
			{name: "endpoint", typ: textType, check: isServiceURL, fallbackDoc: "none", example: `"http://ironic.example.net:6385"`, since: version01,
				doc: "The address of a standalone Ironic without Keystone.", effect: "how Ironic is reached"},
			{name: "device_classes", typ: textListType, required: true, check: isName, example: `["COMPUTE_GPU"]`, since: version01,
				doc: "Labels of `device_class` blocks. A class belongs to one Ironic.", effect: "which devices become nodes here"},
			{name: "enrol_project", typ: textType, check: isName, fallbackDoc: "none: owner and lessee stay empty", example: `"2f3c0a7be61d4e4d8a57e1a0f0b9c111"`, since: version01,
				doc: "The id of the project that owns and leases new nodes.", effect: "ironic.node when it is created"},
			{name: "scheduler_trait", typ: textType, check: isTrait, fallbackDoc: "none", example: `"HW_ARCH_X86_64"`, since: version01,
				doc: "The trait by which Nova's scheduler finds the nodes.", effect: "ironic.trait"},
			{name: "cleaning_deadline", typ: durationType, fallback: "3h", min: "1s", max: "168h", unit: "duration", example: `"3h"`, since: version01,
				doc: "How long cleaning may take.", effect: "budget of ironic.provision[provide]"},
			{name: "inspection_deadline", typ: durationType, fallback: "1h", min: "1s", max: "168h", unit: "duration", example: `"1h"`, since: version01,
				doc: "How long an inspection may take.", effect: "budget of ironic.provision[inspect]"},
			{name: "attempts", typ: intType, fallback: "3", min: "1", max: "20", unit: "runs", example: "3", since: version01,
				doc: "How often the walk to `available` is tried as a whole.", effect: "ironic.provision"},
			caFile(), timeout("60s"),
			{name: "switch_to_ipmi_after_inspection", later: true, doc: "Change the driver to ipmi after inspection."},
		},
		blocks: []*block{{
			name: "node_lock", since: version01,
			doc: "What happens while Ironic keeps a node locked.",
			attrs: []attribute{
				{name: "max_wait", typ: durationType, fallback: "15m", min: "1ms", max: "24h", unit: "duration", example: `"15m"`, since: version01,
					doc: "The budget of all waits for the lock together.", effect: "when IRONIC_NODE_LOCKED is final"},
				{name: "backoff", typ: durationPairType, fallback: "10s, 60s", min: "1ms", max: "1h", unit: "duration", example: `["10s", "60s"]`, since: version01,
					doc: "The first and the longest pause between two tries.", effect: "how often a locked node is asked"},
			},
		}},
	}
}

func dhcpBlock() *block {
	deadline := func(name, doc string) attribute {
		return attribute{name: name, typ: durationType, fallback: "120s", min: "100ms", max: "1h", unit: "duration", example: `"120s"`, since: version01,
			doc: doc, effect: "when the DHCP server counts as unreachable"}
	}
	return &block{
		name: "dhcp", since: version01,
		doc: "The DHCP server of the BMC network, reached over SSH.",
		attrs: []attribute{
			{name: "host", typ: textType, required: true, check: isHost, example: `"dhcp1.lon14.example.net"`, since: version01,
				doc: "Name or address of the server.", effect: "where reservations are written"},
			{name: "port", typ: intType, fallback: "22", min: "1", max: "65535", example: "22", since: version01,
				doc: "The port of its SSH server.", effect: "how the server is reached"},
			{name: "user", typ: textType, required: true, check: isUnixUser, example: `"enroll"`, since: version01,
				doc: "The account that logs in.", effect: "login at the DHCP server"},
			{name: "identity", typ: secretType, fallbackDoc: "none; else identity_file", example: `secret("ssh-config-dhcp", "private_key")`, since: version01,
				doc: "The private key. Exactly one of `identity` and `identity_file` is set.", effect: "login at the DHCP server"},
			{name: "identity_file", typ: textType, path: true, check: isPath, fallbackDoc: "none; else identity", example: `"id_ed25519"`, since: version01,
				doc: "A file with the private key. A relative path begins at the site's folder.", effect: "login at the DHCP server"},
			{name: "known_hosts", typ: secretType, fallbackDoc: "none; else known_hosts_file", example: `secret("ssh-config-dhcp", "known_hosts")`, since: version01,
				doc: "The lines of known_hosts. Exactly one of `known_hosts` and `known_hosts_file` is set; a server whose key is on neither is refused.", effect: "which host keys are accepted"},
			{name: "known_hosts_file", typ: textType, path: true, check: isPath, fallbackDoc: "none; else known_hosts", example: `"known_hosts"`, since: version01,
				doc: "A file with these lines. A relative path begins at the site's folder.", effect: "which host keys are accepted"},
			{name: "service", typ: textType, required: true, enum: []string{"dnsmasq", "kea", "isc"}, example: `"dnsmasq"`, since: version01,
				doc: "The kind of DHCP server. This version serves `dnsmasq` only.", effect: "form of dhcp.reservation, commands of dhcp.service"},
			{name: "directory", typ: textType, required: true, check: isRemoteDirectory, example: `"/etc/dnsmasq.d/enroll-hosts"`, since: version01,
				doc: "The absolute path of the folder that holds one file for each host.", effect: "where reservations are written"},
			{name: "unit", typ: textType, check: isUnit, fallbackDoc: "by `service`: `dnsmasq`", example: `"dnsmasq"`, since: version01,
				doc: "The systemd unit of the server.", effect: "what dhcp.service reloads"},
			{name: "name_suffix", typ: textType, fallback: "-bmc", mayBeEmpty: true, check: isHostSuffix, example: `"-bmc"`, since: version01,
				doc: "What is appended to the device's name for the reservation's host and file name.", effect: "dhcp.reservation"},
			{name: "subnets", typ: textListType, required: true, check: isSubnet, example: `["192.0.2.0/24"]`, since: version01,
				doc: "The networks that the server serves for BMCs.", effect: "an address outside of them is refused"},
			{name: "settle", typ: durationType, fallback: "2s", min: "0s", max: "10m", unit: "duration", example: `"2s"`, since: version01,
				doc: "The pause before the service's health is looked at a second time.", effect: "dhcp.service"},
			{name: "config", later: true, doc: "The server's main configuration file (Kea, ISC)."},
		},
		blocks: []*block{{
			name: "timeouts", since: version01,
			doc: "Four independent deadlines.",
			attrs: []attribute{
				deadline("connect", "Until the connection stands."),
				deadline("login", "Until the login is through."),
				deadline("command", "Of one remote command."),
				deadline("transfer", "Of one file transfer."),
			},
		}},
	}
}

func bmcBlock() *block {
	b := &block{
		name: "bmc", since: version01,
		doc: "What a site wants of its BMCs. Attributes marked so may use `device.*` and are evaluated for each device.",
		attrs: []attribute{
			{name: "credential", typ: secretType, required: true, perDevice: true, example: `secret("bmc-${device.name}", "password")`, since: version01,
				doc: "The password of the account that enroll and Ironic use.", effect: "bmc.credential, login at the BMC, the node's driver_info"},
			{name: "username", typ: secretType, perDevice: true, fallbackDoc: "field `username` of the item that `credential` names", example: `secret("bmc-${device.name}", "login")`, since: version01,
				doc: "The user name of that account.", effect: "login at the BMC, the node's driver_info"},
			caFile(),
			{name: "insecure", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Accept any certificate of a BMC. Every run warns about it.", effect: "certificates are not checked"},
			{name: "insecure_reason", typ: textType, fallbackDoc: "none", example: `"factory certificates until the CA is rolled out"`, since: version01,
				doc: "Why. Required with `insecure = true`.", effect: "shown in the warning"},
			{name: "restrict_boot", typ: boolType, fallback: "true", example: "true", since: version01,
				doc: "Let the host boot from the network over its provisioning NIC only.", effect: "bmc.boot_order"},
			{name: "timeout", typ: durationType, fallback: "30s", min: "100ms", max: "1h", unit: "duration", example: `"30s"`, since: version01,
				doc: "How long one request may take.", effect: "when a BMC counts as unanswered"},
			{name: "ready_budget", typ: durationType, fallback: "30m", min: "1s", max: "24h", unit: "duration", example: `"30m"`, since: version01,
				doc: "How long a BMC may take to appear after its DHCP reservation went live.", effect: "budget of the first step on a new BMC"},
			{name: "hostname", typ: textType, perDevice: true, check: isHostName, fallbackDoc: "the device's name", example: `"${device.name}-bmc"`, since: version01,
				doc: "The host name that the BMC shall have.", effect: "bmc.hostname"},
			{name: "ntp_servers", typ: textListType, perDevice: true, mayBeEmpty: true, check: isHost, fallbackDoc: "those that NetBox has for the site; where it has none, the BMC's are left alone", example: `["ntp1.example.net", "192.0.2.123"]`, since: version01,
				doc: "The time servers of the BMC, names or addresses, in order of preference. An empty list leaves the BMC's alone.", effect: "bmc.ntp"},
			{name: "monitoring", later: true, doc: "The shared monitoring account."},
		},
	}
	for _, later := range []struct{ name, doc string }{
		{"bios", "BIOS settings of a platform class."}, {"idrac", "Settings of iDRAC only."}, {"xcc", "Settings of XCC only."},
		{"ami", "Settings of AMI MegaRAC only."}, {"supermicro", "Settings of Supermicro only."}, {"generic", "Settings of other Redfish BMCs."},
		{"syslog", "Where BMCs send their logs."}, {"security", "Services that shall be off."}, {"tls", "Certificates in detail."},
	} {
		b.blocks = append(b.blocks, &block{name: later.name, later: true, doc: later.doc})
	}
	return b
}
