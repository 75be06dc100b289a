// Package host runs an HTTP server as a process: it listens, terminates TLS, handles signals and drains. It does not know what is
// served.
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

// Config configures Run.
type Config struct {
	HTTP         *http.Server
	Listener     net.Listener
	Beside       []Served         // further servers with their own listeners
	Certificates *Certificates    // nil: no TLS
	Drain        func()           // makes waiting calls return
	DrainTimeout time.Duration    // for pending calls after Drain
	Reload       func()           // on SIGHUP
	Ready        func()           // called once requests are served and signals are handled; may be nil
	Signals      <-chan os.Signal // nil: signals of the process
	Log          *slog.Logger
}

// Served is a server with its listener.
type Served struct {
	HTTP     *http.Server
	Listener net.Listener
}

// Run serves until ctx ends or the process gets a signal: the first signal drains, a second one stops at once (U162).
func Run(ctx context.Context, cfg Config) error {
	if cfg.Signals == nil {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(signals)
		cfg.Signals = signals
	}
	all := append([]Served{{cfg.HTTP, cfg.Listener}}, cfg.Beside...)
	served := make(chan error, len(all))
	for _, one := range all {
		if cfg.Certificates != nil {
			one.Listener = tls.NewListener(one.Listener, cfg.Certificates.Config())
		}
		go func() { served <- one.HTTP.Serve(one.Listener) }()
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}
	for {
		select {
		case err := <-served:
			return errors.Join(err, cut(all), collect(served, len(all)-1))
		case <-ctx.Done():
			return cfg.stop(all, served)
		case got := <-cfg.Signals:
			if got != syscall.SIGHUP {
				cfg.Log.Info("stopping", "signal", got.String(), "drain_timeout", cfg.DrainTimeout.String())
				return cfg.stop(all, served)
			}
			cfg.reload()
		}
	}
}

// cut closes servers immediately.
func cut(all []Served) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.HTTP.Close())
	}
	return errors.Join(errs...)
}

// collect waits for n servers to end; http.ErrServerClosed is not an error.
func collect(served <-chan error, n int) error {
	var errs []error
	for range n {
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (cfg Config) reload() {
	if cfg.Certificates != nil {
		if err := cfg.Certificates.Load(); err != nil {
			cfg.Log.Error("the certificate cannot be reloaded; the old one stays in use", "error", err)
		}
	}
	cfg.Reload()
}

// stop waits for pending calls, at most DrainTimeout and until the next signal.
func (cfg Config) stop(all []Served, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case got := <-cfg.Signals:
				if got != syscall.SIGHUP {
					cancel()
				}
			case <-done:
				return
			}
		}
	}()
	cfg.Drain()
	var errs []error
	for _, one := range all {
		errs = append(errs, one.HTTP.Shutdown(ctx))
	}
	err := errors.Join(errs...)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		cfg.Log.Warn("pending calls were cut off")
		err = cut(all)
	}
	return errors.Join(err, collect(served, len(all)))
}

// IsLoopback reports whether an address can be reached only from this host.
func IsLoopback(address string) bool {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
