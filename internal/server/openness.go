package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// openCheck is how long a server that requires no credentials caches that there is no admin key. Another process may have made
// one.
const openCheck = 2 * time.Second

// openness is whether the server requires no credentials (U123). It ends permanently with the first admin key, in whichever
// process that is made.
type openness struct {
	on    service.Backend
	log   *slog.Logger
	ended atomic.Bool // or it never began

	mu  sync.Mutex           // held while the store is asked: one asks for all
	age func() time.Duration // of the last look; nil: look at once
}

func newOpenness(on service.Backend, cfg Config) *openness {
	o := &openness{on: on, log: cfg.Logger}
	o.ended.Store(!cfg.Open)
	return o
}

// now returns the cached state, without reading the store.
func (o *openness) now() bool { return !o.ended.Load() }

// look reports whether no credentials are required. If the store cannot report whether there is an admin key, it returns the
// error.
func (o *openness) look(ctx context.Context) (open bool, err error) {
	if !o.now() {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.now() || o.age != nil && o.age() < openCheck {
		return o.now(), nil
	}
	locked, err := o.on.HasAdminKey(ctx)
	if err != nil {
		return false, err
	}
	o.age = clock.Stopwatch()
	if locked {
		o.ended.Store(true)
		o.log.Warn("there is an admin key: from now on every caller needs an API key")
	}
	return !locked, nil
}

// again makes the next look ask the store: a key was made or changed here.
func (o *openness) again() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.age = nil
}

// IsOpen reports whether the server requires no credentials, as far as is known without reading the store.
func (s *Server) IsOpen() bool { return s.open.now() }

// exposed reports whether other machines may use the server without credentials.
func (s *Server) exposed() bool { return s.cfg.Exposed && s.open.now() }

// isOpen reports whether a request needs no credentials because the server requires none. Routes that are always open do not wait
// for the store.
func (s *Server) isOpen(ctx context.Context, r *route) (bool, error) {
	if r.Roles&wire.Open != 0 {
		return s.open.now(), nil
	}
	return s.open.look(ctx)
}
