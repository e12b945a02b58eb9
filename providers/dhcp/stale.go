package dhcp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// An entry of enroll whose device is gone from NetBox still gives its address
// away. It is shown, and removed only when somebody asks for that (--prune-dhcp):
// the device may have moved to another site, or its record may be about to come
// back.

// Mark is what is known of a file with enroll's mark.
type Mark struct {
	File     string // its name in the folder
	DeviceID int64
	// MAC and Address are those of the entry, zero where it is not written the way
	// enroll writes it.
	MAC     plan.MAC
	Address netip.Addr
}

// mark reads the mark of a file; false when it has none.
func (fl flavour) mark(name, text string) (Mark, bool) {
	id, ours := fl.owner(text)
	m := Mark{File: name, DeviceID: id}
	if e, err := fl.fields(text); ours && err == nil {
		m.MAC, m.Address = e.MAC, e.Address
	}
	return m, ours
}

// marked lists the files with enroll's mark, each as a text of its fields.
func (fo *folder) marked() []string {
	var out []string
	for name, f := range fo.files {
		if f.dir || !fo.fl.reads(name) {
			continue
		}
		if m, ours := fo.fl.mark(name, f.text); ours {
			out = append(out, m.text())
		}
	}
	slices.Sort(out)
	return out
}

func (m Mark) text() string {
	words := []string{m.File, strconv.FormatInt(m.DeviceID, 10)}
	if m.Address.IsValid() {
		words = append(words, m.MAC.String(), m.Address.String())
	}
	return strings.Join(words, " ")
}

// parseMark reads what text wrote; false for anything else. The name comes from
// the server and may hold anything.
func parseMark(text string) (Mark, bool) {
	words := strings.Split(text, " ")
	if len(words) != 2 && len(words) != 4 {
		return Mark{}, false
	}
	m := Mark{File: words[0]}
	var err error
	if m.DeviceID, err = strconv.ParseInt(words[1], 10, 64); err != nil || !safeName.MatchString(m.File) {
		return Mark{}, false
	}
	if len(words) == 4 {
		mac, macErr := plan.ParseMAC(words[2])
		addr, addrErr := netip.ParseAddr(words[3])
		if macErr != nil || addrErr != nil {
			return Mark{}, false
		}
		m.MAC, m.Address = mac, addr
	}
	return m, true
}

// Stale lists the entries that give an address to none of the site's devices:
// those of devices that it does not have, and those of a device under another
// name, with another MAC and another address than its own. Only a run for all of
// the site's devices can tell; for any other there are none.
func Stale(sc *plan.Scope, world plan.Snapshot) []Mark {
	service, known := world[plan.Address{Site: sc.Site.Name, System: "dhcp", Kind: kindService}]
	if !known || service.Presence != plan.Present {
		return nil
	}
	return staleIn(sc, service.Value)
}

func staleIn(sc *plan.Scope, live plan.Value) []Mark {
	if !sc.Whole {
		return nil
	}
	targets := map[int64]*plan.Target{}
	for _, t := range sc.Targets {
		targets[t.Intent.ID] = t
	}
	var out []Mark
	for _, m := range marksIn(live) {
		if t := targets[m.DeviceID]; t == nil || m.leftBehind(t) {
			out = append(out, m)
		}
	}
	return out
}

// marksIn reads the marks in the live value of a service.
func marksIn(live plan.Value) []Mark {
	entries := plan.Attr(live, attrMarked)
	if !entries.IsKnown() || entries.IsNull() || entries.LengthInt() == 0 {
		return nil
	}
	var out []Mark
	for _, v := range entries.AsValueSlice() {
		if m, ok := parseMark(v.AsString()); ok {
			out = append(out, m)
		}
	}
	return out
}

// Strangers lists the entries of devices that are none of a run's, for a run that
// is not for all of the site's devices: whose they are only NetBox can tell.
func Strangers(sc *plan.Scope, world plan.Snapshot) []Mark {
	if sc.Whole {
		return nil
	}
	own := map[int64]bool{}
	for _, t := range sc.Targets {
		own[t.Intent.ID] = true
	}
	service := world[plan.Address{Site: sc.Site.Name, System: "dhcp", Kind: kindService}]
	return slices.DeleteFunc(marksIn(service.Value), func(m Mark) bool { return own[m.DeviceID] })
}

// leftBehind reports whether an entry with a device's id has nothing of what the
// device needs. Where that is not known, or the entry cannot be read, it is not.
func (m Mark) leftBehind(t *plan.Target) bool {
	e, at, f := entryFor(t)
	return f == nil && m.Address.IsValid() && !strings.HasSuffix(at, "/"+m.File) && e.MAC != m.MAC && e.Address != m.Address
}

// Unclaimed reports whether NetBox gives nobody what the entry says: it has no
// device of that id, or one with another oob_ip. recorded holds the oob_ips of the
// devices that NetBox has, whatever their site and status; the zero address of one
// that has none proves nothing.
func (m Mark) Unclaimed(recorded map[int64]netip.Addr) bool {
	oob, exists := recorded[m.DeviceID]
	return !exists || oob.IsValid() && m.Address.IsValid() && oob.Unmap() != m.Address
}

// MarkOf reads the mark in the value of a dhcp.stale; false when there is none.
func MarkOf(s plan.DHCPSettings, file string, v plan.Value) (Mark, bool) {
	fl, known := flavourOf(&s)
	if !known {
		return Mark{}, false
	}
	return fl.mark(file, plan.Text(v, "content"))
}

// observeStale shows the stale entries that this plan does not remove.
func observeStale(d plan.Decision) []plan.Observation {
	fate := "it is left alone"
	if d.Scope.Parameters.PruneDHCP {
		fate = "NetBox has that device elsewhere, with this address or with none; it is left alone"
	}
	var out []plan.Observation
	for _, m := range marksIn(d.Live.Value) {
		if slices.Contains(d.Scope.Ownerless, m.File) {
			out = append(out, plan.Observation{
				Address: d.Resource.Address, Rule: "stale", Want: plan.Null, Live: plan.Str(m.File),
				Text: fmt.Sprintf("%s/%s is the entry of NetBox device %d, which NetBox does not have; it is left alone", d.Scope.Site.DHCP.Directory, m.File, m.DeviceID),
			})
		}
	}
	for _, m := range staleIn(d.Scope, d.Live.Value) {
		if slices.Contains(d.Scope.Stale, m.File) {
			continue
		}
		out = append(out, plan.Observation{
			Address: d.Resource.Address, Rule: "stale", Want: plan.Null, Live: plan.Str(m.File),
			Text: fmt.Sprintf("%s/%s is the entry of NetBox device %d, which is none of this site's devices or has another address; %s", d.Scope.Site.DHCP.Directory, m.File, m.DeviceID, fate),
		})
	}
	return out
}

// attrMarked is where the service's live value lists the files with enroll's
// mark, when the folder was looked at. Nothing wants it, so nothing compares it.
const attrMarked = "entries"

// withMarked adds them to the live value.
func withMarked(live plan.Live, fo *folder) plan.Live {
	if live.Presence != plan.Present {
		return live
	}
	state := plan.Text(live.Value, "state")
	pending := plan.Satisfies(plan.Bool(true), plan.Attr(live.Value, "pending"))
	live.Value = plan.Obj(map[string]plan.Value{"state": plan.Str(state), "pending": plan.Bool(pending), attrMarked: plan.Strs(fo.marked()...)})
	if len(fo.unread) > 0 {
		live.Evidence[evidenceUnread] = strings.Join(fo.unread, ", ")
	}
	return live
}
