package bmctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// Options of a fleet.
type Options struct {
	// Recorder sees every request and injects faults; nil makes one.
	Recorder *exchange.Recorder
	// Now is the clock of sessions, lockouts and late effects; nil is the real one.
	Now func() time.Time
	// Addresses are further IP addresses for which the certificate is good,
	// beside 127.0.0.1.
	Addresses []net.IP
	// Pipes opens no port: connections are pipes in memory that Dial makes, so that
	// a test can live in a synctest bubble, where time-outs need no patience.
	Pipes bool
}

// Server is a fleet of BMCs.
type Server struct {
	opt  Options
	cert tls.Certificate
	ca   []byte

	mu   sync.Mutex
	bmcs map[string]*BMC
}

// New makes an empty fleet.
func New(opt Options) *Server {
	if opt.Now == nil {
		opt.Now = time.Now //nolint:forbidigo // the default clock
	}
	if opt.Recorder == nil {
		opt.Recorder = exchange.NewRecorder(opt.Now, nil)
	}
	s := &Server{opt: opt, bmcs: map[string]*BMC{}}
	s.cert, s.ca = certificate(opt.Addresses)
	return s
}

// Recorder gives the fleet's recorder.
func (s *Server) Recorder() *exchange.Recorder { return s.opt.Recorder }

// CA is the certificate that signs itself, in PEM, as a ca_file wants it.
func (s *Server) CA() []byte { return s.ca }

// BMC finds a BMC by the name of its machine; nil when there is none.
func (s *Server) BMC(name string) *BMC {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bmcs[name]
}

// Close ends all BMCs.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bmcs {
		b.stop()
	}
}

// Add starts the BMC of a machine. It panics when the machine makes no sense or
// no port is free, as httptest does.
func (s *Server) Add(m Machine) *BMC {
	m = m.withDefaults()
	b := newBMC(s, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bmcs[m.Name] != nil {
		panic("bmctest: two machines called " + m.Name)
	}
	s.bmcs[m.Name] = b
	if s.opt.Pipes {
		b.URL = fmt.Sprintf("https://127.0.0.1:%d", len(s.bmcs))
	} else {
		b.reserve(0)
	}
	if !m.Unreachable {
		b.start()
	}
	return b
}

// SetReachable opens or closes the BMC's port. While it is closed, connections
// are refused and those that were open are cut.
func (b *BMC) SetReachable(reachable bool) {
	b.listening.Lock()
	defer b.listening.Unlock()
	if reachable == (b.http != nil) {
		return
	}
	if reachable {
		b.start()
		return
	}
	b.stopServing()
	if !b.server.opt.Pipes {
		b.reserve(b.port)
	}
}

// reserve binds the port without listening: connections to it are refused and
// no other program gets it.
func (b *BMC) reserve(port int) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		panic("bmctest: port " + strconv.Itoa(port) + ": " + err.Error())
	}
	b.reserved = fd
	if port == 0 {
		name, err := syscall.Getsockname(fd)
		if err != nil {
			panic("bmctest: " + err.Error())
		}
		b.port = name.(*syscall.SockaddrInet4).Port
		b.URL = fmt.Sprintf("https://127.0.0.1:%d", b.port)
	}
}

// start listens and serves.
func (b *BMC) start() {
	listener := tls.NewListener(b.listen(), &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return b.certificate(), nil }, MinVersion: tls.VersionTLS12})
	b.http = &http.Server{
		Handler:           b.server.opt.Recorder.Wrap(b.describe(), http.HandlerFunc(b.serve)),
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // refused certificates are the client's affair
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	server := b.http
	b.serving.Go(func() { _ = server.Serve(listener) }) // it ends with ErrServerClosed
}

// listen opens the reserved port, or takes pipes.
func (b *BMC) listen() net.Listener {
	if b.server.opt.Pipes {
		b.pipes = newPipes()
		return b.pipes
	}
	if err := syscall.Listen(b.reserved, 128); err != nil {
		panic("bmctest: " + err.Error())
	}
	if err := syscall.SetNonblock(b.reserved, true); err != nil {
		panic("bmctest: " + err.Error())
	}
	file := newFile(b.reserved)
	plain, err := net.FileListener(file)
	_ = file.Close() // the listener has a descriptor of its own
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	b.reserved = -1
	return plain
}

// certificate is the fleet's, or the one that the BMC made for itself.
func (b *BMC) certificate() *tls.Certificate {
	b.certs.Lock()
	defer b.certs.Unlock()
	if b.cert != nil {
		return b.cert
	}
	return &b.server.cert
}

// renewCertificate lets the BMC make itself a certificate. Connections that are
// open go on.
func (b *BMC) renewCertificate() {
	made, _ := certificate(b.server.opt.Addresses)
	b.certs.Lock()
	defer b.certs.Unlock()
	b.cert = &made
}

// RenewCertificate lets the BMC make itself a certificate, as somebody else's
// reset would.
func (b *BMC) RenewCertificate() { b.renewCertificate() }

// Fingerprint names the certificate that is shown, as pins do.
func (b *BMC) Fingerprint() string {
	sum := sha256.Sum256(b.certificate().Certificate[0])
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (b *BMC) stopServing() {
	if b.http != nil {
		_ = b.http.Close()
		b.serving.Wait()
		b.http = nil
	}
}

func (b *BMC) stop() {
	b.listening.Lock()
	defer b.listening.Unlock()
	b.stopServing()
	if b.reserved >= 0 {
		_ = syscall.Close(b.reserved)
		b.reserved = -1
	}
}

// certificate makes a key and a certificate that signs itself.
func certificate(more []net.IP) (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bmctest"},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2049, 12, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
		IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1)}, more...), DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic("bmctest: " + err.Error())
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
