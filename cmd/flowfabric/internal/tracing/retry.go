package tracing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// How long is waited between requests, and how long spans are tried for in all.
const (
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Second
	enough       = time.Minute
)

// busy is a failure that may pass.
type busy struct {
	cause error
	after time.Duration // not before; 0: whenever
}

func (b *busy) Error() string { return b.cause.Error() }

// persist calls try again while it fails with *busy: with growing pauses, or later if the collector says so. It gives up at once
// when a pause would last longer than there is time, so that the spans behind these do not wait for nothing.
func persist(ctx context.Context, try func() error) error {
	deadline := time.Now().Add(enough)
	if end, limited := ctx.Deadline(); limited && end.Before(deadline) {
		deadline = end
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try()
		var later *busy
		if !errors.As(err, &later) {
			return err
		}
		delay := max(later.after, pause/2+rand.N(pause)) //nolint:gosec // G404: many servers must not come back at the same moment
		if delay > time.Until(deadline) {
			return fmt.Errorf("given up: %w", err)
		}
		if stopped := wait(ctx, delay); stopped != nil {
			return fmt.Errorf("%w: %w", stopped, err)
		}
	}
}

// wait waits, or tells why ctx has ended before.
func wait(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// retryAfter reads the header of that name: seconds, or a date. What cannot be read says nothing; what is too far away for a
// duration is beyond all patience.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(24*time.Hour/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
