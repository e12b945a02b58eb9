package bmc

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

// RecordLimits bound a walk over a BMC. Zero is the usual limit.
type RecordLimits struct {
	Answers int           // default 4000
	Bytes   int           // default 64 MB
	Pages   int           // of one list; default 50
	Time    time.Duration // default 30 min
}

func (l RecordLimits) withDefaults() RecordLimits {
	if l.Answers == 0 {
		l.Answers = 4000
	}
	if l.Bytes == 0 {
		l.Bytes = 64 << 20
	}
	if l.Pages == 0 {
		l.Pages = 50
	}
	if l.Time == 0 {
		l.Time = 30 * time.Minute
	}
	return l
}

// tape keeps the answers to GETs that a conn receives.
type tape struct {
	answers map[string]recording.Answer // by recording.Key
	bytes   int
	left    []string // what was left out, and why
}

func (t *tape) keep(ans *answer) {
	key := recording.Key(ans.path)
	_, twice := t.answers[key]
	if twice || ans.method != http.MethodGet || ans.broken != nil || !belongs(key) {
		return
	}
	one := recording.Answer{URI: key, Status: ans.status, ETag: ans.header.Get("ETag"), Allow: ans.header.Get("Allow"), Type: ans.header.Get("Content-Type")}
	v, ok := recording.JSON(ans.body)
	if ok {
		one.Body = v
	} else {
		one.Page = len(ans.body)
	}
	t.bytes += len(ans.body)
	t.answers[key] = one
}

// Record asks the BMC of t all that enroll ever asks one, walks on through
// whatever is linked from there, and gives the answers without what names the
// machine, its place or its people. It sends GETs alone, beside login and logout,
// one at a time, to the BMC's own address; a link to another host is not followed.
// What the walk could not finish within its limits is said in the recording. The
// machine is not compared with a record: one that is another's is worth a report.
// The fault tells why there is no recording.
func (c *Client) Record(ctx context.Context, t *plan.Target, limits RecordLimits) (*recording.Recording, *plan.Fault) {
	scope := recordScope(c.settings, t)
	t = scope.Targets[0]
	k, fault := c.conn(t)
	if fault != nil {
		return nil, fault
	}
	w := walk{k: k, limits: limits.withDefaults(), began: c.opt.Now(), seen: map[string]bool{}, pages: map[string]int{}}
	k.mu.Lock()
	k.tape = &tape{answers: map[string]recording.Answer{}}
	k.mu.Unlock()
	c.Read(ctx, scope, plan.Desired(scope, Kinds()))
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { k.tape = nil }()
	if fault := w.run(ctx); fault != nil {
		return nil, fault
	}
	rec := &recording.Recording{Family: k.family.name, Stopped: w.stopped, Left: k.tape.left}
	for _, key := range sortedKeys(k.tape.answers) {
		rec.Answers = append(rec.Answers, k.tape.answers[key])
	}
	recording.NewSanitiser(k.redact, k.ownAddress()).Clean(rec)
	return rec, nil
}

// ownAddress is the address that the BMC is asked at; not valid where that is a
// name.
func (k *conn) ownAddress() netip.Addr {
	u, err := url.Parse(k.base)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return netip.Addr{}
	}
	return a
}

// recordScope is a site that keeps everything of a BMC, so that reading it asks
// for everything.
func recordScope(settings plan.BMCSettings, t *plan.Target) *plan.Scope {
	yes, five := true, 5
	settings.RestrictBoot = true
	settings.Syslog = &plan.SyslogSettings{Port: 514}
	settings.Security = &plan.SecuritySettings{HTTP: &yes, SSH: &yes, Telnet: &yes, VNC: &yes, SSDP: &yes, HostInterface: &yes, SNMP: "v3", MinTLSVersion: "1.2", LockoutAttempts: &five, LockoutDuration: time.Minute}
	vendor := &plan.VendorSettings{VirtualMedia: &yes, FirmwareRollback: &yes, Lockdown: &yes, IPBlocking: &yes}
	settings.IDRAC, settings.XCC, settings.AMI, settings.Supermicro = vendor, vendor, vendor, vendor
	settings.BIOS = []plan.BIOSSettings{{Class: plan.DeviceType(t.Intent.Manufacturer + t.Intent.Model), Attributes: map[string]any{"BootMode": "Uefi"}}}
	site := &plan.Site{Name: t.Site.Name, ConfigureBMC: true, ConfigureDHCP: true, DHCP: &plan.DHCPSettings{}, BMC: &settings}
	intent := *t.Intent
	intent.Serial = ""
	if intent.Manufacturer+intent.Model == "" {
		intent.Manufacturer = "Any"
		settings.BIOS[0].Class = plan.DeviceType(intent.Manufacturer)
	}
	if len(intent.Frontend) == 0 {
		intent.Frontend = []plan.FrontendNIC{{Name: "any", MAC: plan.MAC{0x02}}}
	}
	return &plan.Scope{Site: site, Targets: []*plan.Target{{Site: site, Intent: &intent, Settings: plan.Settings{
		Hostname: "any", NTPServers: []string{"any"}, SyslogServers: []string{"any"}, BMCPassword: t.Settings.BMCPassword, BMCUsername: t.Settings.BMCUsername, Set: map[string]string{},
	}}}}
}

// walk is the way through what is linked.
type walk struct {
	k       *conn
	limits  RecordLimits
	began   time.Time
	seen    map[string]bool // keys that were asked or are in the queue
	pages   map[string]int  // of each list
	queue   []hop
	silent  int // requests in a row without an answer
	logins  int
	full    bool // there were more links than the queue takes
	stopped string
}

// hop is one request that is still to be made.
type hop struct {
	uri  string
	list string // the list of which this is a page
	rank int
}

func (w *walk) run(ctx context.Context) *plan.Fault {
	k := w.k
	if fault := w.enter(ctx); fault != nil {
		return fault
	}
	for _, key := range sortedKeys(k.tape.answers) { // what reading has asked
		w.seen[key] = true
	}
	for _, key := range sortedKeys(k.tape.answers) {
		w.follow(key, "", k.tape.answers[key].Body)
	}
	for len(w.queue) > 0 && w.stopped == "" {
		if ctx.Err() != nil {
			return k.noAnswer(ctx, request{method: http.MethodGet, path: rootPath}, ctx.Err())
		}
		switch {
		case len(k.tape.answers) >= w.limits.Answers:
			w.stopped = "the limit of answers was reached"
		case k.tape.bytes >= w.limits.Bytes:
			w.stopped = "the limit of bytes was reached"
		case k.client.opt.Now().Sub(w.began) >= w.limits.Time:
			w.stopped = "the limit of time was reached"
		default:
			w.ask(ctx)
		}
	}
	return nil
}

// enter makes sure that there is a login; identity does not matter here.
func (w *walk) enter(ctx context.Context) *plan.Fault {
	k := w.k
	if fault := k.credential(ctx); fault != nil {
		return fault
	}
	root, fault := k.read(ctx, rootPath, k.anonymous)
	if fault != nil {
		return fault
	}
	if k.family.name == "" {
		if f, sure := familyOf(root); sure {
			k.family = f
		}
	}
	return k.session(ctx, root)
}

// ask makes the next request of the queue, the most wanted first.
func (w *walk) ask(ctx context.Context) {
	next := slices.MinFunc(w.queue, func(a, b hop) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(a.uri, b.uri)
	})
	w.queue = slices.DeleteFunc(w.queue, func(h hop) bool { return h == next })
	ans, fault := w.k.authorized(ctx, request{method: http.MethodGet, path: next.uri})
	switch {
	case fault != nil && ans != nil && w.logins < 3 && w.k.refused == nil: // the session has ended
		w.logins++
		if w.enter(ctx) == nil {
			w.queue = append(w.queue, next)
			return
		}
		w.stopped = "the BMC took no further login"
	case fault != nil && ans == nil:
		if w.silent++; w.silent == 3 {
			w.stopped = "the BMC stopped answering"
		}
	case fault != nil:
		w.stopped = "the BMC took no further login"
	default:
		w.silent = 0
		kept := w.k.tape.answers[recording.Key(next.uri)]
		if kept.Status == http.StatusOK {
			w.follow(next.uri, next.list, kept.Body)
		}
	}
}

// ranks order the walk, so that a BMC that is larger than the limits is recorded
// where it matters.
var ranks = []string{"/redfish/v1/Systems", "/redfish/v1/Managers", "/redfish/v1/AccountService", "/redfish/v1/Registries", "/redfish/v1/Chassis"} //nolint:gochecknoglobals // a constant table

// skipped are parts that help nobody to understand a BMC, or hold what people
// would not want to give away.
var skipped = []string{"/LogServices", "/SessionService/Sessions/", "/JsonSchemas", "/Certificates", "/CertificateService", "/TelemetryService", "/Subscriptions", "/Actions/", "/Dump", "/SecureBootDatabases", "/$metadata", "/odata", "/FirmwareInventory"} //nolint:gochecknoglobals // a constant table

// follow queues what a resource links to.
func (w *walk) follow(uri, list string, body any) {
	top, _ := body.(map[string]any)
	bare, _, _ := strings.Cut(uri, "?")
	if list == "" {
		list = bare
	}
	if next, ok := top["Members@odata.nextLink"].(string); ok {
		if w.pages[list]++; w.pages[list] < w.limits.Pages {
			w.queueUp(next, list)
		} else if w.pages[list] == w.limits.Pages {
			w.note(list + " has more pages than are read")
		}
	}
	if members, ok := top["Members"].([]any); ok && len(members) > 0 && w.k.family.expands && bare == uri && ranked(bare) < len(ranks) && !strings.Contains(bare, "/Registries") {
		w.queueUp(bare+"?$expand=*($levels=1)", list)
	}
	if registry, ok := top["AttributeRegistry"].(string); ok && registry != "" && !strings.ContainsAny(registry, "/?#%") {
		w.queueUp(rootPath+"Registries/"+registry, "")
	}
	w.links(top, strings.HasPrefix(bare, rootPath+"Registries/"), bare == rootPath+"Registries", 0)
}

// note says what was left out; the walk goes on.
func (w *walk) note(text string) {
	w.k.tape.left = append(w.k.tape.left, text)
}

// links queues every link of a value. The list of registries names many; those of
// attributes are asked for by name, and lead on by Uri.
func (w *walk) links(v any, registry, registries bool, depth int) {
	if depth > 64 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			link, isText := v[key].(string)
			switch {
			case isText && (key == "@odata.id" && !registries || key == "@Redfish.ActionInfo" || key == "Uri" && registry):
				w.queueUp(link, "")
			case !isText:
				w.links(v[key], registry, registries, depth+1)
			}
		}
	case []any:
		for _, item := range v {
			w.links(item, registry, registries, depth+1)
		}
	}
}

// queueUp takes a link that stays on this BMC and below its service root.
func (w *walk) queueUp(link, list string) {
	u, err := url.Parse(link)
	if err != nil || u.Opaque != "" || u.Host != "" && u.Scheme+"://"+u.Host != w.k.base {
		return
	}
	uri := resolve(link)
	key := recording.Key(uri)
	bare, _, _ := strings.Cut(key, "?")
	if w.seen[key] || !belongs(key) || len(key) > 1000 {
		return
	}
	if slices.ContainsFunc(skipped, func(part string) bool { return strings.Contains(bare+"/", part) }) {
		return
	}
	if list == "" && strings.Contains(uri, "?") {
		return // a query that the walk did not make
	}
	if len(w.queue) >= 4*w.limits.Answers {
		if !w.full {
			w.note("there are more links than are followed")
		}
		w.full = true
		return
	}
	w.seen[key] = true
	w.queue = append(w.queue, hop{uri: uri, list: list, rank: ranked(bare)*100 + min(strings.Count(bare, "/"), 99)})
}

// belongs tells that a request is for the Redfish service and not for something
// beside it.
func belongs(key string) bool {
	bare, _, _ := strings.Cut(key, "?")
	return path.Clean(bare) == bare && strings.HasPrefix(bare+"/", rootPath)
}

func ranked(bare string) int {
	for i, prefix := range ranks {
		if bare == prefix || strings.HasPrefix(bare, prefix+"/") {
			return i
		}
	}
	return len(ranks)
}
