package netbox

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// version is major and minor of NetBox's API; the zero value is "not known".
type version struct{ major, minor int }

// The versions that rules depend on. newest is the last one that the package
// was tested with.
//
//nolint:gochecknoglobals // constants of a struct type
var (
	oldest  = version{4, 2} // MAC addresses as objects
	locking = version{4, 6} // ETag, If-Match and add_tags
	newest  = version{4, 7}
)

func (v version) String() string {
	if v == (version{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.major, v.minor)
}

func (v version) before(other version) bool {
	return v.major < other.major || v.major == other.major && v.minor < other.minor
}

func parseVersion(s string) (version, bool) {
	major, rest, _ := strings.Cut(s, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return version{a, b}, errA == nil && errB == nil && a > 0 && b >= 0
}

func (c *Client) seen() version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// noteVersion remembers the API-Version of the first answer that has one and
// refuses a NetBox that is too old. A proxy that drops the header leaves the
// version unknown: then the oldest way of writing is taken.
func (c *Client) noteVersion(h http.Header) *plan.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == (version{}) {
		if v, ok := parseVersion(h.Get("API-Version")); ok {
			c.version = v
		}
	}
	if c.version != (version{}) && c.version.before(oldest) {
		return plan.NewFault(plan.CodeNetBoxUnsupported, "NetBox at %s has API version %s; enroll needs %s or later", c.base, c.version, oldest)
	}
	return nil
}

// versionWarning is set when nobody has tried this version yet.
func (c *Client) versionWarning() *plan.Fault {
	switch v := c.seen(); {
	case v == (version{}):
		return plan.NewFault(plan.CodeNetBoxUnsupported, "NetBox at %s does not tell its version; a proxy may drop the header API-Version", c.base).
			WithHint("Let the proxy pass the headers API-Version, ETag and X-Request-ID.")
	case newest.before(v):
		return plan.NewFault(plan.CodeNetBoxUnsupported, "NetBox at %s has API version %s; enroll was tested with %s to %s", c.base, v, oldest, newest).
			WithHint("Nothing is refused; look closely at the plan.")
	}
	return nil
}
