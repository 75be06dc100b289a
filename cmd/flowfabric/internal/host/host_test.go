package host

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestU124_only_loopback_is_within_this_host(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:7433": true, "localhost:7433": true, "[::1]:7433": true, "127.9.9.9:1": true,
		"0.0.0.0:7433": false, ":7433": false, "[::]:7433": false, "10.0.0.1:1": false, "example.com:1": false, "nonsense": false,
	} {
		if got := IsLoopback(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestU126_a_new_certificate_is_used_without_a_restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certs := &Certificates{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, certs, 1)
	if err := certs.Load(); err != nil {
		t.Fatal(err)
	}
	if end, err := certs.Expiry(); err != nil || end.Before(time.Now()) {
		t.Error(end, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	drained, done := false, make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			HTTP:     &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 5 * time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)},
			Signals:  make(chan os.Signal), // those of other tests are not for this one
			Listener: listener, Certificates: certs, Drain: func() { drained = true }, DrainTimeout: 5 * time.Minute, Log: slog.New(slog.DiscardHandler),
		})
	}()
	if got := serial(t, listener.Addr().String()); got != 1 {
		t.Error("serial", got)
	}
	writePair(t, certs, 2)
	certs.mu.Lock()
	certs.looked = time.Time{} // as if a second had passed
	certs.mu.Unlock()
	if got := serial(t, listener.Addr().String()); got != 2 {
		t.Error("the old certificate is still used, serial", got)
	}
	cancel()
	if err := <-done; err != nil || !drained {
		t.Error(err, drained)
	}
}

func TestU126_a_client_without_TLS_1_2_is_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certs := &Certificates{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, certs, 1)
	if err := certs.Load(); err != nil {
		t.Fatal(err)
	}
	for version, taken := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		near, far := net.Pipe()
		go func() {
			_ = tls.Server(far, certs.Config()).HandshakeContext(t.Context())
			_ = far.Close()
		}()
		client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err := client.HandshakeContext(t.Context()); (err == nil) != taken {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		_ = near.Close()
	}
}

// serial is the number of the certificate that a server shows.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// writePair writes a certificate with its key; its files are newer than those before.
func writePair(t *testing.T, c *Certificates, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: cert}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(pem.EncodeToMemory(block)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(number) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}
