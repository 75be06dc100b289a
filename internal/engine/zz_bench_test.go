package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

var cl = cluster

func bench(t *testing.T, st store.Store, callers, n, workers int) {
	ctx := context.Background()
	e, err := engine.Open(ctx, st, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	c := engine.Caller{Principal: "me", Actor: "client"}
	var left atomic.Int64
	left.Store(int64(n))
	start := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := e.Submit(ctx, c, core.Submission{Kind: "k", Input: core.Payload{Data: []byte("hi")}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if os.Getenv("DRAIN") != "" {
		wg.Wait()
		fmt.Println("submit", float64(n)/time.Since(start).Seconds())
		start = time.Now()
	}
	var done atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for done.Load() < int64(n) {
				a, err := e.Claim(ctx, c, engine.ClaimRequest{WorkerID: "w", InstanceID: fmt.Sprint("w", w), Lanes: []string{"default"}, Max: 256, Wait: 100 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				var in sync.WaitGroup
				for _, task := range a.Tasks {
					in.Go(func() {
						x := task.Execution
						_, err := e.Complete(ctx, c, x.ID.Given(), core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}, nil)
						if err != nil {
							t.Error(err)
						}
						done.Add(1)
					})
				}
				in.Wait()
			}
		})
	}
	wg.Wait()
	el := time.Since(start)
	fmt.Println(st.Info().Kind, "callers", callers, "cycles/s", float64(n)/el.Seconds())
}

func TestBenchSQLite(t *testing.T) {
	for _, callers := range []int{64, 512} {
		st, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "a.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		bench(t, st, callers, benchN(), 4)
		st.Close()
	}
}

func TestBenchPG(t *testing.T) {
	for _, callers := range []int{64, 512} {
		st, err := postgres.Open(context.Background(), cl.Database(t), postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		bench(t, st, callers, benchN(), 4)
		st.Close()
	}
}

func benchN() int { n := 5000; fmt.Sscan(os.Getenv("N"), &n); return n }
