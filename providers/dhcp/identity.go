package dhcp

import (
	"context"
	"errors"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/enroll-dev/enroll/plan"
)

// Credentials are what a login needs.
type Credentials struct {
	Identity   plan.Secret // the private key, PEM or OpenSSH form; empty where the agent has it
	Passphrase plan.Secret // opens the key, where it is protected
	KnownHosts []byte      // known_hosts lines; the server's key must stand there
	// Agent is the socket of the ssh-agent whose keys are offered too; "" is none.
	Agent string
}

// parseIdentity reads the private key; nil where there is none to read, because
// the agent has it. Neither the key nor the library's words about it reach the
// fault.
func parseIdentity(s plan.DHCPSettings, c Credentials) (ssh.Signer, *plan.Fault) {
	from := s.Identity.String()
	if s.Identity.IsZero() {
		from = s.IdentityFile
	}
	invalid := func(what string) *plan.Fault {
		return plan.NewFault(plan.CodeSecretInvalid, "the private key for the DHCP server %s: %s", what, from)
	}
	text := c.Identity.Reveal()
	switch {
	case text == "" && c.Agent != "":
		return nil, nil
	case text == "":
		return nil, invalid("is empty")
	case !strings.HasSuffix(text, "\n"):
		text += "\n" // vaults trim it; the OpenSSH form needs it
	}
	signer, err := ssh.ParsePrivateKey([]byte(text))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked) && c.Passphrase.Reveal() == "":
		return nil, invalid("is protected by a passphrase").
			WithHint("Name the passphrase's item in the dhcp block: passphrase = secret(\"ITEM\", \"FIELD\"); or store a key without one: the vault protects it.")
	case errors.As(err, &locked):
		if signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(text), []byte(c.Passphrase.Reveal())); err != nil {
			return nil, invalid("is not opened by the passphrase").
				WithHint("Compare the two items of the vault: ssh-keygen -y -f FILE asks for the passphrase and says whether it fits.")
		}
	case err != nil:
		return nil, invalid("cannot be read").WithHint("Store the whole key file, from its BEGIN to its END line.")
	}
	return signer, nil
}

// signers are the keys to offer: the site's own first, then those of the agent,
// which is asked anew for each login. done ends the talk with the agent; it is
// called when the login is over.
func (p *Provider) signers(ctx context.Context) (keys []ssh.Signer, done func(), f *plan.Fault) {
	done = func() {}
	if p.signer != nil {
		keys = append(keys, p.signer)
	}
	if p.agent == "" {
		return keys, done, nil
	}
	refused := func(err error) *plan.Fault {
		return plan.NewFault(plan.CodeDHCPLoginRefused, "the ssh-agent at %s does not give its keys", p.agent).Because(err).
			WithHint("Start an agent and add the key (ssh-add), or set agent = false in the dhcp block and name the key there.")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", p.agent)
	if err != nil {
		return nil, done, refused(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // an agent may wait for a person
	end := func() {
		stop()
		_ = conn.Close()
	}
	held, err := agent.NewClient(conn).Signers()
	if err != nil {
		end()
		return nil, done, refused(err)
	}
	return append(keys, held...), end, nil
}

// fingerprints names keys in a fault.
func fingerprints(keys []ssh.Signer) string {
	var out []string
	for _, k := range keys {
		out = append(out, ssh.FingerprintSHA256(k.PublicKey()))
	}
	if len(out) == 0 {
		return "no key: the agent holds none"
	}
	return strings.Join(out, ", ")
}
