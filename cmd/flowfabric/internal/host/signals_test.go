package host

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// hosted is a server under way whose signals the test sends.
type hosted struct {
	signals chan os.Signal
	drained chan struct{}
	reloads chan struct{}
	ended   chan error
	address string
}

func listening(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func hosting(t *testing.T, cfg Config, handler http.Handler) *hosted {
	t.Helper()
	h := &hosted{make(chan os.Signal), make(chan struct{}), make(chan struct{}, 1), make(chan error, 1), ""}
	cfg.Listener = listening(t)
	h.address = cfg.Listener.Addr().String()
	cfg.HTTP = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	cfg.Signals, cfg.Log, cfg.DrainTimeout = h.signals, slog.New(slog.DiscardHandler), time.Hour
	cfg.Drain, cfg.Reload = func() { close(h.drained) }, func() { h.reloads <- struct{}{} }
	go func() { h.ended <- Run(t.Context(), cfg) }()
	return h
}

// get asks in a goroutine and tells how that ended: the body, or the error.
func get(t *testing.T, address string) <-chan string {
	t.Helper()
	answer := make(chan string, 1)
	transport := &http.Transport{DisableKeepAlives: true}
	go func() {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address, nil)
		if err != nil {
			answer <- err.Error()
			return
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			answer <- "error"
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	return answer
}

func TestU162_the_first_signal_lets_calls_end_and_no_new_ones_begin(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h := hosting(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "whole")
	}))
	answer := get(t, h.address)
	<-entered
	h.signals <- syscall.SIGTERM
	<-h.drained
	for { // the listener is closed a moment later
		conn, err := net.Dial("tcp", h.address)
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(leave)
	if got, err := <-answer, <-h.ended; got != "whole" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestU162_a_second_signal_stops_at_once(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	h := hosting(t, Config{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done() // as long as the client is there
	}))
	answer := get(t, h.address)
	<-entered
	h.signals <- syscall.SIGTERM
	<-h.drained
	h.signals <- syscall.SIGHUP // is none that stops
	h.signals <- os.Interrupt
	if got, err := <-answer, <-h.ended; got != "error" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestU162_SIGHUP_reads_the_certificate_again(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certs := &Certificates{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, certs, 1)
	if err := certs.Load(); err != nil {
		t.Fatal(err)
	}
	certs.looked = time.Now().Add(time.Hour) // so that only SIGHUP looks
	h := hosting(t, Config{Certificates: certs}, http.NotFoundHandler())
	writePair(t, certs, 2)
	if got := serial(t, h.address); got != 1 {
		t.Error("serial", got)
	}
	h.signals <- syscall.SIGHUP
	<-h.reloads
	if got := serial(t, h.address); got != 2 {
		t.Error("the old certificate is still used, serial", got)
	}
	if err := os.WriteFile(certs.CertFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.signals <- syscall.SIGHUP
	<-h.reloads
	if got := serial(t, h.address); got != 2 {
		t.Error("a bad file replaced a good certificate, serial", got)
	}
	h.signals <- syscall.SIGTERM
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

func TestU126_a_client_needs_a_certificate_of_the_authorities_that_are_named(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := &Certificates{CertFile: filepath.Join(dir, "client.pem"), KeyFile: filepath.Join(dir, "client-key.pem")}
	certs := &Certificates{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"), ClientCAFile: client.CertFile}
	writePair(t, client, 3)
	writePair(t, certs, 1)
	if err := errors.Join(client.Load(), certs.Load()); err != nil {
		t.Fatal(err)
	}
	h := hosting(t, Config{Certificates: certs}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, shown := range [][]tls.Certificate{nil, {*client.current}} {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, Certificates: shown}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != (shown != nil) {
			t.Errorf("with %d certificates: %v", len(shown), err)
		}
	}
	h.signals <- syscall.SIGTERM
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

func TestU196_what_is_served_beside_ends_with_the_rest(t *testing.T) {
	t.Parallel()
	beside := listening(t)
	h := hosting(t, Config{Beside: []Served{{Listener: beside, HTTP: &http.Server{
		ReadHeaderTimeout: 5 * time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "beside") }),
	}}}}, http.NotFoundHandler())
	if got := <-get(t, beside.Addr().String()); got != "beside" {
		t.Error(got)
	}
	h.signals <- syscall.SIGTERM
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", beside.Addr().String()); err == nil {
		t.Error("it is still served")
	}
}

func TestU180_a_listener_that_breaks_ends_everything(t *testing.T) {
	t.Parallel()
	beside := listening(t)
	_ = beside.Close()
	h := hosting(t, Config{Beside: []Served{{Listener: beside, HTTP: &http.Server{ReadHeaderTimeout: 5 * time.Minute}}}}, http.NotFoundHandler())
	if err := <-h.ended; err == nil || !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestU162_who_is_told_that_the_server_is_ready_may_stop_it_at_once(t *testing.T) {
	t.Parallel()
	drained := false
	err := Run(t.Context(), Config{
		HTTP: &http.Server{ReadHeaderTimeout: 5 * time.Minute}, Listener: listening(t), Log: slog.New(slog.DiscardHandler), DrainTimeout: time.Hour,
		Drain: func() { drained = true },
		Ready: func() { // a signal without a handler would end this process
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(syscall.SIGTERM)
			}
			if err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil || !drained {
		t.Errorf("drained: %t, %v", drained, err)
	}
}
