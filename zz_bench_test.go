package flowfabric_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestZZThroughput(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "app.db")
	if os.Getenv("PG") != "" {
		url = cluster.Database(t)
	}
	w := openWorld(t, url, engine.Hooks{})
	const n = 50000
	var all []flowfabric.Submission
	noop := flowfabric.Kind[[]byte, flowfabric.None]("noop")
	for range n {
		all = append(all, noop.Submission(make([]byte, 100)))
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i := 0; i < n; i += 5000 {
		wg.Go(func() {
			if _, err := w.SubmitMany(t.Context(), all[i:i+5000]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("submit %d in %s", n, time.Since(start))
	var done atomic.Int64
	fin := make(chan struct{})
	start = time.Now()
	_, stop := w.work(t, flowfabric.WorkerConfig{Concurrency: 512}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, noop, func(_ context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
			if done.Add(1) == n {
				close(fin)
			}
			return flowfabric.None{}, nil
		})
	})
	<-fin
	d := time.Since(start)
	t.Logf("drain %d in %s: %.0f/s", n, d, float64(n)/d.Seconds())
	stop()
}
