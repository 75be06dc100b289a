package backoff

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// atOnce is the duration below which the answer to a call that was to wait counts as one that did not wait.
const atOnce = time.Second

// Idle paces a loop of calls that wait for news. A server that stops answers such a call at once with the present state, and so may a proxy: without a
// pause the loop would repeat it as fast as the network allows. The zero Idle is ready for use.
type Idle struct{ try int }

// Pause pauses a loop whose last call began at a moment, was to wait so long, and brought no news. It does not pause after a call that did wait. The
// pauses grow from call to call. It reports whether ctx did not cut the pause short.
func (i *Idle) Pause(ctx context.Context, c clock.Clock, began time.Time, wait time.Duration) bool {
	if c.Now().Sub(began) >= min(wait/2, atOnce) {
		i.try = 0
		return ctx.Err() == nil
	}
	i.try++
	return Pause(ctx, c, Delay(i.try-1))
}

// News ends a series of calls without news: the next pause is short again.
func (i *Idle) News() { i.try = 0 }
