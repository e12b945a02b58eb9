package dhcp

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/enroll-dev/enroll/plan"
)

// knownHosts is a parsed known_hosts text.
type knownHosts struct {
	// keys judges plain keys. The library would take the key of an authority for
	// that of a host; the lines of authorities are therefore left out here.
	keys ssh.HostKeyCallback
	// certificates judges certificates by the lines of authorities.
	certificates ssh.HostKeyCallback
	// authorities knows which hosts the lines of authorities are about.
	authorities ssh.HostKeyCallback
	lines       []string // for faults: the line with the key that was expected
}

const markAuthority = "@cert-authority"

// parseKnownHosts reads known_hosts lines. The library skips lines that it
// cannot read as long as one is good; here a damaged line is a fault, because
// the key it was meant to hold would be reported as unknown, or as not revoked.
func parseKnownHosts(text []byte) (*knownHosts, *plan.Fault) {
	k := &knownHosts{}
	var keys, authorities []string // with the line numbers of the text
	entries := 0
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		key, authority := line, ""
		if rest, found := strings.CutPrefix(line, markAuthority); found {
			key, authority = "", strings.TrimSpace(rest)
		}
		k.lines, keys, authorities = append(k.lines, line), append(keys, key), append(authorities, authority)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entries++
		if _, err := callback([]string{line}); err != nil {
			return nil, plan.NewFault(plan.CodeConfigInvalid, "line %d of the DHCP server's known_hosts cannot be read", len(k.lines)).Because(err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts cannot be read after line %d", len(k.lines)).Because(err)
	}
	if entries == 0 {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts holds no line: its key could not be verified").
			WithHint("Put the server's line there, verified out of band: ssh-keyscan HOST on the server's own network, compared with ssh-keygen -lf on its console.")
	}
	var errs [3]error
	k.keys, errs[0] = callback(keys)
	k.certificates, errs[1] = callback(k.lines)
	k.authorities, errs[2] = callback(authorities)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the DHCP server's known_hosts cannot be used").Because(err)
	}
	return k, nil
}

// callback lets the library read lines.
func callback(lines []string) (check ssh.HostKeyCallback, err error) {
	err = writeTemp([]byte(strings.Join(lines, "\n")), func(name string) (err error) {
		check, err = knownhosts.New(name)
		return err
	})
	return check, err
}

// probeAddr stands in for the peer's address while keys are looked up by name.
type probeAddr struct{}

func (probeAddr) Network() string { return "tcp" }
func (probeAddr) String() string  { return "0.0.0.0:0" }

// onFile lists the keys that are on file for host:port. The library has no
// such question; asking for a key that cannot be there answers it.
func onFile(check ssh.HostKeyCallback, address string) []knownhosts.KnownKey {
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	var keyErr *knownhosts.KeyError
	if errors.As(check(address, probeAddr{}, nobody), &keyErr) {
		return keyErr.Want
	}
	return nil
}

// algorithms gives the host key algorithms to ask for: certificates where an
// authority is on file, then those of the keys on file. With the default order a
// server that also has an RSA key may show that one, and an ed25519 line on file
// then looks like a changed key. The others follow, so that a key of another
// type is seen and can be named.
func (k *knownHosts) algorithms(address string) []string {
	supported := ssh.SupportedAlgorithms().HostKeys
	isCertificate := func(algorithm string) bool { return strings.Contains(algorithm, "-cert-") }
	var first []string
	if len(onFile(k.authorities, address)) > 0 {
		first = slices.DeleteFunc(slices.Clone(supported), func(a string) bool { return !isCertificate(a) })
	}
	for _, key := range onFile(k.keys, address) {
		if key.Key.Type() == ssh.KeyAlgoRSA {
			first = append(first, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			first = append(first, key.Key.Type())
		}
	}
	var out []string
	for _, a := range append(first, slices.DeleteFunc(supported, isCertificate)...) {
		if !slices.Contains(out, a) {
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
	certificate, certified := key.(*ssh.Certificate)
	var err error
	if !certified {
		err = k.keys(address, remote, key)
	} else if err = k.revoked(address, remote, certificate); err == nil {
		err = k.certificates(address, remote, key)
	}
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
	case errors.As(err, &keyErr) && len(onFile(k.authorities, address)) > 0:
		return plan.NewFault(plan.CodeDHCPHostKeyUnknown, "%s shows the host key %s without a certificate; known_hosts has an authority for that name, and no key", address, shown).
			With("shown", shown).With("line to add, once verified", knownhosts.Line([]string{address}, key)).
			WithHint("Let the authority certify the server's key (HostCertificate of sshd_config), or add its line once verified.")
	case errors.As(err, &keyErr):
		return plan.NewFault(plan.CodeDHCPHostKeyUnknown, "%s shows the host key %s; known_hosts has no key for that name", address, shown).
			With("shown", shown).With("line to add, once verified", knownhosts.Line([]string{address}, key))
	default: // a certificate that no authority on file signed, an expired one, one for another name
		return plan.NewFault(plan.CodeDHCPHostKeyUnknown, "%s shows a host certificate that cannot be accepted: %s", address, shown).With("shown", shown).Because(err).
			WithHint("Let an authority of known_hosts certify the server's key anew, for this name; or add the key's own line, once verified.")
	}
}

// revoked finds a line that revokes a certificate's key or its authority's.
func (k *knownHosts) revoked(address string, remote net.Addr, c *ssh.Certificate) error {
	for _, key := range []ssh.PublicKey{c.Key, c.SignatureKey} {
		var revoked *knownhosts.RevokedError
		if err := k.keys(address, remote, key); errors.As(err, &revoked) {
			return err
		}
	}
	return nil
}

func (k *knownHosts) line(n int) string {
	if n < 1 || n > len(k.lines) {
		return ""
	}
	return strconv.Itoa(n) + ": " + k.lines[n-1]
}
