package webhooks

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// match is an event that an endpoint takes.
type match struct {
	endpoint base.UUID
	commit   *store.Commit
	index    int
}

func (m *match) place() webhook.Place {
	return webhook.Place{Seq: m.commit.Seq, Index: int32(m.index)}
}

// picked is an event that endpoints take, with what is stored of it.
type picked struct {
	place    webhook.Place
	endpoint base.UUID
	delivery webhook.Delivery // without an id
	envelope []byte
}

// errOtherEndpoints is why a round of the feed does not count.
var errOtherEndpoints = errors.New("the endpoints have changed")

// pick writes deliveries, and moves the feed behind them, in one transaction (E42).
func (f *feeder) pick(ctx context.Context, found []match, to webhook.Place) error {
	all, err := f.w.prepare(found)
	if err != nil {
		return err
	}
	cmd := &pick{w: f.w, all: all, to: to, revision: f.stored.Revision, incarnation: f.incarnation}
	err = f.w.RunNow(cmd)
	switch {
	case errors.Is(err, errOtherEndpoints):
		f.stale.Store(true)
		return nil
	case err != nil:
		return err
	}
	if cmd.feed.By != f.w.process { // another one was faster
		f.w.runners.kickAll()
	}
	f.stored = cmd.feed
	f.at = to
	if f.at.Before(cmd.feed.At) {
		f.at = cmd.feed.At
	}
	return ctx.Err()
}

// prepare encodes events, each once, however many endpoints take it.
func (w *Webhooks) prepare(found []match) ([]picked, error) {
	all := make([]picked, len(found))
	for i := range found {
		m := &found[i]
		if i > 0 && found[i-1].place() == m.place() {
			all[i] = all[i-1]
			all[i].endpoint = m.endpoint
			continue
		}
		ev := w.events.Placed(m.commit, m.index)
		envelope, err := w.setup.Load().Envelope(ev)
		if err != nil {
			return nil, err
		}
		all[i] = picked{
			place: m.place(), endpoint: m.endpoint, envelope: envelope,
			delivery: webhook.Delivery{EventID: ev.ID, Kind: ev.Kind, EventAt: ev.At, State: webhook.Pending},
		}
	}
	return all, nil
}

// pick is the transaction of a round of the feed.
type pick struct {
	w           *Webhooks
	all         []picked
	to          webhook.Place
	revision    int64
	incarnation string
	feed        feed // as it is then
}

// Name returns the name of the operation.
func (p *pick) Name() string { return "pick_deliveries" }

// Want adds the feed and the queues of the endpoints.
func (p *pick) Want(w *store.Want, _ bool) {
	w.LockDocs = true
	seen := map[base.UUID]bool{}
	for i := range p.all {
		if id := p.all[i].endpoint; !seen[id] {
			seen[id] = true
			w.Docs = append(w.Docs, queueRef(id))
		}
	}
	w.Docs = append(w.Docs, feedRef)
}

// Decide writes what no other process has written.
func (p *pick) Decide(u *txn.Tx) error {
	now, err := feedOf(u.Doc(feedRef))
	if err != nil {
		return err
	}
	if u.Since != p.incarnation || now.Revision != p.revision {
		return errOtherEndpoints
	}
	queues := openQueues{w: p.w, u: u}
	for i := range p.all {
		one := &p.all[i]
		if one.place.Before(now.At) {
			continue
		}
		q, err := queues.of(one.endpoint)
		if err != nil {
			return err
		}
		if q == nil || q.Stopped != nil {
			continue
		}
		if q.Pending() >= webhook.MostPending {
			q.Stop(one.place)
			continue
		}
		queues.add(one, q)
	}
	queues.close(true)
	if now.At.Before(p.to) {
		now.At, now.By = p.to, p.w.process
		u.PutOrAdd(encode(feedRef, now))
	}
	p.feed = *now
	return nil
}

// openQueues are the queues that a transaction gives deliveries to.
type openQueues struct {
	w    *Webhooks
	u    *txn.Tx
	all  map[base.UUID]*webhook.Queue
	list []base.UUID // in order of first use
}

// of returns a queue that the transaction has locked; nil if its endpoint was deleted.
func (o *openQueues) of(id base.UUID) (*webhook.Queue, error) {
	if q, known := o.all[id]; known {
		return q, nil
	}
	q, err := decodeQueue(o.u.Doc(queueRef(id)))
	if err != nil {
		return nil, err
	}
	txn.SetIn(&o.all, id, q)
	if q != nil {
		o.list = append(o.list, id)
	}
	return q, nil
}

// add writes a delivery.
func (o *openQueues) add(one *picked, q *webhook.Queue) base.UUID {
	d := one.delivery
	d.ID, d.CreatedAt = q.NextID(o.u.Now, random()), o.u.Now
	q.Queued++
	o.u.AddDoc(deliveryDoc(one.endpoint, inQueue, &d, one.envelope))
	return d.ID
}

func random() (bytes [10]byte) {
	rand.Read(bytes[:]) // never fails
	return bytes
}

// close writes the queues, and has somebody send what is in them. lease: this process takes those that no other one works on.
func (o *openQueues) close(lease bool) {
	for _, id := range o.list {
		q := o.all[id]
		o.w.attend(o.u, id, q, lease)
		o.u.PutDoc(encode(queueRef(id), q))
	}
}

// attend sees to it that the deliveries of a queue are sent: by the process that works on it, else by this one, else by the one that takes the timer.
func (w *Webhooks) attend(u *txn.Tx, id base.UUID, q *webhook.Queue, lease bool) {
	switch {
	case q.Leased(u.Now) && (q.Owner != w.process || w.runners.runs(id, q.Epoch)):
		u.Safe.Then(func(err error) {
			if err == nil {
				w.runners.kick(id)
			}
		})
	case lease && w.mayTake(id, q):
		w.take(u, id, q)
	default:
		armQueue(u, id, q, u.Now.Add(txn.TimerGrid))
	}
}

// mayTake reports whether this process may lease a queue that no process works on. If its own lease has run out while requests are under way, it waits for
// them: they must not be repeated beside themselves.
func (w *Webhooks) mayTake(id base.UUID, q *webhook.Queue) bool {
	return w.sends() && w.runners.room() && !(q.Owner == w.process && w.runners.runs(id, q.Epoch))
}

// take leases a queue to this process, which begins to send once that is durable.
func (w *Webhooks) take(u *txn.Tx, id base.UUID, q *webhook.Queue) {
	q.Take(w.process, u.Now)
	armQueue(u, id, q, q.Until)
	epoch, began := q.Epoch, w.hostNow()
	u.Safe.Then(func(err error) {
		if err == nil {
			w.runners.start(id, epoch, began)
		}
	})
}

// armQueue makes sure that a timer of the queue fires at a time, or earlier: where the lease ends, or where there is something to do.
func armQueue(u *txn.Tx, id base.UUID, q *webhook.Queue, at base.Time) { arm(u, id, &q.TimerAt, at) }

// armDue makes sure that a timer of the queue fires when the next attempt is due.
func armDue(u *txn.Tx, id base.UUID, q *webhook.Queue, due base.Time) { arm(u, id, &q.DueTimer, due) }

func arm(u *txn.Tx, id base.UUID, stands *base.Time, at base.Time) {
	at = txn.RoundUp(at, txn.TimerGrid)
	if *stands > u.Now && *stands <= at {
		return
	}
	*stands = at
	timer := u.TimerAt(timerQueues, at)
	timer.Texts = append(timer.Texts, id.String())
}
