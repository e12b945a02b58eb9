package ironic_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// TestCloudSources: clouds.yaml and secure.yaml from the vault and from files,
// and what in them must be kept out of output.
func TestCloudSources(t *testing.T) {
	l := newLab(t, 1)
	l.sim.AddNode(available(l.scope.Targets[0], l))
	var tokens atomic.Int64
	identity := keystone(t, l.sim.URL, &tokens)
	whole := fmt.Sprintf("clouds:\n  lon14:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: %s/v3\n      application_credential_id: ID\n      application_credential_secret: good\n    region_name: RegionOne\n", identity.URL)
	open := strings.Replace(whole, "      application_credential_secret: good\n", "", 1)
	secret := "clouds:\n  lon14:\n    auth:\n      application_credential_secret: good\n"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("beside/secure.yaml", secret)
	vault := func(clouds, secure string) ironic.CloudFiles {
		return ironic.CloudFiles{Clouds: plan.NewSecret(clouds, "1"), Secure: plan.NewSecret(secure, "1")}
	}
	for _, c := range []struct {
		name         string
		vault        ironic.CloudFiles
		clouds, safe string // files
		code         plan.Code
		says         []string
	}{
		{name: "vault", vault: vault(whole, "")},
		{name: "vault, both", vault: vault(open, secret)},
		{name: "vault and a file", vault: vault(open, ""), safe: file("secure-1.yaml", secret)},
		{name: "file", clouds: file("alone/clouds.yaml", whole)},
		{name: "file with secure.yaml beside it", clouds: file("beside/clouds.yaml", open)},
		{name: "both files", clouds: file("alone/open.yaml", open), safe: file("secure-2.yaml", secret)},
		{name: "file and vault", clouds: file("alone/open2.yaml", open), vault: vault("", secret)},
		{name: "no such file", clouds: filepath.Join(dir, "none.yaml"), code: plan.CodeConfigInvalid, says: []string{"clouds_file", "none.yaml"}},
		{name: "no such secure file", clouds: file("alone/open3.yaml", open), safe: filepath.Join(dir, "none.yaml"), code: plan.CodeConfigInvalid, says: []string{"secure_file", "none.yaml"}},
		{name: "no such entry", vault: vault("clouds:\n  other: {}\n", ""), code: plan.CodeConfigInvalid, says: []string{"no such entry", `"lon14"`, `secret("openstack", "clouds")`}},
		{name: "no YAML", vault: vault("hunter2hunter2", ""), code: plan.CodeConfigInvalid, says: []string{"YAML"}},
		{name: "YAML of another form", vault: vault("clouds:\n  lon14:\n    auth: hunter2hunter2\n", ""), code: plan.CodeConfigInvalid, says: []string{"YAML"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := l.scope.Site.Ironics[0]
			settings.Endpoint, settings.Cloud = "", "lon14"
			settings.Clouds, settings.CloudsFile, settings.SecureFile = plan.SecretRef{Item: "openstack", Field: "clouds"}, c.clouds, c.safe
			var learnt []string
			client, err := ironic.New([]plan.IronicSettings{settings}, credentials{}, ironic.Options{
				Now: l.clock.Now, Clouds: map[string]ironic.CloudFiles{settings.Name: c.vault}, Learn: func(s plan.Secret) { learnt = append(learnt, s.Reveal()) },
			})
			if err != nil {
				t.Fatal(err)
			}
			f := client.Ownership(t.Context(), l.scope)["gpu-001"].Unknown
			if c.code == "" {
				if f != nil || len(learnt) != 1 || learnt[0] != "good" {
					t.Errorf("%v, %d secrets learnt", f, len(learnt))
				}
				return
			}
			if f == nil || f.Code != c.code {
				t.Fatalf("%v", f)
			}
			said := f.Error() + " " + f.WayOut() + " " + strings.Join(f.EvidenceLines(), " ")
			for _, s := range c.says {
				if !strings.Contains(said, s) {
					t.Errorf("%q does not say %q", said, s)
				}
			}
			if strings.Contains(said, "hunter2") {
				t.Errorf("the fault says a secret: %s", said)
			}
		})
	}
}
