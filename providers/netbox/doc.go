// Package netbox reads what NetBox says about devices (Intents), and writes what
// enroll records there: the platform class, the status and tags.
//
// Requests are built by go-netbox; answers are decoded by structs of our own
// (wire.go), because the typed models of go-netbox 4.3.0 reject a whole answer
// for one interface type or label that they do not know. api.go is the only
// file that knows go-netbox.
//
// Quirks of NetBox that shape this package:
//
//   - Unknown filters, unknown names in fields= and unknown keys of a body are
//     ignored with 200. So every answer is checked to be about what was asked
//     for, and every write is checked in its own answer.
//   - The filter name= ignores case.
//   - A relation filter with an unknown value is a 400, not an empty list.
//   - A wrong token is a 403, never a 401; an object that the token may not see
//     is a 404 or is missing from lists.
//   - "next" is built from the server's own idea of its host: pages are
//     followed by offset, ordered by id, and counted.
//   - Rivals for a MAC are looked for in the device's own site: over all sites that
//     would be a request for every hundred MACs, and DHCP and Ironic are a site's own.
//   - ETag and add_tags exist from 4.6; before, a PATCH of tags replaces the list.
//   - An unknown tag in add_tags is a 500.
//   - A redirect would turn a PATCH into a GET that succeeds: none is followed.
//   - From 4.7 custom fields of type selection are objects when read.
package netbox
