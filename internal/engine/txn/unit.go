package txn

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Tx is one transaction in memory: the rows that it has locked, as the commands so far have left them, and the changes to be written. It
// is used by one goroutine; only its safety is used by others too.
//
// Lock order (S73). Every transaction locks rows in the same order of kinds, and rows of one kind in one trip in the order of their keys:
//
//   - idempotency keys, then the records that a command names itself, then executions by id (the first load and loadMore);
//   - budgets and rates (loadReserved, loadBooks), then counters of slots and places, then lanes (awaitClaims, loadRoom);
//   - heads of audit chains (lockChains), then flows (lockGraphs, advanceFlows). Ledger rows come last (loadLedger),
//     under the lock of their budget.
//
// Two transactions that wait only for rows of a later kind than the ones they hold, or for higher keys of the same kind, cannot wait for each other
// in a cycle, so they cannot deadlock. A row that is found only under a later lock breaks that order, for example the member at the end of an edge:
// the store locks executions and keys behind a later kind only if they are free, and does not wait. What is not free is left to follow-up work.
// Every other wait ends with a lock timeout (store.Want.Patient), and where the order was broken after all, for example by a foreign transaction,
// the database reports a deadlock, which is the fault Retry. Rows of edges, waitpoints, suspensions, grants and steps are not locked: the row of
// their flow or execution protects them.
type Tx struct {
	Engine  *Engine
	tx      store.Tx
	Now     base.Time
	dict    *Dictionary
	since   string // the incarnation that decisions rest on; read before anything cached was used (R2)
	version int64  // highest version of the dictionary seen in this transaction
	careful bool
	redo    error                    // set by a command that requires the whole batch to be tried again
	doubted bool                     // set if a command must not be answered from the cache
	picks   bool                     // it belongs to a pick, which passes over work whose rows others hold
	passed  map[base.UUID]store.Lock // what a pick has passed over for that reason and cannot settle
	heeds   bool                     // it does not wait for rows that are known to be held
	line    *heldLine

	row       base.UUID // the row being handled; a panic is attributed to it
	advancing bool      // advanceFlows is running
	leaves    bool      // all edges are left to follow-up work: resolving them in the transaction made an earlier try panic
	handing   bool      // work is being leased to claims, which no command asked for
	lent      *pick     // the claims that get it; nil: none
	back      func(*pick, error)

	Entries  map[base.UUID]*Row
	order    []*Row // in order of first use
	held     map[base.UUID]bool
	unfiled  map[base.UUID]bool  // ids of submissions in the inbox
	broken   map[base.UUID]error // executions whose bytes cannot be read
	keys     map[store.Key]store.KeyRow
	docs     map[store.DocRef]*store.Doc // nil value: known to be absent
	wanted   wantIndex                   // of the want that is being put together
	scanned  [][]store.Doc
	history  map[historyKey]core.LeaseRecord
	ended    map[historyKey]int // index in ch.History
	lanes    map[int32]core.Lane
	counters map[string]int64
	inbox    []store.InboxRow
	picked   []store.QueueRow
	leftOut  bool              // the pick had more rows than it returned
	looks    []store.QueueLook // at the queues that were picked from
	Changes  store.Changes
	timers   map[timerKey]*store.Timer
	chains   map[string]*auditChain // by namespace
	rolls    map[int]*auditRoll     // by number
	advanced []func()               // run once flows have advanced
	After    []func()               // run once the transaction has committed
	safe     safety                 // durability of what it wrote and of what it read
	began    time.Duration          // by the meter's clock
	audits   []core.AuditRow        // rows that this unit adds to the audit log
	spans    []Span                 // of the commands it runs
	waits    map[base.UUID]*waitFile

	blocks     map[int32][]int32           // block numbers under which classes have rows
	books      *core.Books                 // the budgets in this unit; nil: none
	budgets    budgetPart                  // what is known of their rows
	rates      map[string]*core.RateWindow // by key
	opened     int                         // number of docs already searched for them
	unreadable map[string]bool             // admission keys whose records cannot be read (S45)
	roomBack   []string                    // admission keys that have room again
	believed   map[string]int64            // slots in use according to the cache: their values in counters are not locked
	locked     map[string]bool             // keys whose counters are locked

	graph flowPart // flows and edges in this unit
}

type historyKey struct {
	id    base.UUID
	epoch int64
}

// Row is an execution inside a unit. Besides the execution it keeps what the commit compares it with.
type Row struct {
	Exec     *core.Execution
	filed    *store.QueueRow // its queue row when loaded
	blocked  string          // the admission key that blocked it when loaded
	holds    []string        // slots that it held when loaded
	ended    bool            // it was terminal when loaded
	waited   core.Reason     // its dependency when loaded
	advanced bool            // its end has been counted in its flow
	followed bool            // it ended because the flow below it had ended: that flow is left as it is
	idle     bool            // no timer was armed when it was loaded: its entry in the due index may be used up
	created  bool
	changed  bool
	renewed  bool // only its lease times changed
	removed  bool
	recalled *core.Execution // not loaded: the copy in the cache, which must not be changed

	waits    *core.Waits       // its waits when loaded
	reserved *core.Reservation // its reservation when loaded
	leased   int64             // the lease epoch of that reservation
	used     map[string]int64  // its meters when loaded

	readySince base.Time // set when it is acquired: when it became ready
	acquiredAt base.Time
	suspended  bool // set when it is acquired: it continues after a suspension
}

func (ent *Row) assumed() bool { return ent.recalled != nil }

// JustEnded reports whether the execution has ended in this unit. The commit then updates its flow, its children and its retention.
func (ent *Row) JustEnded() bool { return ent.Exec.Status.Terminal() && !ent.ended }

// before returns a copy of the execution as it is now, for restoring it after a refusal.
func (ent *Row) before() *core.Execution {
	if ent.recalled != nil && !ent.changed && !ent.renewed {
		return ent.recalled // no copy needed: a refusal on a cached row gives up the whole unit
	}
	return ent.Exec.Clone()
}

// back undoes what a refused command did to the execution.
func (ent *Row) back(before *core.Execution) {
	if before == ent.recalled {
		before = before.Clone()
	}
	ent.Exec = before
}

// begin opens a unit and loads the rows of want. The caller must not have used anything cached.
func (e *Engine) begin(ctx context.Context, want store.Want) (*Tx, error) {
	return e.beginSince(ctx, e.incarnation(), want)
}

// beginSince is begin for a caller that has used something cached. since is the incarnation as it was before the caller read the cache.
func (e *Engine) beginSince(ctx context.Context, since string, want store.Want) (*Tx, error) {
	u := &Tx{Engine: e, since: since}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

// beginHeeding is beginSince for a batch of commands: it does not wait for rows that are known to be held. line is the line that the commands come
// from, or nil. If it returns an error, the unit may still be non-nil: its transaction has ended, and it shows what was loaded by then.
func (e *Engine) beginHeeding(ctx context.Context, since string, want store.Want, line *heldLine) (*Tx, error) {
	u := &Tx{Engine: e, since: since, heeds: true, line: line}
	err := u.begin(ctx, want)
	if u.tx == nil {
		return nil, err
	}
	return u, err
}

// beginPick is beginSince for a pick: it passes over work that needs rows which are known to be held.
func (e *Engine) beginPick(ctx context.Context, since string, want store.Want) (*Tx, error) {
	u := &Tx{Engine: e, since: since, picks: true}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *Tx) begin(ctx context.Context, want store.Want) error {
	e, began := u.Engine, u.Engine.Meter.now()
	tx, loaded, err := e.Store.Begin(ctx, want)
	if e.failed(err) != nil {
		return err
	}
	dict, err := e.dictionaryOf(ctx, u.since, loaded)
	if err != nil {
		tx.Rollback(ctx)
		return err
	}
	u.tx, u.Now, u.dict, u.began = tx, loaded.Now, dict, began
	e.Sweep.clock.of(loaded.Now)
	u.Entries = make(map[base.UUID]*Row, len(want.Executions)+len(loaded.Picked))
	u.safe.e = e
	begun := false
	defer func() {
		if !begun { // also if it panics
			tx.Rollback(ctx)
		}
	}()
	u.absorb(want, loaded)
	if err := u.loadReserved(ctx); err != nil {
		return err
	}
	begun = true
	return nil
}

// expect preallocates for the results of this many commands.
func (u *Tx) expect(commands, endings int) {
	u.Changes.Events = slices.Grow(u.Changes.Events, commands) // budgets whose epoch ended while they were loaded have left events already
	u.Changes.History = slices.Grow(u.Changes.History, endings)
}

// load locks and loads further rows. An empty want costs nothing.
func (u *Tx) load(ctx context.Context, want store.Want) error {
	if len(want.Executions)+len(want.Keys)+len(want.History)+len(want.Counters)+len(want.Docs)+len(want.Scans)+len(want.Owned)+len(want.LockLanes)+len(want.ShareLanes) == 0 {
		return nil
	}
	if err := u.meetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.tx.Load(ctx, want)
	if u.Engine.failed(err) != nil {
		return err
	}
	if want.LockDocs {
		u.Now = max(u.Now, loaded.Now) // whether an epoch has ended is judged by the clock read after the lock (BI9)
	}
	u.absorb(want, loaded)
	if len(want.ShareLanes) > 0 && u.version > u.dict.version { // a rule may have changed before the lanes were locked (S36)
		return &store.Fault{Kind: store.Stale, Err: errRulesChanged}
	}
	return u.loadReserved(ctx)
}

var errRulesChanged = errors.New("the rules have changed")

// absorb adds loaded rows to the unit. Rows that the unit has already keep the state in which the commands left them.
func (u *Tx) absorb(want store.Want, loaded *store.Loaded) {
	u.version = max(u.version, loaded.Dictionary)
	for id, x := range loaded.Executions {
		if u.Entries[id] == nil {
			u.Entries[id] = loadedEntry(x)
		}
	}
	for id, err := range loaded.Unreadable {
		SetIn(&u.broken, id, err)
	}
	for _, id := range loaded.Held {
		SetIn(&u.held, id, true)
	}
	for _, id := range loaded.Unfiled {
		SetIn(&u.unfiled, id, true)
	}
	for key, row := range loaded.Keys {
		SetIn(&u.keys, key, row)
	}
	for _, rec := range loaded.History {
		SetIn(&u.history, historyKey{rec.ExecutionID.UUID, rec.Epoch}, rec)
	}
	for _, ref := range want.Docs {
		if _, known := u.docs[ref]; !known {
			SetIn(&u.docs, ref, nil)
		}
	}
	for ref, doc := range loaded.Docs {
		SetIn(&u.docs, ref, &doc)
	}
	for _, key := range want.Counters {
		if !u.locked[key] {
			SetIn(&u.counters, key, loaded.Counters[key])
			SetIn(&u.locked, key, true)
		}
	}
	for id, lane := range loaded.Lanes {
		SetIn(&u.lanes, id, lane)
	}
	u.scanned = append(u.scanned, loaded.Scanned...)
	u.absorbWaits(&want, loaded)
	u.inbox = append(u.inbox, loaded.Inbox...)
	u.picked = append(u.picked, loaded.Picked...)
	u.leftOut = u.leftOut || loaded.LeftOut
	u.looks = append(u.looks, loaded.Looks...)
	for class, blocks := range loaded.Blocks {
		SetIn(&u.blocks, class, blocks)
	}
}

// SetIn sets an entry of a map, which is made if it is nil.
func SetIn[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

func loadedEntry(x *core.Execution) *Row {
	ent := &Row{Exec: x, blocked: x.BlockedOn, holds: x.Holds, ended: x.Status.Terminal(), waited: x.Dependency, idle: x.WakeAt == 0, waits: x.Waits, reserved: x.Reservation, leased: reservedFor(x), used: x.Usage}
	if x.Queued() {
		ent.filed = &store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
	}
	return ent
}

// Find returns the execution that the caller named, or execution_not_found, also for an execution of another namespace (W5); role_required for one
// in a lane that the caller does not work on.
func (u *Tx) Find(c Caller, id base.GivenID) (*Row, error) {
	if err := u.broken[id.UUID]; err != nil {
		return nil, err
	}
	ent := u.Entries[id.UUID]
	if ent == nil || ent.removed || !id.Names(ent.Exec.ID) || !c.Sees(ent.Exec.Class.Namespace) {
		return nil, notFound(id)
	}
	if err := c.worksIn(ent.Exec.Class.Lane); err != nil {
		return nil, err
	}
	return ent, nil
}

// effects returns an empty record for what a command of this caller does.
func (u *Tx) effects(c Caller) *core.Effects {
	return &core.Effects{
		Now: u.Now, Actor: core.Actor{Type: c.Actor, ID: c.Principal}, RequestID: c.RequestID, Jitter: rand.Float64(), Books: u.books, //nolint:gosec // G404: it spreads retries
	}
}

// engineEffects returns an empty record for what a timer does.
func (u *Tx) engineEffects() *core.Effects {
	return u.effects(EngineCaller)
}

// on settles the named execution and applies op to it (L76). A refusal leaves the record as settling left it (L78). op reports whether it changed
// the record.
func (u *Tx) on(c Caller, id base.GivenID, op func(x *core.Execution, fx *core.Effects) (changed bool, err error)) error {
	ent, err := u.Find(c, id)
	if err != nil {
		return err
	}
	return u.Apply(c, ent, op)
}

// Apply lets an operation change an execution for a caller. A refusal undoes what the operation did.
func (u *Tx) Apply(c Caller, ent *Row, op func(x *core.Execution, fx *core.Effects) (changed bool, err error)) error {
	u.Settle(ent)
	u.At("apply", ent.Exec.ID.UUID)
	before, mark := ent.before(), u.books.Mark()
	fx := u.effects(c)
	fx.Now = max(fx.Now, ent.Exec.Latest())
	changed, err := op(ent.Exec, fx)
	u.doubted = u.doubted || ent.assumed() && (err != nil || !changed)
	if err != nil {
		ent.back(before)
		u.books.Back(mark)
		return err
	}
	if changed {
		u.freed(before.Holds, ent.Exec.Holds)
		u.touch(ent)
		u.keep(fx)
	}
	return nil
}

// Settle applies the execution's due timers (L18). Every command settles before it decides, so that its result does not depend on whether the sweep
// was faster.
func (u *Tx) Settle(ent *Row) {
	if ent.Exec.WakeAt == 0 || ent.Exec.WakeAt > max(u.Now, ent.Exec.Latest()) {
		return
	}
	u.At("settle", ent.Exec.ID.UUID)
	fx, held := u.engineEffects(), ent.Exec.Holds
	if ent.Exec.Settle(fx) {
		u.freed(held, ent.Exec.Holds)
		u.touch(ent)
		u.keep(fx)
	}
}

// touch marks an execution as changed.
func (u *Tx) touch(ent *Row) {
	if !ent.changed && !ent.renewed {
		u.order = append(u.order, ent)
	}
	ent.changed = true
}

// touchLease marks an execution of which only the lease times have changed.
func (u *Tx) touchLease(ent *Row) {
	if !ent.changed && !ent.renewed {
		u.order = append(u.order, ent)
	}
	ent.renewed = true
}

// create adds a new execution.
func (u *Tx) create(x *core.Execution, fx *core.Effects) {
	ent := &Row{Exec: x, created: true}
	u.Entries[x.ID.UUID] = ent
	u.touch(ent)
	u.keep(fx)
}

// Remove removes an execution with everything that belongs to it.
func (u *Tx) Remove(ent *Row) {
	ent.removed = true
	u.Changes.Remove = append(u.Changes.Remove, ent.Exec.ID.UUID)
	u.removeWhereabouts(ent.Exec.ID.UUID)
	u.leaveBudgets(ent.Exec)
}

// keep adds what a command did besides changing its record: events, history, waits, rates given back.
func (u *Tx) keep(fx *core.Effects) {
	u.Changes.Events = append(u.Changes.Events, fx.Events...)
	for _, rec := range fx.History {
		u.keepRecord(rec)
	}
	for _, patch := range fx.Patches {
		if pending := u.pending(patch.ExecutionID.UUID, patch.Epoch); pending != nil {
			pending.Attempt.State, pending.Attempt.EndedAt, pending.Attempt.Failure = patch.State, patch.EndedAt, patch.Failure
		} else {
			u.Changes.Patches = append(u.Changes.Patches, patch)
		}
	}
	u.keepWaits(fx.Waits)
	u.giveBack(fx.RatesBack)
}

// keepRecord writes an entry of the lease history. An entry that this transaction is going to write is replaced in place.
func (u *Tx) keepRecord(rec core.LeaseRecord) {
	if pending := u.pending(rec.ExecutionID.UUID, rec.Epoch); pending != nil {
		rec.Replaces = pending.Replaces
		*pending = rec
		return
	}
	SetIn(&u.ended, historyKey{rec.ExecutionID.UUID, rec.Epoch}, len(u.Changes.History))
	u.Changes.History = append(u.Changes.History, rec)
	u.trimHistory(&rec)
}

// pending returns an entry of the lease history that this transaction is going to write, or nil.
func (u *Tx) pending(id base.UUID, epoch int64) *core.LeaseRecord {
	if at, ok := u.ended[historyKey{id, epoch}]; ok {
		return &u.Changes.History[at]
	}
	return nil
}

// Doc returns a record as the commands so far have left it, or nil if there is none. The unit must have looked for it.
func (u *Tx) Doc(ref store.DocRef) *store.Doc { return u.docs[ref] }

// PutDoc writes a record, whether it exists or not.
func (u *Tx) PutDoc(doc store.Doc) {
	SetIn(&u.docs, doc.DocRef, &doc)
	for _, pending := range [][]store.Doc{u.Changes.NewDocs, u.Changes.PutDocs} {
		if at := slices.IndexFunc(pending, func(d store.Doc) bool { return d.DocRef == doc.DocRef }); at >= 0 {
			pending[at] = doc
			return
		}
	}
	u.Changes.PutDocs = append(u.Changes.PutDocs, doc)
}

// putOrAdd writes a record that the unit has looked for. A record that exists must be locked. One that does not exist is inserted; if another
// transaction inserts it first, the commit fails with Conflict and does not overwrite it.
func (u *Tx) putOrAdd(doc store.Doc) {
	if u.Doc(doc.DocRef) != nil {
		u.PutDoc(doc)
		return
	}
	SetIn(&u.docs, doc.DocRef, &doc)
	u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
}

// dropDoc removes a record, also one that this transaction is going to write.
func (u *Tx) dropDoc(ref store.DocRef) {
	SetIn(&u.docs, ref, nil)
	isIt := func(d store.Doc) bool { return d.DocRef == ref }
	u.Changes.PutDocs = slices.DeleteFunc(u.Changes.PutDocs, isIt)
	if at := slices.IndexFunc(u.Changes.NewDocs, isIt); at >= 0 { // there was none: one that is there now belongs to another transaction
		u.Changes.NewDocs = slices.Delete(u.Changes.NewDocs, at, at+1)
		return
	}
	u.Changes.DropDocs = append(u.Changes.DropDocs, ref)
}

// Lane returns the lane of an execution, or nil if it is not known.
func (u *Tx) Lane(x *core.Execution) *core.Lane { return u.laneNamed(x.Class.Lane) }

// record returns the lease history entry that a fence names, as this transaction writes it, else as it was loaded.
func (u *Tx) record(id base.UUID, epoch int64) *core.LeaseRecord {
	if pending := u.pending(id, epoch); pending != nil {
		copied := *pending
		return &copied
	}
	if rec, ok := u.history[historyKey{id, epoch}]; ok {
		return &rec
	}
	return nil
}
