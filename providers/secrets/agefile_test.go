package secrets_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

func writeTemp(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func encrypt(t *testing.T, armored bool, text string, to ...age.Recipient) string {
	t.Helper()
	var out bytes.Buffer
	var dst interface {
		Write([]byte) (int, error)
	} = &out
	wrapped := armor.NewWriter(&out)
	if armored {
		dst = wrapped
	}
	w, err := age.Encrypt(dst, to...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if armored {
		if err := wrapped.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

const ageText = `{"bmc-gpu-001": {"username": "admin", "password": "hunter2 \"&ä", "n": 5}, "netbox": {"token": "nb-token"}}`

// sshKeys are a private key as ssh-keygen writes it and its age recipient.
func sshKeys(t *testing.T, key any, passphrase string) (string, age.Recipient) {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	to, err := agessh.ParseRecipient(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), to
}

func TestAge(t *testing.T) {
	x25519, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	edKey, edTo := sshKeys(t, ed, "")
	rsaKey, rsaTo := sshKeys(t, weak, "")
	for _, c := range []struct {
		name, identity string
		armored        bool
		to             []age.Recipient
	}{
		{"X25519", "# created: 2026-12-01\n" + x25519.String() + "\n", false, []age.Recipient{x25519.Recipient()}},
		{"armored, for two", x25519.String(), true, []age.Recipient{edTo, x25519.Recipient()}},
		{"SSH ed25519", edKey, false, []age.Recipient{edTo}},
		{"SSH RSA", rsaKey, true, []age.Recipient{rsaTo}},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := plan.SecretsSettings{Backend: "age", File: writeTemp(t, encrypt(t, c.armored, ageText, c.to...)), IdentityFile: writeTemp(t, c.identity)}
			var learnt []string
			b, err := secrets.New(settings, secrets.Options{Learn: func(s plan.Secret) { learnt = append(learnt, s.Reveal()) }})
			if err != nil {
				t.Fatal(err)
			}
			password := plan.SecretRef{Item: "bmc-gpu-001", Field: "password"}
			values, err := b.Read(t.Context(), []plan.SecretRef{password, {Item: "netbox", Field: "token"}})
			if err != nil {
				t.Fatal(err)
			}
			if s := values[password]; s.Reveal() != `hunter2 "&ä` || !strings.HasPrefix(s.Version, "age:") {
				t.Errorf("version %q of %d bytes", s.Version, len(s.Reveal()))
			}
			if len(learnt) != 1 || !strings.Contains(learnt[0], strings.Split(strings.TrimSpace(c.identity), "\n")[1%len(strings.Split(strings.TrimSpace(c.identity), "\n"))]) {
				t.Error("the identity is not kept out of output")
			}
			// From a variable, and read once although the file goes away.
			settings.IdentityFile = ""
			b, err = secrets.New(settings, secrets.Options{Getenv: variables(map[string]string{"ENROLL_AGE_IDENTITY": c.identity})})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := b.Read(t.Context(), []plan.SecretRef{password}); err != nil {
					t.Error(err)
				}
				_ = os.Remove(settings.File)
			}
		})
	}
}

func TestAgeFaults(t *testing.T) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	locked, _ := sshKeys(t, ed, "passphrase")
	good := encrypt(t, false, ageText, mine.Recipient())
	for _, c := range []struct {
		name, file, identity string
		ref                  plan.SecretRef
		code                 plan.Code
		says                 []string
	}{
		{name: "missing item", file: good, ref: plan.SecretRef{Item: "none", Field: "f"}, code: plan.CodeSecretMissing, says: []string{`"none"`}},
		{name: "missing field", file: good, ref: plan.SecretRef{Item: "netbox", Field: "f"}, code: plan.CodeSecretMissing, says: []string{`"netbox"`, `"f"`, `"token"`}},
		{name: "number", file: good, ref: plan.SecretRef{Item: "bmc-gpu-001", Field: "n"}, code: plan.CodeSecretInvalid, says: []string{"no text"}},
		{name: "another's", file: encrypt(t, true, ageText, other.Recipient()), code: plan.CodeSecretLogin, says: []string{"not encrypted for this identity"}},
		{name: "no age file", file: ageText, code: plan.CodeSecretInvalid, says: []string{"no age file"}},
		{name: "cut off", file: good[:len(good)-9], code: plan.CodeSecretInvalid, says: []string{"damaged"}},
		{name: "empty file", file: "\x00", code: plan.CodeSecretInvalid},
		{name: "no JSON inside", file: encrypt(t, false, "password: hunter2", mine.Recipient()), code: plan.CodeSecretInvalid, says: []string{"JSON"}},
		{name: "a list inside", file: encrypt(t, false, `["hunter2"]`, mine.Recipient()), code: plan.CodeSecretInvalid, says: []string{"JSON"}},
		{name: "texts inside", file: encrypt(t, false, `{"netbox": "hunter2"}`, mine.Recipient()), code: plan.CodeSecretInvalid, says: []string{"JSON"}},
		{name: "no file", code: plan.CodeSecretMissing, says: []string{"age file"}},
		{name: "no identity", file: good, identity: "hunter2\n", code: plan.CodeSecretInvalid, says: []string{"no age identity"}},
		{name: "a recipient for an identity", file: good, identity: mine.Recipient().String(), code: plan.CodeSecretInvalid, says: []string{"AGE-SECRET-KEY-1"}},
		{name: "key with a passphrase", file: good, identity: locked, code: plan.CodeSecretInvalid, says: []string{"passphrase"}},
		{name: "no private key", file: good, identity: "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n", code: plan.CodeSecretInvalid, says: []string{"SSH private key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.identity == "" {
				c.identity = mine.String()
			}
			if c.ref.IsZero() {
				c.ref = plan.SecretRef{Item: "netbox", Field: "token"}
			}
			path := filepath.Join(t.TempDir(), "none.age")
			if c.file != "" {
				path = writeTemp(t, c.file)
			}
			b, err := secrets.New(plan.SecretsSettings{Backend: "age", File: path, IdentityFile: writeTemp(t, c.identity)}, secrets.Options{})
			if err == nil {
				_, err = b.Read(t.Context(), []plan.SecretRef{c.ref})
			}
			f := faultOf(t, err, c.code, c.says...)
			if said := f.Error() + strings.Join(f.EvidenceLines(), " "); strings.Contains(said, "hunter2") || strings.Contains(said, mine.String()) || strings.Contains(said, "nb-token") {
				t.Errorf("the fault says a secret: %s", said)
			}
		})
	}
}
