package secrets

import (
	"errors"
	"os"
	"regexp"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// callerSecret reads a credential that enroll itself shows to the vault, from a
// file or else from an environment variable. what completes "holds …" and
// "which should hold …". attr is the attribute that could name another variable.
func callerSecret(o Options, variable, file, what, attr string) (string, error) {
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			code := plan.CodeConfigInvalid
			if errors.Is(err, os.ErrNotExist) {
				code = plan.CodeSecretMissing
			}
			return "", plan.NewFault(code, "the file with %s cannot be read", what).Because(err)
		}
		return strings.TrimSpace(string(raw)), nil
	}
	value, _ := o.Getenv(variable)
	if value = strings.TrimSpace(value); value == "" {
		name := shownVariable(variable, attr)
		return "", plan.NewFault(plan.CodeSecretMissing, "the environment variable %s, which should hold %s, is not set", name, what).
			WithHint("Set it, or name another variable with %s in the secrets block.", attr)
	}
	return value, nil
}

// shownVariable is the name of a variable for messages. One that is not written as
// such names are may be the credential itself, by mistake.
func shownVariable(name, attr string) string {
	if usualVariable.MatchString(name) {
		return name
	}
	return "that " + attr + " names"
}

var usualVariable = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// callerToken is a callerSecret that travels in a header: printable ASCII.
func callerToken(o Options, variable, file, what, attr string) (plan.Secret, error) {
	text, err := callerSecret(o, variable, file, what, attr)
	if err != nil {
		return plan.Secret{}, err
	}
	place := "the environment variable " + shownVariable(variable, attr)
	if file != "" {
		place = "the file " + file
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
		return plan.Secret{}, plan.NewFault(plan.CodeSecretInvalid, "%s holds something that cannot be %s", place, what)
	}
	token := plan.NewSecret(text, "")
	o.Learn(token)
	return token, nil
}
