// Package bmc reads and sets BMCs over Redfish (DSP0266).
//
// One file holds one thing: client.go the fleet, wire.go a request, trust.go the
// certificates, session.go the login, tree.go the way from the service root to
// system and manager, write.go a change and its task, record.go the walk whose
// answers package recording keeps. kinds.go has the table of
// kinds of resources, each with a file of its name; family.go the families of
// BMCs, each with a file family_NAME.go.
//
// A BMC gets one request at a time and one session per process; the session is
// deleted by Close on every way out. A refused credential is not tried again
// in a run, nor by the next ones while the BMC counts it, so that no account is
// locked: see refusals.go.
//
// Types and words of gofish are used where its models can tell what is needed.
// Requests are made here: gofish v0.20.0 keeps one context for all requests,
// loses Location and Retry-After of a refused one, cannot read several makers'
// error bodies, and cannot tell a property that is null from one that is
// absent.
package bmc
