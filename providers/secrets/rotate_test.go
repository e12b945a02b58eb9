package secrets_test

import (
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
)

var _ providers.Rotator = (*secrets.Backend)(nil)

// TestRotate: the new value stands beside the old one until it is published, and
// what else is in the item stays as it is.
func TestRotate(t *testing.T) {
	v := newVault(t)
	v.Put("lon14/bmc", map[string]string{"username": "admin", "password": "old one"})
	ref := plan.SecretRef{Item: "bmc", Field: "password"}
	user := plan.SecretRef{Item: "bmc", Field: "username"}
	b := open(t, settings(v.URL), v.Token)
	read := func(r plan.SecretRef) (string, string) {
		t.Helper()
		values, err := open(t, settings(v.URL), v.Token).Read(t.Context(), []plan.SecretRef{r})
		if err != nil {
			return plan.AsFault(err).Error(), ""
		}
		s := values[r]
		return s.Reveal(), s.Version
	}

	const fresh = `n<&>"w\ ä`
	staged, err := b.Stage(t.Context(), ref, plan.NewSecret(fresh, ""))
	if err != nil {
		t.Fatal(err)
	}
	if staged.Version != "2" || staged.Ref != ref || staged.Staged != secrets.Staged(ref) {
		t.Errorf("%+v", staged)
	}
	if got, version := read(ref); got != "old one" || version != "2" {
		t.Errorf("while staged: version %s", version)
	}
	if got, _ := read(staged.Staged); got != fresh {
		t.Error("the staged value cannot be read by who comes after a crash")
	}
	// Nobody stages over it.
	_, err = b.Stage(t.Context(), ref, plan.NewSecret("third", ""))
	wantFault(t, err, plan.CodeSecretConflict, "password.staged", "not finished")

	version, err := b.Publish(t.Context(), staged)
	if err != nil || version != "3" {
		t.Fatal(version, err)
	}
	if got, version := read(ref); got != fresh || version != "3" {
		t.Errorf("published: version %s", version)
	}
	if got, _ := read(user); got != "admin" {
		t.Error("the user name is gone")
	}
	if _, version := read(staged.Staged); version != "" {
		t.Error("the staged value is still there")
	}
	_, err = b.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeSecretConflict, "was changed since")
}

func TestRotateFaults(t *testing.T) {
	v := newVault(t)
	v.Put("lon14/bmc", map[string]string{"password": "old one"})
	ref := plan.SecretRef{Item: "bmc", Field: "password"}
	b := open(t, settings(v.URL), v.Token)
	fresh := plan.NewSecret("new one", "")

	// Somebody writes between the read and the write.
	v.Recorder.Inject(&exchange.Fault{Method: "POST", Kind: exchange.Status, Status: 400, Times: 1, Body: `{"errors":["check-and-set parameter did not match the current version"]}`})
	_, err := b.Stage(t.Context(), ref, fresh)
	wantFault(t, err, plan.CodeSecretConflict, "at the same time")

	staged, err := b.Stage(t.Context(), ref, fresh)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody writes between the phases.
	v.Put("lon14/bmc", map[string]string{"password": "by hand"})
	_, err = b.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeSecretConflict, "staged in version: 2", "version: 3")

	// The answer of a write is lost: publishing says so, and tells that it changed.
	staged, err = b.Stage(t.Context(), ref, fresh)
	if err != nil {
		t.Fatal(err)
	}
	v.Recorder.Inject(&exchange.Fault{Method: "POST", Kind: exchange.LostReply, Times: 1})
	_, err = b.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeSecretUnreachable)
	_, err = b.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeSecretConflict)

	if !b.Writable(t.Context(), ref) || open(t, settings(v.URL), reader).Writable(t.Context(), ref) {
		t.Error("Writable does not say what the policies do")
	}
	v.Recorder.Inject(&exchange.Fault{Method: "POST", Kind: exchange.Status, Status: 404, Times: 1, Body: `{"errors":[]}`})
	if !b.Writable(t.Context(), ref) {
		t.Error("a vault that does not tell counts as one that cannot be written")
	}
	_, err = open(t, settings(v.URL), reader).Stage(t.Context(), ref, fresh)
	wantFault(t, err, plan.CodeSecretDenied, "update", "secret/data/lon14/bmc")
	_, err = b.Stage(t.Context(), plan.SecretRef{Item: "none", Field: "f"}, fresh)
	wantFault(t, err, plan.CodeSecretMissing)
	_, err = b.Stage(t.Context(), plan.SecretRef{Item: "bmc", Field: "f"}, fresh)
	wantFault(t, err, plan.CodeSecretMissing, `"f"`)
	_, err = b.Stage(t.Context(), plan.SecretRef{Item: "../bmc", Field: "f"}, fresh)
	wantFault(t, err, plan.CodeConfigInvalid)
	_, err = b.Stage(t.Context(), ref, plan.Secret{})
	wantFault(t, err, plan.CodeSecretInvalid, "empty")
	_, err = b.Stage(t.Context(), ref, plan.NewSecret("\xff\xfe", ""))
	wantFault(t, err, plan.CodeSecretInvalid, "UTF-8")

	env, err := secrets.New(plan.SecretsSettings{Backend: "env"}, secrets.Options{Getenv: variables(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if env.Writable(t.Context(), ref) {
		t.Error("variables are writable")
	}
	_, err = env.Stage(t.Context(), ref, fresh)
	wantFault(t, err, plan.CodeConfigInvalid, "only read")
	_, err = env.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeConfigInvalid, "only read")
}
