package bmc

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"os"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// trust says which certificates are accepted: those of an authority, and those
// that are pinned.
type trust struct {
	roots    *x509.CertPool // nil: those of the machine
	pins     map[string]bool
	insecure bool // the site file asks for it and gives a reason
	relearn  bool
	lowest   uint16
	ciphers  []uint16 // nil: those of Go
}

func newTrust(s plan.BMCSettings) (trust, *plan.Fault) {
	t := trust{insecure: s.Insecure, relearn: s.RelearnPins, pins: map[string]bool{}, lowest: tls.VersionTLS12}
	if s.MinTLSVersion == "1.3" {
		t.lowest = tls.VersionTLS13
	}
	for _, pin := range s.Pins {
		t.pins[pin] = true
	}
	if len(s.Ciphers) > 0 {
		// Naming one that Go no longer offers by itself must not switch the others off.
		for _, c := range tls.CipherSuites() {
			t.ciphers = append(t.ciphers, c.ID)
		}
		byName := map[string]uint16{}
		for _, c := range tls.InsecureCipherSuites() {
			byName[c.Name] = c.ID
		}
		for _, name := range s.Ciphers {
			id, ok := byName[name]
			if !ok {
				return t, plan.NewFault(plan.CodeConfigInvalid, "there is no old cipher suite %q to add in the bmc block", name)
			}
			t.ciphers = append(t.ciphers, id)
		}
	}
	if s.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		return t, plan.NewFault(plan.CodeConfigInvalid, "ca_file %s of the bmc block cannot be read", s.CAFile).Because(err)
	}
	t.roots = x509.NewCertPool()
	if !t.roots.AppendCertsFromPEM(pem) {
		return t, plan.NewFault(plan.CodeConfigInvalid, "ca_file %s of the bmc block holds no certificate", s.CAFile)
	}
	return t, nil
}

// config is the TLS side of one BMC.
func (t trust) config(k *conn, host string) *tls.Config {
	c := &tls.Config{MinVersion: t.lowest, RootCAs: t.roots, CipherSuites: t.ciphers}
	if t.insecure || len(t.pins) > 0 {
		c.InsecureSkipVerify = true // with pins, VerifyConnection checks
	}
	c.VerifyConnection = func(cs tls.ConnectionState) error { return k.shown.check(t, cs, host) }
	return c
}

// shown is what one BMC has shown of certificates in this run.
type shown struct {
	mu      sync.Mutex // connections are opened in goroutines of their own
	last    string     // fingerprint of the last one that was accepted
	pinned  bool       // it was accepted because of a pin
	renewed bool       // enroll reset or renamed the BMC, which may make it a new one
	learned string     // the one that was accepted after that
}

var errNoCertificate = errors.New("no certificate was shown")

// check accepts a pinned certificate, one of an authority, and where the site
// file says so the one that a pinned BMC makes for itself after enroll has reset
// or renamed it.
func (s *shown) check(t trust, cs tls.ConnectionState, host string) error {
	if len(cs.PeerCertificates) == 0 {
		return errNoCertificate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	leaf := cs.PeerCertificates[0]
	print := fingerprint(leaf)
	pinned := t.pins[print] || print == s.learned
	if !t.insecure && len(t.pins) > 0 && !pinned {
		between := x509.NewCertPool()
		for _, c := range cs.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: between, DNSName: host})
		switch {
		case err == nil:
		case t.relearn && s.pinned && s.renewed:
			s.learned, pinned = print, true
		default:
			return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
		}
	}
	if s.renewed && print != s.last {
		s.renewed = false // once
	}
	s.last, s.pinned = print, pinned
	return nil
}

// renew tells that the BMC may make itself a new certificate now.
func (s *shown) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed = true
}

// print is the fingerprint of the certificate in use, "" without TLS.
func (s *shown) print() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// fingerprint is how pins name a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// refusedPrint is the fingerprint of the certificate that an error refuses, "" if
// it refuses none: people can compare it and pin it.
func refusedPrint(err error) string {
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 {
		return fingerprint(verify.UnverifiedCertificates[0])
	}
	return ""
}
