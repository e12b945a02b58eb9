package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/schema"
)

// probe asks every system of a site. One that cannot be asked, because what it
// needs is missing, does not keep the others from being asked.
func (a *app) probe(ctx context.Context, file *schema.File) []providers.Finding {
	s := &session{app: a, file: file, site: file.Site(), scope: &plan.Scope{Site: file.Site()}}
	defer func() { a.warn(s.close(ctx)) }()
	vault := s.probeSecrets(ctx)
	found := []providers.Finding{vault}
	if s.vault == nil {
		return found
	}
	s.refused = vault.Fault
	// Order of the report; the systems are asked at once.
	asks := []func(context.Context) []providers.Finding{s.probeNetBox, s.probeDHCP, s.probeBMC, s.probeIronic}
	answers := make([][]providers.Finding, len(asks))
	var wg sync.WaitGroup
	for i, ask := range asks {
		wg.Go(func() { answers[i] = ask(ctx) })
	}
	wg.Wait()
	for _, answer := range answers {
		found = append(found, answer...)
	}
	return found
}

// probeSecrets reads what the site needs whatever the device is. The values are
// used for the logins that follow and shown nowhere.
func (s *session) probeSecrets(ctx context.Context) providers.Finding {
	found := providers.Finding{What: "Secrets: " + s.site.Secrets.Backend}
	backend, err := s.app.backend(s.site)
	if err != nil {
		found.Fault = plan.AsFault(err)
		return found
	}
	s.vault = newVault(backend, s.app.redactor)
	refs := s.siteRefs()
	found.Fault = plan.AsFault(s.vault.load(ctx, refs))
	n := 0
	for _, r := range refs {
		if !r.IsZero() {
			n++
		}
	}
	if found.Fault != nil {
		return found
	}
	found.Note = counted(n, "reference", "references") + " of the site can be read; those of devices are read when a device is planned"
	return found
}

// unasked is a system that cannot be asked. A secret that is missing because the
// vault said no is not the system's fault.
func (s *session) unasked(what string, err error) []providers.Finding {
	f := plan.AsFault(err)
	if s.refused != nil && f.Code == plan.CodeSecretMissing {
		f = plan.NewFault(s.refused.Code, "not asked: its credential could not be read")
	}
	return []providers.Finding{{What: what, Fault: f}}
}

func (s *session) probeNetBox(ctx context.Context) []providers.Finding {
	if err := s.connectNetBox("validate"); err != nil {
		return s.unasked("NetBox at "+s.site.NetBox.URL, err)
	}
	return s.netbox.Probe(ctx, s.site)
}

func (s *session) probeDHCP(ctx context.Context) []providers.Finding {
	d := s.site.DHCP
	if d == nil || !s.site.ConfigureDHCP {
		return nil
	}
	if err := s.connectDHCP(); err != nil {
		return s.unasked("DHCP at "+d.Host, err)
	}
	return s.dhcp.Probe(ctx, s.site)
}

// probeBMC asks no BMC: which there are is known when devices are planned. What a
// client is made of has to be on this machine.
func (s *session) probeBMC(context.Context) []providers.Finding {
	b := s.site.BMC
	if b == nil || !s.site.ConfigureBMC {
		return nil
	}
	found := providers.Finding{What: "BMC: trust in certificates", Note: "by the system's authorities"}
	if b.CAFile != "" {
		found.Note = "by " + b.CAFile
	}
	if b.Insecure {
		found.Note = "any certificate is accepted"
	}
	_, err := bmc.New(*b, hostCredentials{vault: s.vault, scope: s.scope}, bmc.Options{Now: s.app.sys.now})
	found.Fault = plan.AsFault(err)
	return []providers.Finding{found}
}

func (s *session) probeIronic(ctx context.Context) []providers.Finding {
	if len(s.site.Ironics) == 0 {
		return nil
	}
	if err := s.connectIronic(); err != nil {
		return s.unasked("Ironic", err)
	}
	return s.ironic.Probe(ctx, s.site)
}

// printFindings writes a line for each finding, and its fault below it.
func (a *app) printFindings(findings []providers.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	out := a.sys.stdout
	for _, f := range findings {
		mark := view.Mark(f.Fault == nil, a.sys.color())
		fmt.Fprintf(out, "  %s %s\n", mark, view.Clean(sentence(f.What, f.Note)))
		if f.Fault != nil {
			view.Fault(out, f.Fault, "    ", a.sys.color())
		}
	}
	n := failed(findings)
	if n == 0 {
		_, err := fmt.Fprintf(out, "All systems answer and grant what a run needs. Nothing was written.\n")
		return err
	}
	_, err := fmt.Fprintf(out, "%s of %d not as a run needs it. Nothing was written.\n", counted(n, "thing", "things"), len(findings))
	return err
}
