//go:build race

package dhcp_test

// raceDetector says whether the tests run under the race detector.
const raceDetector = true
