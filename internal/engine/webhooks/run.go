package webhooks

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	sendTime   = 15 * time.Second // that a request may take at most (E43)
	leaseTime  = time.Duration(webhook.LeaseMS) * time.Millisecond
	sendEnd    = sendTime + time.Second   // when one is given up that does not end by itself: it then says nothing of the receiver
	leaseSpare = time.Second              // between the end of a request and that of the lease
	renewAfter = leaseTime / 3            // without another write
	mostDone   = 4 * webhook.MostInFlight // answers that wait to be written; then no request is sent
)

// item is a delivery in memory.
type item struct {
	delivery webhook.Delivery
	envelope []byte
	slow     bool // it has a place among the slow ones
	at       base.Time
	answer   webhook.Answer
}

// runner sends the deliveries of one endpoint, under the lease of its queue. It is one goroutine; requests and transactions run beside it and report to it.
type runner struct {
	w     *Webhooks
	id    base.UUID
	epoch int64
	more  chan struct{} // there may be more in the store
	kick  chan struct{} // there may be a place
	ended chan *item    // a request has ended
	wrote chan settled  // a transaction has ended

	loaded int // room taken for deliveries in memory; under the lock of the runners

	endpoint *webhook.Endpoint
	secrets  []webhook.Secret
	sealed   []webhook.SealedSecret // that secrets were opened of
	queue    webhook.Queue          // as last seen
	until    time.Time              // by the host's clock: the lease is good so long, for sure
	seen     base.Time              // the store's clock when it was read
	looked   bool                   // the store was read since the last hint
	window   []*item                // to be sent, in order
	known    map[base.UUID]bool     // in memory: not to be loaded again
	inFlight int
	done     []*item // not written yet
	writing  bool
	lost     bool      // the lease is another's, or the endpoint is gone
	retryAt  time.Time // after a failure of the store
}

func newRunner(w *Webhooks, id base.UUID, epoch int64, began time.Time) *runner {
	r := &runner{
		w: w, id: id, epoch: epoch, until: began.Add(leaseTime), known: map[base.UUID]bool{},
		more: make(chan struct{}, 1), kick: make(chan struct{}, 1), ended: make(chan *item, webhook.MostInFlight), wrote: make(chan settled, 1),
	}
	return r
}

func (*runner) wake(kick chan struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// run works until nothing is left to do, the lease is lost, or the engine stops.
func (r *runner) run() {
	all := r.w.runners
	for {
		for r.needsMore() {
			if err := r.fetch(all.ctx); err != nil {
				r.failedNow(err)
			}
		}
		r.send()
		if r.over() {
			return
		}
		r.write()
		r.await()
	}
}

// over reports whether nothing is left to do here.
func (r *runner) over() bool { return r.lost && r.inFlight == 0 && !r.writing }

// stopping reports whether the engine stops.
func (r *runner) stopping() bool {
	select {
	case <-r.w.runners.closed:
		return true
	default:
		return false
	}
}

// failed reports whether the store failed a moment ago.
func (r *runner) failed() bool { return r.w.hostNow().Before(r.retryAt) }

// failedNow makes the runner leave the store alone for a moment.
func (r *runner) failedNow(err error) {
	r.w.QuietLog.Warn("webhooks wait for the store", "endpoint_id", r.id, "error", err)
	r.looked = false
	r.retryAt = r.w.hostNow().Add(r.w.Cfg.PollInterval)
}

// await waits until something has happened.
func (r *runner) await() {
	closed := r.w.runners.closed
	if r.stopping() {
		closed = nil
	}
	timer := r.w.Cfg.Clock.NewTimerAt(r.next())
	defer timer.Stop()
	select {
	case <-r.more:
		r.looked = false
	case <-r.kick:
	case one := <-r.ended:
		r.collect(one)
	case s := <-r.wrote:
		r.settled(s)
	case <-timer.C:
	case <-closed:
	}
	for more := true; more; { // what has ended meanwhile goes into the same transaction
		select {
		case one := <-r.ended:
			r.collect(one)
		default:
			more = false
		}
	}
}

// next is when the runner must look although nothing has happened.
func (r *runner) next() time.Time {
	renew := r.until.Add(renewAfter - leaseTime)
	if r.failed() {
		return r.retryAt
	}
	if now := r.w.hostNow(); renew.Before(now) {
		return now.Add(r.w.Cfg.PollInterval)
	}
	return renew
}

func (r *runner) collect(one *item) {
	r.inFlight--
	r.done = append(r.done, one)
}

// wants is how many deliveries should be in memory.
func (r *runner) wants() int {
	if r.endpoint == nil {
		return webhook.DefaultInFlight
	}
	return 4 * r.queue.Places(r.endpoint.MaxInFlight)
}

// needsMore reports whether few deliveries are left in memory, and there may be more in the store.
func (r *runner) needsMore() bool {
	return !r.lost && !r.looked && !r.stopping() && !r.failed() && 2*len(r.window) <= r.wants()
}

// fetch loads deliveries.
func (r *runner) fetch(ctx context.Context) error {
	want := r.wants() - len(r.window)
	n := r.w.runners.load(r, want)
	found, err := r.read(ctx, n)
	r.w.runners.unload(r, n-len(found))
	if err != nil {
		return err
	}
	r.window = append(r.window, found...)
	for _, one := range found {
		r.known[one.delivery.ID] = true
	}
	if r.looked = len(found) < n; r.looked && r.queue.MayFill() && !r.lost && r.endpoint.Active() {
		return r.fill(ctx)
	}
	return nil
}

// read reads the endpoint, its queue and up to n deliveries that are due.
func (r *runner) read(ctx context.Context, n int) ([]*item, error) {
	among := n + len(r.known)
	loaded, err := r.w.Store.Read(ctx, store.Want{
		Docs: []store.DocRef{endpointRef(r.id), queueRef(r.id)},
		Scans: []store.Scan{
			{Kind: docDelivery, Prefix: deliveryPrefix(r.id, inQueue), Limit: among},
			{Kind: docDue, Prefix: duePrefix(r.id), Limit: among},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := r.see(loaded); err != nil || r.lost || !r.endpoint.Active() {
		return nil, err
	}
	due, err := r.due(ctx, loaded, n)
	if err != nil {
		return nil, err
	}
	return r.take(due, loaded.Scanned[0], n)
}

// see takes in the endpoint and its queue.
func (r *runner) see(loaded *store.Loaded) error {
	read := func(ref store.DocRef) *store.Doc {
		if doc, found := loaded.Docs[ref]; found {
			return &doc
		}
		return nil
	}
	endpoint, err := decodeEndpoint(read(endpointRef(r.id)))
	if err != nil {
		return err
	}
	queue, err := decodeQueue(read(queueRef(r.id)))
	if err != nil {
		return err
	}
	if endpoint == nil || queue == nil || !queue.Holds(r.w.process, r.epoch) {
		r.lost = true
		return nil
	}
	r.endpoint, r.queue, r.seen = endpoint, *queue, loaded.Now
	return r.open(loaded.Now)
}

// open opens the secrets that sign now.
func (r *runner) open(now base.Time) error {
	signing := r.endpoint.Signing(now)
	if sameSecrets(signing, r.sealed) {
		return nil
	}
	key, err := r.w.DataKey(r.w.runners.ctx)
	if err != nil {
		return err
	}
	secrets, err := openSecrets(key, r.id, signing)
	if err != nil {
		return err
	}
	r.secrets, r.sealed = secrets, signing
	return nil
}

// due reads the deliveries whose next attempt is due, up to n that are not in memory.
func (r *runner) due(ctx context.Context, loaded *store.Loaded, n int) ([]store.Doc, error) {
	var refs []store.DocRef
	for i := range loaded.Scanned[1] {
		at, id, ok := parseDue(r.id, loaded.Scanned[1][i].Key)
		if at > loaded.Now || len(refs) == n {
			break
		}
		if ok && !r.known[id] {
			refs = append(refs, deliveryRef(r.id, inRetry, id))
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}
	docs, err := r.w.ReadDocs(ctx, refs...)
	if err != nil {
		return nil, err
	}
	list := make([]store.Doc, 0, len(refs))
	for _, ref := range refs {
		if doc, found := docs[ref]; found {
			list = append(list, doc)
		}
	}
	return list, nil
}

// take makes items of records, those that were due for another attempt first, up to n.
func (r *runner) take(due, queued []store.Doc, n int) (found []*item, err error) {
	for _, docs := range [][]store.Doc{due, queued} {
		for i := range docs {
			d, err := decodeDelivery(&docs[i])
			if err != nil {
				return nil, err
			}
			if len(found) == n {
				return found, nil
			}
			if !r.known[d.ID] && !cancelled(&r.queue, d.ID) {
				found = append(found, &item{delivery: *d, envelope: docs[i].Data})
			}
		}
	}
	return found, nil
}

// send starts requests as far as there are places.
func (r *runner) send() {
	for len(r.window) > 0 && r.maySend() {
		slow := r.queue.Slow
		if !r.w.runners.acquire(r, slow) {
			return
		}
		one := r.window[0]
		r.window = r.window[1:]
		one.slow, one.at = slow, r.w.Sweep.StoreNow()
		r.inFlight++
		request := webhook.Request{
			URL: r.endpoint.URL, ID: one.delivery.EventID.String(), Secrets: r.secrets, At: one.at.Std(),
			Body: webhook.Body(one.delivery.Kind, one.delivery.EventAt.Std(), one.envelope),
		}
		go func() { _ = r.w.Guard(txn.InCommand, func() { r.attempt(one, request) }) }()
	}
}

// maySend reports whether a request may be sent now: one must have ended before the lease has.
func (r *runner) maySend() bool {
	return !r.lost && !r.stopping() && r.endpoint.Active() && len(r.done) < mostDone && r.inFlight < r.queue.Places(r.endpoint.MaxInFlight) &&
		r.w.hostNow().Add(sendEnd+leaseSpare).Before(r.until)
}

// attempt makes one request. If it panics it counts as a failed attempt.
func (r *runner) attempt(one *item, request webhook.Request) {
	ctx, cancel := context.WithTimeout(r.w.runners.ctx, sendEnd)
	defer cancel()
	one.answer = webhook.Answer{Err: webhook.ErrConnect}
	defer func() {
		r.w.runners.release(one.slow)
		r.ended <- one
	}()
	one.answer = r.w.setup.Load().Send(ctx, request)
}

// openSecrets opens sealed secrets, which are bound to the id of their endpoint.
func openSecrets(key keyring.MasterKey, id base.UUID, sealed []webhook.SealedSecret) ([]webhook.Secret, error) {
	secrets := make([]webhook.Secret, len(sealed))
	for i, s := range sealed {
		stored, err := keyring.ParseStoredSecret(s.Sealed)
		if err != nil {
			return nil, err
		}
		raw, err := stored.Open(key, id.String())
		if err != nil {
			return nil, err
		}
		secrets[i] = webhook.NewSecret(raw)
	}
	return secrets, nil
}

func sameSecrets(a, b []webhook.SealedSecret) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
