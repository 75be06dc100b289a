package bench

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// ffResume measures how long it takes from the suspend of a handler, over the signal that is sent as soon as the suspension is
// acknowledged, until the handler goes on: one execution at a time, with default settings.
func ffResume(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
	n := env.Size(500)
	warm, err := ffResumeRounds(ctx, client, n/10)
	if err != nil {
		return err
	}
	resuming, err := ffResumeRounds(ctx, client, n)
	if err != nil {
		return err
	}
	if got := int(warm.Resumed.Load() + resuming.Resumed.Load()); got != n/10+n {
		sample.Fail("%d of %d executions went on", got, n/10+n)
	}
	running, signal := resuming.SuspendToRunning.Latency(), resuming.SignalToRunning.Latency()
	sample.Values = append(sample.Values,
		Value{Name: "resume.p50", Value: running.P50, Unit: "ms"}, Value{Name: "resume.p99", Value: running.P99, Unit: "ms"},
		Value{Name: "signal.p50", Value: signal.P50, Unit: "ms"}, Value{Name: "signal.p99", Value: signal.P99, Unit: "ms"})
	return nil
}

func ffResumeRounds(ctx context.Context, client *flowfabric.Client, n int) (*measure.Resuming, error) {
	resuming := measure.NewResuming(client)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worker := flowfabric.NewWorker(resuming.Client(), flowfabric.WorkerConfig{})
	flowfabric.Handle(worker, ffNoop, resuming.Handle)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		var run *flowfabric.Run[flowfabric.None]
		if run, failed = ffNoop.Submit(ctx, client, nil); failed == nil {
			_, failed = client.Wait(ctx, run.ID())
		}
	}
	stop()
	return resuming, errors.Join(failed, <-ended, resuming.Err())
}
