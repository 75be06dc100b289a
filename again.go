package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
)

// untilKnown repeats a call whose outcome is unknown. The call must be one that recognises its repeats.
func untilKnown[T any](ctx context.Context, c clock.Clock, call func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		answer, err := call()
		if err == nil {
			return answer, nil
		}
		if core.CodeOf(err) != core.CodeTimeout || try == backoff.Repeats || !backoff.Pause(ctx, c, backoff.Delay(try)) {
			return answer, publicError(err)
		}
	}
}
