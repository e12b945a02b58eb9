package netboxtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Field is a custom field. With Choices it is a selection.
type Field struct {
	Object  string // dcim.device, dcim.devicetype, dcim.site
	Name    string
	Choices []string
	Set     string // name of the choice set; default Name
}

func (f Field) set() string {
	if f.Set == "" {
		return f.Name
	}
	return f.Set
}

// Site is a NetBox site; its slug is its name.
type Site struct {
	Slug         string
	CustomFields map[string]any
}

// Type is a device type.
type Type struct {
	Manufacturer string // default "Lenovo"
	Model        string // default "HG635N V2"
	CustomFields map[string]any
}

// Device is a device as it is seeded.
type Device struct {
	Name     string // "" is null
	Site     string // slug; default Options.Site
	Serial   string
	Role     string // slug; default "gpu-compute"
	Type     Type
	Platform string  // slug
	Location string  // "" is null
	Rack     string  // "" is null
	Position float64 // 0 is null
	Parent   string  // name of the chassis that the device is a bay of
	Status   string  // default "staged"
	Tags     []string
	// Context is the rendered config context.
	Context      map[string]any
	CustomFields map[string]any
	OOB          OOB
	Interfaces   []Interface
}

// OOB is the out-of-band address of a device; without Address there is none.
type OOB struct {
	Address   string // with prefix length: 192.0.2.17/24
	Interface string // of the device; "" leaves the address unassigned
	Inside    string // the address on the interface when Address is translated to it (nat_inside)
	Status    string // default "active"
}

// Interface is an interface of a device.
type Interface struct {
	Name     string
	Type     string   // value; default 1000base-t
	MAC      string   // the primary one
	MACs     []string // further ones, or all when none is primary
	MgmtOnly bool
	Disabled bool
	LAG      string // name of the LAG of the same device
	Label    string
	// Peer is the far end; a zero Peer means not cabled. More are further far ends.
	Peer Peer
	More []Peer
	// Panels are the patch panels that the cable runs through.
	Panels []string
	// Planned: one cable of the path has the status planned.
	Planned bool
	Text    string // description
}

// Peer is a port of another device; both are made when they do not exist.
type Peer struct {
	Device string
	Port   string
	Label  string
	Text   string // description
	LAG    string // name of the LAG that the port is in
	Kind   string // default dcim.interface; for example dcim.consoleport
}

type state struct {
	ids        map[string]int64
	sites      []*siteRow
	types      []*typeRow
	roles      []*nameRow
	tags       []*nameRow
	racks      []*rackRow
	devices    []*deviceRow
	interfaces []*interfaceRow
	byKey      map[string]*interfaceRow // device id and name
	byID       map[int64]*interfaceRow
	ofDevice   map[int64][]*interfaceRow
	addresses  []*addressRow
	changes    []*changeRow
	started    time.Time
}

type siteRow struct {
	id int64
	Site
}

type typeRow struct {
	id, manufacturer int64
	Type
}

type nameRow struct {
	id         int64
	name, slug string
}

type rackRow struct {
	id   int64
	name string
	site *siteRow
}

type deviceRow struct {
	id       int64
	Device   // as it is now
	role     *nameRow
	kind     *typeRow
	site     *siteRow
	location int64
	rack     *rackRow
	platform int64
	parent   int64
	oob      *addressRow
	tags     []*nameRow
	created  time.Time
	updated  time.Time
}

type interfaceRow struct {
	id     int64
	device *deviceRow
	Interface
	macIDs []int64
	far    []*interfaceRow // both directions
}

type addressRow struct {
	id      int64
	text    string
	status  string
	on      *interfaceRow
	inside  *addressRow
	updated time.Time
}

func (s *Server) reset() {
	s.state = state{ids: map[string]int64{}, byKey: map[string]*interfaceRow{}, byID: map[int64]*interfaceRow{}, ofDevice: map[int64][]*interfaceRow{}, started: s.opt.Now()}
	s.siteOf(s.opt.Site)
}

func (s *Server) next(kind string) int64 {
	s.ids[kind]++
	return s.ids[kind]
}

// named gives the id of a thing that has nothing but a name (platforms).
func (s *Server) named(kind, name string) int64 {
	key := kind + "\x00" + name
	if s.ids[key] == 0 {
		s.ids[key] = s.next(kind)
	}
	return s.ids[key]
}

func (s *Server) siteOf(slug string) *siteRow {
	for _, row := range s.sites {
		if row.Slug == slug {
			return row
		}
	}
	row := &siteRow{id: s.next("site"), Site: Site{Slug: slug}}
	s.sites = append(s.sites, row)
	return row
}

func (s *Server) rackOf(site *siteRow, name string) *rackRow {
	for _, row := range s.racks {
		if row.site == site && row.name == name {
			return row
		}
	}
	row := &rackRow{id: s.next("rack"), name: name, site: site}
	s.racks = append(s.racks, row)
	return row
}

func nameIn(s *Server, kind string, rows *[]*nameRow, slug string) *nameRow {
	for _, row := range *rows {
		if row.slug == slug {
			return row
		}
	}
	row := &nameRow{id: s.next(kind), name: slug, slug: slug}
	*rows = append(*rows, row)
	return row
}

func (s *Server) typeOf(t Type) *typeRow {
	if t.Manufacturer == "" {
		t.Manufacturer = "Lenovo"
	}
	if t.Model == "" {
		t.Model = "HG635N V2"
	}
	for _, row := range s.types {
		if row.Manufacturer == t.Manufacturer && row.Model == t.Model {
			if t.CustomFields != nil {
				row.CustomFields = t.CustomFields
			}
			return row
		}
	}
	row := &typeRow{id: s.next("type"), manufacturer: s.named("manufacturer", t.Manufacturer), Type: t}
	s.types = append(s.types, row)
	return row
}

// AddSite adds a site or replaces its custom fields.
func (s *Server) AddSite(site Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.siteOf(site.Slug).CustomFields = site.CustomFields
}

// AddTag makes a tag; its name is its slug.
func (s *Server) AddTag(slug string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nameIn(s, "tag", &s.tags, slug)
}

// AddRole makes a device role that no device has yet.
func (s *Server) AddRole(slug string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nameIn(s, "role", &s.roles, slug)
}

// AddDevice adds a device with its interfaces, cables and address, and what
// they need that does not exist yet. It gives the id.
func (s *Server) AddDevice(d Device) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.addDevice(d)
	for _, i := range d.Interfaces {
		s.addInterface(row, i)
	}
	s.setOOB(row, d.OOB)
	return row.id
}

func (s *Server) addDevice(d Device) *deviceRow {
	if d.Site == "" {
		d.Site = s.opt.Site
	}
	if d.Role == "" {
		d.Role = "gpu-compute"
	}
	if d.Status == "" {
		d.Status = "staged"
	}
	row := &deviceRow{id: s.next("device"), Device: d, site: s.siteOf(d.Site), role: nameIn(s, "role", &s.roles, d.Role), kind: s.typeOf(d.Type), created: s.opt.Now()}
	s.resolve(row)
	if row.CustomFields == nil {
		row.CustomFields = map[string]any{}
	}
	s.touch(row)
	s.devices = append(s.devices, row)
	return row
}

// touch moves last_updated, always forward: NetBox's clock has microseconds.
func (s *Server) touch(d *deviceRow) {
	now := s.opt.Now().UTC().Truncate(time.Microsecond)
	if !now.After(d.updated) {
		now = d.updated.Add(time.Microsecond)
	}
	d.updated = now
}

// deviceOf finds a device by name, or makes one of the role.
func (s *Server) deviceOf(name, site, role string) *deviceRow {
	for _, d := range s.devices {
		if d.Name == name && d.site.Slug == site {
			return d
		}
	}
	return s.addDevice(Device{Name: name, Site: site, Role: role, Status: "active", Type: Type{Manufacturer: "Generic", Model: role}})
}

func (s *Server) interfaceOf(d *deviceRow, name string) *interfaceRow {
	return s.byKey[fmt.Sprint(d.id, "\x00", name)]
}

func (s *Server) addInterface(d *deviceRow, i Interface) *interfaceRow {
	if i.Type == "" {
		i.Type = "1000base-t"
	}
	row := &interfaceRow{id: s.next("interface"), device: d, Interface: i}
	for range row.macs() {
		row.macIDs = append(row.macIDs, s.next("mac"))
	}
	s.interfaces = append(s.interfaces, row)
	s.byID[row.id] = row
	s.ofDevice[d.id] = append(s.ofDevice[d.id], row)
	s.byKey[fmt.Sprint(d.id, "\x00", i.Name)] = row
	s.cable(row)
	if i.LAG != "" && s.interfaceOf(d, i.LAG) == nil {
		s.addInterface(d, Interface{Name: i.LAG, Type: "lag"})
	}
	return row
}

// macs are all MAC addresses, the primary one first.
func (i *interfaceRow) macs() []string {
	if i.MAC == "" {
		return i.MACs
	}
	return append([]string{i.MAC}, i.MACs...)
}

func (i *interfaceRow) peers() []Peer {
	if i.Peer == (Peer{}) {
		return nil
	}
	return append([]Peer{i.Peer}, i.More...)
}

// cable makes the far ends of an interface's peers.
func (s *Server) cable(i *interfaceRow) {
	for _, other := range i.far {
		other.far = slices.DeleteFunc(other.far, func(r *interfaceRow) bool { return r == i })
	}
	i.far = nil
	for _, panel := range i.Panels {
		s.deviceOf(panel, i.device.site.Slug, "patch-panel")
	}
	for _, p := range i.peers() {
		d := s.deviceOf(p.Device, i.device.site.Slug, "leaf")
		if p.Kind != "" && p.Kind != "dcim.interface" {
			continue
		}
		row := s.interfaceOf(d, p.Port)
		if row == nil {
			row = s.addInterface(d, Interface{Name: p.Port, Type: i.Type})
		}
		row.Label, row.Text, row.LAG = p.Label, p.Text, p.LAG
		if p.LAG != "" && s.interfaceOf(d, p.LAG) == nil {
			s.addInterface(d, Interface{Name: p.LAG, Type: "lag"})
		}
		i.far = append(i.far, row)
		row.far = append(row.far, i)
	}
}

func (s *Server) setOOB(d *deviceRow, o OOB) {
	d.OOB, d.oob = o, nil
	if o.Address == "" {
		return
	}
	if o.Status == "" {
		o.Status = "active"
	}
	outer := s.address(o.Address, o.Status)
	holder := outer
	if o.Inside != "" {
		outer.inside = s.address(o.Inside, "active")
		outer.on, holder = nil, outer.inside
	}
	holder.on = nil
	if o.Interface != "" {
		holder.on = s.interfaceOf(d, o.Interface)
		if holder.on == nil {
			panic(fmt.Sprintf("netboxtest: device %s has no interface %s for its out-of-band address", d.Name, o.Interface))
		}
	}
	d.oob = outer
}

// address makes an address object; the same text may exist more than once (in
// several VRFs).
func (s *Server) address(text, status string) *addressRow {
	row := &addressRow{id: s.next("address"), text: text, status: status, updated: s.started}
	s.addresses = append(s.addresses, row)
	return row
}

// Update changes what a device itself holds and moves its last_updated, as a
// write in NetBox does. Names, roles, types, places and so on of the given
// device take effect; interfaces and OOB have their own setters.
func (s *Server) Update(name string, change func(d *Device)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.must(name)
	before := row.Device
	before.Interfaces = slices.Clone(row.Interfaces)
	change(&row.Device)
	if !reflect.DeepEqual(row.OOB, before.OOB) || !reflect.DeepEqual(row.Interfaces, before.Interfaces) {
		panic("netboxtest: Update does not change addresses and interfaces; SetOOB, SetInterface and SetPeer do")
	}
	row.site, row.role, row.kind = s.siteOf(row.Site), nameIn(s, "role", &s.roles, row.Role), s.typeOf(row.Type)
	s.resolve(row)
	s.touch(row)
}

// resolve makes what the description of a device names.
func (s *Server) resolve(row *deviceRow) {
	row.location, row.rack, row.platform, row.parent = 0, nil, 0, 0
	if row.Location != "" {
		row.location = s.named("location", row.Location)
	}
	if row.Rack != "" {
		row.rack = s.rackOf(row.site, row.Rack)
	}
	if row.Platform != "" {
		row.platform = s.named("platform", row.Platform)
	}
	if row.Parent != "" {
		row.parent = s.deviceOf(row.Parent, row.Site, "chassis").id
	}
	row.tags = nil
	for _, slug := range row.Tags {
		row.tags = append(row.tags, nameIn(s, "tag", &s.tags, slug))
	}
}

// SetStatus changes the status of a device.
func (s *Server) SetStatus(name, status string) {
	s.Update(name, func(d *Device) { d.Status = status })
}

// SetContext replaces the rendered config context. That is no change of the
// device: its last_updated and ETag stay.
func (s *Server) SetContext(name string, context map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(name).Context = context
}

// SetPeer cables an interface anew; no peers means not cabled. It does not
// move the device's last_updated.
func (s *Server) SetPeer(name, iface string, peers ...Peer) {
	s.SetInterface(name, iface, func(i *Interface) {
		i.Peer, i.More = Peer{}, nil
		if len(peers) > 0 {
			i.Peer, i.More = peers[0], peers[1:]
		}
	})
}

// SetInterface changes an interface. It does not move the device's last_updated.
func (s *Server) SetInterface(name, iface string, change func(i *Interface)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.interfaceOf(s.must(name), iface)
	if row == nil {
		panic(fmt.Sprintf("netboxtest: device %s has no interface %s", name, iface))
	}
	change(&row.Interface)
	for len(row.macIDs) < len(row.macs()) {
		row.macIDs = append(row.macIDs, s.next("mac"))
	}
	s.cable(row)
}

// SetOOB replaces the out-of-band address of a device.
func (s *Server) SetOOB(name string, oob OOB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.must(name)
	s.setOOB(d, oob)
	s.touch(d)
}

// MoveAddress assigns the out-of-band address of a device to an interface of
// another one, which NetBox allows although oob_ip stays.
func (s *Server) MoveAddress(name, other, iface string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(name).oob.on = s.interfaceOf(s.must(other), iface)
}

// Remove deletes a device with its interfaces.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.must(name)
	s.devices = slices.DeleteFunc(s.devices, func(row *deviceRow) bool { return row == d })
	s.interfaces = slices.DeleteFunc(s.interfaces, func(row *interfaceRow) bool { return row.device == d })
	for _, i := range s.ofDevice[d.id] {
		delete(s.byID, i.id)
		delete(s.byKey, fmt.Sprint(d.id, "\x00", i.Name))
		for _, other := range i.far {
			other.far = slices.DeleteFunc(other.far, func(r *interfaceRow) bool { return r == i })
		}
	}
	delete(s.ofDevice, d.id)
	for _, a := range s.addresses {
		if a.on != nil && a.on.device == d {
			a.on = nil
		}
	}
}

// Device gives a device as it is now: its own fields, and its tags' slugs.
func (s *Server) Device(name string) (Device, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.Name == name {
			out := d.Device
			out.Tags = d.slugs()
			return out, true
		}
	}
	return Device{}, false
}

func (s *Server) must(name string) *deviceRow {
	for _, d := range s.devices {
		if d.Name == name {
			return d
		}
	}
	panic(fmt.Sprintf("netboxtest: there is no device %s", name))
}

func (d *deviceRow) slugs() []string {
	out := make([]string, 0, len(d.tags))
	for _, t := range d.tags {
		out = append(out, t.slug)
	}
	return out
}

// slugify is how this package makes slugs of names.
func slugify(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), " ", "-")
}
