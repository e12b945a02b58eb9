package bmc

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// The boot order of an XCC: options are classes of devices, and the NICs of the
// class Network have an order of their own, in words.

// networkOrder reads the order of the NICs. It is not there before the list of
// such orders was read once, and not at all on newer firmware.
func (k *conn) networkOrder(ctx context.Context, b *boot) *plan.Fault {
	list := strings.TrimSuffix(b.system.path, "/") + "/Oem/Lenovo/BootSettings"
	all, fault := k.get(ctx, list)
	if fault != nil {
		return unlessUnsupported(fault)
	}
	for _, member := range all.links("Members") {
		if !strings.HasSuffix(strings.TrimSuffix(member, "/"), ".NetworkBootOrder") {
			continue
		}
		d, fault := k.get(ctx, member)
		if fault != nil {
			return unlessUnsupported(fault)
		}
		b.netAt, b.network, b.nextNIC = d, d.list("BootOrderCurrent"), d.list("BootOrderNext")
		// What the order has lost may be put back from what is supported.
		for _, nic := range d.list("BootOrderSupported") {
			if !slices.Contains(b.nextNIC, nic) {
				b.nextNIC = append(b.nextNIC, nic)
			}
			if !slices.Contains(b.network, nic) {
				b.network = append(b.network, nic)
			}
		}
	}
	return nil
}

// ofNIC finds a NIC among the words of an order.
func ofNIC(list []string, mac plan.MAC) int {
	return slices.IndexFunc(list, func(s string) bool { return parseMAC(macInName.FindString(s)) == mac })
}

// classState is the live value of an XCC. Where the words of no NIC have the
// wanted address, the class is all that can be known and asked for.
func (k *conn) classState(b *boot, wanted plan.MAC, shown map[string]plan.Value) plan.Value {
	o := b.option(b.order[0])
	if o != nil {
		shown["DisplayName"] = textOrNull(o.document, "DisplayName")
	}
	if o != nil && o.network {
		switch {
		case ofNIC(b.network, wanted) < 0:
			shown["MACAddress"] = plan.Str(wanted.String())
		default:
			if mac := parseMAC(macInName.FindString(b.network[0])); !mac.IsZero() {
				shown["MACAddress"] = plan.Str(mac.String())
			}
		}
	}
	return plan.Obj(shown)
}

// setClasses puts Network before the other classes and the NIC before the others,
// and boots the host for both.
func (k *conn) setClasses(ctx context.Context, h host, b *boot, wanted plan.MAC, memo plan.Memo) plan.Result {
	goal := bootGoal{}
	for _, front := range []bool{true, false} {
		for _, reference := range b.order {
			if o := b.option(reference); (o != nil && o.network) == front {
				goal.order = append(goal.order, reference)
			}
		}
		if !front {
			break
		}
		for _, o := range b.options { // an XCC can lose Network from its order
			if o.network && !slices.Contains(goal.order, o.reference) {
				goal.order = append(goal.order, o.reference)
			}
		}
		if len(goal.order) == 0 {
			return plan.Failed(k.lacks(b.system, "boot option Network"))
		}
	}
	if memo[memoReset] == "" {
		if h.booting {
			return plan.Wait(bootPause, "the host boots; its boot order is not touched meanwhile", memo)
		}
		if r := k.storeOrder(ctx, b, goal, memo); r != nil {
			return *r
		}
		if i := ofNIC(b.nextNIC, wanted); i > 0 {
			next := append([]string{b.nextNIC[i]}, slices.Delete(slices.Clone(b.nextNIC), i, i+1)...)
			ans, fault := k.patch(ctx, change{on: b.netAt, body: map[string]any{"BootOrderNext": next}, same: func(d document) bool {
				return slices.Equal(d.list("BootOrderNext"), b.netAt.list("BootOrderNext"))
			}})
			if fault != nil {
				return plan.Failed(fault)
			}
			if ans.status == http.StatusAccepted {
				return k.accepted(ans)
			}
			memo[memoTouched] = "yes"
			return plan.Wait(firstPause, "the order of the NICs is stored for the next boot", memo)
		}
		if b.staged == nil && slices.Equal(b.network, b.nextNIC) {
			return plan.Already() // nothing was missing, or another boot has brought it
		}
	}
	if r := k.reboot(ctx, h, memo, "the boot order is stored"); r != nil {
		return *r
	}
	return plan.Done()
}
