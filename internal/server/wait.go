package server

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// eventWait is the longest wait for an event (U18).
const eventWait = 30 * time.Second

// wait is how long a call may wait, and how the answer says so.
type wait struct {
	atMost    time.Duration
	preferred bool // by Prefer, so that the answer says Preference-Applied
}

// waitOf reads the wait of a request; more than the cap counts as the cap.
func waitOf(fields wire.WaitFields, longest time.Duration) (wait, error) {
	asked, preferred, err := fields.Wait()
	if err != nil {
		return wait{}, err
	}
	return wait{atMost: min(asked, longest), preferred: preferred}, nil
}

// applied adds Preference-Applied to an answer for which a preference was applied.
func (w wait) applied(a answer) answer {
	if !w.preferred {
		return a
	}
	return a.with(wire.HeaderPreferenceApplied, "wait="+strconv.Itoa(int(w.atMost/time.Second)))
}

// errKeyGone ends what waits for a key that is no longer valid.
var errKeyGone = errors.New("the key is no longer valid")

// keyCheck is how often a waiting call looks whether its key is still valid (U120).
const keyCheck = 3 * time.Second

// until lets do wait for so long. It reports whether the wait ended before do had an answer, because the time was up or the server
// drains: the present state is then what the caller gets.
func (s *Server) until(ctx context.Context, x *exchange, seats *seats, atMost time.Duration, do func(context.Context) error) (ended bool, err error) {
	leave, err := s.sit(ctx, x, seats)
	if err != nil {
		return false, err
	}
	defer leave()
	defer s.metrics.enter(x, groupPoll)()
	waiting, cancel := s.bounded(ctx, x, atMost)
	defer cancel()
	err = do(waiting)
	switch {
	case errors.Is(context.Cause(waiting), errKeyGone) && x.caller.open:
		return false, noKey()
	case errors.Is(context.Cause(waiting), errKeyGone):
		return false, refuse("api_key_revoked", "the key was revoked or changed while the call waited")
	case err == nil || waiting.Err() == nil || ctx.Err() != nil:
		return false, err
	default:
		return true, nil
	}
}

// longPoll is how long the engine waits for the end of something in one call.
const longPoll = 30 * time.Second

// awaited reads something until it has ended. It returns the error of ctx once that ends.
func awaited[T any](ctx context.Context, read func() (*T, error), ended func(*T) bool) (*T, error) {
	for {
		now, err := read()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil || ended(now):
			return now, err
		}
	}
}

// bounded is a context that ends when the time is up, when the server drains, and when the key of the caller is no longer valid.
func (s *Server) bounded(ctx context.Context, x *exchange, atMost time.Duration) (context.Context, context.CancelFunc) {
	timed, stop := context.WithTimeout(ctx, atMost)
	waiting, cancel := context.WithCancelCause(timed)
	go func() {
		defer func() {
			if what := recover(); what != nil { // no frame is above this goroutine: the call that waits ends without an answer of its own
				s.notes.Error("panic", "request_id", x.id, "panic", what, "stack", string(debug.Stack()))
				cancel(nil)
			}
		}()
		var look <-chan time.Time // never for those who need no credential
		if x.caller.key != nil || x.caller.open {
			tick := time.NewTicker(keyCheck)
			defer tick.Stop()
			look = tick.C
		}
		for {
			select {
			case <-waiting.Done():
				return
			case <-s.draining:
				cancel(nil)
				return
			case <-look:
				if s.lost(waiting, x) {
					cancel(errKeyGone)
				}
			}
		}
	}()
	return waiting, func() {
		cancel(nil)
		stop()
	}
}

// lost reports whether the key of a caller is no longer valid, or allows something else than it did. A store that does not answer
// says nothing about keys.
func (s *Server) lost(ctx context.Context, x *exchange) bool {
	who := x.caller
	if who.open {
		open, err := s.open.look(ctx)
		return err == nil && !open
	}
	now, err := s.lookUp(ctx, x.r)
	if err != nil {
		return errors.Is(err, api.ErrUnauthenticated)
	}
	return now.roles != who.roles || now.Name != who.Name || !slices.Equal(now.key.Namespaces, who.key.Namespaces) ||
		!slices.Equal(now.key.Lanes, who.key.Lanes)
}
