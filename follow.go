package flowfabric

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
)

// followPiece is how long one read of a follower waits.
const followPiece = 30 * time.Second

// follow reads on from the last position. What cannot be read for a while is tried again, until ctx ends or the client is closed.
func follow(
	ctx context.Context, c clock.Clock, o []ReadOptions,
	read func(context.Context, ...ReadOptions) (EventPage, error), closed func(error) bool,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		options, err := single(o)
		if err != nil {
			yield(Event{}, err)
			return
		}
		options.Wait = followPiece
		for try := 0; ctx.Err() == nil; {
			page, err := read(ctx, options)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && (!errors.Is(err, ErrUnavailable) || closed(err)):
				yield(Event{}, err)
				return
			case err != nil:
				backoff.Pause(ctx, c, max(backoff.Delay(try), RetryDelay(err)))
				try++
				continue
			}
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			try, options.After = 0, page.Next
		}
	}
}
