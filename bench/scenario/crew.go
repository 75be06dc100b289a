package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// crew is the workers of this process.
type crew struct {
	cancel context.CancelFunc
	group  *errgroup.Group
}

// handler does what a worker is asked to.
type handler = func(ctx context.Context, task *flowfabric.Task, in []byte) (flowfabric.None, error)

// hire starts so many workers, each with a configuration and a handler of its own.
func (t *trial) hire(ctx context.Context, n int, member func(i int) (flowfabric.WorkerConfig, handler)) *crew {
	name := measure.FreshName()
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		cfg, do := member(i)
		cfg.ID, cfg.Instance, cfg.Logger = "bench", fmt.Sprintf("%s-%d", name, i), t.cfg.Log
		w := flowfabric.NewWorker(t.place.client.Client, cfg)
		flowfabric.Handle(w, noop, do)
		group.Go(func() error { return w.Run(ctx) })
	}
	return &crew{cancel: cancel, group: group}
}

// dismiss lets the workers end.
func (c *crew) dismiss() error {
	c.cancel()
	return c.group.Wait()
}

// submitters is how many call Submit at a time.
const submitters = 32

// submitAll sends the executions numbered from..to-1, single or in batches, by all submitters together.
func (t *trial) submitAll(ctx context.Context, b *book, from, to, batch int, options func(number int) flowfabric.SubmitOptions) error {
	var next atomic.Int64
	next.Store(int64(from))
	size := max(batch, 1)
	group, ctx := errgroup.WithContext(ctx)
	for i := range submitters {
		random := rand.NewChaCha8([32]byte{byte(i), byte(t.number)})
		group.Go(func() error {
			for {
				first := int(next.Add(int64(size))) - size
				if first >= to {
					return nil
				}
				if err := t.submit(ctx, b, random, first, min(first+size, to), batch > 0, options); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// submit sends one execution, or several in one call.
func (t *trial) submit(ctx context.Context, b *book, random *rand.ChaCha8, from, to int, many bool, options func(int) flowfabric.SubmitOptions) error {
	all := make([]flowfabric.Submission, to-from)
	for i := range all {
		all[i] = noop.Submission(input(random, from+i), options(from+i))
	}
	began := b.sending(from)
	if !many {
		result, err := t.place.client.Submit(ctx, all[0])
		if err == nil {
			b.accepted(from, result.ID, began)
		}
		return err
	}
	for i := range all {
		b.sending(from + i)
	}
	results, err := t.place.client.SubmitMany(ctx, all)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Err != nil {
			return result.Err
		}
		b.accepted(from+i, result.ID, began)
	}
	return nil
}

// plainly is a submit without options.
func plainly(int) flowfabric.SubmitOptions { return flowfabric.SubmitOptions{} }
