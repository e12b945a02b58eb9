// Package bmctest serves BMCs over Redfish: real HTTPS on the loopback
// interface, each BMC with a listener of its own and its own state, all with
// one certificate, so that some hundred of them cost little.
//
// A BMC refuses what real ones refuse, with their status and words: unknown and
// read-only properties, a missing or old If-Match where the profile wants one,
// logins beyond its limit of sessions, accounts that failed too often. Two
// makers are known: a generic one as OpenBMC builds are, and an iDRAC 9.
package bmctest
