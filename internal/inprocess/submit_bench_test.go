package inprocess_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/sqlite"
)

// BenchmarkSubmitsWithoutATracer is a whole command, many callers at a time, to compare with: what tracing costs when there is none must
// be below 1 % of it.
func BenchmarkSubmitsWithoutATracer(b *testing.B) {
	ctx := engine.WithHooks(b.Context(), engine.Hooks{UnsafeDurability: true})
	client, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "app.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	b.SetParallelism(128)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := client.Submit(b.Context(), flowfabric.Submission{Kind: "k"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
