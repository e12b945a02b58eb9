package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/schema"
)

// session is one run against one site: the only place where providers meet
// their configuration.
type session struct {
	app    *app
	file   *schema.File
	site   *plan.Site
	vault  *vault
	scope  *plan.Scope
	failed []plan.Diagnostic // devices without an intent
	// asksOwners has NetBox asked about entries on the DHCP server that are none of
	// the run's devices'.
	asksOwners bool
	// refused is why the vault did not give all secrets, while systems are probed.
	refused *plan.Fault

	netbox *netbox.Client
	dhcp   *dhcp.Provider
	bmc    *bmc.Client
	ironic *ironic.Client
	router *router
	kinds  []plan.Kind
}

// checkVars wants each --var to be NAME=VALUE. The text is not repeated: it may
// be a value.
func (a *app) checkVars() error {
	for _, kv := range a.vars {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return usageError{errors.New("--var wants NAME=VALUE; one of them has no name or no equals sign")}
		}
	}
	return nil
}

// options are what the meaning of site files depends on beside themselves: the
// variables of the command line, of files and of the environment.
func (a *app) options() schema.Options {
	const prefix = "ENROLL_VAR_"
	opts := schema.Options{Version: version, Now: a.sys.now(), VarFiles: a.varFiles, Vars: map[string]string{}, Env: map[string]string{}}
	for _, kv := range a.sys.environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, prefix) {
			opts.Env[strings.TrimPrefix(name, prefix)] = value
		}
	}
	for _, kv := range a.vars {
		name, value, _ := strings.Cut(kv, "=")
		opts.Vars[name] = value
	}
	return opts
}

// open reads the site, its secrets and the devices' intents, and makes the
// providers. planID marks NetBox's change log. Close the session on every way
// out.
func (a *app) open(ctx context.Context, dir string, sel selection, planID string) (*session, error) {
	file, err := a.read(dir)
	if err != nil {
		return nil, err
	}
	return a.openFile(ctx, file, sel, planID)
}

// openFile is open for a site that was read.
func (a *app) openFile(ctx context.Context, file *schema.File, sel selection, planID string) (*session, error) {
	s, err := a.begin(ctx, file, "plan "+planID, (*session).siteRefs)
	if err != nil {
		return nil, err
	}
	if err := s.readIntents(ctx, sel); err != nil {
		return nil, err
	}
	if err := s.vault.load(ctx, s.deviceRefs()); err != nil {
		return nil, err
	}
	return s, s.connect()
}

// openNetBox is a session with nothing but NetBox: its token is the only secret
// that is read. note marks NetBox's change log.
func (a *app) openNetBox(ctx context.Context, note string) (*session, error) {
	file, err := a.read(a.siteDir)
	if err != nil {
		return nil, err
	}
	return a.begin(ctx, file, note, func(s *session) []plan.SecretRef { return []plan.SecretRef{s.site.NetBox.Token} })
}

// read reads a site and tells what is to be said of its files.
func (a *app) read(dir string) (*schema.File, error) {
	file, diags := a.load(dir)
	if len(diags) > 0 {
		if err := a.printDiagnostics(diags, "text"); err != nil {
			return nil, err
		}
	}
	if diags.HasErrors() {
		return nil, exitStatus(exitConfig)
	}
	return file, nil
}

// begin reads the secrets that refs names, and connects to NetBox.
func (a *app) begin(ctx context.Context, file *schema.File, note string, refs func(*session) []plan.SecretRef) (*session, error) {
	s := &session{app: a, file: file, site: file.Site()}
	backend, err := a.backend(s.site)
	if err != nil {
		return nil, err
	}
	s.vault = newVault(backend, a.redactor)
	if err := s.vault.load(ctx, refs(s)); err != nil {
		return nil, err
	}
	return s, s.connectNetBox(note)
}

// siteRefs are the secrets that do not depend on a device.
func (s *session) siteRefs() []plan.SecretRef {
	refs := []plan.SecretRef{s.site.NetBox.Token}
	if d := s.site.DHCP; d != nil && s.site.ConfigureDHCP {
		refs = append(refs, d.Identity, d.Passphrase, d.KnownHosts)
		s.vault.show(d.KnownHosts)
	}
	if b := s.site.BMC; b != nil && s.site.ConfigureBMC {
		refs = append(refs, b.Monitoring, b.MonitoringUser)
		s.vault.show(b.MonitoringUser)
	}
	return append(refs, s.cloudRefs()...)
}

// cloudRefs are the secrets of the Ironics.
func (s *session) cloudRefs() []plan.SecretRef {
	var refs []plan.SecretRef
	for i := range s.site.Ironics {
		// Most lines of these are addresses and names; the client tells the redactor
		// which values are secret.
		refs = append(refs, s.site.Ironics[i].Clouds, s.site.Ironics[i].Secure)
		s.vault.show(s.site.Ironics[i].Clouds, s.site.Ironics[i].Secure)
	}
	return refs
}

func (s *session) deviceRefs() []plan.SecretRef {
	var refs []plan.SecretRef
	for _, t := range s.scope.Targets {
		if len(t.Intent.Faults) == 0 {
			refs = append(refs, t.Settings.BMCUsername, t.Settings.BMCPassword)
			s.vault.show(t.Settings.BMCUsername)
		}
	}
	return refs
}

func (s *session) connectNetBox(note string) error {
	token, err := s.vault.get(s.site.NetBox.Token)
	if err != nil {
		return err
	}
	s.netbox, err = netbox.New(netbox.Options{
		URL: s.site.NetBox.URL, Token: token, CAFile: s.site.NetBox.CAFile, Timeout: s.site.NetBox.Timeout,
		UserAgent: "enroll/" + version, ChangelogMessage: "enroll " + note, Now: s.app.sys.now, AtOnce: s.app.sys.atOnce,
	})
	return err
}

// selection is which devices a run is about.
type selection struct {
	names  []string
	all    bool          // those that the filter lets through
	filter netbox.Filter // with all
}

func (s *session) readIntents(ctx context.Context, sel selection) error {
	names := sel.names
	if sel.all {
		var err error
		if names, err = s.netbox.Names(ctx, s.site, sel.filter); err != nil {
			return err
		}
		if len(names) == 0 {
			// An empty answer is never "nothing to do": a wrong filter looks the same.
			return plan.NewFault(plan.CodeDeviceNotFound, "NetBox shows no such device of the site's device classes in site %q", s.site.NetBox.Site).
				With("roles", strings.Join(sel.filter.Roles, ", ")).With("racks", strings.Join(sel.filter.Racks, ", ")).
				With("tags", strings.Join(sel.filter.Tags, ", ")).With("statuses", strings.Join(sel.filter.Statuses, ", "))
		}
	}
	names = unique(names)
	if s.app.sys.fleet != nil {
		s.app.sys.fleet(len(names))
	}
	intents, failed, err := s.netbox.Intents(ctx, s.site, names)
	if err != nil {
		return err
	}
	filters := len(sel.filter.Roles) + len(sel.filter.Racks) + len(sel.filter.Tags) + len(sel.filter.Statuses)
	s.scope = &plan.Scope{Site: s.site, Whole: sel.all && filters == 0 && len(failed) == 0}
	for i := range failed {
		failed[i].Fault = cleanFault(s.app.redactor, failed[i].Fault)
	}
	s.failed = failed
	for _, intent := range intents {
		s.aim(intent)
	}
	sort.Slice(s.scope.Targets, func(i, j int) bool { return s.scope.Targets[i].Name() < s.scope.Targets[j].Name() })
	return nil
}

// aim adds a device to the scope, with what the site's files say about it.
func (s *session) aim(intent *plan.Intent) {
	t := &plan.Target{Site: s.site, Intent: intent, Ironic: ironicOf(s.site, intent.Class)}
	checkContext(intent)
	settings, diags := s.file.Settings(intent)
	if diags.HasErrors() {
		intent.Faults = append(intent.Faults, diags.Fault(intent.Name))
	}
	t.Settings = settings
	s.scope.Targets = append(s.scope.Targets, t)
}

// checkContext adds what the language knows to be wrong with the device's config
// context, beside what reading the intent has met already.
func checkContext(intent *plan.Intent) {
	met := map[string]bool{}
	for _, f := range intent.Faults {
		met[f.Evidence["path"]] = true
	}
	for _, m := range schema.CheckContext(intent.ConfigContext, nil) {
		switch {
		case met[m.Path]:
		case m.Severity == schema.Error:
			intent.Faults = append(intent.Faults, m.Fault(intent.Name, intent.URL))
		default:
			intent.Warnings = append(intent.Warnings, m.Fault(intent.Name, intent.URL))
		}
	}
}

func ironicOf(site *plan.Site, class string) *plan.IronicSettings {
	for i := range site.Ironics {
		for _, c := range site.Ironics[i].DeviceClasses {
			if c == class {
				return &site.Ironics[i]
			}
		}
	}
	return nil
}

func unique(names []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}

// connect makes the providers; none of them opens a connection before it is
// asked something.
func (s *session) connect() error {
	credentials := hostCredentials{vault: s.vault, scope: s.scope}
	clean := func(p systemProvider) systemProvider { return redactedSystem{p, s.app.redactor} }
	s.router = &router{systems: map[string]systemProvider{"netbox": clean(s.netbox)}}
	s.kinds = netbox.Kinds()
	if s.site.DHCP != nil && s.site.ConfigureDHCP {
		if err := s.connectDHCP(); err != nil {
			return err
		}
		s.router.systems["dhcp"] = clean(s.dhcp)
		s.kinds = append(s.kinds, dhcp.Kinds()...)
	}
	if b := s.site.BMC; b != nil {
		// Also where BMCs are not configured: the links of hosts that boot a ramdisk
		// are watched through them.
		var err error
		if s.bmc, err = bmc.New(*b, credentials, bmc.Options{Now: s.app.sys.now, AtOnce: s.app.sys.atOnce, Rotation: credentials, Refusals: s.app.refusals(), Restarts: s.app.restarts(s.site.Name), Monitoring: credentials.Monitoring}); err != nil {
			return err
		}
	}
	if s.bmc != nil && s.site.ConfigureBMC {
		s.router.systems["bmc"] = clean(s.bmc)
		s.router.systems["check.link"] = s.router.systems["bmc"] // the BMC sees the host's links
		s.router.systems["check.ipmi"] = s.router.systems["bmc"]
		s.kinds = append(s.kinds, bmc.Kinds()...)
	}
	if len(s.site.Ironics) > 0 {
		if err := s.connectIronic(); err != nil {
			return err
		}
		s.router.systems["ironic"] = clean(s.ironic)
		s.router.systems["check"] = s.router.systems["ironic"] // one provider: it is asked once, for both
		s.router.owner = redactedOwner{s.ironic, s.app.redactor}
		s.kinds = append(s.kinds, ironic.Kinds()...)
	}
	return nil
}

func (s *session) connectIronic() error {
	files, err := s.cloudFiles()
	if err != nil {
		return err
	}
	o := ironic.Options{Now: s.app.sys.now, Clouds: files, Learn: s.app.redactor.Add, AtOnce: s.app.sys.atOnce}
	if s.bmc != nil {
		o.Links = s.bmc
	}
	s.ironic, err = ironic.New(s.site.Ironics, hostCredentials{vault: s.vault, scope: s.scope}, o)
	return err
}

// cloudFiles are the clouds.yaml and secure.yaml that the vault holds.
func (s *session) cloudFiles() (map[string]ironic.CloudFiles, error) {
	files := map[string]ironic.CloudFiles{}
	for i := range s.site.Ironics {
		var f ironic.CloudFiles
		var err error
		if f.Clouds, err = s.fromVault(s.site.Ironics[i].Clouds); err != nil {
			return nil, err
		}
		if f.Secure, err = s.fromVault(s.site.Ironics[i].Secure); err != nil {
			return nil, err
		}
		files[s.site.Ironics[i].Name] = f
	}
	return files, nil
}

// fromVault gives the value of a reference, the zero value where there is none.
func (s *session) fromVault(ref plan.SecretRef) (plan.Secret, error) {
	if ref.IsZero() {
		return plan.Secret{}, nil
	}
	return s.vault.get(ref)
}

func (s *session) connectDHCP() error {
	auth, err := s.dhcpCredentials(s.site.DHCP)
	if err != nil {
		return err
	}
	s.dhcp, err = dhcp.New(*s.site.DHCP, auth, s.app.dhcpOptions())
	return err
}

func (s *session) dhcpCredentials(d *plan.DHCPSettings) (dhcp.Credentials, error) {
	c := dhcp.Credentials{}
	if d.Agent {
		if c.Agent, _ = s.app.sys.lookupEnv("SSH_AUTH_SOCK"); c.Agent == "" {
			return c, plan.NewFault(plan.CodeConfigInvalid, "the dhcp block wants the keys of the ssh-agent, and SSH_AUTH_SOCK names none").
				WithHint("Start one (eval $(ssh-agent); ssh-add), or set agent = false and name the key in the dhcp block.")
		}
	}
	var err error
	if !d.Identity.IsZero() || d.IdentityFile != "" {
		if c.Identity, err = s.secretOrFile(d.Identity, d.IdentityFile); err != nil {
			return c, err
		}
	}
	if c.Passphrase, err = s.fromVault(d.Passphrase); err != nil {
		return c, err
	}
	hosts, err := s.secretOrFile(d.KnownHosts, d.KnownHostsFile)
	c.KnownHosts = []byte(hosts.Reveal())
	return c, err
}

func (s *session) secretOrFile(ref plan.SecretRef, file string) (plan.Secret, error) {
	if !ref.IsZero() {
		return s.vault.get(ref)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return plan.Secret{}, plan.NewFault(plan.CodeConfigInvalid, "a file of the dhcp block cannot be read").Because(err)
	}
	secret := plan.NewSecret(string(raw), "")
	if file == s.site.DHCP.IdentityFile {
		s.app.redactor.Add(secret)
	}
	return secret, nil
}

// statistics are the requests per system so far.
func (s *session) statistics() map[string]int {
	out := map[string]int{"netbox": s.netbox.Requests()}
	if s.dhcp != nil {
		out["dhcp"] = s.dhcp.Requests()
	}
	if s.bmc != nil {
		out["bmc"] = s.bmc.Requests()
	}
	if s.ironic != nil {
		out["ironic"] = s.ironic.Requests()
	}
	return out
}

// How long sessions and connections may take to end. From the moment of a
// cancellation it is the time that a cancelled run has as a whole, of which a
// little is left to them in any case.
const (
	partingTime      = 2 * time.Minute
	cancelledTime    = 5 * time.Second
	leastPartingTime = time.Second
)

// close ends sessions and connections, those of all systems side by side: one that
// hangs keeps nothing of the others open. It works also after ctx was cancelled.
func (s *session) close(ctx context.Context) error {
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(max(s.app.interrupts.left(cancelledTime), leastPartingTime), cancel) })()
	all := map[string]providers.Closer{"dhcp": nilCloser(s.dhcp), "bmc": nilCloser(s.bmc), "ironic": nilCloser(s.ironic), "netbox": nilCloser(s.netbox), "the vault": nilCloser(s.vault)}
	maps.DeleteFunc(all, func(_ string, c providers.Closer) bool { return c == nil })
	type parting struct {
		system string
		err    error
	}
	ended := make(chan parting, len(all))
	for system, c := range all {
		go func() { ended <- parting{system, c.Close(free)} }()
	}
	var errs []error
	for len(all) > 0 {
		select {
		case p := <-ended:
			delete(all, p.system)
			errs = append(errs, p.err)
		case <-free.Done():
			systems := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
			return errors.Join(append(errs, fmt.Errorf("sessions are left open at %s: an exchange did not come back; they end there by themselves", systems))...)
		}
	}
	return errors.Join(errs...)
}

// nilCloser turns a nil provider into a nil interface.
func nilCloser[T interface {
	comparable
	providers.Closer
}](p T) providers.Closer {
	var none T
	if p == none {
		return nil
	}
	return p
}
