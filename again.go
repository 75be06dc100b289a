package flowfabric

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
)

// How calls are repeated (U132).
const (
	maxRepeats   = 5
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	doublings    = 16 // beyond it the pause has long been the longest one
)

// untilKnown repeats a call whose outcome is unknown. The call must be one that recognises its repeats.
func untilKnown[T any](ctx context.Context, c clock.Clock, call func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		answer, err := call()
		if err == nil {
			return answer, nil
		}
		if core.CodeOf(err) != core.CodeTimeout || try == maxRepeats || !pause(ctx, c, backoff(try)) {
			return answer, publicError(err)
		}
	}
}

// backoff is a random pause before repeat number try+1: up to 100 ms at first, doubling up to 5 s.
func backoff(try int) time.Duration {
	limit := min(longestPause, firstPause<<min(try, doublings))
	return rand.N(limit) + 1 //nolint:gosec // G404: it spreads retries
}

// pause waits for d and reports whether it was not cut short.
func pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
