package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric"
)

// ffStart measures the time from a submit to the start of its handler at 50 a second, with default settings.
func ffStart(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error {
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
	slices.Sort(waits)
	for _, p := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		wait := waits[min(int(p.at*float64(len(waits))), len(waits)-1)]
		sample.Values = append(sample.Values, Value{Name: "start." + p.name, Value: float64(wait.Microseconds()) / 1000, Unit: "ms"})
	}
	return nil
}

// freshDatabase makes an empty database on the server.
func freshDatabase(ctx context.Context, server string) (string, func(), error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	name := fmt.Sprintf("ffbench_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	remove := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if conn, err := pgx.Connect(ctx, server); err == nil {
			_, _ = conn.Exec(ctx, "drop database if exists "+name+" with (force)")
			_ = conn.Close(ctx)
		}
	}
	address, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	address.Path = "/" + name
	return address.String(), remove, nil
}
