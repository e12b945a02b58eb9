package schema

func bmcBlock() *block {
	return &block{
		name: "bmc", since: version01,
		doc: "What a site wants of its BMCs. Attributes marked so may use `device.*` and are evaluated for each device.",
		attrs: []attribute{
			{name: "credential", typ: secretType, required: true, perDevice: true, example: `secret("bmc-${device.name}", "password")`, since: version01,
				doc: "The password of the account that enroll and Ironic use.", effect: "bmc.credential, login at the BMC, the node's driver_info"},
			{name: "username", typ: secretType, perDevice: true, fallbackDoc: "field `username` of the item that `credential` names", example: `secret("bmc-${device.name}", "login")`, since: version01,
				doc: "The user name of that account.", effect: "login at the BMC, the node's driver_info"},
			{name: "factory_credential", typ: secretType, perDevice: true, fallbackDoc: "none: a BMC that does not take `credential` is a fault", example: `secret("bmc-factory", "password")`, since: version01,
				doc: "The password that the account has when the BMC is new. A BMC that takes it, and not `credential`, gets a new one: made, staged in the vault beside the current one, set, proven by a login and published. New ones are kept by `secrets \"vault\"` whose policy grants update; anywhere else the BMC gets the one of `credential`, and the plan fails where the BMC wants another. No password is set on Supermicro.", effect: "bmc.credential"},
			{name: "monitoring", typ: secretType, fallbackDoc: "none: there is no monitoring account", example: `secret("ipmi_exporter", "password")`, since: version01,
				doc: "The password of the monitoring account, the same on all BMCs. Ironic never uses it.", effect: "bmc.ipmi_user"},
			{name: "monitoring_username", typ: secretType, fallbackDoc: "field `username` of the item that `monitoring` names", example: `secret("ipmi_exporter", "login")`, since: version01,
				doc: "The user name of the monitoring account.", effect: "bmc.ipmi_user"},
			{name: "monitoring_role", typ: textType, fallback: "ReadOnly", enum: []string{"ReadOnly", "Operator", "Administrator"}, example: `"Operator"`, since: version01,
				doc: "What the monitoring account may do, in Redfish's words; over IPMI that is the privilege User, Operator or Administrator.", effect: "bmc.ipmi_user"},
			{name: "verify_ipmi", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Prove by a login over IPMI (RMCP+, cipher suites 17 and 3) that monitoring gets in. UDP port 623 of the BMCs has to be open from here.", effect: "check.ipmi"},
			caFile(),
			{name: "restrict_boot", typ: boolType, fallback: "true", example: "true", since: version01,
				doc: "Let the host boot from the network over its provisioning NIC only.", effect: "bmc.boot_order"},
			{name: "timeout", typ: durationType, fallback: "30s", min: "100ms", max: "1h", unit: "duration", example: `"30s"`, since: version01,
				doc: "How long one request may take.", effect: "when a BMC counts as unanswered"},
			{name: "ready_budget", typ: durationType, fallback: "30m", min: "1s", max: "24h", unit: "duration", example: `"30m"`, since: version01,
				doc: "How long a BMC may take to appear after its DHCP reservation went live.", effect: "budget of the first step on a new BMC"},
			{name: "hostname", typ: textType, perDevice: true, check: isHostName, fallbackDoc: "the device's name", example: `"${device.name}-bmc"`, since: version01,
				doc: "The host name that the BMC shall have.", effect: "bmc.hostname"},
			{name: "ntp_servers", typ: textListType, perDevice: true, mayBeEmpty: true, check: isHost, fallbackDoc: "`ntp.servers`", example: `["ntp1.example.net", "192.0.2.123"]`, since: version01,
				doc: "The short form of a block `ntp` with nothing but `servers`.", effect: "bmc.ntp"},
		},
		blocks: []*block{
			ntpBlock(), syslogBlock(), securityBlock(), tlsBlock(), biosBlock(),
			idracBlock(), xccBlock(), amiBlock(), supermicroBlock(), genericBlock(),
		},
	}
}

func ntpBlock() *block {
	return &block{
		name: "ntp", since: version01,
		doc: "The clock of the BMCs.",
		attrs: []attribute{
			{name: "servers", typ: textListType, perDevice: true, mayBeEmpty: true, check: isHost, fallbackDoc: "those that NetBox has for the site; where it has none, the BMC's are left alone", example: `["ntp1.example.net", "192.0.2.123"]`, since: version01,
				doc: "The time servers, names or addresses, in order of preference. An empty list leaves the BMC's alone.", effect: "bmc.ntp"},
			{name: "time_zone", typ: textType, check: isTimeZone, fallbackDoc: "the BMC's is left alone", example: `"Europe/London"`, since: version01,
				doc: "The time zone in which the BMC shows times, by its IANA name. A BMC that keeps an offset from UTC (XCC, AMI) takes zones without daylight saving only, a Supermicro UTC only; one that cannot have it is left alone and says so.", effect: "bmc.time_zone"},
		},
	}
}

func syslogBlock() *block {
	return &block{
		name: "syslog", since: version01,
		doc: "Where BMCs send their logs.",
		attrs: []attribute{
			{name: "servers", typ: textListType, required: true, perDevice: true, check: isHost, example: `["syslog.example.net"]`, since: version01,
				doc: "Names or addresses. A family that takes fewer gets the first ones.", effect: "bmc.syslog"},
			{name: "port", typ: intType, fallback: "514", min: "1", max: "65535", example: "514", since: version01,
				doc: "The port of the servers.", effect: "bmc.syslog"},
			{name: "protocol", typ: textType, fallback: "udp", enum: []string{"udp", "tcp", "tls"}, example: `"udp"`, since: version01,
				doc: "How logs travel. A family that cannot is left alone and says so.", effect: "bmc.syslog"},
		},
	}
}

func securityBlock() *block {
	service := func(name, doc string) attribute {
		return attribute{name: name, typ: boolType, fallbackDoc: "left as it is", example: "false", since: version01, doc: doc, effect: "bmc.security"}
	}
	return &block{
		name: "security", since: version01,
		doc: "What a BMC offers to the network and to the host. What is not written is left as it is.",
		attrs: []attribute{
			service("http", "Whether plain HTTP is served beside HTTPS."),
			service("ssh", "Whether the BMC's command line is reachable over SSH."),
			service("telnet", "Whether telnet is served."),
			service("vnc", "Whether the console is reachable over VNC."),
			service("ssdp", "Whether the BMC announces itself by SSDP."),
			service("host_interface", "Whether the host's operating system can reach the BMC over the internal network interface or KCS."),
			{name: "snmp", typ: textType, enum: []string{"off", "v3", "all"}, fallbackDoc: "left as it is", example: `"v3"`, since: version01,
				doc: "Which SNMP is served.", effect: "bmc.security"},
			{name: "tls_min_version", typ: textType, enum: []string{"1.2", "1.3"}, fallbackDoc: "left as it is", example: `"1.2"`, since: version01,
				doc: "The lowest version of TLS that the BMC's own server speaks.", effect: "bmc.security"},
			{name: "lockout_attempts", typ: intType, min: "0", max: "16", fallbackDoc: "left as it is", example: "5", since: version01,
				doc: "After how many wrong passwords a BMC locks out; 0 never.", effect: "bmc.security"},
			{name: "lockout_duration", typ: durationType, min: "1s", max: "24h", unit: "duration", fallbackDoc: "left as it is", example: `"60s"`, since: version01,
				doc: "For how long. It needs `lockout_attempts`.", effect: "bmc.security"},
		},
	}
}

func tlsBlock() *block {
	return &block{
		name: "tls", since: version01,
		doc: "How the certificates of BMCs are checked.",
		attrs: []attribute{
			caFile(),
			{name: "pins", typ: textListType, check: isPin, fallbackDoc: "none: the certificate must lead to a known authority", example: `["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]`, since: version01,
				doc: "SHA-256 fingerprints of the certificates that are accepted beside those of an authority. A fault about a refused certificate has its fingerprint.", effect: "which certificates are accepted"},
			{name: "relearn_pins", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "After enroll itself reset or renamed a BMC whose certificate is pinned, accept the one that it makes for itself then, until the run ends.", effect: "which certificates are accepted"},
			{name: "ciphers", typ: textListType, check: isOldCipher, fallbackDoc: "those that Go offers", example: `["TLS_RSA_WITH_AES_128_GCM_SHA256"]`, since: version01,
				doc: "Old cipher suites that are offered beside the usual ones, for firmware that has no better.", effect: "which BMCs are refused"},
			{name: "min_version", typ: textType, enum: []string{"1.2", "1.3"}, fallback: "1.2", example: `"1.3"`, since: version01,
				doc: "The lowest version of TLS that enroll speaks with a BMC.", effect: "which BMCs are refused"},
			{name: "insecure", typ: boolType, fallback: "false", example: "true", since: version01,
				doc: "Accept any certificate of a BMC. Every run warns about it.", effect: "certificates are not checked"},
			{name: "reason", typ: textType, fallbackDoc: "none", example: `"factory certificates until the CA is rolled out"`, since: version01,
				doc: "Why. Required with `insecure = true`.", effect: "shown in the warning"},
		},
	}
}

func biosBlock() *block {
	return &block{
		name: "bios", many: true, since: version01,
		label: &label{name: "CLASS", doc: "manufacturer and model as in platform classes, upper case without anything but letters and digits, or a whole platform class", example: "DELLPOWEREDGEXE9680", check: isPlatformClass},
		doc:   "BIOS settings of a platform class.",
		attrs: []attribute{
			{name: "attributes", typ: scalarMapType, required: true, example: `{ BootMode = "Uefi", LogicalProc = "Enabled" }`, since: version01,
				doc: "Attributes of the BIOS by the names of its registry. Texts, numbers, true and false. One that another makes read-only, by the registry's dependencies, can be set together with the other; the plan tells which one is missing.", effect: "bmc.bios"},
		},
	}
}

// vendorBlock is what all families have in their blocks.
func vendorBlock(name, family, attributesDoc string, more ...attribute) *block {
	b := &block{
		name: name, since: version01,
		doc: "Settings of " + family + " only.",
		attrs: []attribute{
			{name: "restrict_boot", typ: boolType, fallbackDoc: "`bmc.restrict_boot`", example: "false", since: version01,
				doc: "Whether the host boots from the network over its provisioning NIC only.", effect: "bmc.boot_order"},
		},
	}
	if attributesDoc != "" {
		b.attrs = append(b.attrs, attribute{name: "attributes", typ: scalarMapType, fallbackDoc: "none", example: `{ "WebServer.1.HttpsRedirection" = "Enabled" }`, since: version01,
			doc: attributesDoc, effect: "bmc.security"})
	}
	b.attrs = append(b.attrs, more...)
	return b
}

func idracBlock() *block {
	return vendorBlock("idrac", "iDRAC", "Attributes of DellAttributes by their names in the registry.",
		attribute{name: "lockdown", typ: boolType, fallbackDoc: "left as it is", example: "true", since: version01,
			doc: "Whether the system is locked down when everything else is set.", effect: "bmc.security"},
		attribute{name: "ip_blocking", typ: boolType, fallbackDoc: "left as it is", example: "true", since: version01,
			doc: "Whether an address is blocked after wrong passwords.", effect: "bmc.security"})
}

func xccBlock() *block {
	return vendorBlock("xcc", "Lenovo XCC", "",
		attribute{name: "kcs", typ: boolType, fallbackDoc: "left as it is", example: "false", since: version01,
			doc: "Whether the host may use the KCS interface.", effect: "bmc.security"},
		attribute{name: "firmware_rollback", typ: boolType, fallbackDoc: "left as it is", example: "false", since: version01,
			doc: "Whether older firmware may be installed.", effect: "bmc.security"})
}

func amiBlock() *block {
	return vendorBlock("ami", "AMI MegaRAC", "",
		attribute{name: "virtual_media", typ: boolType, fallbackDoc: "left as it is", example: "true", since: version01,
			doc: "Whether virtual media are served.", effect: "bmc.virtual_media"})
}

func supermicroBlock() *block {
	return vendorBlock("supermicro", "Supermicro", "",
		attribute{name: "lockdown", typ: boolType, fallbackDoc: "left as it is", example: "false", since: version01,
			doc: "Whether the system is locked down when everything else is set.", effect: "bmc.security"})
}

func genericBlock() *block {
	return vendorBlock("generic", "other Redfish BMCs", "",
		attribute{name: "manager", typ: textType, check: isResourceID, fallbackDoc: "the one that manages the system", example: `"BMC"`, since: version01,
			doc: "The id of the manager, where a BMC shows several.", effect: "which manager is read and written"})
}
