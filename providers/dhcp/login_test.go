package dhcp_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// userKeys are one of each type that sshd takes.
func userKeys(t *testing.T) map[string]crypto.PrivateKey {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.PrivateKey{"ed25519": ed, "ecdsa": ec, "rsa": rs}
}

func public(t *testing.T, key crypto.PrivateKey) ssh.PublicKey {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer.PublicKey()
}

// text writes a key in OpenSSH's form, with a passphrase unless it is empty.
func text(t *testing.T, key crypto.PrivateKey, passphrase string) plan.Secret {
	t.Helper()
	marshal := func() (*pem.Block, error) { return ssh.MarshalPrivateKey(key, "") }
	if passphrase != "" {
		marshal = func() (*pem.Block, error) {
			return ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
		}
	}
	block, err := marshal()
	if err != nil {
		t.Fatal(err)
	}
	return plan.NewSecret(strings.TrimSpace(string(pem.EncodeToMemory(block))), "") // as vaults keep it
}

// looks reads the service's state: a login and a command.
func (b *bench) looks(p *dhcp.Provider) *plan.Fault {
	b.t.Helper()
	address := plan.Address{Site: "lon14", System: "dhcp", Kind: "service"}
	return p.Read(context.Background(), b.scope, []plan.Resource{{Address: address}})[address].Fault
}

func TestKeys(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	for name, key := range userKeys(t) {
		for _, passphrase := range []string{"", "correct horse"} {
			t.Run(name+"/"+passphrase, func(t *testing.T) {
				b := *b
				b.t = t
				b.srv.Authorize(public(t, key))
				c := dhcp.Credentials{Identity: text(t, key, passphrase), Passphrase: plan.NewSecret(passphrase, ""), KnownHosts: b.srv.KnownHosts}
				p, err := dhcp.New(*b.scope.Site.DHCP, c, dhcp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = p.Close(context.Background()) }()
				if f := b.looks(p); f != nil {
					t.Error(f)
				}
				if passphrase == "" {
					return
				}
				for given, words := range map[string]string{"": "protected by a passphrase", "wrong": "not opened by the passphrase"} {
					c.Passphrase = plan.NewSecret(given, "")
					_, err := dhcp.New(*b.scope.Site.DHCP, c, dhcp.Options{})
					b.wantFault(plan.AsFault(err), plan.CodeSecretInvalid, words)
				}
			})
		}
	}
}

// TestClosed: the key lives only as long as the client.
func TestClosed(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	if f := b.looks(b.p); f != nil {
		t.Fatal(f)
	}
	if err := b.p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.wantFault(b.looks(b.p), plan.CodeInternal, "closed")
}

// startAgent serves keys on a socket, as ssh-agent does.
func startAgent(t *testing.T, keys ...crypto.PrivateKey) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(ring, conn)
				_ = conn.Close()
			}()
		}
	}()
	return at
}

func TestAgent(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	key := userKeys(t)["rsa"] // whose signatures the agent makes with a flag
	for name, c := range map[string]struct {
		credentials dhcp.Credentials
		code        plan.Code // "" for none
		words       string
	}{
		"its key":              {dhcp.Credentials{Agent: startAgent(t, key)}, "", ""},
		"a key beside its":     {dhcp.Credentials{Agent: startAgent(t), Identity: text(t, key, "")}, "", ""},
		"its key after ours":   {dhcp.Credentials{Agent: startAgent(t, key), Identity: text(t, userKeys(t)["ed25519"], "")}, "", ""},
		"no key":               {dhcp.Credentials{Agent: startAgent(t)}, plan.CodeDHCPLoginRefused, "the agent holds none"},
		"keys that are not on": {dhcp.Credentials{Agent: startAgent(t, userKeys(t)["ecdsa"])}, plan.CodeDHCPLoginRefused, "SHA256:"},
		"nobody there":         {dhcp.Credentials{Agent: filepath.Join(t.TempDir(), "none")}, plan.CodeDHCPLoginRefused, "ssh-add"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			b.srv.Authorize(public(t, key))
			c.credentials.KnownHosts = b.srv.KnownHosts
			p, err := dhcp.New(*b.scope.Site.DHCP, c.credentials, dhcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close(context.Background()) }()
			if f := b.looks(p); c.code != "" {
				b.wantFault(f, c.code, c.words)
			} else if f != nil {
				t.Error(f)
			}
		})
	}
}

var jumpKeys = sync.OnceValue(func() []ssh.Signer { return dhcptest.NewHostKeys() })

// TestJump goes through a second machine, which has keys and an account of its own.
func TestJump(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(jump, server *dhcptest.Server, s *plan.DHCPSettings, c *dhcp.Credentials)
		code    plan.Code
		words   []string
	}{
		"through": {func(_, _ *dhcptest.Server, _ *plan.DHCPSettings, _ *dhcp.Credentials) {}, "", nil},
		"the jump host's key is not on file": {func(_, server *dhcptest.Server, _ *plan.DHCPSettings, c *dhcp.Credentials) {
			c.KnownHosts = server.KnownHosts
		}, plan.CodeDHCPHostKeyUnknown, []string{"JUMP", "line to add"}},
		"the server's key is not on file": {func(jump, _ *dhcptest.Server, _ *plan.DHCPSettings, c *dhcp.Credentials) {
			c.KnownHosts = jump.KnownHosts
		}, plan.CodeDHCPHostKeyUnknown, []string{"SERVER"}},
		"the jump host's key changed": {func(jump, _ *dhcptest.Server, _ *plan.DHCPSettings, _ *dhcp.Credentials) {
			jump.ChangeHostKeys(hostKeys()...)
		}, plan.CodeDHCPHostKeyChanged, []string{"JUMP"}},
		"the jump host refuses the key": {func(jump, _ *dhcptest.Server, _ *plan.DHCPSettings, _ *dhcp.Credentials) {
			jump.Set(func(b *dhcptest.Behaviour) { b.NoLogin = true })
		}, plan.CodeDHCPLoginRefused, []string{"JUMP", `"hopper"`}},
		"the server refuses the key": {func(_, server *dhcptest.Server, _ *plan.DHCPSettings, _ *dhcp.Credentials) {
			server.Set(func(b *dhcptest.Behaviour) { b.NoLogin = true })
		}, plan.CodeDHCPLoginRefused, []string{"SERVER", `"enroll"`}},
		"the jump host forwards nothing": {func(jump, _ *dhcptest.Server, _ *plan.DHCPSettings, _ *dhcp.Credentials) {
			jump.Set(func(b *dhcptest.Behaviour) { b.NoForwarding = true })
		}, plan.CodeDHCPUnreachable, []string{"JUMP", "AllowTcpForwarding"}},
		"nobody listens behind it": {func(_, _ *dhcptest.Server, s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Port = 1 },
			plan.CodeDHCPUnreachable, []string{"JUMP", "127.0.0.1:1"}},
		"nobody listens": {func(_, _ *dhcptest.Server, s *plan.DHCPSettings, _ *dhcp.Credentials) { s.ProxyJump = "127.0.0.1:1" },
			plan.CodeDHCPUnreachable, []string{"the jump host 127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			jump := dhcptest.New(dhcptest.Options{HostKeys: jumpKeys(), User: "hopper"})
			defer func() { _ = jump.Close() }()
			key := userKeys(t)["ed25519"]
			jump.Authorize(public(t, key))
			b.srv.Authorize(public(t, key))
			settings := *b.scope.Site.DHCP
			settings.ProxyJump = "hopper@" + jump.Addr()
			credentials := dhcp.Credentials{Identity: text(t, key, ""), KnownHosts: append(append([]byte(nil), jump.KnownHosts...), b.srv.KnownHosts...)}
			jumpAt, serverAt := jump.Addr(), b.srv.Addr()
			c.arrange(jump, b.srv, &settings, &credentials)
			p, err := dhcp.New(settings, credentials, dhcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close(context.Background()) }()
			if c.code == "" {
				if f := b.converge(p); f != nil {
					t.Fatal(f)
				}
				b.settled()
				return
			}
			words := make([]string, len(c.words))
			for i, w := range c.words {
				words[i] = strings.NewReplacer("JUMP", jumpAt, "SERVER", serverAt).Replace(w)
			}
			b.wantFault(b.looks(p), c.code, words...)
		})
	}
	b := newBench(t, dhcptest.Options{})
	for _, bad := range []string{"a b", "-x", "user@", "@host", "host:0", "host:99999", "a@b@c", "host;reboot", "$(x)"} {
		settings := *b.scope.Site.DHCP
		settings.ProxyJump = bad
		_, err := dhcp.New(settings, b.credentials(), dhcp.Options{})
		b.wantFault(plan.AsFault(err), plan.CodeConfigInvalid, "proxy_jump")
	}
}

// TestSignOfLife: a server that answers nothing any more is given up between two
// exchanges, long before a deadline, and the next one logs in anew.
func TestSignOfLife(t *testing.T) {
	const between = 15 * time.Second
	h := newPauses()
	b := newBench(t, dhcptest.Options{Recorder: exchange.NewRecorder(newClock().now, when{`"fault":"stall"`: func() {
		h.endNth(between, 9)
		h.endNth(between, 10)
	}})})
	p, err := dhcp.New(*b.scope.Site.DHCP, b.credentials(), dhcp.Options{Keepalive: between, After: h.after})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	logins := func() int {
		return b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "ssh.login" })
	}
	look := func() {
		t.Helper()
		if f := b.looks(p); f != nil {
			t.Fatal(f)
		}
	}
	look()
	for n := range 4 { // every second pause is the time for the answer
		h.endNth(between, 2*n+1)
		h.stopped(between, 2*n+2)
	}
	look()
	if n := logins(); n != 1 {
		t.Errorf("%d logins at a server that lives", n)
	}
	b.srv.Set(func(now *dhcptest.Behaviour) { now.Frozen = true })
	b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: "ssh.exec", Times: 1})
	b.wantFault(b.looks(p), plan.CodeDHCPUnreachable, "no sign of life")
	b.srv.Set(func(now *dhcptest.Behaviour) { now.Frozen = false })
	look()
}

// TestGivenUp: a command whose deadline has passed gets a signal, since the end
// of its session would leave it running, and its place taken.
func TestGivenUp(t *testing.T) {
	b := newStalling(t, dhcptest.Options{})
	b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: "ssh.exec", Times: 1})
	b.wantFault(b.looks(b.p), plan.CodeDHCPUnreachable, dhcptest.Deadline.String())
	if n := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "ssh.signal" }); n != 1 {
		t.Errorf("%d signals", n)
	}
	for range 12 { // more than sshd's MaxSessions
		if f := b.looks(b.p); f != nil {
			t.Fatal(f)
		}
	}
}
