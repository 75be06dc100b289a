package webhooks

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// sweepQueues looks at queues whose timers are due: deliveries are due for another attempt, or the process that worked on them is gone.
func (w *Webhooks) sweepQueues(ctx context.Context, t store.Timer) error {
	seen := map[string]bool{}
	var cmds []txn.Command
	for _, text := range t.Texts {
		if id, ok := base.ParseUUID(text); ok && !seen[text] {
			seen[text] = true
			cmds = append(cmds, &visit{w: w, id: id})
		}
	}
	for _, err := range w.DoAll(ctx, cmds) {
		if err != nil {
			return err
		}
	}
	return nil
}

// visit looks at one queue.
type visit struct {
	w  *Webhooks
	id base.UUID
}

// Name returns the name of the operation.
func (v *visit) Name() string { return "visit_deliveries" }

// Yields says that others do not wait for all queues.
func (v *visit) Yields() {}

// Want adds the endpoint, its queue and the delivery that is due first.
func (v *visit) Want(w *store.Want, _ bool) {
	w.LockDocs = true
	w.Docs = append(w.Docs, endpointRef(v.id), queueRef(v.id))
	w.Scans = append(w.Scans, store.Scan{Kind: docDue, Prefix: duePrefix(v.id), Limit: 1})
}

// Decide has the deliveries sent that are due, and arms the next timer.
func (v *visit) Decide(u *txn.Tx) error {
	q, err := decodeQueue(u.Doc(queueRef(v.id)))
	if err != nil || q == nil {
		return err
	}
	endpoint, err := decodeEndpoint(u.Doc(endpointRef(v.id)))
	if err != nil {
		return err
	}
	before := *q
	for _, stands := range []*base.Time{&q.TimerAt, &q.DueTimer} {
		if *stands <= u.Now {
			*stands = 0
		}
	}
	due := v.due(u)
	switch {
	case q.Leased(u.Now) && (q.Owner != v.w.process || v.w.runners.runs(v.id, q.Epoch)):
		armQueue(u, v.id, q, q.Until)
		if due.Reached(u.Now) {
			u.Safe.Then(func(error) { v.w.runners.kick(v.id) })
		}
	case endpoint == nil || !endpoint.Active():
	case q.Queued == 0 && !q.MayFill() && !due.Reached(u.Now):
		if due != 0 {
			armDue(u, v.id, q, due)
		}
	case v.w.mayTake(v.id, q):
		v.w.take(u, v.id, q)
	default:
		armQueue(u, v.id, q, u.Now.Add(base.Second)) // another process may have room
	}
	if !equal(&before, q) {
		u.PutDoc(encode(queueRef(v.id), q))
	}
	return nil
}

// due is when the first delivery that failed is due again; absent: none failed.
func (v *visit) due(u *txn.Tx) base.Time {
	for i := range u.Scanned {
		if docs := u.Scanned[i]; len(docs) > 0 && docs[0].Kind == docDue && strings.HasPrefix(docs[0].Key, duePrefix(v.id)) {
			at, _, _ := parseDue(v.id, docs[0].Key)
			return at
		}
	}
	return 0
}
