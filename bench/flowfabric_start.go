package bench

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
)

// ffStart measures the time from a submit to the start of its handler at 50 a second, with default settings.
func ffStart(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
	n := env.Size(1000)
	base := time.Now() // the input says when it was sent, counted from here
	var mu sync.Mutex
	var waits []time.Duration
	seen := newCounter(n)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{"default"}})
	flowfabric.Handle(worker, ffNoop, func(_ context.Context, _ *flowfabric.Task, sent []byte) (flowfabric.None, error) {
		wait := time.Since(base) - time.Duration(binary.BigEndian.Uint64(sent))
		mu.Lock()
		waits = append(waits, wait)
		mu.Unlock()
		seen.one()
		return flowfabric.None{}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	tick := time.NewTicker(time.Second / ffArrivals)
	defer tick.Stop()
	for range n {
		<-tick.C
		sent := binary.BigEndian.AppendUint64(nil, uint64(time.Since(base)))
		if _, err := client.Submit(ctx, ffNoop.Submission(sent)); err != nil {
			return err
		}
	}
	<-seen.done
	stop()
	if err := <-ended; err != nil {
		return err
	}
	sample.Latency("start", waits)
	return nil
}
