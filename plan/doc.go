// Package plan is the model of enroll and its pure core: what a device should
// be (Intent, Settings), what it is (Live), how the two differ (Step), what was
// proven (Check) and the document that people review (Plan).
//
// Nothing here reads a clock, a network or a file: every function is a pure
// function of its arguments, and the same world gives the same bytes. Code
// that decides is therefore handed nothing that could write.
package plan
