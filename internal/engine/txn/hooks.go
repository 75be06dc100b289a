package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// Hooks is what a test environment puts in place of the world around an engine. It travels in the context with which the engine
// is opened, so that no public type shows it.
type Hooks struct {
	Clock clock.Clock // nil: the host's, and the store's own
	Probe Probe
	// UnsafeDurability lets the store skip what only a loss of power needs.
	UnsafeDurability bool
}

type hooksKey struct{}

// WithHooks returns a context that carries the hooks.
func WithHooks(ctx context.Context, h Hooks) context.Context {
	return context.WithValue(ctx, hooksKey{}, h)
}

// HooksOf finds the hooks in a context; zero ones when it carries none.
func HooksOf(ctx context.Context) Hooks {
	h, _ := ctx.Value(hooksKey{}).(Hooks)
	return h
}
