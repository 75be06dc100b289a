package webhooks

import (
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// settled is how a transaction of a runner has ended.
type settled struct {
	cmd *settle
	err error
}

// write starts a transaction, if there is something to write: what became of requests, the end of the work, or that it goes on.
func (r *runner) write() {
	if r.writing || r.lost || r.failed() {
		return
	}
	idle := r.inFlight == 0 && (len(r.window) == 0 && r.looked || r.stopping())
	renew := !r.until.After(r.w.hostNow().Add(leaseTime - renewAfter))
	if len(r.done) == 0 && !idle && !renew {
		return
	}
	if r.endpoint == nil && !idle { // nothing was read yet
		return
	}
	cmd := &settle{w: r.w, id: r.id, epoch: r.epoch, items: r.done, idle: idle, began: r.w.hostNow(), feed: r.needsFeed(), stopping: r.stopping()}
	r.done, r.writing = nil, true
	go func() {
		result := settled{cmd: cmd}
		defer func() { r.wrote <- result }()
		result.err = base.Errorf(base.CodeInternal, "the transaction panicked")
		_ = r.w.Guard(txn.InCommand, func() { result.err = r.w.Do(txn.OwnWork(r.w.Background()), cmd) })
	}()
}

// needsFeed reports whether the transaction may disable the endpoint, or have it take events of the log again.
func (r *runner) needsFeed() bool {
	failing := r.queue.FailingSince != 0 && base.Later(r.seen, r.w.Sweep.StoreNow()).Sub(r.queue.FailingSince) > webhook.FailingAfter-base.Hour
	return r.queue.Stopped != nil || failing || slices.ContainsFunc(r.done, func(one *item) bool { return one.answer.Status == 410 })
}

// settled takes in what a transaction has written.
func (r *runner) settled(s settled) {
	r.writing = false
	if s.err != nil {
		if r.w.Stopping() {
			r.lost = true // nothing can be written any more: the lease runs out
			return
		}
		r.done = append(s.cmd.items, r.done...) // it is written again, where it was not
		r.failedNow(s.err)
		return
	}
	for _, one := range s.cmd.items {
		delete(r.known, one.delivery.ID)
	}
	r.w.runners.unload(r, len(s.cmd.items))
	if r.lost = r.lost || s.cmd.lost || s.cmd.released; r.lost {
		return
	}
	r.queue, r.endpoint = s.cmd.queue, s.cmd.endpoint
	r.until = s.cmd.began.Add(leaseTime)
	if !r.endpoint.Active() {
		r.drop()
	}
	if s.cmd.idle || s.cmd.interrupted || len(r.window) == 0 {
		r.looked = false // there was more than was known
	}
	if r.queue.Done > webhook.KeptDone+trimSlack || r.queue.Dead > webhook.KeptOther+trimSlack || r.queue.Cancelled > webhook.KeptOther+trimSlack {
		if err := r.trim(r.w.runners.ctx); err != nil {
			r.failedNow(err)
		}
	}
}

// drop forgets what is to be sent: the endpoint is disabled.
func (r *runner) drop() {
	for _, one := range r.window {
		delete(r.known, one.delivery.ID)
	}
	r.w.runners.unload(r, len(r.window))
	r.window = nil
}

// settle writes what became of requests of one endpoint. It extends the lease, or releases the queue if nothing is left to do.
type settle struct {
	w        *Webhooks
	id       base.UUID
	epoch    int64
	items    []*item
	idle     bool // the runner has nothing else to do
	stopping bool // and is not to get anything
	feed     bool // the feed is locked too
	began    time.Time

	lost        bool // another process has the lease, or the endpoint is gone
	released    bool
	interrupted bool // some requests count for nothing, and are to be sent again
	queue       webhook.Queue
	endpoint    *webhook.Endpoint
}

// Name returns the name of the operation.
func (s *settle) Name() string { return "settle_deliveries" }

// Yields says that others do not wait for all deliveries.
func (s *settle) Yields() {}

// Want adds the endpoint, its queue, and where the deliveries may be.
func (s *settle) Want(w *store.Want, _ bool) {
	w.LockDocs = true
	w.Docs = append(w.Docs, endpointRef(s.id), queueRef(s.id))
	for _, one := range s.items {
		w.Docs = append(w.Docs, deliveryRef(s.id, inQueue, one.delivery.ID), deliveryRef(s.id, inRetry, one.delivery.ID))
	}
	if s.feed {
		w.Docs = append(w.Docs, feedRef)
	}
	if s.idle { // the earliest that does not go with this transaction
		w.Scans = append(w.Scans, store.Scan{Kind: docDue, Prefix: duePrefix(s.id), Limit: len(s.items) + 1})
	}
}

// Decide writes it, if the lease is still that of the runner.
func (s *settle) Decide(u *txn.Tx) error {
	s.lost, s.released, s.interrupted = false, false, false
	q, err := decodeQueue(u.Doc(queueRef(s.id)))
	if err != nil {
		return err
	}
	endpoint, err := decodeEndpoint(u.Doc(endpointRef(s.id)))
	if err != nil {
		return err
	}
	if s.lost = q == nil || endpoint == nil || !q.Holds(s.w.process, s.epoch); s.lost {
		return nil
	}
	t := settling{settle: s, u: u, q: q, endpoint: endpoint, counts: map[string]int64{}}
	for _, one := range s.items {
		if err := t.one(one); err != nil {
			return err
		}
	}
	if err := t.follow(); err != nil {
		return err
	}
	t.lease()
	u.PutDoc(encode(queueRef(s.id), q))
	s.queue, s.endpoint = *q, endpoint
	u.Safe.Then(func(err error) {
		if err == nil {
			s.w.count(t.counts)
		}
	})
	return nil
}

// settling is a settle inside its transaction.
type settling struct {
	*settle
	u        *txn.Tx
	q        *webhook.Queue
	endpoint *webhook.Endpoint
	gone     bool      // the receiver has answered 410
	due      base.Time // the earliest that was written here
	counts   map[string]int64
}

// one writes what became of one request. A delivery that is neither queued nor waiting was cancelled meanwhile.
func (t *settling) one(one *item) error {
	place, doc := t.find(one.delivery.ID)
	if doc == nil {
		return nil
	}
	d, err := decodeDelivery(doc)
	if err != nil {
		return err
	}
	next, verdict, kept := d.Answered(one.answer, one.at, t.u.Now, t.u.Engine.Cfg.Draw())
	if !kept {
		t.interrupted = true
		return nil
	}
	t.move(d, &next, place, doc.Data)
	switch next.State {
	case webhook.Done:
		t.q.Succeeded()
	case webhook.Cancelled:
		t.gone = true
	default:
		t.q.Failed(t.u.Now, verdict, one.answer.Status != 0, next.State == webhook.Dead)
	}
	if next.State == webhook.Dead {
		failedEvent(t.u, t.endpoint, &next)
	}
	t.counts[outcomeOf(&next)]++
	return nil
}

// find returns the record of a pending delivery.
func (t *settling) find(id base.UUID) (place string, doc *store.Doc) {
	for _, place := range []string{inQueue, inRetry} {
		if doc := t.u.Doc(deliveryRef(t.id, place, id)); doc != nil {
			return place, doc
		}
	}
	return "", nil
}

// move writes a delivery where it belongs now.
func (t *settling) move(from, to *webhook.Delivery, place string, envelope []byte) {
	leave(t.u, t.id, t.q, place, from)
	into := placeOf(to)
	if into == inRetry {
		t.due = txn.Earlier(t.due, to.DueAt)
	}
	if into != place {
		t.u.DropDoc(deliveryRef(t.id, place, to.ID))
	}
	enter(t.u, t.id, t.q, into, to)
	t.u.PutDoc(deliveryDoc(t.id, into, to, envelope))
}

// placeOf is where the record of a delivery belongs that was attempted.
func placeOf(d *webhook.Delivery) string {
	switch d.State {
	case webhook.Done:
		return inDone
	case webhook.Dead:
		return inDead
	case webhook.Cancelled:
		return inCancelled
	}
	return inRetry
}

// leave takes a delivery out of the counts, and out of the due list.
func leave(u *txn.Tx, endpoint base.UUID, q *webhook.Queue, place string, d *webhook.Delivery) {
	*countOf(q, place)--
	if place == inRetry {
		u.DropDoc(dueRef(endpoint, d.DueAt, d.ID))
	}
}

// enter adds a delivery to them.
func enter(u *txn.Tx, endpoint base.UUID, q *webhook.Queue, place string, d *webhook.Delivery) {
	*countOf(q, place)++
	if place == inRetry {
		u.PutDoc(encode(dueRef(endpoint, d.DueAt, d.ID), struct{}{}))
	}
}

func countOf(q *webhook.Queue, place string) *int {
	switch place {
	case inQueue:
		return &q.Queued
	case inRetry:
		return &q.Retrying
	case inDone:
		return &q.Done
	case inDead:
		return &q.Dead
	}
	return &q.Cancelled
}

// follow does what follows for the endpoint.
func (t *settling) follow() error {
	if !t.feed {
		return nil
	}
	now, err := feedOf(t.u.Doc(feedRef))
	if err != nil {
		return err
	}
	switch {
	case t.gone && t.endpoint.Active():
		disable(t.u, t.endpoint, t.q, now, webhook.ReasonGone, txn.EngineCaller)
		t.q.CancelledTo = t.q.LastID
		t.u.AddTask(taskCancel, cancelArgs{t.id, t.q.LastID})
	case t.endpoint.Active() && t.q.Fails(t.u.Now):
		disable(t.u, t.endpoint, t.q, now, webhook.ReasonFailing, txn.EngineCaller)
	case t.endpoint.Active() && t.q.Stopped != nil && t.q.Pending() <= webhook.ResumePending:
		t.q.Resume(now.At)
	}
	return nil
}

// lease extends the lease, or releases the queue.
func (t *settling) lease() {
	due := t.earliest()
	more := t.endpoint.Active() && !t.stopping && (t.q.Queued > 0 || t.q.MayFill() || due.Reached(t.u.Now))
	if !t.idle || more || t.interrupted && !t.stopping {
		t.q.Renew(t.u.Now)
		armQueue(t.u, t.id, t.q, t.q.Until)
		return
	}
	t.released = true
	t.q.Release()
	switch {
	case !t.endpoint.Active():
	case t.q.Queued > 0 || t.q.MayFill(): // the engine stops: another process goes on
		armQueue(t.u, t.id, t.q, t.u.Now.Add(1))
	case due != 0:
		armDue(t.u, t.id, t.q, base.Later(due, t.u.Now.Add(1)))
	}
}

// earliest is when the next attempt is due, if the transaction looked for it.
func (t *settling) earliest() base.Time {
	due := t.due
	for i := range t.u.Scanned {
		for j := range t.u.Scanned[i] {
			doc := &t.u.Scanned[i][j]
			if doc.Kind != docDue || !strings.HasPrefix(doc.Key, duePrefix(t.id)) {
				break
			}
			at, _, ok := parseDue(t.id, doc.Key)
			if known, changed := t.u.Docs[doc.DocRef]; ok && !(changed && known == nil) {
				due = txn.Earlier(due, at)
				break
			}
		}
	}
	return due
}
