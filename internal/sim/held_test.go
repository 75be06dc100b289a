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

// A claim that asks several queues together for the best rows sees none but those, and others may hold all of them (history 1245).
func TestS9_rows_behind_the_best_of_several_queues_are_found_while_another_process_holds_those(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		db := memory.New(memory.Config{})
		s, other := db.Open(memory.Process{}), db.Open(memory.Process{})
		defer func() { _, _ = s.Close(), other.Close() }()
		e, err := engine.Open(ctx, &counting{Store: s}, engine.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), SigningKey: signingKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
		var held, free []base.UUID
		for i := range 9 {
			answer, err := e.Submit(ctx, client(""), core.Submission{Kind: fmt.Sprint("kind-", i%3)})
			if err != nil {
				t.Fatal(err)
			}
			if i < 4 {
				held = append(held, answer.ID.UUID)
			} else {
				free = append(free, answer.ID.UUID)
			}
			time.Sleep(time.Millisecond)
		}
		tx, _, err := other.Begin(ctx, store.Want{Executions: held})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range free[:3] {
			answer, err := e.Claim(ctx, client(""), engine.ClaimRequest{WorkerID: "w", InstanceID: "i", Lanes: []string{"default"}, Max: 1, TTL: base.Minute})
			if err != nil || len(answer.Tasks) != 1 || answer.Tasks[0].Execution.ID.UUID != id {
				t.Fatalf("claimed %+v, %v, want %s", answer.Tasks, err, id)
			}
		}
		tx.Rollback(ctx)
	})
}
