package flowfabrictest

import (
	"context"
	"errors"
	"time"
)

// errStuck is the error of a call that waits for a time that the clock does not reach.
var errStuck = errors.New("flowfabrictest: the call waits for a time that the clock has not reached, and nothing turns the clock: " +
	"call Advance first, or make the call on another goroutine")

// unlessStuck returns a context for a call of the test. It ends with errStuck, and the test fails, if the call still waits after a long real
// time in which nothing could happen and the clock has not moved: it would wait forever. Calls of handlers are left alone, because the clock can move while
// they wait.
func (e *Env) unlessStuck(ctx context.Context, call string) (during context.Context, done func()) {
	if _, inside := ctx.Value(processKey{}).(*process); inside {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	left := make(chan struct{})
	tb, after := e.tb, e.stuckAfter
	go func() {
		ticker := time.NewTicker(after)
		defer ticker.Stop()
		for seen := e.Now(); ; seen = e.Now() {
			select {
			case <-left:
				return
			case <-ticker.C:
			}
			if !e.Now().Equal(seen) || !e.still(after) {
				continue
			}
			select {
			case <-left:
				return
			default:
			}
			tb.Errorf("flowfabrictest: %s waits for a time that the clock has not reached (it is %s), and nothing turns the clock: call Advance first, or make the call on another goroutine",
				call, e.Now().Format(time.RFC3339))
			cancel(errStuck)
			return
		}
	}()
	return ctx, func() {
		close(left)
		cancel(nil)
	}
}

// still reports whether nothing can happen unless the clock moves. It gives up after a real time.
func (e *Env) still(after time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	return e.family.Await(ctx) == nil
}
