package bench

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// ffFew and ffMany are how many executions wait while memory is looked at. Few are more than a process remembers the newest events of.
const (
	ffFew  = 100_000
	ffMany = 500_000
)

// ffMemory measures the memory of a process with few and with many executions that wait for a worker.
func ffMemory(ctx context.Context, env Env) (*Sample, error) {
	sample := &Sample{}
	many := env.Size(ffMany)
	if env.Waiting > 0 {
		many = env.Waiting
	}
	for _, scene := range []struct {
		name string
		n    int
	}{{"few", env.Size(ffFew)}, {"many", many}} {
		err := inProcess.on(ctx, env.Postgres, func(ctx context.Context, _ string, client *flowfabric.Client) error {
			if err := submitInBulk(ctx, client, scene.n, freely); err != nil {
				return err
			}
			sample.Values = append(sample.Values, Value{Name: "waiting." + scene.name, Value: float64(scene.n), Unit: "executions"})
			return lookAtMemory(ctx, client, scene.name, sample)
		})
		if err != nil {
			return nil, err
		}
	}
	return sample, nil
}

// lookAtMemory measures what is in use once lists have caught up and garbage is gone.
func lookAtMemory(ctx context.Context, client *flowfabric.Client, name string, sample *Sample) error {
	const last = "last"
	if _, err := client.Submit(ctx, flowfabric.Submission{Kind: last, SubmitOptions: flowfabric.SubmitOptions{Lane: last}}); err != nil {
		return err
	}
	for listed := 0; listed == 0; { // lists follow the log in its order
		count, err := client.Executions().Count(ctx, ops.Filter{Lane: []string{last}})
		if err != nil {
			return err
		}
		listed = count.Total
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	sample.Values = append(sample.Values, Value{Name: "heap." + name, Value: float64(stats.HeapAlloc) / (1 << 20), Unit: "MiB"})
	if rss, _, ok := measure.RSS(os.Getpid()); ok {
		sample.Values = append(sample.Values, Value{Name: "rss." + name, Value: float64(rss) / (1 << 20), Unit: "MiB"})
	}
	return nil
}
