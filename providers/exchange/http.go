package exchange

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Describe tells the recorder about a request.
type Describe struct {
	System string
	// Device names the device that a request is about; nil or "" when unknown.
	Device func(*http.Request) string
	// Mutating overrides the rule that everything but GET, HEAD and OPTIONS
	// writes; a session login, for one, does not.
	Mutating func(*http.Request) bool
}

// Wrap records every request to next and applies the injected faults.
func (r *Recorder) Wrap(d Describe, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rec := Record{System: d.System, Method: req.Method, Path: req.URL.RequestURI(), Mutating: writes(req.Method)}
		if d.Device != nil {
			rec.Device = d.Device(req)
		}
		if d.Mutating != nil {
			rec.Mutating = d.Mutating(req)
		}
		if rec.Mutating {
			// What cannot be read is what the client did not send: the handler meets the
			// same end.
			rec.Body, _ = io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(rec.Body))
		}
		rec, fault := r.Begin(rec)
		if fault == nil {
			sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			next.ServeHTTP(sw, req)
			rec.Status = sw.status
			r.End(rec)
			return
		}
		rec.Status = serveFault(w, req, fault, next)
		r.End(rec)
	})
}

func writes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// serveFault answers as the fault says and gives the status that left, 0 when
// none did.
func serveFault(w http.ResponseWriter, req *http.Request, f *Fault, next http.Handler) int {
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	switch f.Kind {
	case Delay:
		select {
		case <-time.After(f.Delay):
		case <-req.Context().Done():
		}
		sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(sw, req)
		return sw.status
	case Late:
		<-time.After(f.Delay)
		sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(sw, req)
		return sw.status
	case Stall:
		_, _ = io.Copy(io.Discard, req.Body) // net/http looks whether the client is there only after the body
		<-req.Context().Done()
		return 0
	case Status:
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
		return f.Status
	case Garbage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>It works!</body></html>"))
		return http.StatusOK
	case HalfBody, LostReply:
		buf := &bufferWriter{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(buf, req)
		if f.Kind == HalfBody {
			for k, v := range buf.header {
				w.Header()[k] = v
			}
			w.Header().Set("Content-Length", strconv.Itoa(buf.body.Len()))
			w.WriteHeader(buf.status)
			_, _ = w.Write(buf.body.Bytes()[:buf.body.Len()/2])
			_ = http.NewResponseController(w).Flush() // else the half would be lost with the connection
		}
		cut(w)
		return 0
	case Reset:
		cut(w)
		return 0
	}
	panic("exchange: unknown fault kind " + string(f.Kind))
}

// cut resets the connection under an answer.
func cut(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type bufferWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *bufferWriter) Header() http.Header         { return w.header }
func (w *bufferWriter) WriteHeader(status int)      { w.status = status }
func (w *bufferWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
