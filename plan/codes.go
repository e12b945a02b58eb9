package plan

// The codes of every fault. The reference workflow's codes keep their names.
const (
	CodeConfigInvalid        Code = "CONFIG_INVALID"
	CodeSecretMissing        Code = "SECRET_MISSING"
	CodeSecretDenied         Code = "SECRET_DENIED"
	CodeSecretUnreachable    Code = "SECRET_UNREACHABLE"
	CodeSecretInvalid        Code = "SECRET_INVALID"
	CodeSecretLogin          Code = "SECRET_LOGIN_REFUSED"
	CodeSecretBusy           Code = "SECRET_BUSY"
	CodeSecretTimeout        Code = "SECRET_TIMEOUT"
	CodeSecretConflict       Code = "SECRET_CONFLICT"
	CodeRoutingUnresolved    Code = "IRONIC_ROUTING_UNRESOLVED"
	CodeDeviceNotFound       Code = "DEVICE_NOT_FOUND"
	CodeDeviceAmbiguous      Code = "DEVICE_AMBIGUOUS"
	CodeStatusNotEligible    Code = "DEVICE_STATUS_NOT_ELIGIBLE"
	CodeDeviceNotPlaced      Code = "DEVICE_NOT_PLACED"
	CodePlatformUnresolvable Code = "PLATFORM_CLASS_UNRESOLVABLE"
	CodePlatformRecordFailed Code = "PLATFORM_CLASS_RECORD_FAILED"
	CodePlatformKept         Code = "PLATFORM_CLASS_KEPT"
	CodeIntentIncomplete     Code = "NETBOX_INTENT_INCOMPLETE"
	CodeIntentAmbiguous      Code = "NETBOX_INTENT_AMBIGUOUS"
	CodeIntentInvalid        Code = "NETBOX_INTENT_INVALID"
	CodeNetBoxUnreachable    Code = "NETBOX_UNREACHABLE"
	CodeNetBoxDenied         Code = "NETBOX_DENIED"
	CodeNetBoxUnsupported    Code = "NETBOX_VERSION_UNSUPPORTED"
	CodeNetBoxProtocol       Code = "NETBOX_PROTOCOL"
	CodeNetBoxRefused        Code = "NETBOX_REFUSED"
	CodeDHCPUnreachable      Code = "DHCP_UNREACHABLE"
	CodeDHCPHostKeyUnknown   Code = "DHCP_HOST_KEY_UNKNOWN"
	CodeDHCPHostKeyChanged   Code = "DHCP_HOST_KEY_CHANGED"
	CodeDHCPLoginRefused     Code = "DHCP_LOGIN_REFUSED"
	CodeDHCPTransfer         Code = "DHCP_TRANSFER_FAILED"
	CodeDHCPCommand          Code = "DHCP_COMMAND_FAILED"
	CodeDHCPConflict         Code = "DHCP_ENTRY_CONFLICT"
	CodeDHCPForeignFile      Code = "DHCP_FILE_NOT_OURS"
	CodeDHCPUnhealthy        Code = "DHCP_SERVICE_UNHEALTHY"
	CodeDHCPRelay            Code = "DHCP_RELAY_UNUSABLE"
	CodeDHCPRefused          Code = "DHCP_CONFIG_REFUSED"
	CodeDHCPLockHeld         Code = "DHCP_LOCK_HELD"
	CodeDHCPUnread           Code = "DHCP_CONFIG_UNREAD"
	CodeBMCUnreachable       Code = "BMC_UNREACHABLE"
	CodeBMCTLS               Code = "BMC_CERTIFICATE_REFUSED"
	CodeBMCCredential        Code = "BMC_CREDENTIAL_REJECTED"
	CodeBMCLocked            Code = "BMC_ACCOUNT_LOCKED"
	CodeBMCPasswordChange    Code = "BMC_PASSWORD_CHANGE_REQUIRED"
	CodeBMCIdentity          Code = "BMC_IDENTITY_MISMATCH"
	CodeBMCBusy              Code = "BMC_HTTP_SERVICE_UNAVAILABLE"
	CodeBMCRefused           Code = "BMC_REFUSED"
	CodeBMCProtocol          Code = "BMC_PROTOCOL"
	CodeBMCUnsupported       Code = "BMC_UNSUPPORTED"
	CodeBMCSessionLimit      Code = "BMC_SESSION_LIMIT"
	CodeBMCAmbiguous         Code = "BMC_AMBIGUOUS"
	CodeBMCBootNIC           Code = "BMC_BOOT_OPTION_UNIDENTIFIED"
	CodeIronicUnreachable    Code = "IRONIC_UNREACHABLE"
	CodeIronicDenied         Code = "IRONIC_DENIED"
	CodeIronicLocked         Code = "IRONIC_NODE_LOCKED"
	CodeIronicRefused        Code = "IRONIC_REFUSED"
	CodeIronicConflict       Code = "IRONIC_CONFLICT"
	CodeIronicProtocol       Code = "IRONIC_PROTOCOL"
	CodeIronicUnsupported    Code = "IRONIC_VERSION_UNSUPPORTED"
	CodeIronicUnexpected     Code = "IRONIC_UNEXPECTED_STATE"
	CodeIronicNeedsHuman     Code = "IRONIC_NODE_NEEDS_HUMAN"
	CodeLinkDown             Code = "LINK_DOWN"
	CodeLinkUnreadable       Code = "LINK_UNREADABLE"
	CodeNodeOwned            Code = "NODE_OWNED"
	CodeInspectionMismatch   Code = "INSPECTION_MISMATCH"
	CodePlanStale            Code = "PLAN_STALE"
	CodePlanExpired          Code = "PLAN_EXPIRED"
	CodePlanApplied          Code = "PLAN_ALREADY_APPLIED"
	CodePlanInvalid          Code = "PLAN_FILE_INVALID"
	CodeNotApplied           Code = "NOT_APPLIED"
	CodeTimeout              Code = "STEP_TIMEOUT"
	CodeInterrupted          Code = "INTERRUPTED"
	CodeNotApproved          Code = "NOT_APPROVED"
	CodeJournal              Code = "JOURNAL_FAILED"
	CodeLockHeld             Code = "LOCK_HELD"
	CodeLockLost             Code = "LOCK_LOST"
	CodeObligation           Code = "OBLIGATION_OPEN"
	CodePolicyApproval       Code = "POLICY_APPROVAL_REQUIRED"
	CodePolicyWarning        Code = "POLICY_WARNING"
	CodeTolerationExpired    Code = "TOLERATION_EXPIRED"
	CodeTolerationIdle       Code = "TOLERATION_IDLE"
	CodeInternal             Code = "INTERNAL"
)

// CodeInfo is the table row of a code.
type CodeInfo struct {
	Class Class
	Owner Owner
	Retry bool   // the same step may succeed later without anybody acting
	Text  string // what the code means, one sentence
	Hint  string // what to do, one sentence
}

// Info gives the row of a code. A code that is not in the table is treated as
// INTERNAL; a test keeps the table complete.
func (c Code) Info() CodeInfo {
	if info, ok := codeTable[c]; ok {
		return info
	}
	return codeTable[CodeInternal]
}

// Codes lists every code with its row, for FAULTS.md and `enroll explain`.
func Codes() map[Code]CodeInfo {
	out := make(map[Code]CodeInfo, len(codeTable))
	for c, i := range codeTable {
		out[c] = i
	}
	return out
}

var codeTable = map[Code]CodeInfo{ //nolint:gochecknoglobals // the one table of faults
	CodeConfigInvalid:        {ClassConfig, OwnerInfra, false, "A site file, a flag or an argument is wrong.", "Mend the place that the message names."},
	CodeSecretMissing:        {ClassConfig, OwnerInfra, false, "The vault has no such item or field.", "Create the item or correct the reference in the site file."},
	CodeSecretDenied:         {ClassDenied, OwnerInfra, false, "The vault knows the caller, who lacks a right.", "Grant the right that the message names."},
	CodeSecretUnreachable:    {ClassUnreachable, OwnerInfra, true, "The vault did not answer.", "Check the vault's address and that it is unsealed."},
	CodeSecretInvalid:        {ClassConfig, OwnerInfra, false, "A secret is empty or has a form its user cannot take.", "Store a usable value in the vault."},
	CodeSecretLogin:          {ClassDenied, OwnerInfra, false, "The vault refused the credential that enroll shows it.", "Get a new token or credential for the vault: this one is wrong or expired."},
	CodeSecretBusy:           {ClassBusy, OwnerInfra, true, "The vault asked to come back later.", "Wait as long as the evidence says, then run again; a quota may be too small."},
	CodeSecretTimeout:        {ClassTimeout, OwnerInfra, true, "The vault did not answer in time.", "Check the vault's load and the network; timeout in the secrets block is the limit."},
	CodeSecretConflict:       {ClassStale, OwnerInfra, false, "The item was changed in the vault meanwhile, or an earlier rotation of it is unfinished.", "Look at the item's versions in the vault before rotating again."},
	CodeRoutingUnresolved:    {ClassIntent, OwnerInfra, false, "No Ironic of the site manages the device's class, or its role has no class.", "Give the device a role that a device_class block lists, and let an ironic block manage that class; then plan again."},
	CodeDeviceNotFound:       {ClassIntent, OwnerNetBox, false, "NetBox does not show the device, or the token may not see it.", "Check the name, the NetBox site and the token's view right on dcim.device."},
	CodeDeviceAmbiguous:      {ClassIntent, OwnerNetBox, false, "NetBox has more than one device of that name.", "Make the name unique in the site."},
	CodeStatusNotEligible:    {ClassIntent, OwnerNetBox, false, "Only devices with status staged or active are enrolled.", "Set the status to staged when the device is ready."},
	CodeDeviceNotPlaced:      {ClassIntent, OwnerNetBox, false, "NetBox has the device in a rack without a position.", "Record the rack unit in NetBox."},
	CodePlatformUnresolvable: {ClassIntent, OwnerInfra, false, "NetBox data cannot produce a platform class.", "Populate gpu_type on the device type or fix the ztp block, then plan again."},
	CodePlatformRecordFailed: {ClassRefused, OwnerFleet, true, "The platform class could not be recorded.", "Check that the platform_class custom field exists on this site's NetBox."},
	CodePlatformKept:         {ClassIntent, OwnerFleet, false, "NetBox records another platform class than its data comes to; a recorded one is never overwritten.", "If the recorded value is wrong, clear platform_class of the device in NetBox and run enroll backfill platform-class --device NAME --apply."},
	CodeIntentIncomplete:     {ClassIntent, OwnerNetBox, false, "NetBox lacks something that enrolment needs.", "Fill in what the message names at the object it links."},
	CodeIntentAmbiguous:      {ClassIntent, OwnerNetBox, false, "NetBox says two things at once.", "Correct one of the two objects that the message names."},
	CodeIntentInvalid:        {ClassIntent, OwnerNetBox, false, "A value in NetBox has a form that cannot be right.", "Correct the value at the object that the message links."},
	CodeNetBoxUnreachable:    {ClassUnreachable, OwnerInfra, true, "NetBox did not answer.", "Check the url in the netbox block and the network."},
	CodeNetBoxDenied:         {ClassDenied, OwnerInfra, false, "NetBox refused the token, or the token lacks a right.", "Check the token and its permissions: view on the read objects, change on dcim.device."},
	CodeNetBoxUnsupported:    {ClassRefused, OwnerInfra, false, "This NetBox is older than 4.2.", "Use enroll with NetBox 4.2 or later."},
	CodeNetBoxProtocol:       {ClassProtocol, OwnerInfra, false, "NetBox, or a proxy before it, gave an answer that makes no sense.", "Check that the url is NetBox's base address and look at the evidence."},
	CodeNetBoxRefused:        {ClassRefused, OwnerNetBox, false, "NetBox refused a write.", "Read NetBox's own words in the evidence."},
	CodeDHCPUnreachable:      {ClassUnreachable, OwnerInfra, true, "No SSH connection to the DHCP server, or it was lost.", "Check host, port and network."},
	CodeDHCPHostKeyUnknown:   {ClassDenied, OwnerInfra, false, "The DHCP server's host key is not on file.", "Verify the key out of band and add its line to known_hosts."},
	CodeDHCPHostKeyChanged:   {ClassDenied, OwnerInfra, false, "The DHCP server shows another host key than the one on file.", "Find out why before anything else: this is what an attack looks like. If the server was reinstalled, replace its line in known_hosts."},
	CodeDHCPLoginRefused:     {ClassDenied, OwnerInfra, false, "The DHCP server refused the login.", "Check user and key."},
	CodeDHCPTransfer:         {ClassUnreachable, OwnerInfra, true, "A file transfer to the DHCP server failed.", "Look at the evidence: space, rights, folder. The old file is still in place."},
	CodeDHCPCommand:          {ClassRefused, OwnerInfra, false, "A command on the DHCP server failed.", "Run the command of the evidence by hand on the server."},
	CodeDHCPConflict:         {ClassRefused, OwnerNetBox, false, "Another DHCP entry has the same MAC, address or name.", "Correct NetBox or the entry that the message names."},
	CodeDHCPUnread:           {ClassRefused, OwnerInfra, false, "A part of the DHCP server's own configuration could not be read.", "Let the account of the dhcp block read the files that the message names."},
	CodeDHCPForeignFile:      {ClassRefused, OwnerInfra, false, "The file to write exists and is not enroll's, or belongs to another device.", "Move the file away, or rename the device."},
	CodeDHCPUnhealthy:        {ClassRefused, OwnerInfra, false, "The DHCP service is not healthy.", "Look at the service's log on the server; the evidence has the commands."},
	CodeDHCPRelay:            {ClassRefused, OwnerInfra, false, "The DHCP server cannot be asked through the relay address given.", "Run enroll verify --dhcp on a machine of the BMC network, with an address of it."},
	CodeDHCPRefused:          {ClassRefused, OwnerInfra, false, "The DHCP server's own check refuses its configuration.", "The evidence has the check's words. The service was not touched."},
	CodeDHCPLockHeld:         {ClassRefused, OwnerInfra, false, "Another run holds the lock on the DHCP server.", "Wait for it to end; the message names its holder."},
	CodeBMCUnreachable:       {ClassUnreachable, OwnerOnsite, true, "The BMC does not answer.", "Check the management cable, the switch port and the BMC's power."},
	CodeBMCTLS:               {ClassDenied, OwnerInfra, false, "The BMC's certificate was refused.", "Install a certificate of the site's CA, correct ca_file in the bmc block, or accept this one by its fingerprint (pins in its tls block)."},
	CodeBMCCredential:        {ClassDenied, OwnerInfra, false, "The BMC refused the host's credential.", "Set the BMC's password to the vault's value, or correct the vault; a BMC that is new needs factory_credential in the bmc block. enroll does not try again by itself, so as not to lock the account."},
	CodeBMCLocked:            {ClassDenied, OwnerInfra, false, "The BMC has locked the account.", "Wait for the lockout to end and correct the credential first."},
	CodeBMCPasswordChange:    {ClassDenied, OwnerInfra, false, "The BMC wants its factory password changed first.", "Name the factory password in the bmc block (factory_credential), so that enroll sets one, or set the host's password on the BMC to the vault's value."},
	CodeBMCIdentity:          {ClassRefused, OwnerOnsite, false, "The BMC answers for another machine than NetBox records.", "Compare serial numbers at the rack; nothing was written."},
	CodeBMCBusy:              {ClassBusy, OwnerInfra, true, "The BMC is busy.", "Plan again once the host has booted."},
	CodeBMCRefused:           {ClassRefused, OwnerInfra, false, "The BMC refused a request.", "Read the BMC's own words in the evidence."},
	CodeBMCProtocol:          {ClassProtocol, OwnerInfra, false, "The BMC gave an answer that makes no sense.", "Look at the evidence; a BMC reset often helps."},
	CodeBMCUnsupported:       {ClassRefused, OwnerInfra, false, "The BMC has no such setting.", "Set it by other means or remove it from the site file."},
	CodeBMCSessionLimit:      {ClassBusy, OwnerInfra, true, "All sessions of the BMC are in use.", "End stale sessions in the BMC's web page, or wait for their timeout."},
	CodeBMCAmbiguous:         {ClassProtocol, OwnerInfra, false, "The BMC shows several systems and none is surely the host.", "Report the BMC's model and firmware."},
	CodeBMCBootNIC:           {ClassRefused, OwnerInfra, false, "No boot option is surely that of the provisioning NIC, so none was switched off.", "Compare the options in the evidence with the NIC's MAC address; a host that never booted shows none, and a NIC may be missing in the BIOS's list of PXE devices."},
	CodeIronicUnreachable:    {ClassUnreachable, OwnerOpenStack, true, "Ironic did not answer.", "Check the endpoint and that the API is up."},
	CodeIronicDenied:         {ClassDenied, OwnerOpenStack, false, "Ironic or Keystone refused the credential or the request.", "An expired credential, or no access rule for the request that the evidence names."},
	CodeIronicLocked:         {ClassBusy, OwnerOpenStack, true, "The node stayed locked for the whole budget.", "See who holds the lock in the evidence; it ends with that operation."},
	CodeIronicRefused:        {ClassRefused, OwnerOpenStack, false, "Ironic refused a request.", "Read Ironic's own words in the evidence."},
	CodeIronicConflict:       {ClassRefused, OwnerOpenStack, false, "A MAC, name or node is already used by something else in Ironic.", "See which node has it in the evidence."},
	CodeIronicProtocol:       {ClassProtocol, OwnerOpenStack, false, "Ironic, or a proxy before it, gave an answer that makes no sense.", "Check the endpoint and look at the evidence."},
	CodeIronicUnsupported:    {ClassRefused, OwnerOpenStack, false, "This Ironic is too old.", "enroll needs API 1.81 (2023.1) or later; 1.65 is enough with --run-inspection=false, which leaves inspection and verification out."},
	CodeIronicUnexpected:     {ClassRefused, OwnerOpenStack, false, "The node went to another provision state than expected.", "Read last_error in the evidence, mend the cause, plan again."},
	CodeIronicNeedsHuman:     {ClassRefused, OwnerOpenStack, false, "The node is in a state that enroll never recovers by itself.", "A person must look at the node first."},
	CodeLinkDown:             {ClassVerification, OwnerOnsite, false, "No frontend link came up while the host booted the ramdisk.", "Check switch, cabling and optics of the NICs that the evidence names, then apply again."},
	CodeLinkUnreadable:       {ClassRefused, OwnerInfra, true, "The BMC could not be asked for the links of the frontend NICs while the host booted the ramdisk.", "See the BMC's fault in the evidence; enroll plan DEVICE --target 'kind:check.link' asks it again."},
	CodeNodeOwned:            {ClassOwned, OwnerOpenStack, false, "Nova or a deployment holds the node; enroll does not touch it.", "Release the node first if it is really meant to be enrolled again."},
	CodeInspectionMismatch:   {ClassVerification, OwnerOnsite, false, "What the hardware reports is not what NetBox records.", "Correct the cabling, the hardware or NetBox; enroll verify says which cables to move. Then plan again."},
	CodePlanStale:            {ClassStale, OwnerInfra, false, "The world moved since the plan was made.", "Make a new plan and review it."},
	CodePlanExpired:          {ClassStale, OwnerInfra, false, "The plan is older than its life.", "Make a new plan and review it."},
	CodePlanApplied:          {ClassStale, OwnerInfra, false, "This plan was applied before; a plan is applied once.", "Make a new plan."},
	CodePlanInvalid:          {ClassStale, OwnerInfra, false, "The plan file is damaged, edited or of another version.", "Make a new plan."},
	CodeNotApplied:           {ClassRefused, OwnerInfra, false, "A write was accepted and did not stick.", "Compare both values in the evidence; somebody else may be writing too."},
	CodeTimeout:              {ClassTimeout, OwnerInfra, true, "A step's budget ran out.", "See what was last observed; plan again when the cause is gone."},
	CodeInterrupted:          {ClassStale, OwnerInfra, true, "The run was interrupted.", "Run the same command again: it reads live, and goes on from what it finds."},
	CodeNotApproved:          {ClassDenied, OwnerInfra, false, "Nobody approved the plan; nothing was done.", "Review the plan and apply it again."},
	CodeJournal:              {ClassInternal, OwnerInfra, false, "The journal could not be written, so nothing more was started.", "Free space or correct rights at the journal's place."},
	CodeLockHeld:             {ClassBusy, OwnerInfra, true, "Another run holds the lock.", "Wait for it to end; enroll status shows what it is doing."},
	CodeLockLost:             {ClassStale, OwnerInfra, false, "Somebody broke this run's lock, so it writes nothing more to the device.", "See who did; apply again when no other run is at work on the device."},
	CodeObligation:           {ClassRefused, OwnerOpenStack, true, "Something that enroll had changed for a moment could not be put back.", "Put it back by hand as the message says, or apply to the device again: enroll then tries once more."},
	CodePolicyApproval:       {ClassDenied, OwnerInfra, false, "A policy of the site wants somebody's approval, and nobody gave it.", "Ask the policy's owner, then apply with --approve POLICY, or answer the question at a terminal."},
	CodePolicyWarning:        {ClassConfig, OwnerInfra, false, "A policy of the site warns about the plan.", "Read what the policy says; its owner decides."},
	CodeTolerationExpired:    {ClassConfig, OwnerInfra, false, "A tolerate block is past its date, so its difference is mended again.", "Remove the block, or give it a later date and a reason."},
	CodeTolerationIdle:       {ClassConfig, OwnerInfra, false, "The path of a tolerate block names nothing that is wanted, so the block tolerates nothing.", "Correct the path in the site file; plans name it in front of the difference."},
	CodeInternal:             {ClassInternal, OwnerInfra, false, "A defect of enroll.", "Please report it with the journal."},
}
