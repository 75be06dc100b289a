package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// work are the moves of clients, workers and operators.
func work() []kind {
	return []kind{
		{name: "submit", weight: 20, always: true, do: submit},
		{name: "submit many", weight: 4, do: submitMany},
		{name: "claim", weight: 22, always: true, do: claim},
		{name: "complete", weight: 16, always: true, do: complete},
		{name: "complete many", weight: 4, do: completeMany},
		{name: "fail", weight: 5, do: fail},
		{name: "delay", weight: 3, do: delay},
		{name: "release", weight: 3, do: release},
		{name: "renew", weight: 4, do: renew},
		{name: "repeat", weight: 6, always: true, do: repeat},
		{name: "cancel", weight: 3, do: cancel},
		{name: "operate", weight: 5, do: operate},
		{name: "report", weight: 5, do: reportUsage},
		{name: "limit", weight: 3, do: limit},
		{name: "suspend", weight: 6, do: suspend},
		{name: "early", weight: 2, do: early},
		{name: "signal", weight: 7, do: signal},
		{name: "resume", weight: 3, do: resume},
		{name: "step", weight: 3, do: step},
		{name: "submit flow", weight: 6, do: submitFlow},
		{name: "cancel flow", weight: 2, do: cancelFlow},
		{name: "extend flow", weight: 3, do: extendFlow},
		{name: "replay", weight: 4, do: replay},
		{name: "spawn", weight: 4, do: spawn},
		{name: "grant", weight: 4, do: grantWork},
		{name: "claim grant", weight: 4, do: claimGrant},
		{name: "targeted", weight: 3, do: targeted},
		{name: "delete", weight: 2, do: remove},
		{name: "own tx", weight: 3, do: ownTx},
		{name: "follow", weight: 4, always: true, do: follow},
	}
}

// The lanes of a history.
const (
	plainLane  = "plain"  // in order, whatever fairness
	fairLane   = "fair"   // as lanes are by default
	cappedLane = "capped" // a few at a time
	laneCap    = 3
)

func lanes() []string { return []string{plainLane, fairLane, cappedLane} }

// submission is the same for the same number, from any sender.
func submission(n int) core.Submission {
	limits := ""
	if n%7 == 3 {
		limits = `"execution_deadline_ms":20000,`
	}
	s := core.Submission{
		IdempotencyKey: fmt.Sprintf("key-%d", n), Lane: lanes()[n%3], Kind: fmt.Sprintf("k%d", n%2), Priority: n % 3,
		Input:      core.Payload{Data: fmt.Appendf(nil, "in %d", n)},
		PolicyJSON: []byte(`{` + timeouts(limits) + limited(n) + `"max_reclaim_count":1000,"max_replay_count":20,"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":400}}}`),
	}
	if n%11 == 5 {
		delay := base.Millis(100 + n%700)
		s.DelayMS = &delay
	}
	return s
}

func timeouts(limits string) string {
	if limits == "" {
		return ""
	}
	return `"timeout_policy":{` + limits[:len(limits)-1] + `},`
}

// keyPool is how many different submissions there are: clients meet.
const keyPool = 60

func submit(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	s := submission(r.IntN(keyPool))
	w.issue(p, "submit "+s.IdempotencyKey, func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Submit(ctx, client(""), s)
	}, func(answer any, err error) {
		if err == nil {
			w.journal.submitted(s.IdempotencyKey, answer.(engine.SubmitAnswer).ID, s.Lane)
		}
	})
}

func submitMany(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	var all []core.Submission
	for range 2 + r.IntN(7) {
		all = append(all, submission(r.IntN(keyPool)))
	}
	atomic := r.IntN(2) == 0
	w.issue(p, fmt.Sprintf("submit %d at once, atomic %v", len(all), atomic), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.SubmitMany(ctx, client(""), all, atomic)
	}, func(answer any, err error) {
		if err != nil {
			return
		}
		for i, item := range answer.([]engine.SubmitItem) {
			if item.Err == nil {
				w.journal.submitted(all[i].IdempotencyKey, item.ID, all[i].Lane)
			}
		}
	})
}

// ttl is of every lease.
const ttl = base.Millis(4000)

func claimRequest(w *World, r *rand.Rand) engine.ClaimRequest {
	n := r.IntN(4)
	return engine.ClaimRequest{
		WorkerID: fmt.Sprintf("w%d", n), InstanceID: fmt.Sprintf("i%d", n), Lanes: pick(r, lanes(), lanes(), lanes()[:1], lanes()[1:]), Max: 1 + r.IntN(4),
		Wait: pick(r, 0, 300*time.Millisecond, 3*time.Second), TTL: ttl, RequestKey: w.requestKey(),
	}
}

func claim(w *World, r *rand.Rand) {
	if p := w.up(r); p != nil {
		w.claims(p, claimRequest(w, r), nil)
	}
}

// claims claims work through a process.
func (w *World) claims(p *process, q engine.ClaimRequest, then func([]*lease)) {
	tries := 0
	w.issue(p, fmt.Sprintf("claim %d of %v for %s, wait %v", q.Max, q.Lanes, q.InstanceID, q.Wait), func(ctx context.Context, e *engine.Engine) (any, error) {
		again := q
		again.Repeat = tries > 0
		tries++
		return e.Claim(ctx, client(""), again)
	}, func(answer any, err error) {
		if err != nil {
			return
		}
		var got []*lease
		for _, t := range answer.(engine.ClaimAnswer).Tasks {
			if l := w.journal.leased(&t, q.InstanceID); l != nil {
				got = append(got, l)
				w.record("   %s runs %s", q.InstanceID, l)
			}
		}
		if then != nil {
			then(got)
		}
	})
}

// lease picks a lease: most often one that is held, now and then one that is over.
func (w *World) lease(r *rand.Rand) *lease {
	var list []*lease
	stale := r.IntN(6) == 0
	for _, l := range w.journal.leases {
		if stale || !l.left && l.f.Epoch == l.j.epoch {
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

// underLease begins a command under a lease.
func underLease(w *World, r *rand.Rand, what string, leaves bool, run func(ctx context.Context, e *engine.Engine, l *lease) (any, error), then func(l *lease, known int64, answer any, err error)) {
	l, p := w.lease(r), w.up(r)
	if l == nil || p == nil {
		return
	}
	known := l.j.epoch
	l.left = l.left || leaves
	w.issue(p, what+" "+l.String(), func(ctx context.Context, e *engine.Engine) (any, error) {
		return run(ctx, e, l)
	}, func(answer any, err error) {
		then(l, known, answer, err)
	})
}

func complete(w *World, r *rand.Rand) {
	underLease(w, r, "complete", true, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.Complete(ctx, client(""), l.j.id.Given(), l.f, &core.Payload{Data: []byte(l.String())})
	}, func(l *lease, known int64, answer any, err error) {
		if err != nil {
			return
		}
		a := answer.(core.CompleteAnswer)
		w.journal.fenced("complete", l, known, err, a.Repeated)
		w.journal.ended(l.j, a.Status, a.Repeated)
	})
}

func completeMany(w *World, r *rand.Rand) {
	p := w.up(r)
	var leases []*lease
	var known []int64
	for range 2 + r.IntN(5) {
		if l := w.lease(r); l != nil {
			leases, known = append(leases, l), append(known, l.j.epoch)
			l.left = true
		}
	}
	if p == nil || len(leases) == 0 {
		return
	}
	w.issue(p, fmt.Sprintf("complete %v", leases), func(ctx context.Context, e *engine.Engine) (any, error) {
		var all []engine.Ending
		for _, l := range leases {
			all = append(all, engine.Ending{ID: l.j.id.Given(), Completion: core.Completion{Fence: l.f}})
		}
		items := e.CompleteMany(ctx, client(""), all)
		for _, item := range items {
			if item.Err != nil && unknown(item.Err) {
				return nil, item.Err
			}
		}
		return items, nil
	}, func(answer any, err error) {
		if err != nil {
			return
		}
		for i, item := range answer.([]engine.CompleteItem) {
			if item.Err == nil {
				w.journal.fenced("complete", leases[i], known[i], nil, item.Repeated)
				w.journal.ended(leases[i].j, item.Status, item.Repeated)
			}
		}
	})
}

func fail(w *World, r *rand.Rand) {
	class := pick(r, "transient", "transient", "permanent")
	underLease(w, r, "fail "+class, true, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.Fail(ctx, client(""), l.j.id.Given(), core.FailCommand{Fence: l.f, Class: class, Message: "no"})
	}, func(l *lease, known int64, answer any, err error) {
		if err != nil {
			return
		}
		a := answer.(core.FailAnswer)
		w.journal.fenced("fail", l, known, err, a.Repeated)
		if a.Outcome == "failed" {
			w.journal.ended(l.j, core.Failed, a.Repeated)
		}
	})
}

func delay(w *World, r *rand.Rand) {
	d := pick(r, base.Millis(20), 300, 1500)
	underLease(w, r, "delay", true, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.DelayFor(ctx, client(""), l.j.id.Given(), l.f, d)
	}, func(l *lease, known int64, answer any, err error) {
		if err == nil {
			w.journal.fenced("delay", l, known, err, answer.(core.LeaveAnswer).Repeated)
		}
	})
}

func release(w *World, r *rand.Rand) {
	underLease(w, r, "release", true, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.Release(ctx, client(""), l.j.id.Given(), l.f, "")
	}, func(l *lease, known int64, answer any, err error) {
		if err == nil {
			w.journal.fenced("release", l, known, err, answer.(core.LeaveAnswer).Repeated)
		}
	})
}

func renew(w *World, r *rand.Rand) {
	underLease(w, r, "renew", false, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		items, err := e.Renew(ctx, client(""), []engine.LeaseRef{{ID: l.j.id.Given(), Fence: l.f}})
		if err == nil {
			err = items[0].Err
		}
		return nil, err
	}, func(l *lease, known int64, _ any, err error) { w.journal.fenced("renew", l, known, err, false) })
}

func repeat(w *World, r *rand.Rand) {
	p, n := w.up(r), len(w.journal.unknown)
	if p != nil && n > 0 {
		w.repeat(p, r.IntN(n))
	}
}

// someJob picks an execution that a caller knows.
func (w *World) someJob(r *rand.Rand) *job {
	if n := len(w.journal.jobs); n > 0 {
		return w.journal.jobs[r.IntN(n)]
	}
	return nil
}

func cancel(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if p == nil || j == nil {
		return
	}
	op := engine.Operator{RequestKey: w.requestKey()}
	w.issue(p, "cancel "+short(j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Cancel(ctx, operator(), j.id.Given(), nil, "operator", op)
	}, func(answer any, err error) {
		if err == nil && answer.(engine.View).Execution.Status == core.Cancelled {
			j.cancelled = true
		}
	})
}

// operate does one of the things that operators do.
func operate(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if p == nil || j == nil {
		return
	}
	op, id := engine.Operator{RequestKey: w.requestKey()}, j.id.Given()
	what := pick(r, "hold", "release hold", "release hold", "revoke", "priority", "replay", "replay", "pause", "resume lane", "resume lane")
	if what == "replay" {
		j.replayed = true
	}
	priority, lane := r.IntN(5), lanes()[r.IntN(3)]
	w.issue(p, what+" "+short(j.id), func(ctx context.Context, e *engine.Engine) (answer any, err error) {
		switch what {
		case "hold":
			_, err = e.Hold(ctx, operator(), id, op)
		case "release hold":
			_, err = e.ReleaseHold(ctx, operator(), id, op)
		case "revoke":
			_, err = e.Revoke(ctx, operator(), id, engine.RevokeRequest{}, op)
		case "priority":
			_, err = e.SetPriority(ctx, operator(), id, priority, op)
		case "replay":
			_, err = e.Replay(ctx, operator(), id, engine.ReplayRequest{}, op)
		case "pause":
			_, err = e.SetLaneState(ctx, operator(), lane, core.LanePaused, op)
		default:
			_, err = e.SetLaneState(ctx, operator(), lane, core.LaneActive, op)
		}
		return nil, err
	}, func(any, error) {})
}
