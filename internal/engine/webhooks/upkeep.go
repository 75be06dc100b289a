package webhooks

import (
	"context"
	"reflect"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	trimSlack   = 256 // records above what is kept, so that they are removed in bulk
	upkeepBatch = 500 // records in one transaction
)

// trim removes the oldest finished deliveries of an endpoint above what is kept.
func (r *runner) trim(ctx context.Context) error {
	for _, part := range []struct {
		place string
		keep  int
	}{{inDone, webhook.KeptDone}, {inDead, webhook.KeptOther}, {inCancelled, webhook.KeptOther}} {
		if n := *countOf(&r.queue, part.place) - part.keep; n > trimSlack {
			if err := r.trimPlace(ctx, part.place, min(n, upkeepBatch)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) trimPlace(ctx context.Context, place string, n int) error {
	return r.w.onQueue(ctx, r.id, store.Scan{Kind: docDelivery, Prefix: deliveryPrefix(r.id, place), Limit: n}, func(u *txn.Tx, q *webhook.Queue, docs []store.Doc) error {
		if !q.Holds(r.w.process, r.epoch) {
			return nil
		}
		for i := range docs {
			u.DropDoc(docs[i].DocRef)
			*countOf(q, place)--
		}
		r.queue = *q
		return nil
	})
}

// onQueue changes a queue and records that were scanned under its lock. A queue that does not exist any more is nil.
func (w *Webhooks) onQueue(ctx context.Context, id base.UUID, scan store.Scan, change func(u *txn.Tx, q *webhook.Queue, docs []store.Doc) error) error {
	u, err := w.Begin(ctx, store.Want{LockDocs: true, Docs: []store.DocRef{queueRef(id)}, Scans: []store.Scan{scan}})
	if err != nil {
		return err
	}
	defer u.StoreTx.Rollback(ctx)
	q, err := decodeQueue(u.Doc(queueRef(id)))
	if err != nil {
		return err
	}
	if err := change(u, q, u.Scanned[0]); err != nil {
		return err
	}
	if q != nil {
		u.PutDoc(encode(queueRef(id), q))
	}
	return u.Commit(ctx, []string{"webhook_upkeep"})
}

// cancelArgs are the arguments of taskCancel.
type cancelArgs struct {
	Endpoint base.UUID `json:"endpoint_id"`
	To       base.UUID `json:"to"` // deliveries up to this one
}

// cancelPending cancels the pending deliveries of an endpoint whose receiver is gone (E43).
func (w *Webhooks) cancelPending(ctx context.Context, t *txn.FollowUp[cancelArgs]) error {
	id := t.Args.Endpoint
	for _, place := range []string{inQueue, inRetry} {
		for more := true; more; {
			scan := store.Scan{Kind: docDelivery, Prefix: deliveryPrefix(id, place), Limit: upkeepBatch}
			err := w.onQueue(ctx, id, scan, func(u *txn.Tx, q *webhook.Queue, docs []store.Doc) error {
				more = len(docs) == upkeepBatch
				if q == nil {
					more = false
					return nil
				}
				for i := range docs {
					d, err := decodeDelivery(&docs[i])
					if err != nil {
						return err
					}
					if compareIDs(d.ID, t.Args.To) > 0 {
						more = false // ids increase
						break
					}
					ended := d.Cancel(u.Now)
					leave(u, id, q, place, d)
					u.DropDoc(docs[i].DocRef)
					enter(u, id, q, inCancelled, &ended)
					u.PutDoc(deliveryDoc(id, inCancelled, &ended, docs[i].Data))
				}
				w.countSafe(u, map[string]int64{outcomeCancelled: int64(len(docs))})
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return w.onQueue(ctx, id, store.Scan{Kind: docDue, Prefix: duePrefix(id), Limit: 1}, func(_ *txn.Tx, q *webhook.Queue, _ []store.Doc) error {
		if q != nil && q.CancelledTo == t.Args.To {
			q.CancelledTo = base.UUID{}
		}
		return nil
	})
}

// eraseArgs are the arguments of taskErase.
type eraseArgs struct {
	Endpoint base.UUID `json:"endpoint_id"`
}

// eraseDeliveries removes what is left of an endpoint that was deleted.
func (w *Webhooks) eraseDeliveries(ctx context.Context, t *txn.FollowUp[eraseArgs]) error {
	for _, kind := range []store.DocKind{docDelivery, docDue} {
		for {
			loaded, err := w.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: kind, Prefix: t.Args.Endpoint.String() + "/", Limit: upkeepBatch}}})
			if err != nil {
				return err
			}
			docs := loaded.Scanned[0]
			if len(docs) == 0 {
				break
			}
			ch := &store.Changes{}
			for i := range docs {
				ch.DropDocs = append(ch.DropDocs, docs[i].DocRef)
			}
			if err := w.Write(ctx, "erase_webhook", ch); err != nil {
				return err
			}
		}
	}
	return nil
}

// The outcomes of ff_webhook_deliveries_total.
const (
	outcomeDelivered = "delivered"
	outcomeFailed    = "failed" // and is tried again
	outcomeDead      = "dead"
	outcomeCancelled = "cancelled"
)

func outcomeOf(d *webhook.Delivery) string {
	switch d.State {
	case webhook.Done:
		return outcomeDelivered
	case webhook.Dead:
		return outcomeDead
	case webhook.Cancelled:
		return outcomeCancelled
	}
	return outcomeFailed
}

func (w *Webhooks) count(outcomes map[string]int64) {
	for outcome, n := range outcomes {
		if n > 0 {
			w.counted.With(outcome).Add(n)
		}
	}
}

func (w *Webhooks) countSafe(u *txn.Tx, outcomes map[string]int64) {
	u.Safe.Then(func(err error) {
		if err == nil {
			w.count(outcomes)
		}
	})
}

// readPending counts the deliveries that wait.
func (w *Webhooks) readPending(ctx context.Context) ([]metrics.Family, error) {
	pending := 0
	for after, more := "", true; more; {
		loaded, err := w.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docQueue, After: after, Limit: endpointsAtOnce}}})
		if err != nil {
			return nil, err
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			if q, err := decodeQueue(&docs[i]); err == nil {
				pending += q.Pending()
			}
		}
		if more = len(docs) == endpointsAtOnce; more {
			after = docs[len(docs)-1].Key
		}
	}
	return []metrics.Family{metrics.WebhooksPending.Reading(float64(pending))}, nil
}

func equal(a, b *webhook.Queue) bool { return reflect.DeepEqual(a, b) }
