package bmc

import (
	"net/http"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// An answer that repeats the token of the session that it does not know leaves no
// trace of it.
func TestATokenThatIsRepeated(t *testing.T) {
	k := fuzzConn(genericFamily())
	k.login.token = "t0k3n-of-this-session"
	f := k.unauthorized(t.Context(), &answer{method: http.MethodGet, path: "/redfish/v1/x", status: http.StatusUnauthorized, header: http.Header{}, body: []byte(`{"error":{"message":"unknown token t0k3n-of-this-session"}}`)})
	if text := f.Error() + strings.Join(f.EvidenceLines(), " "); strings.Contains(text, "t0k3n") || !k.expired {
		t.Error(text)
	}
}

// The account whose password is to be changed is where the BMC says, also when its
// name is the password that the factory set, and is redacted in the fault.
func TestTheAccountThatIsNamedLikeItsPassword(t *testing.T) {
	k := fuzzConn(genericFamily())
	k.password = plan.NewSecret("admin", "")
	body := `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.18.0.PasswordChangeRequired","Message":"m","MessageArgs":["/redfish/v1/AccountService/Accounts/admin"]}]}}`
	ans := &answer{method: http.MethodGet, path: "/redfish/v1/Systems", status: http.StatusForbidden, header: http.Header{}, body: []byte(body)}
	if f := k.judge(ans); !isCode(f, plan.CodeBMCPasswordChange) || k.forcedAt != "/redfish/v1/AccountService/Accounts/admin" || strings.Contains(f.Evidence["message_args"], "admin") {
		t.Errorf("%q %v", k.forcedAt, f)
	}
}

// Settings whose values are lists or objects are compared, not tripped over.
func TestSettingsThatAreLists(t *testing.T) {
	doc := func(v string) document {
		d, _ := parse("/x", "", []byte(`{"Attributes":{"A":`+v+`}}`))
		return d
	}
	for _, v := range []string{`[]`, `{}`, `[{"a":1}]`} {
		b := bios{live: doc(v), pending: doc(v), full: true}
		if _, waits := b.waits("A"); waits || !b.sameAs(map[string]any{"A": 1})(doc(v)) || len(b.foreign(nil, registry{})) != 0 {
			t.Errorf("%s is not equal to itself", v)
		}
		b.pending = doc(`["other"]`)
		if _, waits := b.waits("A"); !waits || b.sameAs(map[string]any{"A": 1})(b.pending) {
			t.Errorf("%s is equal to another", v)
		}
	}
}

// A disk whose name ends with twelve digits of its own is no NIC, and is not
// switched off as one.
func TestDisksWithNumbers(t *testing.T) {
	for name, want := range map[string]bool{
		"UEFI OS (SAMSUNG 0025385B1150)": false, "Micron_7450 2250346DB9A1": false,
		"(B26/D0/F0) UEFI PXE IPv4 Nvidia Network Adapter - 02:00:5E:00:01:0A - 02005E00010A": true,
		"UEFI PXEv4 (MAC:02005E000115)": true, "X550 - 02-00-5E-00-01-0A": true,
	} {
		for _, f := range []family{amiFamily(), genericFamily(), supermicroFamily()} {
			if got := fuzzConn(f).isNetwork(bootOption{document: document{top: map[string]any{"DisplayName": name}}}); got != want {
				t.Errorf("%s: %q: %v", f.name, name, got)
			}
		}
	}
}
