//go:build lab

package secretstest_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestConformanceLab runs the table against a real vault with a KV engine of
// version 2 mounted at "secret": ENROLL_LAB_VAULT_URL and a token that may do
// everything there, ENROLL_LAB_VAULT_TOKEN.
func TestConformanceLab(t *testing.T) {
	url := os.Getenv("ENROLL_LAB_VAULT_URL")
	if url == "" {
		t.Skip("ENROLL_LAB_VAULT_URL is not set: the lab has no vault of its own")
	}
	conformance(t, vaultUnderTest{
		url: url, token: os.Getenv("ENROLL_LAB_VAULT_TOKEN"),
		paths: fmt.Sprintf("conformance-%d", time.Now().UnixNano()),
	})
}
