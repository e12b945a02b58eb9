package ironictest

import (
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// maxLimit is the server's own largest page.
const maxLimit = 1000

// paging are the parameters of every list.
func paging() []string {
	return []string{"limit", "marker", "fields", "detail", "sort_key", "sort_dir"}
}

// fields reads ?fields=a,b. Nil means: the default selection.
func (r *request) fields(known func(string) bool) ([]string, *answer) {
	values := r.URL.Query()["fields"]
	if len(values) == 0 {
		return nil, nil
	}
	fields := strings.Split(values[0], ",")
	for _, f := range fields {
		if !known(f) || len(values) > 1 {
			a := fault(http.StatusBadRequest, "Field %s is not a valid field.", f)
			return nil, &a
		}
		if since(f) > r.version {
			a := routing(http.StatusNotAcceptable, "Not Acceptable", "Request not acceptable.")
			return nil, &a
		}
	}
	return fields, nil
}

// expect refuses parameters that the list does not know.
func (r *request) expect(filters ...string) *answer {
	var unexpected []string
	for k := range r.URL.Query() {
		if !slices.Contains(append(paging(), filters...), k) {
			unexpected = append(unexpected, k)
		}
	}
	if len(unexpected) > 0 {
		sort.Strings(unexpected)
		a := fault(http.StatusBadRequest, "Unexpected arguments: %s", strings.Join(unexpected, ", "))
		return &a
	}
	q := r.URL.Query()
	if r.detailed() && q.Has("fields") {
		a := fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
		return &a
	}
	return nil
}

func (r *request) detailed() bool {
	return strings.EqualFold(r.URL.Query().Get("detail"), "true") || r.path[len(r.path)-1] == "detail"
}

// cutPage takes one page of uuids and tells the address of the next one.
func (r *request) cutPage(collection string, uuids []string) (page []string, next string, refused *answer) {
	q := r.URL.Query()
	limit := maxLimit
	if q.Has("limit") {
		n, err := strconv.Atoi(q.Get("limit"))
		if err != nil || n <= 0 {
			a := fault(http.StatusBadRequest, "Limit must be positive")
			return nil, "", &a
		}
		limit = min(n, maxLimit)
	}
	if marker := q.Get("marker"); marker != "" {
		i := slices.Index(uuids, marker)
		if i < 0 {
			a := fault(http.StatusNotFound, "%s %s could not be found.", map[string]string{"nodes": "Node", "ports": "Port", "portgroups": "Portgroup"}[collection], marker)
			return nil, "", &a
		}
		uuids = uuids[i+1:]
	}
	if len(uuids) < limit {
		return uuids, "", nil
	}
	uuids = uuids[:limit]
	// A full page has a next link even when nothing follows.
	follow := url.Values{}
	for k, v := range q {
		follow[k] = v
	}
	follow.Set("limit", strconv.Itoa(limit))
	follow.Set("marker", uuids[limit-1])
	return uuids, r.server.URL + "/v1/" + collection + "?" + follow.Encode(), nil
}

// nodeSummary is what a list shows without fields and detail.
func nodeSummary() []string {
	return []string{"uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state"}
}

func (r *request) listNodes() answer {
	filters := []string{"instance_uuid", "associated", "maintenance", "provision_state", "driver", "resource_class", "fault", "owner", "lessee", "conductor_group"}
	if refused := r.expect(filters...); refused != nil {
		return *refused
	}
	blank := r.server.blankNode(r.now)
	fields, refused := r.fields(func(k string) bool { _, ok := blank.fields[k]; return ok })
	if refused != nil {
		return *refused
	}
	if slices.Contains(fields, "allocation_uuid") { // of one node it can be asked for
		return fault(http.StatusInternalServerError, "type object 'Node' has no attribute 'allocation_uuid'")
	}
	if fields == nil && !r.detailed() {
		fields = nodeSummary()
	}
	q := r.URL.Query()
	byUUID := map[string]*simNode{}
	var uuids []string
	for _, n := range r.server.nodes {
		if !n.fits(q, filters) {
			continue
		}
		byUUID[n.uuid()] = n
		uuids = append(uuids, n.uuid())
	}
	page, next, refused := r.cutPage("nodes", uuids)
	if refused != nil {
		return *refused
	}
	out := []any{}
	for _, id := range page {
		out = append(out, r.shown(byUUID[id], fields))
	}
	return listed("nodes", out, next)
}

func (n *simNode) fits(q url.Values, filters []string) bool {
	for _, f := range filters {
		if !q.Has(f) {
			continue
		}
		want := q.Get(f)
		switch f {
		case "associated":
			if strings.EqualFold(want, "true") != (n.text("instance_uuid") != "") {
				return false
			}
		case "maintenance":
			if strings.EqualFold(want, "true") != (n.fields[f] == true) {
				return false
			}
		default:
			if n.text(f) != want {
				return false
			}
		}
	}
	return true
}

func listed(collection string, items []any, next string) answer {
	body := map[string]any{collection: items}
	if next != "" {
		body["next"] = next
	}
	return answer{status: http.StatusOK, body: body}
}
