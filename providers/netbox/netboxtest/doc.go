// Package netboxtest serves a NetBox on loopback for tests and the embedded
// lab, in the style of net/http/httptest: it keeps state, answers the
// endpoints that enroll uses, and refuses what a real NetBox refuses, with the
// same status and body. Conformance holds it against a real one.
//
// What it has in common with the real thing, because enroll depends on it:
// names of filters, fields and body keys that it does not know are ignored;
// name= ignores case; an unknown value of a relation or choice filter is 400;
// lists are cut at 50 rows by default and at 1000 at most; ETag, If-Match and
// add_tags exist from 4.6; selection custom fields are objects from 4.7; a
// wrong token is 403; a missing final slash is 301; a wrong path is a web page.
//
// What it does not have says so with 501: creating and deleting over the API,
// bulk writes, and writing fields of devices other than those in patch.go.
package netboxtest
