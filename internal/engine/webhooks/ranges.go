package webhooks

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// fillReads is how many parts of the log one look at a range reads at most: a filter that keeps few events must not keep requests waiting.
const fillReads = 16

// ReplayWebhook sends the events of a part of the log again (E39): those behind a cursor, up to another one. A cursor may be start or end.
// Codes: webhook_not_found, invalid_cursor, cursor_too_old, namespace_limit_exceeded.
func (w *Webhooks) ReplayWebhook(ctx context.Context, c txn.Caller, id base.UUID, after, until string, how admin.AdminAction) error {
	if _, err := w.Webhook(ctx, c, id); err != nil {
		return err
	}
	from, err := w.place(ctx, "after", after)
	if err != nil {
		return err
	}
	to, err := w.place(ctx, "until", until)
	if err != nil {
		return err
	}
	if !from.Before(to) {
		return base.Errorf(base.CodeInvalidCursor, "until does not lie behind after").WithField("until")
	}
	_, err = w.run(ctx, endpointChange{op: "replay_webhook", caller: c, how: how, id: id, args: []any{after, until}, act: func(o *opened) (bool, error) {
		if len(o.queue.Ranges) >= webhook.MostRanges {
			return false, base.Errorf(base.CodeNamespaceLimitExceeded, "%d parts of the log wait to be sent already", webhook.MostRanges).
				WithHint("wait until they are sent")
		}
		o.queue.Ranges = append(o.queue.Ranges, webhook.Range{From: from, To: to})
		w.attend(o.u, id, o.queue, true)
		o.u.PutDoc(encode(queueRef(id), o.queue))
		return true, nil
	}})
	return err
}

func (w *Webhooks) place(ctx context.Context, field, cursor string) (webhook.Place, error) {
	seq, index, err := w.events.PlaceOf(ctx, cursor)
	if err != nil {
		if refusal, ok := asRefusal(err); ok && refusal.Field == "after" {
			return webhook.Place{}, refusal.WithField(field)
		}
		return webhook.Place{}, err
	}
	return webhook.Place{Seq: seq, Index: index}, nil
}

// fill reads on in the first part of the log that waits to be sent, and writes deliveries for what the endpoint takes of it.
func (r *runner) fill(ctx context.Context) error {
	part := r.queue.Ranges[0]
	t, err := targetOf(r.endpoint)
	if err != nil {
		return err
	}
	since := r.w.Incarnation()
	found, to, err := r.inRange(ctx, t, part)
	if err != nil {
		return err
	}
	if to == part.From { // this process has not read as far: it will have in a moment
		r.looked, r.retryAt = false, r.w.hostNow().Add(r.w.Cfg.PollInterval)
		return nil
	}
	all, err := r.w.prepare(found)
	if err != nil {
		return err
	}
	cmd := &fill{w: r.w, id: r.id, epoch: r.epoch, all: all, part: part, to: to, incarnation: since}
	if err := r.w.RunNow(cmd); err != nil {
		return err
	}
	r.looked = false
	if r.lost = cmd.lost; !r.lost {
		r.queue = cmd.queue
	}
	return nil
}

// inRange finds the next events in a part of the log that the endpoint takes. It returns the place behind what it has looked at.
func (r *runner) inRange(ctx context.Context, t *target, part webhook.Range) (found []match, to webhook.Place, err error) {
	to = part.From
	most := min(pickAtOnce, webhook.MostPending-r.queue.Pending())
	for range fillReads {
		commits, err := r.w.Log.Read(ctx, to.Seq-1, txn.LogRead)
		if err != nil {
			return nil, to, err
		}
		if len(commits) == 0 {
			return found, to, nil // the rest is not final yet
		}
		for i := range commits {
			c := &commits[i]
			if c.Seq > to.Seq {
				to = webhook.Place{Seq: c.Seq}
			}
			for ; int(to.Index) < len(c.Events); to.Index++ {
				if !to.Before(part.To) || len(found) >= most {
					return found, to, nil
				}
				if t.wants(&c.Events[to.Index]) {
					found = append(found, match{endpoint: r.id, commit: c, index: int(to.Index)})
				}
			}
			to = webhook.Place{Seq: c.Seq + 1}
		}
		if !to.Before(part.To) {
			break
		}
	}
	return found, to, nil
}

// fill is the transaction that writes deliveries for a part of the log.
type fill struct {
	w           *Webhooks
	id          base.UUID
	epoch       int64
	all         []picked
	part        webhook.Range
	to          webhook.Place
	incarnation string

	lost  bool
	queue webhook.Queue
}

// Name returns the name of the operation.
func (f *fill) Name() string { return "fill_deliveries" }

// Want adds the queue.
func (f *fill) Want(w *store.Want, _ bool) {
	w.LockDocs = true
	w.Docs = append(w.Docs, queueRef(f.id))
}

// Decide writes the deliveries, if the lease is still that of the runner.
func (f *fill) Decide(u *txn.Tx) error {
	queues := openQueues{w: f.w, u: u}
	q, err := queues.of(f.id)
	if err != nil {
		return err
	}
	if f.lost = q == nil || !q.Holds(f.w.process, f.epoch); f.lost {
		return nil
	}
	if u.Since != f.incarnation {
		return errOtherEndpoints // the places may be those of another log
	}
	if len(q.Ranges) == 0 || q.Ranges[0] != f.part {
		f.queue = *q
		return nil
	}
	for i := range f.all {
		queues.add(&f.all[i], q)
	}
	if q.Ranges[0].From = f.to; !f.to.Before(f.part.To) {
		q.Ranges = q.Ranges[1:]
	}
	q.Renew(u.Now)
	u.PutDoc(encode(queueRef(f.id), q))
	f.queue = *q
	return nil
}
