package secrets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// maxPlain bounds the decrypted file; maxCipher the file itself, which armor
// makes a third longer.
const (
	maxPlain  = 4 << 20
	maxCipher = 2 * maxPlain
)

// ageFile reads one file that is encrypted with age. Inside is a JSON object of
// items, each an object of fields: {"bmc-gpu-001": {"password": "…"}}. It is
// decrypted in memory, once per run.
//
// The version of every value is made of the encrypted file: age has none of its
// own, and a hash of what is inside would say something about it.
type ageFile struct {
	file       string
	identities []age.Identity

	mu      sync.Mutex
	opened  bool
	items   map[string]map[string]json.RawMessage
	version string
	fault   *plan.Fault
}

func newAgeFile(s plan.SecretsSettings, o Options) (*ageFile, error) {
	text, err := callerSecret(o, orElse(s.IdentityEnv, "ENROLL_AGE_IDENTITY"), s.IdentityFile, "the age identity", "identity_env")
	if err != nil {
		return nil, err
	}
	o.Learn(plan.NewSecret(text, ""))
	place := "the environment variable " + shownVariable(orElse(s.IdentityEnv, "ENROLL_AGE_IDENTITY"), "identity_env")
	if s.IdentityFile != "" {
		place = "the file " + s.IdentityFile
	}
	identities, f := parseIdentities(text, place)
	if f != nil {
		return nil, f
	}
	return &ageFile{file: s.File, identities: identities}, nil
}

// parseIdentities takes lines of AGE-SECRET-KEY-1…, or one SSH private key. The
// errors of the parsers can quote what they were given, so they are not passed on.
func parseIdentities(text, place string) ([]age.Identity, *plan.Fault) {
	if !strings.HasPrefix(text, "-----BEGIN ") {
		list, err := age.ParseIdentities(strings.NewReader(text))
		if err != nil {
			return nil, plan.NewFault(plan.CodeSecretInvalid, "%s holds no age identity", place).
				WithHint("Put the lines AGE-SECRET-KEY-1… that age-keygen wrote there, or an SSH private key of type ed25519 or RSA.")
		}
		return list, nil
	}
	// The line end belongs to the form of the key; callerSecret took it off.
	id, err := agessh.ParseIdentity([]byte(text + "\n"))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, plan.NewFault(plan.CodeSecretInvalid, "the SSH key in %s has a passphrase, and nobody can be asked for it", place).
			WithHint("Use a key without a passphrase that nobody but enroll's account can read, or an age identity.")
	case err != nil:
		return nil, plan.NewFault(plan.CodeSecretInvalid, "%s holds no SSH private key that age can use", place).
			WithHint("age takes ed25519 and RSA keys.")
	}
	return []age.Identity{id}, nil
}

// requests: a file is no exchange.
func (a *ageFile) requests() int { return 0 }

func (a *ageFile) read(ctx context.Context, refs []plan.SecretRef, found *result) {
	a.mu.Lock()
	if !a.opened {
		a.opened = true
		a.fault = a.open()
	}
	a.mu.Unlock()
	byItem(refs, found, func(name string) (*entry, *plan.Fault) {
		switch {
		case ctx.Err() != nil:
			return nil, interrupted()
		case a.fault != nil:
			return nil, a.fault
		case a.items[name] == nil:
			return nil, plan.NewFault(plan.CodeSecretMissing, "the file %s has no item %q", a.file, name).
				WithHint("Add the item and encrypt the file again, or correct the reference in the site file.")
		}
		return &entry{fields: a.items[name], version: a.version}, nil
	})
}

func (a *ageFile) open() *plan.Fault {
	raw, err := readBounded(a.file, maxCipher)
	if err != nil {
		code := plan.CodeConfigInvalid
		if errors.Is(err, os.ErrNotExist) {
			code = plan.CodeSecretMissing
		}
		return plan.NewFault(code, "the age file of the secrets block cannot be read").Because(err)
	}
	var src io.Reader = bytes.NewReader(raw)
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte(armor.Header)) {
		src = armor.NewReader(src)
	}
	plain, err := age.Decrypt(src, a.identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return plan.NewFault(plan.CodeSecretLogin, "the file %s is not encrypted for this identity", a.file).
			WithHint("Encrypt it also for the recipient of this identity (age-keygen -y shows it), or use another identity.")
	case err != nil:
		return plan.NewFault(plan.CodeSecretInvalid, "the file %s is no age file, or is damaged", a.file).Because(err)
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxPlain+1))
	switch {
	case err != nil:
		return plan.NewFault(plan.CodeSecretInvalid, "the file %s is damaged: it cannot be decrypted to its end", a.file)
	case len(text) > maxPlain:
		return plan.NewFault(plan.CodeSecretInvalid, "the file %s holds more than %d bytes", a.file, maxPlain)
	}
	// The error of a failed decoding can quote the text; it is not passed on.
	if err := json.Unmarshal(text, &a.items); err != nil || a.items == nil {
		return plan.NewFault(plan.CodeSecretInvalid, "the file %s holds no JSON object of items with fields", a.file).
			WithHint(`Inside it should look like {"ITEM": {"FIELD": "value"}}.`)
	}
	sum := sha256.Sum256(raw)
	a.version = "age:" + hex.EncodeToString(sum[:6])
	return nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = errors.New(path + " is longer than a file of secrets can be")
	}
	return raw, err
}
