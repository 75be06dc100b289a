// Package backoff spreads repeats: how long to wait before a call is made again, and the wait itself. Everything in this module that repeats a
// call does it by these rules (U132).
package backoff

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// How calls are repeated unless their caller says otherwise.
const (
	Repeats = 5                      // after the first try
	First   = 100 * time.Millisecond // the longest pause before the first repeat
	Longest = 5 * time.Second        // the longest pause
)

// doublings bounds how often the pause doubles; beyond it, it has long been the longest one.
const doublings = 16

// Delay is a random pause before repeat number try+1: up to First, doubling up to Longest.
func Delay(try int) time.Duration { return Spread(min(Longest, First<<min(try, doublings))) }

// Spread is a random pause of up to limit, and never none: callers that failed together do not come back together.
func Spread(limit time.Duration) time.Duration {
	return rand.N(max(limit, 1)) + 1 //nolint:gosec // G404: it spreads repeats
}

// Pause waits for d and reports whether ctx did not cut it short.
func Pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
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
