package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Kinds of the work that --seed-demo creates.
const (
	demoMail   flowfabric.Kind[string, string]          = "send-mail"
	demoCharge flowfabric.Kind[string, string]          = "charge-card"
	demoReport flowfabric.Kind[string, flowfabric.None] = "monthly-report"
	demoResize flowfabric.Kind[string, flowfabric.None] = "resize-image"
	demoImport flowfabric.Kind[string, flowfabric.None] = "import-orders"
	demoRender flowfabric.Kind[string, flowfabric.None] = "render-video"
)

// demoLane is the lane of the work that appears to run.
const demoLane = "media"

// seedDemo fills a store with executions in different states, through the public client, so that lists and top have something to
// show (U161). Keys make it repeatable.
func seedDemo(ctx context.Context, c *flowfabric.Client, log *slog.Logger) error {
	for _, seed := range []func(context.Context, *flowfabric.Client) error{seedFinished, seedDelayed, seedWaiting, seedCancelled, seedRunning} {
		if err := seed(ctx, c); err != nil {
			return fmt.Errorf("seeding demo work: %w", err)
		}
	}
	log.Info("demo work was added (--seed-demo)")
	return nil
}

// demoOptions sets a key and a tag.
func demoOptions(key string) flowfabric.SubmitOptions {
	return flowfabric.SubmitOptions{IdempotencyKey: "demo-" + key, Tags: map[string]string{"demo": "seed"}}
}

// seedFinished completes some work and lets other work fail after two retries.
func seedFinished(ctx context.Context, c *flowfabric.Client) error {
	ctx, stop := context.WithCancel(ctx)
	worker := flowfabric.NewWorker(c, flowfabric.WorkerConfig{ID: "demo", Logger: slog.New(slog.DiscardHandler)})
	flowfabric.Handle(worker, demoMail, func(_ context.Context, _ *flowfabric.Task, to string) (string, error) { return "sent to " + to, nil })
	flowfabric.Handle(worker, demoCharge, func(context.Context, *flowfabric.Task, string) (string, error) {
		return "", errors.New("the bank declined: card expired")
	})
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	err := workOff(ctx, c)
	stop()
	return errors.Join(err, <-ended)
}

func workOff(ctx context.Context, c *flowfabric.Client) error {
	for _, to := range []string{"ann@example.com", "bob@example.com", "eve@example.com"} {
		run, err := demoMail.Submit(ctx, c, to, demoOptions("mail-"+to))
		if err != nil {
			return err
		}
		if _, err := run.Result(ctx); err != nil {
			return err
		}
	}
	how := demoOptions("charge")
	how.Policy = &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 10 * time.Millisecond}}}
	run, err := demoCharge.Submit(ctx, c, "order 17", how)
	if err != nil {
		return err
	}
	if _, err := run.Result(ctx); !errors.Is(err, flowfabric.ErrExecutionFailed) {
		return err
	}
	return nil
}

func seedDelayed(ctx context.Context, c *flowfabric.Client) error {
	how := demoOptions("report")
	how.Delay = 24 * time.Hour
	_, err := demoReport.Submit(ctx, c, "sales", how)
	return err
}

// seedWaiting submits work whose required capability no worker has.
func seedWaiting(ctx context.Context, c *flowfabric.Client) error {
	for _, picture := range []string{"cat.png", "dog.png"} {
		how := demoOptions("resize-" + picture)
		how.Requires = []string{"gpu"}
		if _, err := demoResize.Submit(ctx, c, picture, how); err != nil {
			return err
		}
	}
	return nil
}

func seedCancelled(ctx context.Context, c *flowfabric.Client) error {
	how := demoOptions("import")
	how.Delay = time.Hour
	run, err := demoImport.Submit(ctx, c, "orders.csv", how)
	if err != nil || run.Duplicate() {
		return err
	}
	_, err = c.Cancel(ctx, run.ID(), "wrong file")
	return err
}

// seedRunning claims work and keeps it until its lease lapses.
func seedRunning(ctx context.Context, c *flowfabric.Client) error {
	how := demoOptions("render")
	how.Lane = demoLane
	run, err := demoRender.Submit(ctx, c, "holidays.mov", how)
	if err != nil || run.Duplicate() {
		return err
	}
	_, err = c.Work().Claim(ctx, api.ClaimRequest{
		WorkerID: "demo", InstanceID: "demo-renderer", Lanes: []string{demoLane}, LeaseTTL: 12 * time.Hour, Wait: 10 * time.Second,
	})
	return err
}
