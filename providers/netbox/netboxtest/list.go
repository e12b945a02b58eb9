package netboxtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// table is one endpoint: its rows with their filters and views.
type table struct {
	name    string // dcim/devices
	model   string // Device, for messages
	rows    func() []row
	filters map[string]filter
}

// row is an object of a table.
type row struct {
	id      int64
	name    string
	raw     any
	view    func(x *request) object
	updated func() time.Time // nil: the object carries no ETag of its own
}

// filter is a filter by one name; several values mean any of them.
type filter struct {
	// check gives NetBox's words for a value that it refuses, "" when it takes it.
	check func(value string) string
	// keys are what a row is found by.
	keys func(r row) []string
	// fold brings a value and a key into the form in which they are compared.
	fold func(string) string
	// all: a row must have all the values, not any of them. not: none of them.
	all, not bool
	// fits compares a key with a value; nil: they are equal.
	fits func(key, value string) bool
}

func number(value string) string {
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		return "Enter a whole number."
	}
	return ""
}

func same(s string) string { return s }

func idFilter() filter {
	return filter{check: number, fold: same, keys: func(r row) []string { return []string{strconv.FormatInt(r.id, 10)} }}
}

// text filters are exact and ignore case, as NetBox's are.
func text(get func(r row) string) filter {
	return filter{fold: strings.ToLower, keys: func(r row) []string { return []string{get(r)} }}
}

// relation filters refuse a value that no object has.
func relation(exists func(value string) bool, get func(r row) []string) filter {
	return filter{fold: same, keys: get, check: func(v string) string {
		if !exists(v) {
			return "Select a valid choice. " + v + " is not one of the available choices."
		}
		return ""
	}}
}

// conjoined wants all values at once: NetBox's tag filter.
func conjoined(f filter) filter {
	f.all = true
	return f
}

// within says whether an address is in a network.
func within(address, network string) bool {
	host, _, _ := strings.Cut(address, "/")
	a, errA := netip.ParseAddr(host)
	n, errN := netip.ParsePrefix(network)
	return errA == nil && errN == nil && n.Contains(a)
}

// boolean filters ignore what is neither true nor false.
func boolean(get func(r row) bool) filter {
	return filter{
		fold: func(s string) string {
			if v, err := strconv.ParseBool(s); err == nil {
				return strconv.FormatBool(v)
			}
			return ""
		},
		keys: func(r row) []string { return []string{strconv.FormatBool(get(r)), ""} },
	}
}

// negated is the filter with __n at its end.
func negated(f filter) filter {
	f.not = true
	return f
}

// matcher makes the test of one filter with its values.
func (f filter) matcher(values []string) func(r row) bool {
	wanted := map[string]bool{}
	for _, v := range values {
		wanted[f.fold(v)] = true
	}
	if f.fits != nil {
		return func(r row) bool {
			return slices.ContainsFunc(f.keys(r), func(k string) bool {
				for v := range wanted {
					if f.fits(f.fold(k), v) {
						return true
					}
				}
				return false
			})
		}
	}
	return func(r row) bool {
		found := map[string]bool{}
		for _, k := range f.keys(r) {
			if k = f.fold(k); wanted[k] {
				found[k] = true
			}
		}
		if f.not {
			return len(found) == 0
		}
		return len(found) > 0 && (!f.all || len(found) == len(wanted))
	}
}

func (s *Server) table(name string) (table, bool) {
	t := table{name: name}
	byName := func(r row) string { return r.name }
	slug := text(byName)
	switch name {
	case "dcim/devices":
		t.model, t.rows, t.filters = "Device", s.deviceRows, s.deviceFilters()
	case "dcim/interfaces":
		t.model, t.rows, t.filters = "Interface", s.interfaceRows, s.interfaceFilters()
	case "ipam/ip-addresses":
		t.model = "IPAddress"
		t.rows = func() []row {
			return mapRows(s.addresses, func(a *addressRow) row {
				return row{id: a.id, name: a.text, raw: a, view: func(x *request) object { return x.addressView(a) }, updated: func() time.Time { return a.updated }}
			})
		}
		t.filters = map[string]filter{"id": idFilter(), "address": {fold: strings.ToLower, keys: func(r row) []string {
			host, _, _ := strings.Cut(r.name, "/")
			return []string{r.name, host}
		}}, "parent": {fold: same, keys: func(r row) []string { return []string{r.name} }, fits: within}}
	case "dcim/device-types":
		t.model = "DeviceType"
		t.rows = func() []row {
			return mapRows(s.types, func(k *typeRow) row {
				return row{id: k.id, name: slugify(k.Model), raw: k, view: func(x *request) object { return x.typeView(k) }, updated: s.start}
			})
		}
		t.filters = map[string]filter{"id": idFilter(), "slug": slug}
	case "dcim/sites":
		t.model = "Site"
		t.rows = func() []row {
			return mapRows(s.sites, func(k *siteRow) row {
				return row{id: k.id, name: k.Slug, raw: k, view: func(x *request) object { return x.siteView(k) }, updated: s.start}
			})
		}
		t.filters = map[string]filter{"id": idFilter(), "slug": slug, "name": slug}
	case "dcim/racks":
		t.model = "Rack"
		t.rows = func() []row {
			return mapRows(s.racks, func(k *rackRow) row {
				return row{id: k.id, name: k.name, raw: k, view: func(x *request) object { return x.rackView(k) }, updated: s.start}
			})
		}
		t.filters = map[string]filter{"id": idFilter(), "name": slug, "site": relation(s.hasSite, func(r row) []string { return []string{r.raw.(*rackRow).site.Slug} })}
	case "dcim/device-roles", "extras/tags":
		t.model, t.filters = "DeviceRole", map[string]filter{"id": idFilter(), "slug": slug, "name": slug}
		list := &s.roles
		if name == "extras/tags" {
			t.model, list = "Tag", &s.tags
		}
		t.rows = func() []row {
			return mapRows(*list, func(k *nameRow) row {
				return row{id: k.id, name: k.slug, raw: k, view: func(x *request) object { return x.namedView(name, k) }, updated: s.start}
			})
		}
	case "core/object-changes":
		t.model, t.rows, t.filters = "ObjectChange", s.changeRows, changeFilters()
	default:
		return t, false
	}
	return t, true
}

func (s *Server) start() time.Time { return s.started }

func mapRows[T any](list []T, make func(T) row) []row {
	out := []row{}
	for _, el := range list {
		out = append(out, make(el))
	}
	return out
}

func (s *Server) deviceRows() []row {
	return mapRows(s.devices, func(d *deviceRow) row {
		return row{id: d.id, name: d.Name, raw: d, view: func(x *request) object { return x.deviceView(d) }, updated: func() time.Time { return d.updated }}
	})
}

func (s *Server) deviceFilters() map[string]filter {
	dev := func(r row) *deviceRow { return r.raw.(*deviceRow) }
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]filter{
		"id": idFilter(), "name": text(func(r row) string { return r.name }), "serial": text(func(r row) string { return dev(r).Serial }),
		"site": relation(s.hasSite, func(r row) []string { return []string{dev(r).site.Slug} }),
		"site_id": relation(func(v string) bool {
			return slices.ContainsFunc(s.sites, func(k *siteRow) bool { return id(k.id) == v })
		}, func(r row) []string { return []string{id(dev(r).site.id)} }),
		"role": relation(func(v string) bool { return hasSlug(s.roles, v) }, func(r row) []string { return []string{dev(r).role.slug} }),
		"role_id": relation(func(v string) bool {
			return slices.ContainsFunc(s.roles, func(k *nameRow) bool { return id(k.id) == v })
		}, func(r row) []string { return []string{id(dev(r).role.id)} }),
		"device_type_id": relation(func(v string) bool {
			return slices.ContainsFunc(s.types, func(k *typeRow) bool { return id(k.id) == v })
		}, func(r row) []string { return []string{id(dev(r).kind.id)} }),
		"status": relation(func(v string) bool { return slices.Contains(statuses(), v) }, func(r row) []string { return []string{dev(r).Status} }),
		"tag":    conjoined(relation(func(v string) bool { return hasSlug(s.tags, v) }, func(r row) []string { return dev(r).slugs() })),
		"rack_id": relation(func(v string) bool {
			return slices.ContainsFunc(s.racks, func(k *rackRow) bool { return id(k.id) == v })
		}, func(r row) []string {
			if dev(r).rack == nil {
				return nil
			}
			return []string{id(dev(r).rack.id)}
		}),
	}
}

func (s *Server) hasSite(slug string) bool {
	return slices.ContainsFunc(s.sites, func(k *siteRow) bool { return k.Slug == slug })
}

func hasSlug(rows []*nameRow, slug string) bool {
	return slices.ContainsFunc(rows, func(k *nameRow) bool { return k.slug == slug })
}

func (s *Server) interfaceRows() []row {
	sorted := slices.Clone(s.interfaces)
	slices.SortStableFunc(sorted, func(a, b *interfaceRow) int {
		return cmp.Or(strings.Compare(a.device.Name, b.device.Name), strings.Compare(a.Name, b.Name))
	})
	return mapRows(sorted, func(i *interfaceRow) row {
		return row{id: i.id, name: i.Name, raw: i, view: func(x *request) object { return x.interfaceView(i) }, updated: s.start}
	})
}

func (s *Server) interfaceFilters() map[string]filter {
	in := func(r row) *interfaceRow { return r.raw.(*interfaceRow) }
	role := relation(func(v string) bool {
		return slices.ContainsFunc(s.roles, func(k *nameRow) bool { return strconv.FormatInt(k.id, 10) == v })
	}, func(r row) []string { return []string{strconv.FormatInt(in(r).device.role.id, 10)} })
	return map[string]filter{
		"id": idFilter(), "name": text(func(r row) string { return r.name }), "type": text(func(r row) string { return in(r).Type }),
		"device_id": relation(func(v string) bool {
			return slices.ContainsFunc(s.devices, func(d *deviceRow) bool { return strconv.FormatInt(d.id, 10) == v })
		}, func(r row) []string { return []string{strconv.FormatInt(in(r).device.id, 10)} }),
		"device": relation(func(v string) bool {
			return slices.ContainsFunc(s.devices, func(d *deviceRow) bool { return d.Name == v })
		}, func(r row) []string { return []string{in(r).device.Name} }),
		"device_role":       relation(func(v string) bool { return hasSlug(s.roles, v) }, func(r row) []string { return []string{in(r).device.role.slug} }),
		"site":              relation(s.hasSite, func(r row) []string { return []string{in(r).device.site.Slug} }),
		"device_role_id":    role,
		"device_role_id__n": negated(role),
		"mac_address":       {fold: strings.ToLower, keys: func(r row) []string { return in(r).macs() }},
		"mac_address__isw":  {fold: strings.ToLower, keys: func(r row) []string { return in(r).macs() }, fits: strings.HasPrefix},
		"mgmt_only":         boolean(func(r row) bool { return in(r).MgmtOnly }), "enabled": boolean(func(r row) bool { return !in(r).Disabled }),
		"cabled": boolean(func(r row) bool { return cabled(in(r)) }), "connected": boolean(func(r row) bool { return cabled(in(r)) && !owner(in(r)).Planned }),
	}
}

// list answers a list: filters, order, page, fields.
func (x *request) list(t table) {
	if x.r.Method == http.MethodOptions {
		x.describeList(t)
		return
	}
	if x.r.Method != http.MethodGet {
		x.notSimulated(x.r.Method + " of lists")
		return
	}
	q := x.r.URL.Query()
	problems := object{}
	for name, values := range q {
		f, known := t.filters[name]
		if !known || f.check == nil {
			continue
		}
		for _, v := range values {
			if words := f.check(v); words != "" {
				problems[name] = []string{words}
			}
		}
	}
	if len(problems) > 0 {
		x.answer(http.StatusBadRequest, problems)
		return
	}
	rows := t.rows()
	for name, values := range q {
		if f, known := t.filters[name]; known {
			matches := f.matcher(values)
			rows = slices.DeleteFunc(rows, func(r row) bool { return !matches(r) })
		}
	}
	order(rows, q.Get("ordering"), t.name == "dcim/devices")
	x.page(rows, q)
}

func order(rows []row, by string, byName bool) {
	key := strings.TrimPrefix(by, "-")
	switch {
	case key == "id":
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	case key == "name", key == "" && byName:
		slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	default:
		return // NetBox ignores an order that it does not know
	}
	if strings.HasPrefix(by, "-") {
		slices.Reverse(rows)
	}
}

func (x *request) page(rows []row, q url.Values) {
	limit, err := strconv.Atoi(q.Get("limit"))
	switch {
	case err != nil || limit < 0:
		limit = min(50, x.opt.PageCap)
	case limit == 0 || limit > x.opt.PageCap:
		limit = x.opt.PageCap
	}
	out := object{"count": len(rows), "next": nil, "previous": nil}
	link := func(set map[string]int) string {
		next := maps.Clone(q)
		for k, v := range set {
			next.Set(k, strconv.Itoa(v))
		}
		return x.base() + x.r.URL.Path + "?" + next.Encode()
	}
	if q.Has("start") && x.atLeast(4, 6) {
		if q.Has("offset") || q.Has("ordering") {
			other := "ordering"
			if q.Has("offset") {
				other = "offset"
			}
			x.answer(http.StatusBadRequest, []string{fmt.Sprintf("'start' and '%s' are mutually exclusive.", other)})
			return
		}
		start, _ := strconv.ParseInt(q.Get("start"), 10, 64)
		order(rows, "id", false)
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.id < start })
		out["count"] = nil
		if len(rows) > limit {
			rows = rows[:limit]
			out["next"] = link(map[string]int{"limit": limit, "start": int(rows[limit-1].id) + 1})
		}
	} else {
		offset, err := strconv.Atoi(q.Get("offset"))
		if err != nil || offset < 0 {
			offset = 0
		}
		if offset+limit < len(rows) {
			out["next"] = link(map[string]int{"limit": limit, "offset": offset + limit})
		}
		if offset > 0 {
			out["previous"] = link(map[string]int{"limit": limit, "offset": max(0, offset-limit)})
		}
		rows = rows[min(offset, len(rows)):min(offset+limit, len(rows))]
	}
	results := make([]object, 0, len(rows))
	for _, r := range rows {
		results = append(results, x.cut(r.view(x)))
	}
	out["results"] = results
	x.answer(http.StatusOK, out)
}

// cut applies fields=, brief=, omit= and exclude=. Unknown names are ignored.
func (x *request) cut(o object) object {
	q := x.r.URL.Query()
	keep := func(names []string) object {
		out := object{}
		for _, n := range names {
			if v, ok := o[n]; ok {
				out[n] = v
			}
		}
		return out
	}
	if fields := q.Get("fields"); fields != "" {
		return keep(strings.Split(fields, ","))
	}
	if brief, err := strconv.ParseBool(q.Get("brief")); err == nil && brief {
		return keep([]string{"id", "url", "display", "name", "slug", "description"})
	}
	if x.atLeast(4, 5) {
		for _, n := range strings.Split(q.Get("omit"), ",") {
			delete(o, n)
		}
	}
	if q.Get("exclude") == "config_context" && !x.atLeast(4, 7) {
		delete(o, "config_context")
	}
	return o
}

// describeList is the description of a list: its actions are what the token may
// do (BulkOperationMetadata). What each takes is left out.
func (x *request) describeList(t table) {
	words := strings.Fields(t.model)
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	out := object{
		"name": strings.Join(words, " ") + " List", "description": "", "renders": []string{"application/json", "text/html"},
		"parses": []string{"application/json", "multipart/form-data"},
	}
	if !x.token.ReadOnly {
		out["actions"] = object{"POST": object{}, "PUT": object{}}
	}
	x.w.Header().Set("Allow", "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS")
	x.answer(http.StatusOK, out)
}

// detail answers GET and PATCH of one object.
func (x *request) detail(t table, id int64) {
	rows := t.rows()
	n := slices.IndexFunc(rows, func(r row) bool { return r.id == id })
	if n < 0 {
		x.fail(http.StatusNotFound, "No "+t.model+" matches the given query.")
		return
	}
	switch {
	case x.r.Method == http.MethodGet:
		x.etag(rows[n])
		x.answer(http.StatusOK, x.cut(rows[n].view(x)))
	case x.r.Method == http.MethodPatch && t.name == "dcim/devices":
		x.patch(rows[n])
	default:
		x.notSimulated(x.r.Method + " of " + t.name)
	}
}

// tagOf is the weak ETag of NetBox: last_updated as Python's isoformat.
func tagOf(t time.Time) string {
	layout := "2006-01-02T15:04:05.000000"
	if t.Nanosecond() == 0 {
		layout = "2006-01-02T15:04:05"
	}
	return `W/"` + t.UTC().Format(layout) + `+00:00"`
}

func (x *request) etag(r row) {
	if r.updated != nil && x.atLeast(4, 6) && !x.opt.NoETag {
		x.w.Header().Set("ETag", tagOf(r.updated()))
	}
}

func sortedKeys(m object) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
