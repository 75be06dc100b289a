package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// keysOfSize are numbers of fairness keys: each makes a class of its own.
var keysOfSize = []int{100, 1_000, 10_000}

// benchEngine is an engine whose lane serves its keys in turn.
func benchEngine(b *testing.B) *engine.Engine {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "engine.db"), sqlite.Config{UnsafeDurability: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	e, err := engine.Open(b.Context(), s, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close(context.Background()) })
	if _, err := e.PutLane(b.Context(), operator, "default", core.LaneSettings{Fairness: "key"}, engine.Operator{}); err != nil {
		b.Fatal(err)
	}
	return e
}

// submitKeys submits an execution of each of n keys.
func submitKeys(b *testing.B, e *engine.Engine, n int) {
	b.Helper()
	all := make([]core.Submission, n)
	for i := range all {
		all[i] = fairKey(fmt.Sprint("key", i))
		all[i].Kind = "k"
	}
	items, err := e.SubmitMany(b.Context(), client, all, true)
	if err != nil || len(items) != n {
		b.Fatalf("%d of %d: %v", len(items), n, err)
	}
}

// BenchmarkSubmitOfANewKey shows what a new key costs beside those that are there already: nothing of them is copied or read.
func BenchmarkSubmitOfANewKey(b *testing.B) {
	for _, n := range keysOfSize {
		b.Run(fmt.Sprintf("of %d", n), func(b *testing.B) {
			e := benchEngine(b)
			submitKeys(b, e, n)
			i := 0
			for b.Loop() {
				i++
				s := fairKey(fmt.Sprint("new", i))
				s.Kind = "k"
				if _, err := e.Submit(b.Context(), client, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClaimOfManyKeys hands out one execution of each key: a task costs the same however many there are.
func BenchmarkClaimOfManyKeys(b *testing.B) {
	for _, n := range keysOfSize {
		b.Run(fmt.Sprintf("of %d", n), func(b *testing.B) {
			e := benchEngine(b)
			r := ask()
			r.Max = 1000
			for b.Loop() {
				b.StopTimer()
				submitKeys(b, e, n)
				b.StartTimer()
				for left := n; left > 0; {
					answer, err := e.Claim(b.Context(), client, r)
					if err != nil || len(answer.Tasks) == 0 {
						b.Fatalf("%d are left: %v", left, err)
					}
					left -= len(answer.Tasks)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/task")
		})
	}
}
