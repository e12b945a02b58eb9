package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
)

type recordFlags struct {
	out      string
	user     string
	caFile   string
	pin      string
	insecure bool
	timeout  time.Duration
}

func (a *app) recordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record", Short: "Record how a real system answers, for a report that becomes a test", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f recordFlags
	bmcCommand := &cobra.Command{
		Use: "bmc HOST", Short: "Record what a BMC answers, without what names the machine, its place or its people",
		Long: "Reads a BMC over Redfish and writes the answers into one file. HOST is a device of the site, whose address and\n" +
			"credential are used, or an address (192.0.2.7, https://bmc.example.org); then --user is required and the\n" +
			"password is asked for, or read from standard input.\n\n" +
			"Nothing is changed on the BMC: GETs alone, one at a time, in a session that is deleted at the end. Serial\n" +
			"numbers, MAC and IP addresses, host and user names and places are replaced, the same one by the same everywhere;\n" +
			"passwords, tokens, keys and hashes are left out. A program cannot know every place where a maker puts a name:\n" +
			"look at the file, which is text, before you hand it on. enroll lab run --replay FILE serves it.",
		Example: "  enroll record bmc gpu-017 --out gpu-017.bmc.json\n  enroll record bmc 192.0.2.7 --user root --pin sha256:… --out report.bmc.json",
		Args:    exactlyOne("one device or address"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.recordBMC(cmd.Context(), args[0], f) },
	}
	bmcCommand.Flags().StringVar(&f.out, "out", "", "file to write (required)")
	bmcCommand.Flags().StringVar(&f.user, "user", "", "user name on the BMC, with an address")
	bmcCommand.Flags().StringVar(&f.caFile, "ca-file", "", "PEM file of the authority of the BMC's certificate, with an address")
	bmcCommand.Flags().StringVar(&f.pin, "pin", "", "sha256 fingerprint of the BMC's certificate, with an address")
	bmcCommand.Flags().BoolVar(&f.insecure, "insecure", false, "accept any certificate, with an address")
	bmcCommand.Flags().DurationVar(&f.timeout, "timeout", 30*time.Minute, "the walk ends after this time, and the file says so")
	cmd.AddCommand(bmcCommand)
	return cmd
}

func (a *app) recordBMC(ctx context.Context, host string, f recordFlags) error {
	address, isAddress := addressOf(host)
	given := f.user != "" || f.caFile != "" || f.pin != "" || f.insecure
	switch {
	case f.out == "":
		return usageError{errors.New("--out is required: the file to write")}
	case f.timeout <= 0:
		return usageError{errors.New("--timeout wants a time, as 10m")}
	case isAddress && f.user == "":
		return usageError{errors.New("--user is required with an address: the user name on the BMC")}
	case !isAddress && given:
		return usageError{fmt.Errorf("%q is a device of the site, whose files say how its BMC is reached; --user, --ca-file, --pin and --insecure are for addresses", host)}
	}
	var s *session
	var err error
	if isAddress {
		s, err = a.openAddress(address, f)
	} else {
		s, err = a.openDevice(ctx, host)
	}
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	return a.record(ctx, s, f)
}

func (a *app) record(ctx context.Context, s *session, f recordFlags) error {
	rec, fault := s.bmc.Record(ctx, s.scope.Targets[0], bmc.RecordLimits{Time: f.timeout})
	if fault != nil {
		return fault
	}
	raw, err := rec.Encode()
	if err != nil {
		return err
	}
	if a.redactor.Holds(string(raw)) {
		return plan.NewFault(plan.CodeInternal, "the recording would hold a secret of this run; nothing is written").
			WithHint("The BMC sends it in a form that is not known. Report this with the maker and firmware of the BMC.")
	}
	if err := writeFile(f.out, raw); err != nil {
		return err
	}
	for _, left := range rec.Left {
		a.warn(errors.New("left out: " + left))
	}
	if rec.Stopped != "" {
		a.warn(errors.New("the recording is not whole: " + rec.Stopped))
	}
	family := rec.Family
	if family == "" {
		family = "unknown"
	}
	_, err = fmt.Fprintf(a.sys.stdout, "%d answers of a BMC of family %s, %d names replaced: %s\nLook at it before you hand it on.\n", len(rec.Answers), family, len(rec.Replaced()), f.out)
	return err
}

// addressOf tells an address of a BMC from the name of a device.
func addressOf(host string) (string, bool) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if a.Is6() {
			return "https://[" + a.String() + "]", true
		}
		return "https://" + a.String(), true
	}
	u, err := url.Parse(host)
	return host, err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// openDevice is a session with NetBox and the BMC of one device.
func (a *app) openDevice(ctx context.Context, device string) (*session, error) {
	s, err := a.openNetBox(ctx, "record")
	if err != nil {
		return nil, err
	}
	if err := s.readIntents(ctx, selection{names: []string{device}}); err != nil {
		return s, err
	}
	if len(s.failed) > 0 {
		return s, s.failed[0].Fault
	}
	if s.site.BMC == nil {
		return s, plan.NewFault(plan.CodeConfigInvalid, "site %s has no bmc block, which says how its BMCs are reached", s.site.Name)
	}
	s.bmc, err = bmc.New(*s.site.BMC, hostCredentials{vault: s.vault, scope: s.scope}, bmc.Options{Now: a.sys.now, Refusals: a.refusals()})
	return s, err
}

// openAddress is a session with one BMC and nothing else.
func (a *app) openAddress(address string, f recordFlags) (*session, error) {
	password, err := a.askPassword()
	if err != nil {
		return nil, err
	}
	settings := plan.BMCSettings{CAFile: f.caFile, Insecure: f.insecure}
	if f.pin != "" {
		settings.Pins = []string{f.pin}
	}
	site := &plan.Site{Name: "record", BMC: &settings, ConfigureBMC: true}
	s := &session{app: a, site: site, scope: &plan.Scope{Site: site, Targets: []*plan.Target{{
		Site: site, Intent: &plan.Intent{Name: "bmc", Ironic: plan.IronicContext{RedfishAddress: address}},
	}}}}
	s.bmc, err = bmc.New(settings, givenCredential{f.user, password}, bmc.Options{Now: a.sys.now})
	return s, err
}

// askPassword takes the password from the terminal, unseen, or from the first line
// of standard input.
func (a *app) askPassword() (plan.Secret, error) {
	var line string
	if a.sys.terminal {
		fmt.Fprint(a.sys.stderr, "Password of the BMC: ")
		raw, err := term.ReadPassword(a.sys.screen)
		fmt.Fprintln(a.sys.stderr)
		if err != nil {
			return plan.Secret{}, err
		}
		line = string(raw)
	} else {
		line, _ = bufio.NewReader(a.sys.stdin).ReadString('\n') // a last line may have no end
	}
	password := plan.NewSecret(strings.TrimRight(line, "\r\n"), "")
	if password.Reveal() == "" {
		return password, usageError{errors.New("the password of the BMC is wanted on standard input")}
	}
	a.redactor.Add(password)
	return password, nil
}

// givenCredential is what the operator typed.
type givenCredential struct {
	user     string
	password plan.Secret
}

func (g givenCredential) Credential(context.Context, string) (string, plan.Secret, error) {
	return g.user, g.password, nil
}

func (givenCredential) Ref(string) plan.SecretRef { return plan.SecretRef{} }
