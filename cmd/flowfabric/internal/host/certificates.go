package host

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificates are the TLS files, which are reloaded when they change (U126).
type Certificates struct {
	CertFile, KeyFile string
	ClientCAFile      string // "": clients need no certificate

	mu      sync.Mutex
	current *tls.Certificate
	clients *x509.CertPool
	changed time.Time // modification time of the files that current was read from
	looked  time.Time
}

// lookEvery is the minimum interval between two checks of the files.
const lookEvery = time.Second

// Load reads the files. If that fails, the certificate in use stays.
func (c *Certificates) Load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load()
}

func (c *Certificates) load() error {
	changed := c.newest()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return err
	}
	var clients *x509.CertPool
	if c.ClientCAFile != "" {
		text, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			return err
		}
		if clients = x509.NewCertPool(); !clients.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s has no certificate", c.ClientCAFile)
		}
	}
	c.current, c.clients, c.changed = &pair, clients, changed
	return nil
}

// newest is the latest modification time of the files.
func (c *Certificates) newest() (at time.Time) {
	for _, path := range []string{c.CertFile, c.KeyFile, c.ClientCAFile} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// Expiry is when the certificate expires.
func (c *Certificates) Expiry() (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.current.Leaf == nil {
		return time.Time{}, errors.New("no certificate is loaded")
	}
	return c.current.Leaf.NotAfter, nil
}

// Config is the TLS configuration of a listener: TLS 1.2 or newer, with the files as they are when a client connects.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.now(), nil
		},
	}
}

func (c *Certificates) now() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if c.newest().After(c.changed) {
			_ = c.load() // while files are being replaced they may not match; the next connection tries again
		}
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*c.current}, NextProtos: []string{"h2", "http/1.1"}}
	if c.clients != nil {
		cfg.ClientCAs, cfg.ClientAuth = c.clients, tls.RequireAndVerifyClientCert
	}
	return cfg
}
