// Package bmctest serves BMCs over Redfish: real HTTPS on the loopback
// interface, each BMC with a listener of its own and its own state, all with
// one certificate, so that some hundred of them cost little.
//
// A BMC refuses what real ones refuse, with their status and words: unknown and
// read-only properties, a missing or old If-Match where the maker wants one,
// logins beyond its limit of sessions, accounts that failed too often. Five makers
// are known, one file each: an iDRAC 9 with its job queue, a Lenovo XCC, an AMI
// MegaRAC, a Supermicro, and a generic one as OpenBMC builds are. What real ones
// do only at times is a field of Profile.
package bmctest
