package service

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestU132_an_operation_is_repeated_until_its_outcome_is_known(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	op, tries := &wire.Operation{ID: "lost"}, 0
	s := &Service{clock: clock.System(), handlers: map[*wire.Operation]handler{op: func(_ context.Context, c Caller, _, _ any) error {
		if c.first() != (tries == 0) {
			t.Errorf("try %d is the first: %t", tries, c.first())
		}
		if tries++; tries == 2 {
			cancel()
		}
		return base.Errorf(base.CodeTimeout, "lost")
	}}}
	if err := s.do(ctx, Caller{}, op, nil, nil); base.CodeOf(err) != base.CodeTimeout || tries != 2 {
		t.Errorf("after the context ended: %v after %d tries", err, tries)
	}
	refused := 0
	s.handlers[op] = func(context.Context, Caller, any, any) error {
		refused++
		return base.Invalid("x", "no")
	}
	if err := s.do(t.Context(), Caller{}, op, nil, nil); base.CodeOf(err) != base.CodeInvalidArgument || refused != 1 {
		t.Errorf("a refusal = %v after %d tries", err, refused)
	}
}
