// Package story is the retry-and-cancel example: which failures are tried again and when, what no retry mends, how running work is
// cancelled, what each policy does to the members of a flow that is cancelled, and how all that failed is replayed at once.
package story

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// RetryAndCancel is the story.
var RetryAndCancel = stage.Story{Name: "retry-and-cancel", Tell: tell}

// Parcel is what is to be delivered.
type Parcel struct {
	Number  string
	Trouble string // what goes wrong on the way; "": nothing
}

// Deliver is the kind of work.
const Deliver flowfabric.Kind[Parcel, string] = "deliver"

// policy tries again what is worth it: a road that is closed, after 100 ms, 200 ms, 400 ms, and a depot that is busy, when the depot
// says so. Anything else ends the work at once.
var policy = flowfabric.Policy{Retry: &flowfabric.RetryPolicy{
	MaxRetries: 4,
	Categories: []string{"road_closed", "depot_busy"},
	Backoff:    flowfabric.Backoff{Initial: 100 * time.Millisecond, Max: time.Second},
}}

// courier delivers parcels.
type courier struct {
	mapMended atomic.Bool        // the bug behind wrong addresses
	onTheWay  chan flowfabric.ID // tells that a lost parcel is under way
	ended     chan error         // tells why a handler was ended
	arrive    chan struct{}      // lets a parcel that is under way arrive
}

// deliver is the handler. Every trouble shows one way to end an attempt.
func (c *courier) deliver(ctx context.Context, t *flowfabric.Task, in Parcel) (string, error) {
	switch in.Trouble {
	case "road": // the policy says when the next attempt is
		if t.Attempt().Index < 3 {
			return "", flowfabric.Category("road_closed", errors.New("the road is closed"))
		}
	case "depot": // the handler knows better when the next attempt is worth it
		if t.Attempt().Index < 1 {
			return "", flowfabric.RetryAfter(300*time.Millisecond, flowfabric.Category("depot_busy", errors.New("come back in a moment")))
		}
	case "refused": // no retry helps, whatever the policy says
		if !c.mapMended.Load() {
			return "", flowfabric.Permanent(errors.New("the door was the wrong one"))
		}
	case "address": // a category that the policy does not retry
		if !c.mapMended.Load() {
			return "", flowfabric.Category("bad_address", errors.New("there is no such street"))
		}
	case "lost": // drives until somebody calls it back
		c.onTheWay <- t.ID()
		<-ctx.Done()
		c.ended <- context.Cause(ctx)
		return "", context.Cause(ctx)
	case "far": // drives until it is let arrive, or is called back
		c.onTheWay <- t.ID()
		select {
		case <-c.arrive:
		case <-ctx.Done():
			c.ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}
	}
	return in.Number + " delivered", nil
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	c := &courier{onTheWay: make(chan flowfabric.ID, 1), ended: make(chan error, 1), arrive: make(chan struct{})}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Deliver, c.deliver)
	stop := stage.Start(ctx, w)
	for _, chapter := range []func(context.Context, *stage.Stage, *flowfabric.Client, *courier) error{retried, failed, cancelled, roundsCancelled, replayed} {
		if err := chapter(ctx, s, client, c); err != nil {
			return errors.Join(err, stop())
		}
	}
	return stop()
}

// send submits a parcel.
func send(ctx context.Context, s *stage.Stage, client *flowfabric.Client, trouble string) (*flowfabric.Run[string], error) {
	parcel := Parcel{Number: "p-" + trouble, Trouble: trouble}
	return Deliver.Submit(ctx, client, parcel, flowfabric.SubmitOptions{Lane: s.Name, Policy: &policy})
}

// retried shows two failures that pass.
func retried(ctx context.Context, s *stage.Stage, client *flowfabric.Client, _ *courier) error {
	s.Say("Failures of some categories are tried again, each attempt later than the one before.")
	for _, trouble := range []string{"road", "depot"} {
		run, err := send(ctx, s, client, trouble)
		if err != nil {
			return err
		}
		result, err := run.Result(ctx)
		if err != nil {
			return err
		}
		attempts, err := client.Executions().Attempts(ctx, run.ID())
		if err != nil {
			return err
		}
		s.Show("%s %s", run.ID(), result)
		for _, a := range attempts {
			s.Show("  attempt %d began after %s and %s", a.Index, a.StartedAt.Sub(attempts[0].StartedAt), ending(a))
		}
	}
	return nil
}

func ending(a api.Attempt) string {
	if a.Failure == nil {
		return "succeeded"
	}
	return fmt.Sprintf("failed: %s, %s", a.Failure.Category, a.Failure.Message)
}

// failed shows two failures that end the work.
func failed(ctx context.Context, s *stage.Stage, client *flowfabric.Client, _ *courier) error {
	s.Say("What is permanent, or of another category, fails at once.")
	for _, trouble := range []string{"refused", "address"} {
		run, err := send(ctx, s, client, trouble)
		if err != nil {
			return err
		}
		x, err := run.Wait(ctx)
		if err != nil {
			return err
		}
		s.Show("%s %s after %d attempt, %s: class %s, category %s", x.ID, x.Status, x.TotalAttempts, x.Reason, x.Failure.Class, x.Failure.Category)
	}
	return nil
}

// cancelled calls running work back.
func cancelled(ctx context.Context, s *stage.Stage, client *flowfabric.Client, c *courier) error {
	run, err := send(ctx, s, client, "lost")
	if err != nil {
		return err
	}
	var id flowfabric.ID
	select {
	case id = <-c.onTheWay:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.Say("%s is under way and never comes to an end. It is cancelled.", id)
	if err := run.Cancel(ctx, "the customer is tired of waiting"); err != nil {
		return err
	}
	x, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	s.Show("it is %s by %s: %s", x.Status, x.Cancellation.By, x.Cancellation.Reason)
	select {
	case cause := <-c.ended:
		s.Show("the handler's context has ended: %s", cause)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// replayed mends the bug and lets one bulk job replay what failed.
func replayed(ctx context.Context, s *stage.Stage, client *flowfabric.Client, c *courier) error {
	c.mapMended.Store(true)
	s.Say("The map is mended. One bulk job replays everything in the lane that failed.")
	which := ops.Filter{Lane: []string{s.Name}, Status: []flowfabric.Status{flowfabric.StatusFailed}}
	job, err := client.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkReplay, Filter: which, Reason: "the map is mended"})
	if err != nil {
		return err
	}
	if job, err = client.Operate().WaitBulk(ctx, job.ID); err != nil {
		return err
	}
	s.Show("job %s: %d of %d replayed", job.ID, job.Done, job.Total)
	for item, err := range client.Operate().BulkItems(ctx, job.ID) {
		if err != nil {
			return err
		}
		x, err := client.Wait(ctx, item.ID)
		if err != nil {
			return err
		}
		s.Show("%s %s in attempt %d", x.ID, x.Status, x.Attempt.Index)
	}
	return nil
}
