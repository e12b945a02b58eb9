package dhcp

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/enroll-dev/enroll/plan"
)

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// certify lets an authority sign a host key.
func certify(t testing.TB, authority ssh.Signer, key ssh.PublicKey, change func(*ssh.Certificate)) ssh.PublicKey {
	t.Helper()
	c := &ssh.Certificate{Key: key, CertType: ssh.HostCert, ValidPrincipals: []string{"dhcp1.example.net"}, ValidBefore: ssh.CertTimeInfinity}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKnownHosts(t *testing.T) {
	host, other, authority, rogue := newSigner(t).PublicKey(), newSigner(t).PublicKey(), newSigner(t), newSigner(t)
	entry := func(name string, key ssh.PublicKey) string { return knownhosts.Line([]string{name}, key) }
	words := func(key ssh.PublicKey) string { _, w, _ := strings.Cut(entry("x", key), " "); return w }
	certified := func(change func(*ssh.Certificate)) ssh.PublicKey { return certify(t, authority, host, change) }
	ca := markAuthority + " *.example.net " + words(authority.PublicKey())
	const at = "dhcp1.example.net:22"
	for name, c := range map[string]struct {
		lines   string
		address string
		key     ssh.PublicKey
		want    plan.Code // "" is trusted
	}{
		"plain":                           {entry("dhcp1.example.net", host), at, host, ""},
		"another key":                     {entry("dhcp1.example.net", other), at, host, plan.CodeDHCPHostKeyChanged},
		"one of two":                      {entry("dhcp1.example.net", other) + "\n" + entry("dhcp1.example.net", host), at, host, ""},
		"another host":                    {entry("dhcp2.example.net", host), at, host, plan.CodeDHCPHostKeyUnknown},
		"another port":                    {entry("dhcp1.example.net", host), "dhcp1.example.net:2222", host, plan.CodeDHCPHostKeyUnknown},
		"a port":                          {entry("[dhcp1.example.net]:2222", host), "dhcp1.example.net:2222", host, ""},
		"a port's key at 22":              {entry("[dhcp1.example.net]:2222", host), at, host, plan.CodeDHCPHostKeyUnknown},
		"hashed":                          {entry(knownhosts.HashHostname("dhcp1.example.net"), host), at, host, ""},
		"hashed with a port":              {entry(knownhosts.HashHostname("[dhcp1.example.net]:2222"), host), "dhcp1.example.net:2222", host, ""},
		"hashed, another key":             {entry(knownhosts.HashHostname("dhcp1.example.net"), other), at, host, plan.CodeDHCPHostKeyChanged},
		"hashed, another host":            {entry(knownhosts.HashHostname("dhcp2.example.net"), host), at, host, plan.CodeDHCPHostKeyUnknown},
		"IPv6":                            {entry("2001:db8::1", host), "[2001:db8::1]:22", host, ""},
		"a pattern":                       {"*.example.net " + words(host), at, host, ""},
		"a pattern that excepts it":       {"*.example.net,!dhcp1.example.net " + words(host), at, host, plan.CodeDHCPHostKeyUnknown},
		"several names":                   {"dhcp1,dhcp1.example.net,192.0.2.1 " + words(host), at, host, ""},
		"comments and blank lines":        {"# ours\n\n   " + entry("dhcp1.example.net", host) + " a comment\r\n", at, host, ""},
		"revoked":                         {entry("dhcp1.example.net", host) + "\n" + markRevoked(words(host)), at, host, plan.CodeDHCPHostKeyChanged},
		"revoked before it stands":        {markRevoked(words(host)) + "\n" + entry("dhcp1.example.net", host), at, host, plan.CodeDHCPHostKeyChanged},
		"another one is revoked":          {entry("dhcp1.example.net", host) + "\n" + markRevoked(words(other)), at, host, ""},
		"certified":                       {ca, at, certified(nil), ""},
		"certified, and a line":           {ca + "\n" + entry("dhcp1.example.net", other), at, certified(nil), ""},
		"certified by nobody on file":     {ca, at, certify(t, rogue, host, nil), plan.CodeDHCPHostKeyUnknown},
		"certified for another name":      {ca, at, certified(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"dhcp2.example.net"} }), plan.CodeDHCPHostKeyUnknown},
		"certificate expired":             {ca, at, certified(func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()) }), plan.CodeDHCPHostKeyUnknown},
		"a user's certificate":            {ca, at, certified(func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), plan.CodeDHCPHostKeyUnknown},
		"authority of other hosts":        {markAuthority + " *.example.org " + words(authority.PublicKey()), at, certified(nil), plan.CodeDHCPHostKeyUnknown},
		"authority revoked":               {ca + "\n" + markRevoked(words(authority.PublicKey())), at, certified(nil), plan.CodeDHCPHostKeyChanged},
		"certified key revoked":           {ca + "\n" + markRevoked(words(host)), at, certified(nil), plan.CodeDHCPHostKeyChanged},
		"without its certificate":         {ca, at, host, plan.CodeDHCPHostKeyUnknown},
		"the authority's key as a host's": {ca, at, authority.PublicKey(), plan.CodeDHCPHostKeyUnknown},
		"a line is no authority":          {entry("dhcp1.example.net", authority.PublicKey()), at, certified(nil), plan.CodeDHCPHostKeyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			k, f := parseKnownHosts([]byte(c.lines))
			if f != nil {
				t.Fatal(f)
			}
			got := plan.Code("")
			if f := k.verdict(c.address, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}, c.key); f != nil {
				got = f.Code
			}
			if got != c.want {
				t.Errorf("verdict %q, want %q", got, c.want)
			}
		})
	}
}

func markRevoked(words string) string { return "@revoked * " + words }

// TestDamaged: a line that cannot be read is not skipped.
func TestDamaged(t *testing.T) {
	key := newSigner(t).PublicKey()
	good := knownhosts.Line([]string{"dhcp1"}, key)
	_, words, _ := strings.Cut(good, " ")
	for _, line := range []string{
		"dhcp1", "dhcp1 ssh-ed25519", "dhcp1 ssh-ed25519 AAAA", "dhcp1 ssh-rsa " + strings.Fields(words)[1], "@authority dhcp1 " + words, "@revoked",
		"@cert-authority", "@cert-authority @revoked dhcp1 " + words, "|1|AAAA " + words, "|2|AAAA|AAAA " + words, "[dhcp1 " + words, "! " + words, words,
		good[:len(good)-4],
	} {
		k, f := parseKnownHosts([]byte(good + "\n" + line + "\n"))
		if f == nil || f.Code != plan.CodeConfigInvalid || !strings.Contains(f.Error(), "line 2") {
			t.Errorf("%q: %v, %v", line, k, f)
		}
	}
}

func TestAlgorithms(t *testing.T) {
	key := newSigner(t).PublicKey()
	line := knownhosts.Line([]string{"dhcp1"}, key)
	for lines, want := range map[string]string{
		line:                                     ssh.KeyAlgoED25519,
		knownhosts.Line([]string{"dhcp2"}, key):  ssh.KeyAlgoRSASHA256,
		markAuthority + " " + line + "\n" + line: ssh.CertAlgoRSASHA256v01,
	} {
		k, f := parseKnownHosts([]byte(lines))
		if f != nil {
			t.Fatal(f)
		}
		got := k.algorithms("dhcp1:22")
		if got[0] != want {
			t.Errorf("%s is asked for first, want %s", got[0], want)
		}
		seen := map[string]bool{}
		for _, a := range got {
			if seen[a] {
				t.Errorf("%s stands twice", a)
			}
			seen[a] = true
		}
		if !strings.HasPrefix(lines, markAuthority) && strings.Contains(strings.Join(got, " "), "-cert-") {
			t.Error("certificates are asked for, and nobody could check them")
		}
	}
}

// FuzzKnownHosts: no text makes a key trusted that does not stand in it.
func FuzzKnownHosts(f *testing.F) {
	key, authority := newSigner(f).PublicKey(), newSigner(f)
	_, words, _ := strings.Cut(knownhosts.Line([]string{"x"}, key), " ")
	for _, seed := range []string{
		"dhcp1 " + words, "[dhcp1]:2222 " + words, knownhosts.HashHostname("dhcp1") + " " + words, "@revoked * " + words, "@cert-authority * " + words,
		"*,!dhcp1 " + words, "# x\n\n" + words, "dhcp1 ssh-rsa AAAA", "|1|a|b " + words, "@cert-authority", "@", "\ufeffdhcp1 " + words, "dhcp1 " + words + "\r\ndhcp2 " + words,
	} {
		f.Add(seed)
	}
	certificate := certify(f, authority, newSigner(f).PublicKey(), nil)
	f.Fuzz(func(t *testing.T, text string) {
		k, fault := parseKnownHosts([]byte(text))
		if fault != nil {
			if fault.Code != plan.CodeConfigInvalid {
				t.Errorf("%v", fault)
			}
			return
		}
		stranger := newSigner(t).PublicKey()
		for _, shown := range []ssh.PublicKey{key, stranger, certificate} {
			blob := shown.Marshal()
			if c, ok := shown.(*ssh.Certificate); ok {
				blob = c.SignatureKey.Marshal()
			}
			onFile := strings.Contains(text, base64.StdEncoding.EncodeToString(blob))
			for _, address := range []string{"dhcp1:22", "dhcp1:2222", "[::1]:22"} {
				if fault := k.verdict(address, probeAddr{}, shown); fault == nil && !onFile {
					t.Errorf("%s of %s is trusted", shown.Type(), address)
				}
				if len(k.algorithms(address)) == 0 {
					t.Error("no algorithm is asked for")
				}
			}
		}
	})
}
