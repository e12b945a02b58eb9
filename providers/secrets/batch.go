package secrets

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/enroll-dev/enroll/plan"
)

// atOnce is how many items are read at the same time.
const atOnce = 8

// memory keeps the items of a run: an item is read once, so that the user name
// and the password of one reading are of one version, whenever they are asked for.
type memory struct {
	mu    sync.Mutex
	items map[string]*entry
}

func (m *memory) get(item string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.items[item]
}

func (m *memory) keep(item string, e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[string]*entry{}
	}
	m.items[item] = e
}

// forget is called when an item was written, or may have been.
func (m *memory) forget(item string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, item)
}

// known puts what is kept into the result and gives the other references.
func (m *memory) known(refs []plan.SecretRef, found *result) []plan.SecretRef {
	var others []plan.SecretRef
	for _, ref := range refs {
		if e := m.get(ref.Item); e != nil {
			e.field(ref, nil, found)
			continue
		}
		others = append(others, ref)
	}
	return others
}

// reading keeps what read gives.
func (m *memory) reading(read func(item string) (*entry, *plan.Fault)) func(item string) (*entry, *plan.Fault) {
	return func(item string) (*entry, *plan.Fault) {
		e, f := read(item)
		if f == nil {
			m.keep(item, e)
		}
		return e, f
	}
}

// byItem calls read once for each item of refs, however many of its fields are
// wanted, some at the same time. When the store does not answer one, the rest is
// not asked for.
func byItem(refs []plan.SecretRef, found *result, read func(item string) (*entry, *plan.Fault)) {
	items := map[string][]plan.SecretRef{}
	var names []string
	for _, ref := range refs {
		if items[ref.Item] == nil {
			names = append(names, ref.Item)
		}
		items[ref.Item] = append(items[ref.Item], ref)
	}
	sort.Strings(names)
	var down atomic.Pointer[plan.Fault]
	queue := make(chan string)
	var workers sync.WaitGroup
	for range min(atOnce, len(names)) {
		workers.Go(func() {
			for name := range queue {
				fault := down.Load()
				var item *entry
				if fault == nil {
					if item, fault = read(name); fault != nil && stops(fault.Code) {
						down.CompareAndSwap(nil, fault)
					}
				}
				for _, ref := range items[name] {
					item.field(ref, fault, found)
				}
			}
		})
	}
	for _, name := range names {
		queue <- name
	}
	close(queue)
	workers.Wait()
}

// stops reports whether a fault is about the store as a whole: the next item
// would get the same answer.
func stops(c plan.Code) bool {
	switch c { //nolint:exhaustive // all others are about one item
	case plan.CodeSecretUnreachable, plan.CodeSecretTimeout, plan.CodeSecretBusy, plan.CodeSecretLogin, plan.CodeInterrupted:
		return true
	}
	return false
}

// entry is one version of an item.
type entry struct {
	fields  map[string]json.RawMessage
	version string
	// wrong are fields that are there and cannot be told apart.
	wrong map[string]*plan.Fault
}

// field puts one field, or what is wrong with it, into the result.
func (e *entry) field(ref plan.SecretRef, fault *plan.Fault, found *result) {
	if fault != nil {
		found.fail(ref, fault)
		return
	}
	if f := e.wrong[ref.Field]; f != nil {
		found.fail(ref, f)
		return
	}
	raw, ok := e.fields[ref.Field]
	if !ok {
		found.fail(ref, plan.NewFault(plan.CodeSecretMissing, "item %q has no field %q", ref.Item, ref.Field).
			With("version", e.version).With("fields there", e.fieldNames()))
		return
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || string(raw) == "null" {
		found.fail(ref, plan.NewFault(plan.CodeSecretInvalid, "field %q of item %q is no text", ref.Field, ref.Item).
			WithHint("Store the value as a JSON string.").With("version", e.version))
		return
	}
	found.put(ref, text, e.version)
}

// fieldNames lists what an item has, for the message about a field it has not.
func (e *entry) fieldNames() string {
	names := make([]string, 0, len(e.fields))
	for name := range e.fields {
		names = append(names, strconv.Quote(name))
	}
	sort.Strings(names)
	const most = 12
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}
