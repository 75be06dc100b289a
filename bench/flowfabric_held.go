package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
)

const (
	heldFor     = 10 * time.Second // how long each look takes, and how long the lock is held
	heldLooks   = 2                // of each, in turns
	heldWaiting = 64               // callers whose commands need the lock
	heldCallers = 8                // callers of other commands
	heldPool    = 16               // connections
)

// heldPlace is the engine in this process with the pool that a server has.
var heldPlace = way{open: func(ctx context.Context, address string) (*flowfabric.Client, func(context.Context) error, error) {
	client, err := embedded.Open(ctx, address, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}, PoolSize: heldPool})
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}}

// ffHeld measures how long commands take while another session holds the row of a flow, and many commands of this process wait for it. The
// commands measured have nothing to do with the flow.
func ffHeld(ctx context.Context, env Env) (*Sample, error) {
	sample := &Sample{}
	err := heldPlace.on(ctx, env.Postgres, func(ctx context.Context, address string, client *flowfabric.Client) error {
		flow, err := client.Flows().Submit(ctx, flowfabric.Flow{Kind: "held", Nodes: []flowfabric.Node{{Name: "only", Kind: "noop"}}})
		if err != nil {
			return err
		}
		if _, err := submitFor(ctx, client, env.Span(time.Second)); err != nil { // the first ones meet a cold process
			return err
		}
		var quiet, held []time.Duration
		for range heldLooks {
			some, err := submitFor(ctx, client, env.Span(heldFor))
			if err != nil {
				return err
			}
			quiet = append(quiet, some...)
			if some, err = submitBeside(ctx, client, address, flow.ID, env.Span(heldFor)); err != nil {
				return err
			}
			held = append(held, some...)
		}
		sample.Latency("submit.quiet", quiet)
		sample.Latency("submit.held", held)
		return nil
	})
	return sample, err
}

// submitBeside is submitFor while the row of a flow is held and commands wait for it.
func submitBeside(ctx context.Context, client *flowfabric.Client, address string, flow flowfabric.ID, d time.Duration) (took []time.Duration, err error) {
	release, err := holdFlow(ctx, address, flow)
	if err != nil {
		return nil, err
	}
	waitCtx, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	for i := range heldWaiting {
		waiting.Go(func() {
			for waitCtx.Err() == nil { // those that have waited long enough are refused, and come again
				tag := fmt.Sprint(i)
				_, _ = client.Flows().SetTags(waitCtx, flow, map[string]*string{"caller": &tag})
			}
		})
	}
	took, err = submitFor(ctx, client, d)
	stop()
	release()
	waiting.Wait()
	return took, err
}

// holdFlow locks the row of a flow in a session of its own.
func holdFlow(ctx context.Context, address string, flow flowfabric.ID) (release func(), err error) {
	holder, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	release = func() { _ = holder.Close(ctx) }
	if _, err = holder.Exec(ctx, "begin"); err == nil {
		var kind int
		err = holder.QueryRow(ctx, "select kind from flowfabric.doc where owner = '' and key = convert_to($1::text, 'UTF8') for update", string(flow)).Scan(&kind)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("hold the row of flow %s: %w", flow, err)
	}
	return release, nil
}

// submitFor submits by single calls for a while and tells how long each took.
func submitFor(ctx context.Context, client *flowfabric.Client, d time.Duration) ([]time.Duration, error) {
	all := make([][]time.Duration, heldCallers)
	group, ctx := errgroup.WithContext(ctx)
	for i := range all {
		group.Go(func() error {
			for end := time.Now().Add(d); time.Now().Before(end); {
				began := time.Now()
				if _, err := client.Submit(ctx, ffNoop.Submission(make([]byte, ffInput))); err != nil {
					return err
				}
				all[i] = append(all[i], time.Since(began))
			}
			return nil
		})
	}
	err := group.Wait()
	var took []time.Duration
	for _, some := range all {
		took = append(took, some...)
	}
	return took, err
}
