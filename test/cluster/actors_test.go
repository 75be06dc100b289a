package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

var (
	client   = engine.Caller{Principal: "me", Actor: "client"}
	operator = engine.Caller{Principal: "op", Actor: "operator"}
	lanes    = []string{"open", "capped"}
)

const (
	lanesCap = 3
	ttl      = base.Millis(700)
	keyPool  = 1500 // shared by all processes, so that they meet
)

// crew is everybody who works through one engine.
type crew struct {
	e    *engine.Engine
	j    *journal
	name string
	seed uint64
}

// work runs submitters, workers, a zombie and an operator until ctx ends.
func (c *crew) work(ctx context.Context) {
	var all sync.WaitGroup
	for n, role := range []func(context.Context, *rand.Rand, string){
		c.submit, c.submit, c.claim, c.claim, c.claim, c.haunt, c.operate,
	} {
		name := fmt.Sprintf("%s-%d", c.name, n)
		all.Go(func() { role(ctx, testseed.Stream(c.seed, name), name) })
	}
	all.Wait()
}

// check reports errors that nothing allows.
func (c *crew) check(what string, err error) bool {
	switch code := base.CodeOf(err); code {
	case base.CodeInternal, base.CodeCorruption, base.CodeInvalidArgument:
		c.j.violation("%s: %v", what, err)
	}
	return err == nil
}

// submission is the same for the same key, wherever it is sent.
func submission(n int) core.Submission {
	limits := ""
	if n%6 == 0 {
		limits = limited
	}
	s := core.Submission{
		IdempotencyKey: fmt.Sprintf("key%d", n), Lane: lanes[n%2], Kind: "k", Input: core.Payload{Data: fmt.Appendf(nil, "in %d", n)},
		PolicyJSON: []byte(`{` + limits + `"max_reclaim_count":10000,"retry_policy":{"max_retries":100,"backoff":{"strategy":"fixed","delay_ms":30}}}`),
	}
	if n%5 == 0 {
		delay := base.Millis(n % 200)
		s.DelayMS = &delay
	}
	return s
}

func (c *crew) submit(ctx context.Context, rng *rand.Rand, _ string) {
	for ctx.Err() == nil {
		n := rng.IntN(keyPool)
		if answer, err := c.e.Submit(ctx, client, submission(n)); c.check("submit", err) {
			c.j.tell("submitted", fmt.Sprintf("key%d", n), answer.ID)
		}
	}
}

func (c *crew) claim(ctx context.Context, rng *rand.Rand, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		got, err := c.e.Claim(ctx, client, engine.ClaimRequest{
			WorkerID: "w", InstanceID: name, Lanes: lanes, Max: 1 + rng.IntN(4), Wait: 200 * time.Millisecond, TTL: ttl, RequestKey: fmt.Sprintf("%s-%d", name, n),
		})
		c.check("claim", err)
		for _, t := range got.Tasks {
			c.handle(ctx, rng, t)
		}
	}
}

// handle ends a lease in one of the ways there are, or leaves it to lapse.
func (c *crew) handle(ctx context.Context, rng *rand.Rand, t engine.Task) {
	x := t.Execution
	id, f := x.ID.Given(), core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
	c.j.took(x.ID, f)
	c.report(ctx, rng, id, f)
	var err error
	switch p := rng.IntN(100); {
	case p < 55:
		c.complete(ctx, x.ID, f)
	case p < 62:
		c.complete(ctx, x.ID, f)
		c.complete(ctx, x.ID, f)
	case p < 72:
		_, err = c.e.Fail(ctx, client, id, core.FailCommand{Fence: f, Message: "no"})
	case p < 80:
		_, err = c.e.Delay(ctx, client, id, f, x.Lease.AcquiredAt.Add(40))
	case p < 88:
		_, err = c.e.Release(ctx, client, id, f, "")
	case p < 94:
		_, err = c.e.Renew(ctx, client, []engine.LeaseRef{{ID: id, Fence: f}})
		c.complete(ctx, x.ID, f)
	}
	c.check("work", err)
}

// report reports tokens now and then, under a key that stays the same for the lease.
func (c *crew) report(ctx context.Context, rng *rand.Rand, id base.GivenID, f core.Fence) {
	for range rng.IntN(3) {
		_, err := c.e.ReportUsage(ctx, client, id, engine.UsageRequest{Fence: f, Usage: map[string]int64{"tokens": 4}, DedupKey: fmt.Sprint(f.Epoch)})
		c.check("report", err)
	}
}

func (c *crew) complete(ctx context.Context, id base.ID, f core.Fence) {
	if _, err := c.e.Complete(ctx, client, id.Given(), f, &core.Payload{Data: []byte(id.String())}); c.check("complete", err) {
		c.j.tell("completed", id, f.Epoch)
	}
}

// haunt sends commands with fences that are known to be superseded: none may be accepted (I3). A repeat of what the same lease
// did before is answered again, and changes nothing.
func (c *crew) haunt(ctx context.Context, rng *rand.Rand, _ string) {
	for ctx.Err() == nil {
		id, f, ok := c.j.stale(rng)
		if !ok {
			id, _ = c.j.any(rng)
			_, _ = c.e.Describe(ctx, client, id.Given()) // nothing to haunt yet
			continue
		}
		c.j.haunted.Add(1)
		switch rng.IntN(3) {
		case 0:
			if answer, err := c.e.Complete(ctx, client, id.Given(), f, nil); err == nil && !answer.Repeated {
				c.j.violation("I3: %s completed under the stale epoch %d", id, f.Epoch)
			}
		case 1:
			if items, err := c.e.Renew(ctx, client, []engine.LeaseRef{{ID: id.Given(), Fence: f}}); err == nil && items[0].Err == nil {
				c.j.violation("I3: the stale epoch %d of %s was renewed", f.Epoch, id)
			}
		default:
			if _, err := c.e.PutStep(ctx, client, id.Given(), f, "zombie", core.Payload{}); err == nil {
				c.j.violation("I3: %s took a step under the stale epoch %d", id, f.Epoch)
			}
		}
	}
}

func (c *crew) operate(ctx context.Context, rng *rand.Rand, _ string) {
	for ctx.Err() == nil {
		id, ok := c.j.any(rng)
		if !ok {
			_, _ = c.e.ServerTime(ctx)
			continue
		}
		given, op := id.Given(), engine.Operator{RequestKey: fmt.Sprint(rng.Uint64())}
		var err error
		switch rng.IntN(8) {
		case 0:
			if _, err = c.e.Cancel(ctx, operator, given, nil, "", op); err == nil {
				c.j.tell("cancelled", id)
			}
		case 1:
			_, err = c.e.Hold(ctx, operator, given, op)
		case 2, 3:
			_, err = c.e.ReleaseHold(ctx, operator, given, op)
		case 4:
			_, err = c.e.Revoke(ctx, operator, given, engine.RevokeRequest{}, op)
		case 5:
			_, err = c.e.SetPriority(ctx, operator, given, rng.IntN(3), op)
		default:
			_, err = c.e.Replay(ctx, operator, given, engine.ReplayRequest{}, op)
		}
		c.check("operate", err)
	}
}
