package sim

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// grantWork promises work to a worker, which claims it later or gives it back.
func grantWork(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	q := claimRequest(w, r)
	q.Wait, q.GrantTTL, q.TTL = 0, 2500, 0
	w.issue(p, "grant for "+q.InstanceID, func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Grant(ctx, client(""), q)
	}, func(answer any, err error) {
		if err != nil {
			return
		}
		for _, g := range answer.([]engine.Grant) {
			w.journal.grants = append(w.journal.grants, grant{j: w.journal.job(g.ID, ""), key: g.Key, instance: q.InstanceID})
		}
	})
}

func claimGrant(w *World, r *rand.Rand) {
	p, n := w.up(r), len(w.journal.grants)
	if p == nil || n == 0 {
		return
	}
	g := w.journal.grants[max(0, n-1-r.IntN(4))]
	back := r.IntN(4) == 0
	w.issue(p, "claim the grant of "+short(g.j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		if back {
			return nil, e.ReturnGrant(ctx, client(""), g.key)
		}
		return e.ClaimGrant(ctx, client(""), g.key, engine.GrantClaim{WorkerID: "w" + g.instance[1:], InstanceID: g.instance, TTL: ttl})
	}, func(answer any, err error) {
		if err == nil && !back {
			t := answer.(engine.Task)
			if l := w.journal.leased(&t, g.instance); l != nil {
				w.record("   %s runs %s", g.instance, l)
			}
		}
	})
}

// targeted claims one execution past the queue.
func targeted(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if p == nil || j == nil {
		return
	}
	n := r.IntN(4)
	q := engine.TargetedRequest{WorkerID: fmt.Sprintf("w%d", n), InstanceID: fmt.Sprintf("i%d", n), TTL: ttl, RequestKey: w.requestKey(), Force: r.IntN(4) == 0, Reason: "now"}
	what := pick(r, "operator claim", "reclaim", "claim resumed")
	if what != "operator claim" {
		q.Force = false
	}
	w.issue(p, what+" "+short(j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		switch what {
		case "reclaim":
			return e.Reclaim(ctx, client(""), j.id.Given(), q)
		case "claim resumed":
			return e.ClaimResumed(ctx, client(""), j.id.Given(), q)
		}
		return e.OperatorClaim(ctx, operator(), j.id.Given(), q)
	}, func(answer any, err error) {
		if err == nil {
			t := answer.(engine.Task)
			if l := w.journal.leased(&t, q.InstanceID); l != nil {
				w.record("   %s runs %s", q.InstanceID, l)
			}
		}
	})
}

// remove deletes an execution that is over.
func remove(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if p == nil || j == nil {
		return
	}
	j.deleted, j.replayed, w.journal.deletes = true, true, true // its id and key may come again
	for key, other := range w.journal.byKey {
		if other == j {
			delete(w.journal.byKey, key)
		}
	}
	op := engine.Operator{RequestKey: w.requestKey()}
	w.issue(p, "delete "+short(j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		return nil, e.Delete(ctx, operator(), j.id.Given(), op)
	}, func(any, error) {})
}

// ownTx submits in a transaction of the user.
func ownTx(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	s := submission(r.IntN(keyPool))
	commit := r.IntN(4) > 0
	c := w.issue(p, "submit in a transaction "+s.IdempotencyKey, func(ctx context.Context, e *engine.Engine) (any, error) {
		tx := w.db.BeginOwn()
		answer, err := e.SubmitTx(ctx, client(""), tx, s)
		if err != nil || !commit {
			_ = tx.Rollback()
			return nil, err
		}
		return answer.ID, tx.Commit()
	}, func(answer any, err error) {
		if id, filed := answer.(base.ID); err == nil && filed {
			w.journal.submitted(s.IdempotencyKey, id, s.Lane)
		}
	})
	c.once = true
}

// follow reads on in the log, through whichever process (I6).
func follow(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	at := r.IntN(len(w.journal.readers))
	reader := &w.journal.readers[at]
	if reader.busy {
		return
	}
	reader.busy = true
	c := w.issue(p, fmt.Sprintf("reader %d", at), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.ReadEvents(ctx, client(""), engine.EventsRequest{After: reader.cursor, Limit: 50})
	}, nil)
	c.then = func(answer any, err error) {
		reader.busy = false
		if err != nil {
			w.found("I6: reader %d: %v", at, err)
			return
		}
		reader.take(answer.(engine.EventPage))
	}
}
