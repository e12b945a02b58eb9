package dhcp

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/enroll-dev/enroll/plan"
)

// knownHosts is a parsed known_hosts text.
type knownHosts struct {
	check ssh.HostKeyCallback
	lines []string // for faults: the line with the key that was expected
}

// parseKnownHosts reads known_hosts lines. The library skips lines that it
// cannot read as long as one is good; here a damaged line is a fault, because
// the key it was meant to hold would be reported as unknown.
func parseKnownHosts(text []byte) (*knownHosts, *plan.Fault) {
	var lines []string
	entries := 0
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		lines = append(lines, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entries++
		if _, _, _, _, _, err := ssh.ParseKnownHosts([]byte(line)); err != nil {
			return nil, plan.NewFault(plan.CodeConfigInvalid, "line %d of the DHCP server's known_hosts cannot be read", len(lines)).Because(err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts cannot be read after line %d", len(lines)).Because(err)
	}
	if entries == 0 {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts holds no line: its key could not be verified").
			WithHint("Put the server's line there, verified out of band: ssh-keyscan HOST on the server's own network, compared with ssh-keygen -lf on its console.")
	}
	k := &knownHosts{lines: lines}
	err := writeTemp(text, func(name string) (err error) {
		k.check, err = knownhosts.New(name)
		return err
	})
	if err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts cannot be used").Because(err)
	}
	return k, nil
}

// probeAddr stands in for the peer's address while keys are looked up by name.
type probeAddr struct{}

func (probeAddr) Network() string { return "tcp" }
func (probeAddr) String() string  { return "0.0.0.0:0" }

// onFile lists the keys that are on file for host:port. The library has no
// such question; asking for a key that cannot be there answers it.
func (k *knownHosts) onFile(address string) []knownhosts.KnownKey {
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	var keyErr *knownhosts.KeyError
	if errors.As(k.check(address, probeAddr{}, nobody), &keyErr) {
		return keyErr.Want
	}
	return nil
}

// algorithms gives the host key algorithms to ask for: those of the keys on
// file first. With the default order a server that also has an RSA key may show
// that one, and an ed25519 line on file then looks like a changed key. The
// others follow, so that a key of another type is seen and can be named.
func (k *knownHosts) algorithms(address string) []string {
	var first []string
	for _, key := range k.onFile(address) {
		if key.Key.Type() == ssh.KeyAlgoRSA {
			first = append(first, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			first = append(first, key.Key.Type())
		}
	}
	seen := map[string]bool{}
	var out []string
	for _, a := range append(first, ssh.SupportedAlgorithms().HostKeys...) {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// verdict checks the key that the server showed.
func (k *knownHosts) verdict(address string, remote net.Addr, key ssh.PublicKey) *plan.Fault {
	if _, _, err := net.SplitHostPort(remote.String()); err != nil {
		remote = probeAddr{} // a tunnel's end has no host:port; the name decides anyway
	}
	err := k.check(address, remote, key)
	if err == nil {
		return nil
	}
	shown := key.Type() + " " + ssh.FingerprintSHA256(key)
	var keyErr *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &revoked):
		return plan.NewFault(plan.CodeDHCPHostKeyChanged, "%s shows a key that line %d of known_hosts revokes: %s", address, revoked.Revoked.Line, shown).
			With("shown", shown).With("known_hosts line", k.line(revoked.Revoked.Line))
	case errors.As(err, &keyErr) && len(keyErr.Want) > 0:
		want := keyErr.Want[0]
		for _, w := range keyErr.Want {
			if w.Key.Type() == key.Type() {
				want = w
				break
			}
		}
		expected := want.Key.Type() + " " + ssh.FingerprintSHA256(want.Key)
		return plan.NewFault(plan.CodeDHCPHostKeyChanged, "%s shows the host key %s; line %d of known_hosts has %s", address, shown, want.Line, expected).
			With("shown", shown).With("expected", expected).With("known_hosts line", k.line(want.Line))
	case errors.As(err, &keyErr):
		return plan.NewFault(plan.CodeDHCPHostKeyUnknown, "%s shows the host key %s; known_hosts has no key for that name", address, shown).
			With("shown", shown).With("line to add, once verified", knownhosts.Line([]string{address}, key))
	default: // a host certificate that no authority on file signed, an expired one
		return plan.NewFault(plan.CodeDHCPHostKeyUnknown, "%s shows a host key that cannot be verified: %s", address, shown).With("shown", shown).Because(err)
	}
}

func (k *knownHosts) line(n int) string {
	if n < 1 || n > len(k.lines) {
		return ""
	}
	return strconv.Itoa(n) + ": " + k.lines[n-1]
}

// parseIdentity reads the private key. Neither the key nor the library's words
// about it reach the fault.
func parseIdentity(s plan.DHCPSettings, identity plan.Secret) (ssh.Signer, *plan.Fault) {
	from := s.Identity.String()
	if s.Identity.IsZero() {
		from = s.IdentityFile
	}
	text := identity.Reveal()
	if text == "" {
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the private key for the DHCP server is empty: %s", from)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // vaults trim it; the OpenSSH form needs it
	}
	signer, err := ssh.ParsePrivateKey([]byte(text))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the private key for the DHCP server is protected by a passphrase: %s", from).
			WithHint("Store a key without a passphrase in the vault; the vault protects it.")
	case err != nil:
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the private key for the DHCP server cannot be read: %s", from).
			WithHint("Store the whole key file, from its BEGIN to its END line.")
	}
	return signer, nil
}
