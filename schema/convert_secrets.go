package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// secretsSettings builds the plain struct and checks that there is one way to
// the credential that enroll shows.
func (r *reporter) secretsSettings(b *rawBlock) plan.SecretsSettings {
	s := plan.SecretsSettings{Backend: b.spec.variant}
	switch s.Backend {
	case "env":
		s.Prefix = get[string](b, "prefix")
	case "vault":
		s.URL, s.Mount, s.Prefix, s.Namespace = baseURL(b), get[string](b, "mount"), get[string](b, "prefix"), get[string](b, "namespace")
		s.TokenEnv, s.TokenFile = get[string](b, "token_env"), get[string](b, "token_file")
		s.CAFile, s.Timeout = get[string](b, "ca_file"), get[time.Duration](b, "timeout")
		for _, n := range b.named("app_role") {
			s.AppRole = &plan.VaultAppRole{
				Mount: get[string](n, "mount"), RoleID: get[string](n, "role_id"),
				SecretIDEnv: get[string](n, "secret_id_env"), SecretIDFile: get[string](n, "secret_id_file"),
			}
			r.atMostOne(n, "secret_id_env", "secret_id_file")
		}
		for _, n := range b.named("kubernetes") {
			s.Kubernetes = &plan.VaultKubernetes{Mount: get[string](n, "mount"), Role: get[string](n, "role"), TokenFile: get[string](n, "token_file")}
		}
		r.atMostOne(b, "token_env", "token_file", "app_role", "kubernetes")
	case "onepassword":
		s.URL, s.Vault = baseURL(b), get[string](b, "vault")
		s.TokenEnv, s.TokenFile = get[string](b, "token_env"), get[string](b, "token_file")
		s.CAFile, s.Timeout = get[string](b, "ca_file"), get[time.Duration](b, "timeout")
		r.atMostOne(b, "token_env", "token_file")
	case "age":
		s.File = get[string](b, "file")
		s.IdentityEnv, s.IdentityFile = get[string](b, "identity_env"), get[string](b, "identity_file")
		r.atMostOne(b, "identity_env", "identity_file")
	case "command":
		s.Argv, s.Timeout = slices.Clone(get[[]string](b, "argv")), get[time.Duration](b, "timeout")
		if a := b.attr("argv"); a != nil && len(s.Argv) > 0 && strings.Contains(s.Argv[0], "{item}") {
			r.error(listPlaces(a.expr, len(s.Argv))[0], "Unsuitable value", "The program itself cannot depend on the item. Write {item} into one of its arguments.")
		}
	}
	return s
}

// checkClouds wants one place of each file, and a cloud to look for in it.
func (r *reporter) checkClouds(b *rawBlock) {
	r.atMostOne(b, "clouds", "clouds_file")
	r.atMostOne(b, "secure", "secure_file")
	for _, name := range []string{"clouds", "clouds_file", "secure", "secure_file"} {
		a := b.attr(name)
		switch {
		case a == nil:
		case b.attr("endpoint") != nil:
			r.error(a.at, "Contradiction", "%s has no effect with endpoint, which needs no login. Remove it, or write cloud instead of endpoint.", quote(name))
		case strings.HasPrefix(name, "secure") && b.attr("clouds") == nil && b.attr("clouds_file") == nil && !b.meant["clouds"] && !b.meant["clouds_file"]:
			r.error(a.at, "Missing attribute", "%s completes a clouds.yaml that the block names. Write beside it: clouds = %s, or: clouds_file = %s", quote(name), b.spec.attribute("clouds").example, b.spec.attribute("clouds_file").example)
		}
	}
}

// atMostOne refuses the second and later of some attributes and blocks that say
// the same thing in different ways.
func (r *reporter) atMostOne(b *rawBlock, names ...string) {
	first := ""
	for _, name := range names {
		at, there := b.at, len(b.named(name)) > 0
		if there {
			at = b.named(name)[0].at
		}
		if a := b.attr(name); a != nil {
			at, there = a.at, true
		}
		switch {
		case there && first != "":
			r.error(at, "Contradiction", "%s and %s say the same thing in two ways. Remove one of the two.", quote(first), quote(name))
		case there:
			first = name
		}
	}
}

// secretsPaths are the files of the block, for resolvePaths.
func secretsPaths(s *plan.SecretsSettings) []*string {
	paths := []*string{&s.CAFile, &s.TokenFile, &s.File, &s.IdentityFile}
	if s.AppRole != nil {
		paths = append(paths, &s.AppRole.SecretIDFile)
	}
	if s.Kubernetes != nil {
		paths = append(paths, &s.Kubernetes.TokenFile)
	}
	if len(s.Argv) > 0 && strings.Contains(s.Argv[0], "/") { // else it is looked for in PATH
		paths = append(paths, &s.Argv[0])
	}
	return paths
}
