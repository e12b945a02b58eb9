package secretstest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// listen serves a handler on an address, over TLS when there is a certificate. It
// panics when it cannot listen, as httptest does. stop ends the server and its
// connections.
func listen(addr string, certificate *tls.Certificate, h http.Handler) (url string, stop func()) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		panic(fmt.Sprintf("secretstest: cannot listen on %s: %v", addr, err))
	}
	url = "http://" + listener.Addr().String()
	if certificate != nil {
		url = "https://" + listener.Addr().String()
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with stop
	}()
	return url, func() {
		_ = server.Close()
		<-done
	}
}
