// Package host runs an HTTP server as a process: it listens, ends TLS, hears signals and drains. It does not know what is served.
package host

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Config says how to run.
type Config struct {
	HTTP         *http.Server
	Listener     net.Listener
	Certificates *Certificates // nil: no TLS
	Drain        func()        // makes waiting calls answer at once
	DrainTimeout time.Duration // for calls under way once Drain was called
	Reload       func()        // on SIGHUP
	Log          *slog.Logger
}

// Run serves until ctx ends or the process is told to stop: the first signal drains, a second one stops at once (U162).
func Run(ctx context.Context, cfg Config) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if cfg.Certificates != nil {
		cfg.Listener = tls.NewListener(cfg.Listener, cfg.Certificates.Config())
	}
	served := make(chan error, 1)
	go func() { served <- cfg.HTTP.Serve(cfg.Listener) }()
	for {
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
			return cfg.stop(signals, served)
		case got := <-signals:
			if got != syscall.SIGHUP {
				cfg.Log.Info("stopping", "signal", got.String(), "drain_timeout", cfg.DrainTimeout.String())
				return cfg.stop(signals, served)
			}
			cfg.reload()
		}
	}
}

func (cfg Config) reload() {
	if cfg.Certificates != nil {
		if err := cfg.Certificates.Load(); err != nil {
			cfg.Log.Error("the certificate cannot be read again; the old one stays", "error", err)
		}
	}
	cfg.Reload()
}

// stop lets calls under way end, for as long as DrainTimeout and until the next signal.
func (cfg Config) stop(signals <-chan os.Signal, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case got := <-signals:
				if got != syscall.SIGHUP {
					cancel()
				}
			case <-done:
				return
			}
		}
	}()
	cfg.Drain()
	err := cfg.HTTP.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		cfg.Log.Warn("calls were cut off")
		err = cfg.HTTP.Close()
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		return errors.Join(err, serveErr)
	}
	return err
}

// IsLoopback tells whether an address can be reached from this host alone.
func IsLoopback(address string) bool {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
