package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// openCheck is how long a server that asks nobody for credentials believes that there is no admin key. Another process may have made
// one.
const openCheck = 2 * time.Second

// openness is whether the server asks nobody for credentials (U123). It ends for good with the first admin key, whoever makes it.
type openness struct {
	client *flowfabric.Client
	log    *slog.Logger
	ended  atomic.Bool // or it never began

	mu  sync.Mutex           // held while the store is asked: one asks for all
	age func() time.Duration // of the last look; nil: look at once
}

func newOpenness(client *flowfabric.Client, cfg Config) *openness {
	o := &openness{client: client, log: cfg.Logger}
	o.ended.Store(!cfg.Open)
	return o
}

// now is what is known, without a look at the store.
func (o *openness) now() bool { return !o.ended.Load() }

// look reports whether nobody needs credentials. While the store cannot say whether there is an admin key the answer is its error.
func (o *openness) look(ctx context.Context) (open bool, err error) {
	if !o.now() {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.now() || o.age != nil && o.age() < openCheck {
		return o.now(), nil
	}
	locked, err := HasAdminKey(ctx, o.client)
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

// HasAdminKey reports whether there is an API key with the role admin that was not revoked. One that has expired counts: who had keys
// wants callers to need them.
func HasAdminKey(ctx context.Context, c *flowfabric.Client) (bool, error) {
	for key, err := range c.Admin().APIKeys().List(ctx) {
		if err != nil {
			return false, err
		}
		if key.RevokedAt.IsZero() && slices.Contains(key.Roles, "admin") {
			return true, nil
		}
	}
	return false, nil
}

// IsOpen reports whether the server asks nobody for credentials, as far as it knows without a look at the store.
func (s *Server) IsOpen() bool { return s.open.now() }

// exposed reports whether other machines may use the server without credentials.
func (s *Server) exposed() bool { return s.cfg.Exposed && s.open.now() }

// isOpen reports whether a request needs no credentials because nobody does. Routes that are open to all do not wait for the store.
func (s *Server) isOpen(ctx context.Context, r *route) (bool, error) {
	if r.Roles&wire.Open != 0 {
		return s.open.now(), nil
	}
	return s.open.look(ctx)
}
