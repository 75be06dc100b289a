package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// ffIdle measures what a process costs that has nothing to do: 100 claims wait in it.
func ffIdle(ctx context.Context, env Env) (*Sample, error) {
	sample := &Sample{}
	err := inProcess.on(ctx, env.Postgres, func(ctx context.Context, address string, client *flowfabric.Client) error {
		if err := submitInBulk(ctx, client, 1, freely); err != nil {
			return err
		}
		waitCtx, stop := context.WithCancel(ctx)
		group, waitCtx := errgroup.WithContext(waitCtx)
		for i := range 100 {
			group.Go(func() error { return waitForNothing(waitCtx, client, i) })
		}
		err := watchIdle(ctx, address, time.Duration(env.Size(60))*time.Second, sample)
		stop()
		return errors.Join(err, group.Wait())
	})
	return sample, err
}

// waitForNothing claims work of a kind that is never submitted, again and again.
func waitForNothing(ctx context.Context, client *flowfabric.Client, i int) error {
	for ctx.Err() == nil {
		_, err := client.Work().Claim(ctx, api.ClaimRequest{
			WorkerID: "idle", InstanceID: fmt.Sprintf("idle-%d", i), Lanes: []string{"default"}, Kinds: []string{"never"}, Wait: 30 * time.Second,
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watchIdle counts the transactions of a database and the processor time of this process.
func watchIdle(ctx context.Context, address string, d time.Duration, sample *Sample) error {
	time.Sleep(3 * time.Second) // the start is not idle
	before, cpu, err := usage(ctx, address)
	if err != nil {
		return err
	}
	time.Sleep(d)
	after, cpuAfter, err := usage(ctx, address)
	if err != nil {
		return err
	}
	// The look itself is a transaction too; statistics lag by up to a second.
	sample.Values = append(sample.Values,
		Value{Name: "transactions", Value: float64(after-before-1) / d.Seconds(), Unit: "1/s"},
		Value{Name: "cpu", Value: 100 * (cpuAfter - cpu).Seconds() / d.Seconds(), Unit: "% of a core"})
	return nil
}

func usage(ctx context.Context, address string) (transactions int64, cpu time.Duration, err error) {
	store, err := measure.UsageOf(ctx, address)
	if err != nil {
		return 0, 0, err
	}
	cpu, ok := measure.CPU(os.Getpid())
	if !ok {
		return 0, 0, errors.New("the processor time of this process is not known")
	}
	return *store.Transactions, cpu, nil
}
