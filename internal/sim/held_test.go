package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/memory"
)

// counting is a store that counts transactions, and fails those beyond a bound, so that a loop without a pause ends.
type counting struct {
	store.Store
	begun int
}

func (c *counting) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if c.begun++; c.begun > 500 {
		return nil, nil, &store.Fault{Kind: store.Unavailable, Err: errInjected}
	}
	return c.Store.Begin(ctx, want)
}

// beside runs f with an engine that counts, and a store of another process that may hold rows.
func beside(t *testing.T, f func(ctx context.Context, t *testing.T, e *engine.Engine, s *counting, other store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		db := memory.New(memory.Config{})
		s, other := &counting{Store: db.Open(memory.Process{})}, db.Open(memory.Process{})
		defer func() { _, _ = s.Close(), other.Close() }()
		e, err := engine.Open(ctx, s, engine.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), SigningKey: signingKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
		f(ctx, t, e, s, other)
	})
}

// ask is a claim of one execution.
func ask(lane string) engine.ClaimRequest {
	return engine.ClaimRequest{WorkerID: "w", InstanceID: "i", Lanes: []string{lane}, Max: 1, TTL: base.Minute}
}

// submitted submits an execution, each at an instant of its own.
func submitted(ctx context.Context, t *testing.T, e *engine.Engine, s core.Submission) base.UUID {
	t.Helper()
	time.Sleep(time.Millisecond)
	answer, err := e.Submit(ctx, client(""), s)
	if err != nil {
		t.Fatal(err)
	}
	return answer.ID.UUID
}

// A claim that asks several queues together for the best rows sees none but those, and others may hold all of them (history 1245).
func TestS9_rows_behind_the_best_of_several_queues_are_found_while_another_process_holds_those(t *testing.T) {
	t.Parallel()
	beside(t, func(ctx context.Context, t *testing.T, e *engine.Engine, _ *counting, other store.Store) {
		var held, free []base.UUID
		for i := range 9 {
			id := submitted(ctx, t, e, core.Submission{Kind: fmt.Sprint("kind-", i%3)})
			if i < 4 {
				held = append(held, id)
			} else {
				free = append(free, id)
			}
		}
		tx, _, err := other.Begin(ctx, store.Want{Executions: held})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range free[:3] {
			answer, err := e.Claim(ctx, client(""), ask("default"))
			if err != nil || len(answer.Tasks) != 1 || answer.Tasks[0].Execution.ID.UUID != id {
				t.Fatalf("claimed %+v, %v, want %s", answer.Tasks, err, id)
			}
		}
		tx.Rollback(ctx)
	})
}

// Rows that a frozen process holds announce nothing, so that a waiting claim looks again and again; but it pauses between looks that learn nothing
// (history 5295). One second has 50 pauses, and it takes two looks to find out.
func TestS9_S71_looks_that_learn_nothing_while_another_process_holds_rows_pause(t *testing.T) {
	t.Parallel()
	beside(t, func(ctx context.Context, t *testing.T, e *engine.Engine, s *counting, other store.Store) {
		if _, err := e.PutLane(ctx, operator(), "narrow", core.LaneSettings{MaxConcurrent: 1}, engine.Operator{}); err != nil {
			t.Fatal(err)
		}
		inLane := func(kind string) base.UUID {
			return submitted(ctx, t, e, core.Submission{Kind: kind, Lane: "narrow"})
		}
		inLane("a")
		answer, err := e.Claim(ctx, client(""), ask("narrow")) // has the only place
		if err != nil || len(answer.Tasks) != 1 {
			t.Fatalf("claimed %+v, %v", answer.Tasks, err)
		}
		free, held := inLane("b"), inLane("b")
		tx, _, err := other.Begin(ctx, store.Want{Executions: []base.UUID{held}})
		if err != nil {
			t.Fatal(err)
		}
		s.begun = 0
		waiting := ask("narrow")
		waiting.Wait, waiting.Max = time.Second, 4
		if answer, err := e.Claim(ctx, client(""), waiting); err != nil || len(answer.Tasks) != 0 {
			t.Fatalf("claimed %+v, %v, want nothing", answer.Tasks, err)
		}
		if s.begun > 200 {
			t.Errorf("%d transactions in a second", s.begun)
		}
		first := answer.Tasks[0].Execution
		if _, err := e.Complete(ctx, client(""), base.GivenID{UUID: first.ID.UUID}, core.Fence{LeaseID: first.Lease.ID, Epoch: first.LeaseEpoch, AttemptID: first.Attempt.ID}, nil); err != nil {
			t.Fatal(err)
		}
		answer, err = e.Claim(ctx, client(""), waiting)
		if err != nil || len(answer.Tasks) != 1 || answer.Tasks[0].Execution.ID.UUID != free {
			t.Fatalf("claimed %+v, %v, want %s", answer.Tasks, err, free)
		}
		tx.Rollback(ctx)
	})
}
