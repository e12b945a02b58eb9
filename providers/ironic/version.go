package ironic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Microversions 1.N. A request carries the newest of which anything is used here
// and that this Ironic offers; an older one costs the first request a repetition.
const (
	// newestMinor is offered by every release since 2023.1.
	newestMinor = 82
	// oldestMinor has the lessee, the newest field that every read of a node asks for.
	oldestMinor = 65
	// historyMinor has the node's history, which only adds to a fault.
	historyMinor = 78
	// inventoryMinor has the inventory, without which nothing can be verified.
	inventoryMinor = 81
)

const (
	versionHeader    = "X-OpenStack-Ironic-API-Version"
	minVersionHeader = "X-OpenStack-Ironic-API-Minimum-Version"
	maxVersionHeader = "X-OpenStack-Ironic-API-Maximum-Version"
)

func apiVersion(minor int) string { return "1." + strconv.Itoa(minor) }

// minor is the version that requests carry now.
func (s *service) minor() int {
	if n := s.lowered.Load(); n != 0 {
		return int(n)
	}
	return newestMinor
}

// lower goes down to the newest version that a refusal of another one offers;
// false when that is none which will do. Ironic refuses a version before it does
// anything, so the request may be repeated.
func (s *service) lower(refused int, h http.Header) bool {
	n, ok := offered(h)
	if !ok || n < oldestMinor || n >= refused {
		return false
	}
	s.lowered.Store(int32(n)) //nolint:gosec // below newestMinor
	return true
}

// offered is the newest version that Ironic says it has.
func offered(h http.Header) (minor int, ok bool) {
	text, ok := strings.CutPrefix(h.Get(maxVersionHeader), "1.")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// unacceptable is the fault of a 406, which is also Ironic's answer to a field that
// is newer than the version.
func (s *service) unacceptable(request string, h http.Header) *plan.Fault {
	offers := h.Get(minVersionHeader) + " to " + h.Get(maxVersionHeader)
	if n, ok := offered(h); ok && n < oldestMinor {
		return s.unsupported("enroll", oldestMinor, offers)
	}
	return plan.NewFault(plan.CodeIronicUnsupported, "ironic %s does not offer API %s for %s", s.settings.Name, apiVersion(s.minor()), request).With("versions", offers)
}

// unsupported is the fault of an Ironic that is too old for something.
func (s *service) unsupported(what string, least int, offers string) *plan.Fault {
	return plan.NewFault(plan.CodeIronicUnsupported, "ironic %s offers API %s; %s needs %s", s.settings.Name, offers, what, apiVersion(least)).
		With("versions", offers).With("needed", apiVersion(least)).With("ironic", s.where())
}

// tooOldForInventory is the fault of a run that inspects or verifies with an
// Ironic that does not give inventories away; nil when it does.
func (s *service) tooOldForInventory() *plan.Fault {
	if s.minor() >= inventoryMinor {
		return nil
	}
	return s.unsupported("the inventory", inventoryMinor, "up to "+apiVersion(s.minor())).
		WithHint("Upgrade it to 2023.1 or later, or go without inspection and verification: --run-inspection=false.")
}

// complete reports the first of the fields asked for that an answer lacks. What is
// absent is unknown: taken for false or empty, a node would be nobody's.
func complete(answer map[string]json.RawMessage, fields []string) error {
	if i := slices.IndexFunc(fields, func(f string) bool { _, ok := answer[f]; return !ok }); i >= 0 {
		return fmt.Errorf("the answer has no %s, which was asked for", fields[i])
	}
	return nil
}
