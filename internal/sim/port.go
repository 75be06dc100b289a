package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/memory"
)

// turn is a call of the store that waits until it may go on.
type turn struct {
	p       *process
	call    string
	key     uint64 // tells calls of the same name apart that wait at the same time
	writes  bool
	arrival int
	from    time.Time // not before
	goOn    chan verdict
	left    bool // its caller does not wait any more
}

func compareTurns(a, b *turn) int {
	return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.p.life, b.p.life), cmp.Compare(a.call, b.call), cmp.Compare(a.key, b.key), cmp.Compare(a.arrival, b.arrival))
}

func compareIDs(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) }

// verdict is what happens to a call.
type verdict struct {
	refuse store.FaultKind // with refused
	how    outcome
	late   bool // its position in the log waits for a turn of its own
}

type outcome uint8

const (
	done    outcome = iota
	refused         // nothing happens
	lost            // it happens, and the answer is lost
)

var (
	errInjected = errors.New("the simulator failed this call")
	errKilled   = errors.New("the process was killed")
)

// port is the way of one process to the store. Every call waits there for its turn.
type port struct {
	p    *process
	s    *memory.Store
	late atomic.Bool // the present commit waits for a turn of its own once its position is drawn
	txs  uint64
}

// pass waits for a turn.
func (o *port) pass(ctx context.Context, call string, key uint64, writes bool) (verdict, error) {
	t := o.p.w.arrive(o.p, call, key, writes)
	if t == nil {
		return verdict{}, o.p.ended()
	}
	select {
	case v := <-t.goOn:
		return v, nil
	case <-ctx.Done():
		o.p.w.leave(t)
		return verdict{}, &store.Fault{Kind: store.Unavailable, Err: context.Cause(ctx)}
	case <-o.p.dead:
		return verdict{}, o.p.ended()
	}
}

// around runs a call at its turn, or what the fault leaves of it.
func (o *port) around(ctx context.Context, call string, key uint64, writes bool, run func() error) error {
	v, err := o.pass(ctx, call, key, writes)
	if err != nil {
		return err
	}
	switch v.how {
	case refused:
		return &store.Fault{Kind: v.refuse, Err: errInjected}
	case lost:
		o.late.Store(v.late)
		if err := run(); err != nil {
			return err
		}
		if !writes {
			return &store.Fault{Kind: store.Unavailable, Err: errInjected}
		}
		return &store.Fault{Kind: store.Unknown, Err: errInjected}
	}
	o.late.Store(v.late)
	return run()
}

// gate is passed by transactions of the store itself.
func (o *port) gate(at memory.Point) {
	call := "woken"
	if at == memory.Drawn {
		if !o.late.Swap(false) {
			return
		}
		call = "drawn"
	}
	if t := o.p.w.arrive(o.p, call, 0, true); t != nil {
		select {
		case <-t.goOn:
		case <-o.p.dead:
		}
	}
}

// digest makes a number of what a call names, whatever the order.
type digest struct{ sum uint64 }

func (d *digest) bytes(kind byte, b []byte) {
	h := uint64(14695981039346656037) + uint64(kind)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	d.sum += h
}

func (d *digest) text(kind byte, s string) { d.bytes(kind, []byte(s)) }

func digestOf(w *store.Want) uint64 {
	var d digest
	for _, k := range w.Keys {
		d.text('k', k.Namespace+"/"+k.Text)
	}
	for _, id := range w.Executions {
		d.bytes('x', id[:])
	}
	for _, p := range w.Pick {
		d.bytes('p', []byte{byte(p.Class), byte(p.Block), byte(p.Block >> 8), byte(p.Floor), byte(p.Limit)})
	}
	for _, c := range w.Counters {
		d.text('c', c)
	}
	for _, ref := range w.Docs {
		d.text('d', ref.Owner+"/"+ref.Key)
	}
	for _, s := range w.Scans {
		d.text('s', s.Owner+"/"+s.Prefix+s.After)
	}
	for _, o := range w.Owned {
		d.text('o', o.Owner)
	}
	for _, h := range w.History {
		d.bytes('h', append(h.ID[:], byte(h.Epoch)))
	}
	for _, lane := range w.ShareLanes {
		d.bytes('l', []byte{byte(lane)})
	}
	for _, lane := range w.LockLanes {
		d.bytes('L', []byte{byte(lane)})
	}
	for _, class := range w.Blocks {
		d.bytes('b', []byte{byte(class)})
	}
	return d.sum + uint64(w.Inbox)
}

// Now waits for its turn.
func (o *port) Now(ctx context.Context) (now base.Time, err error) {
	err = o.around(ctx, "now", 0, false, func() (err error) { now, err = o.s.Now(ctx); return err })
	return now, err
}

// Info needs no turn.
func (o *port) Info() store.Info { return o.s.Info() }

// Begin waits for its turn.
func (o *port) Begin(ctx context.Context, want store.Want) (begun store.Tx, loaded *store.Loaded, err error) {
	var tx store.Tx
	err = o.around(ctx, "begin", digestOf(&want), false, func() (err error) { tx, loaded, err = o.s.Begin(ctx, want); return err })
	if err != nil {
		if tx != nil {
			tx.Rollback(ctx)
		}
		return nil, nil, err
	}
	o.txs++
	return &session{tx, o, o.txs}, loaded, nil
}

// session is a transaction whose calls wait for their turns.
type session struct {
	store.Tx
	o *port
	n uint64
}

// Load waits for its turn. A failure ends the transaction.
func (t *session) Load(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = t.o.around(ctx, "load", t.n, false, func() (err error) { loaded, err = t.Tx.Load(ctx, want); return err })
	if err != nil {
		t.Tx.Rollback(ctx)
		return nil, err
	}
	return loaded, nil
}

// Commit waits for its turn. If the answer is lost, no caller learns when the changes are durable.
func (t *session) Commit(ctx context.Context, ch *store.Changes) error {
	slices.SortFunc(ch.AddTimers, func(a, b store.Timer) int { // the engine collects them in no order, and their numbers would show that
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), slices.CompareFunc(a.IDs, b.IDs, compareIDs), slices.Compare(a.Texts, b.Texts))
	})
	safe := ch.Safe
	ch.Safe = nil
	err := t.o.around(ctx, "commit", t.n, true, func() error { return t.Tx.Commit(ctx, ch) })
	t.Tx.Rollback(ctx)
	if ch.Safe = safe; err == nil && safe != nil {
		safe(nil)
	}
	return err
}

// Await waits for its turn.
func (o *port) Await(ctx context.Context, lock store.Lock, patience time.Duration) error {
	var d digest
	d.text('c', lock.Counter+lock.Doc.Key+lock.Key.Text)
	d.bytes('x', lock.Execution[:])
	return o.around(ctx, "await", d.sum, false, func() error { return o.s.Await(ctx, lock, patience) })
}

// Read waits for its turn.
func (o *port) Read(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = o.around(ctx, "read", digestOf(&want), false, func() (err error) { loaded, err = o.s.Read(ctx, want); return err })
	return loaded, err
}

// Dictionary waits for its turn.
func (o *port) Dictionary(ctx context.Context) (d *store.Dictionary, err error) {
	err = o.around(ctx, "dictionary", 0, false, func() (err error) { d, err = o.s.Dictionary(ctx); return err })
	return d, err
}

// Register waits for its turn.
func (o *port) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (known store.Registered, err error) {
	var d digest
	for i := range classes {
		d.text('c', classes[i].Lane+classes[i].Kind+classes[i].Needs)
	}
	err = o.around(ctx, "register", d.sum, true, func() (err error) { known, err = o.s.Register(ctx, lanes, classes); return err })
	return known, err
}

// UnusedClasses waits for its turn.
func (o *port) UnusedClasses(ctx context.Context) (ids []int32, err error) {
	err = o.around(ctx, "unused classes", 0, false, func() (err error) { ids, err = o.s.UnusedClasses(ctx); return err })
	return ids, err
}

// TakeDue waits for its turn.
func (o *port) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) (timers []store.Timer, err error) {
	err = o.around(ctx, "take due", 0, true, func() (err error) { timers, err = o.s.TakeDue(ctx, limit, hide, except...); return err })
	if err != nil {
		return nil, err
	}
	return timers, nil
}

// HideTimers waits for its turn.
func (o *port) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	var d digest
	for i := range timers {
		d.sum += uint64(timers[i].Seq) * 2654435761
	}
	return o.around(ctx, "hide timers", d.sum, true, func() error { return o.s.HideTimers(ctx, timers, hide) })
}

// TimersAhead waits for its turn.
func (o *port) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) (timers []store.Timer, err error) {
	err = o.around(ctx, "timers ahead", uint64(after), false, func() (err error) { timers, err = o.s.TimersAhead(ctx, from, to, after, limit); return err })
	return timers, err
}

// Poll waits for its turn.
func (o *port) Poll(ctx context.Context, ask store.PollAsk) (answer store.PollAnswer, err error) {
	err = o.around(ctx, "poll", uint64(len(ask.Queues)+1000*len(ask.Docs)), false, func() (err error) { answer, err = o.s.Poll(ctx, ask); return err })
	return answer, err
}

// Log waits for its turn.
func (o *port) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = o.around(ctx, "log", uint64(after)*1000+uint64(limit), false, func() (err error) { commits, err = o.s.Log(ctx, after, limit); return err })
	return commits, err
}

// Project waits for its turn.
func (o *port) Project(ctx context.Context, p store.Projection) error {
	return o.around(ctx, "project", uint64(p.To), true, func() error { return o.s.Project(ctx, p) })
}

// Index waits for its turn.
func (o *port) Index(ctx context.Context, part store.IndexPart) error {
	return o.around(ctx, "index", uint64(part.To), true, func() error { return o.s.Index(ctx, part) })
}

// LogOf waits for its turn.
func (o *port) LogOf(ctx context.Context, ask store.LogOf) (commits []store.Commit, end int64, err error) {
	err = o.around(ctx, "log of", uint64(ask.After), false, func() (err error) { commits, end, err = o.s.LogOf(ctx, ask); return err })
	return commits, end, err
}

// Find waits for its turn.
func (o *port) Find(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = o.around(ctx, "find", uint64(len(q.Statuses))<<8+uint64(q.Limit), false, func() (err error) { hits, err = o.s.Find(ctx, q); return err })
	return hits, err
}

// Count waits for its turn.
func (o *port) Count(ctx context.Context, q store.Query, limit int) (n int, err error) {
	err = o.around(ctx, "count", 0, false, func() (err error) { n, err = o.s.Count(ctx, q, limit); return err })
	return n, err
}

// CountBy waits for its turn.
func (o *port) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) (groups []store.Group, err error) {
	err = o.around(ctx, "count by", 0, false, func() (err error) { groups, err = o.s.CountBy(ctx, q, by, limit); return err })
	return groups, err
}

// FirstOfLanes waits for its turn.
func (o *port) FirstOfLanes(ctx context.Context, q store.Query, each int) (hits []store.LaneHit, err error) {
	err = o.around(ctx, "first of lanes", 0, false, func() (err error) { hits, err = o.s.FirstOfLanes(ctx, q, each); return err })
	return hits, err
}

// Notify waits for its turn.
func (o *port) Notify(ctx context.Context, hint store.Hint) error {
	return o.around(ctx, "notify", 0, false, func() error { return o.s.Notify(ctx, hint) })
}

// Listen hears what the hints of the process have become of.
func (o *port) Listen(ctx context.Context, hear func(store.Hint)) error {
	return o.s.Listen(ctx, func(hint store.Hint) { o.p.hears(hint, hear) })
}

// Maintain waits for its turn.
func (o *port) Maintain(ctx context.Context, logBefore base.Time) error {
	return o.around(ctx, "maintain", 0, true, func() error { return o.s.Maintain(ctx, logBefore) })
}

// Close does nothing: the handle ends with the process.
func (o *port) Close() error { return nil }

// SubmitTx waits for its turn.
func (o *port) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (existing *store.Existing, err error) {
	err = o.around(ctx, "submit tx", 0, false, func() (err error) { existing, err = o.s.SubmitTx(ctx, tx, key, row); return err })
	return existing, err
}

var (
	_ store.Store       = (*port)(nil)
	_ store.TxSubmitter = (*port)(nil)
)
