package ironic

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/enroll-dev/enroll/plan"
)

// CloudFiles are the texts of clouds.yaml and secure.yaml that a vault holds for
// one ironic block. The zero value: the block's files, else those of the usual
// places.
type CloudFiles struct {
	Clouds, Secure plan.Secret
}

// parseCloud reads the block's cloud with gophercloud's own parser, and tells
// Learn what in it is secret. The parser's errors can quote a value of the file,
// so only those are passed on that are about the file itself.
func (s *service) parseCloud() (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, *plan.Fault) {
	options, place, f := s.cloudSources()
	if f != nil {
		return gophercloud.AuthOptions{}, gophercloud.EndpointOpts{}, nil, f
	}
	auth, endpoint, trust, err := clouds.Parse(append(options, clouds.WithCloudName(s.settings.Cloud))...)
	if err != nil {
		f := plan.NewFault(plan.CodeConfigInvalid, "the entry %q of clouds.yaml, which ironic %q names, cannot be used", s.settings.Cloud, s.settings.Name).With("read from", place)
		var none clouds.ErrFileNotFound
		var path *fs.PathError
		switch {
		case errors.As(err, &none), errors.As(err, &path):
			f = f.Because(err)
		case err.Error() == fmt.Sprintf("cloud %q not found in clouds.yaml", s.settings.Cloud): // it has no type
			f = f.Because(errors.New("there is no such entry"))
		default:
			f = f.WithHint("Check that it is YAML in the form of OpenStack's clients, with clouds at the top, and that the certificate files it names can be read.")
		}
		return gophercloud.AuthOptions{}, gophercloud.EndpointOpts{}, nil, f
	}
	if learn := s.client.opt.Learn; learn != nil {
		for _, secret := range []string{auth.Password, auth.ApplicationCredentialSecret, auth.TokenID, auth.Passcode} {
			if secret != "" {
				learn(plan.NewSecret(secret, ""))
			}
		}
	}
	return auth, endpoint, trust, nil
}

// cloudSources says where the parser reads, and where that is for a message.
// What the block names is read here: the parser passes over a secure.yaml that
// is not there, and a password that is missing shows much later.
func (s *service) cloudSources() (options []clouds.ParseOption, place string, f *plan.Fault) {
	given := s.client.opt.Clouds[s.settings.Name]
	place = "the usual places"
	switch {
	case given.Clouds.Reveal() != "":
		place = s.settings.Clouds.String()
		options = append(options, clouds.WithCloudsYAML(strings.NewReader(given.Clouds.Reveal())))
	case s.settings.CloudsFile != "":
		place = s.settings.CloudsFile
		if _, err := os.Stat(place); err != nil {
			return nil, "", s.noCloudFile("clouds_file", err)
		}
		options = append(options, clouds.WithLocations(place)) // and secure.yaml beside it
	case s.client.opt.CloudsFile != "":
		place = s.client.opt.CloudsFile
		options = append(options, clouds.WithLocations(place))
	}
	switch {
	case given.Secure.Reveal() != "":
		place += " and " + s.settings.Secure.String()
		options = append(options, clouds.WithSecureYAML(strings.NewReader(given.Secure.Reveal())))
	case s.settings.SecureFile != "":
		place += " and " + s.settings.SecureFile
		text, err := os.ReadFile(s.settings.SecureFile)
		if err != nil {
			return nil, "", s.noCloudFile("secure_file", err)
		}
		options = append(options, clouds.WithSecureYAML(strings.NewReader(string(text))))
	}
	return options, place, nil
}

func (s *service) noCloudFile(attr string, err error) *plan.Fault {
	return plan.NewFault(plan.CodeConfigInvalid, "the %s of ironic %q cannot be read", attr, s.settings.Name).Because(err)
}
