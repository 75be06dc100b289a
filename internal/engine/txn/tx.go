package txn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Tx is one transaction in memory: the rows that it has locked, as the commands so far have left them, and the changes to be written. It
// is used by one goroutine; only its safety is used by others too.
//
// Lock order (S73). Every transaction locks rows in the same order of kinds, and rows of one kind in one trip in the order of their keys. Behind the
// first loads the order is that of the places at which rooms register their phases (Place in phases.go):
//
//   - idempotency keys, then the records that a command names itself, then executions by id (the first load and loadMore);
//   - AtAdmission: what admission is charged to (the phases Loaded and Lock), then counters of slots and places;
//   - AtLanes: lanes (awaitClaims, and the picks of claims);
//   - AtAudit: heads of audit chains;
//   - AtGraphs: graphs of executions (the phases Lock and Settle). The rows of the phase Last come last, under the lock of an earlier row.
//
// Two transactions that wait only for rows of a later kind than the ones they hold, or for higher keys of the same kind, cannot wait for each other
// in a cycle, so they cannot deadlock. A row that is found only under a later lock breaks that order, for example the member at the end of an edge:
// the store locks executions and keys behind a later kind only if they are free, and does not wait. What is not free is left to follow-up work.
// Every other wait ends with a lock timeout (store.Want.Patient), and where the order was broken after all, for example by a foreign transaction,
// the database reports a deadlock, which is the fault Retry. Rows that belong to an execution or a graph are not locked: the lock of its record
// protects them.
type Tx struct {
	Engine  *Engine
	StoreTx store.Tx
	Now     base.Time
	Dict    *Dictionary
	Since   string // the incarnation that decisions rest on; read before anything cached was used (R2)
	version int64  // highest version of the dictionary seen in this transaction
	Careful bool
	Redo    error                    // set by a command that requires the whole batch to be tried again
	Doubted bool                     // set if a command must not be answered from the cache
	Picks   bool                     // it belongs to a pick, which passes over work whose rows others hold
	Passed  map[base.UUID]store.Lock // what a pick has passed over for that reason and cannot settle
	heeds   bool                     // it does not wait for rows that are known to be held
	line    *heldLine
	applies map[base.UUID]bool // executions whose outcomes its commands apply (outcomes.go)
	carried []base.UUID        // others that carry outcomes: it must not be committed

	Row         base.UUID // the row being handled; a panic is attributed to it
	Advancing   bool      // the ends of members are being applied to their graphs
	Leaves      bool      // all edges are left to follow-up work: resolving them in the transaction made an earlier try panic
	Handing     bool      // work is being leased to claims, which no command asked for
	lent        Served    // the claims that get it; nil: none
	Entries     map[base.UUID]*Row
	Order       []*Row // in order of first use
	Held        map[base.UUID]bool
	NotIngested map[base.UUID]bool  // ids of submissions in the inbox
	Broken      map[base.UUID]error // executions whose bytes cannot be read
	Keys        map[store.Key]store.KeyRow
	Docs        map[store.DocRef]*store.Doc // nil value: known to be absent
	Scanned     [][]store.Doc
	history     map[historyKey]core.LeaseRecord
	ended       map[historyKey]int // index in ch.History
	Lanes       map[int32]core.Lane
	Counters    map[string]int64
	inbox       []store.InboxRow
	Picked      []store.QueueRow
	LeftOut     bool              // the pick had more rows than it returned
	Looks       []store.QueueLook // at the queues that were picked from
	Changes     store.Changes
	timers      map[timerKey]*store.Timer
	Advanced    []func()        // run once that is done
	After       []func()        // run once the transaction has committed
	Safe        Safety          // durability of what it wrote and of what it read
	began       time.Duration   // by the meter's clock
	Audits      []core.AuditRow // rows that this transaction adds to the audit log
	spans       []Span          // of the commands it runs

	Blocks   map[int32][]int32 // block numbers under which classes have rows
	Accounts *core.BudgetSet   // the budgets in this transaction; nil: none
	RoomBack []string          // admission keys that have room again
	Locked   map[string]bool   // keys whose counters are locked

	parts [slots]any // the states of rooms
}

type historyKey struct {
	id    base.UUID
	epoch int64
}

// Row is an execution inside a transaction. Besides the execution it keeps what the commit compares it with.
type Row struct {
	Exec     *core.Execution
	Filed    *store.QueueRow // its queue row when loaded
	blocked  string          // the admission key that blocked it when loaded
	Holds    []string        // slots that it held when loaded
	Ended    bool            // it was terminal when loaded
	Waited   core.Reason     // its dependency when loaded
	Advanced bool            // its end has been applied to its graph
	Followed bool            // it ended because the graph below it had ended, which is left as it is
	idle     bool            // no timer was armed when it was loaded: its entry in the due index may be used up
	Created  bool
	Changed  bool
	renewed  bool // only its lease times changed
	Removed  bool
	cached   *core.Execution // not loaded: the copy in the cache, which must not be changed

	Waits    *core.Waits       // its waits when loaded
	Reserved *core.Reservation // its reservation when loaded
	Leased   int64             // the lease epoch of that reservation
	used     map[string]int64  // its meters when loaded

	readySince base.Time // set when it is acquired: when it became ready
	AcquiredAt base.Time
	suspended  bool // set when it is acquired: it continues after a suspension
}

// Assumed reports whether the row was not loaded but taken from the cache: the commit checks it.
func (ent *Row) Assumed() bool { return ent.cached != nil }

// JustEnded reports whether the execution has ended in this transaction. The commit then updates what it is part of, its children and its retention.
func (ent *Row) JustEnded() bool { return ent.Exec.Status.Terminal() && !ent.Ended }

// Before returns a copy of the execution as it is now, for restoring it after a refusal.
func (ent *Row) Before() *core.Execution {
	if ent.cached != nil && !ent.Changed && !ent.renewed {
		return ent.cached // no copy needed: a refusal on a cached row gives up the whole transaction
	}
	return ent.Exec.Clone()
}

// Back undoes what a refused command did to the execution.
func (ent *Row) Back(before *core.Execution) {
	if before == ent.cached {
		before = before.Clone()
	}
	ent.Exec = before
}

// Begin opens a transaction and loads the rows of want. The caller must not have used anything cached.
func (e *Engine) Begin(ctx context.Context, want store.Want) (*Tx, error) {
	return e.beginSince(ctx, e.Incarnation(), want)
}

// beginSince is begin for a caller that has used something cached. since is the incarnation as it was before the caller read the cache.
func (e *Engine) beginSince(ctx context.Context, since string, want store.Want) (*Tx, error) {
	u := &Tx{Engine: e, Since: since}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

// beginHeeding is beginSince for a batch of commands: it does not wait for rows that are known to be held. line is the line that the commands come
// from, or nil; applies are the executions whose outcomes the commands apply. If it returns an error, the transaction may still be non-nil: its
// transaction has ended, and it shows what was loaded by then.
func (e *Engine) beginHeeding(ctx context.Context, since string, want store.Want, line *heldLine, applies map[base.UUID]bool) (*Tx, error) {
	u := &Tx{Engine: e, Since: since, heeds: true, line: line, applies: applies}
	err := u.begin(ctx, want)
	if u.StoreTx == nil {
		return nil, err
	}
	return u, err
}

// BeginPick is beginSince for a pick: it passes over work that needs rows which are known to be held.
func (e *Engine) BeginPick(ctx context.Context, since string, want store.Want) (*Tx, error) {
	u := &Tx{Engine: e, Since: since, Picks: true}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

// begin opens the unit, and applies the outcomes of executions that it meets first.
func (u *Tx) begin(ctx context.Context, want store.Want) error {
	for try := 0; ; try++ {
		err := u.beginOnce(ctx, want)
		ids := carriedBy(err)
		if ids == nil || try == mostOutcomeTries {
			return err
		}
		if err := u.Engine.ApplyOutcomes(ctx, ids); err != nil {
			return &store.Fault{Kind: store.Retry, Err: err}
		}
	}
}

func (u *Tx) beginOnce(ctx context.Context, want store.Want) error {
	e, began := u.Engine, u.Engine.Meter.now()
	tx, loaded, err := e.Store.Begin(ctx, want)
	if e.Failed(err) != nil {
		return err
	}
	dict, err := e.dictionaryOf(ctx, u.Since, loaded)
	if err != nil {
		tx.Rollback(ctx)
		return err
	}
	if err := u.meetsCarried(loaded); err != nil {
		tx.Rollback(ctx)
		return err
	}
	u.StoreTx, u.Now, u.Dict, u.began = tx, loaded.Now, dict, began
	e.Sweep.clock.of(loaded.Now)
	u.Entries = make(map[base.UUID]*Row, len(want.Executions)+len(loaded.Picked))
	u.Safe.e = e
	begun := false
	defer func() {
		if !begun { // also if it panics
			tx.Rollback(ctx)
		}
	}()
	u.Absorb(want, loaded)
	if err := u.Loaded(ctx); err != nil {
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

// Load locks and loads further rows. An empty want costs nothing.
func (u *Tx) Load(ctx context.Context, want store.Want) error {
	if len(want.Executions)+len(want.Keys)+len(want.History)+len(want.Counters)+len(want.Docs)+len(want.Scans)+len(want.Owned)+len(want.LockLanes)+len(want.ShareLanes) == 0 {
		return nil
	}
	if err := u.MeetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	// The wait for the locks may have been long. Time never goes back within a transaction.
	if want.LockDocs {
		u.Now = max(u.Now, loaded.Now) // whether an epoch has ended is judged by the clock read after the lock (BI9)
	}
	u.Absorb(want, loaded)
	if err := u.carries(); err != nil {
		return err
	}
	if len(want.ShareLanes) > 0 && u.version > u.Dict.Version { // a rule may have changed before the lanes were locked (S36)
		return &store.Fault{Kind: store.Stale, Err: errRulesChanged}
	}
	return u.Loaded(ctx)
}

// Loaded lets the rooms load what they need behind rows that were just loaded.
func (u *Tx) Loaded(ctx context.Context) error {
	for _, load := range u.Engine.points.loaded {
		if err := load(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

var errRulesChanged = errors.New("the rules have changed")

// Absorb adds loaded rows to the transaction. Rows that the transaction has already keep the state in which the commands left them.
func (u *Tx) Absorb(want store.Want, loaded *store.Loaded) {
	u.version = max(u.version, loaded.Dictionary)
	for id, x := range loaded.Executions {
		if u.Entries[id] == nil {
			u.Entries[id] = loadedEntry(x)
			if store.Carries(x.Version) && !u.applies[id] {
				u.carried = append(u.carried, id)
			}
		}
	}
	for id, err := range loaded.Unreadable {
		SetIn(&u.Broken, id, err)
	}
	for _, id := range loaded.Held {
		SetIn(&u.Held, id, true)
	}
	for _, id := range loaded.NotIngested {
		SetIn(&u.NotIngested, id, true)
	}
	for key, row := range loaded.Keys {
		SetIn(&u.Keys, key, row)
	}
	for _, rec := range loaded.History {
		SetIn(&u.history, historyKey{rec.ExecutionID.UUID, rec.Epoch}, rec)
	}
	for _, ref := range want.Docs {
		if _, known := u.Docs[ref]; !known {
			SetIn(&u.Docs, ref, nil)
		}
	}
	for ref, doc := range loaded.Docs {
		SetIn(&u.Docs, ref, &doc)
	}
	// A counter that is locked already may have been changed by commands of this transaction: what the store says of it is older.
	for _, key := range want.Counters {
		if !u.Locked[key] {
			SetIn(&u.Counters, key, loaded.Counters[key])
			SetIn(&u.Locked, key, true)
		}
	}
	for id, lane := range loaded.Lanes {
		SetIn(&u.Lanes, id, lane)
	}
	u.Scanned = append(u.Scanned, loaded.Scanned...)
	for _, absorb := range u.Engine.points.absorb {
		absorb(u, &want, loaded)
	}
	u.inbox = append(u.inbox, loaded.Inbox...)
	u.Picked = append(u.Picked, loaded.Picked...)
	u.LeftOut = u.LeftOut || loaded.LeftOut
	u.Looks = append(u.Looks, loaded.Looks...)
	for class, blocks := range loaded.Blocks {
		SetIn(&u.Blocks, class, blocks)
	}
}

func loadedEntry(x *core.Execution) *Row {
	ent := &Row{Exec: x, blocked: x.BlockedOn, Holds: x.Holds, Ended: x.Status.Terminal(), Waited: x.Dependency, idle: x.WakeAt == 0, Waits: x.Waits, Reserved: x.Reservation, Leased: ReservedFor(x), used: x.Usage}
	if x.Queued() {
		ent.Filed = &store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
	}
	return ent
}

// Find returns the execution that the caller named, or execution_not_found, also for an execution of another namespace (W5); role_required for one
// in a lane that the caller does not work on.
func (u *Tx) Find(c Caller, id base.GivenID) (*Row, error) {
	if err := u.Broken[id.UUID]; err != nil {
		return nil, err
	}
	ent := u.Entries[id.UUID]
	if ent == nil || ent.Removed || !id.Names(ent.Exec.ID) || !c.Sees(ent.Exec.Class.Namespace) {
		return nil, NotFound(id)
	}
	if err := c.WorksIn(ent.Exec.Class.Lane); err != nil {
		return nil, err
	}
	return ent, nil
}

// Effects returns an empty record for what a command of this caller does.
func (u *Tx) Effects(c Caller) *core.Effects {
	return &core.Effects{
		Now: u.Now, Actor: core.Actor{Type: c.Actor, ID: c.Principal}, RequestID: c.RequestID, Jitter: u.Engine.Cfg.Draw(), Budgets: u.Accounts,
	}
}

// EngineEffects returns an empty record for what a timer does.
func (u *Tx) EngineEffects() *core.Effects {
	return u.Effects(EngineCaller)
}

// On settles the named execution and applies op to it (L76). A refusal leaves the record as settling left it (L78). op reports whether it changed
// the record.
func (u *Tx) On(c Caller, id base.GivenID, op func(x *core.Execution, fx *core.Effects) (changed bool, err error)) error {
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
	// Settling stays even if the command is refused: a due timer has acted, whatever noticed it (L78). What the command itself did is undone, on the
	// record and on what it was charged to.
	before, mark := ent.Before(), u.Accounts.Mark()
	fx := u.Effects(c)
	fx.Now = max(fx.Now, ent.Exec.Latest())
	changed, err := op(ent.Exec, fx)
	// Nothing would be written that the store could check the cached row by (rowCache).
	u.Doubted = u.Doubted || ent.Assumed() && (err != nil || !changed)
	if err != nil {
		ent.Back(before)
		u.Accounts.Back(mark)
		return err
	}
	if changed {
		u.Freed(before.Holds, ent.Exec.Holds)
		u.Touch(ent)
		u.Keep(fx)
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
	fx, held := u.EngineEffects(), ent.Exec.Holds
	if ent.Exec.Settle(fx) {
		u.Freed(held, ent.Exec.Holds)
		u.Touch(ent)
		u.Keep(fx)
	}
}

// Touch marks an execution as changed.
func (u *Tx) Touch(ent *Row) {
	if !ent.Changed && !ent.renewed {
		u.Order = append(u.Order, ent)
	}
	ent.Changed = true
}

// TouchLease marks an execution of which only the lease times have changed.
func (u *Tx) TouchLease(ent *Row) {
	if !ent.Changed && !ent.renewed {
		u.Order = append(u.Order, ent)
	}
	ent.renewed = true
}

// Create adds a new execution.
func (u *Tx) Create(x *core.Execution, fx *core.Effects) {
	ent := &Row{Exec: x, Created: true}
	u.Entries[x.ID.UUID] = ent
	u.Touch(ent)
	u.Keep(fx)
}

// Remove removes an execution with everything that belongs to it.
func (u *Tx) Remove(ent *Row) {
	ent.Removed = true
	u.Changes.Remove = append(u.Changes.Remove, ent.Exec.ID.UUID)
	u.RemoveBeside(ent)
}

// RemoveBeside removes what rooms keep beside an execution that is removed, and that does not go with it.
func (u *Tx) RemoveBeside(ent *Row) {
	for _, remove := range u.Engine.points.remove {
		remove(u, ent)
	}
}

// WantRemovable adds the rows that the removal of an execution needs.
func (u *Tx) WantRemovable(w *store.Want, id base.UUID) {
	if ent := u.Entries[id]; ent != nil {
		for _, want := range u.Engine.points.removable {
			want(u, ent, w)
		}
	}
}

// Vanished reports whether an execution whose record is there counts as removed, because what it was part of is (L141). The rows of WantVanished
// must have been loaded.
func (u *Tx) Vanished(ent *Row) bool {
	return slices.ContainsFunc(u.Engine.points.vanished, func(vanished func(*Tx, *Row) bool) bool { return vanished(u, ent) })
}

// WantVanished adds the rows that Vanished needs.
func (u *Tx) WantVanished(w *store.Want, ent *Row) {
	for _, want := range u.Engine.points.wantVanished {
		want(ent, w)
	}
}

// Keep adds what a command did besides changing its record: events, history, waits, rates given back.
func (u *Tx) Keep(fx *core.Effects) {
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
	for _, failed := range fx.FailedByEngine {
		u.After = append(u.After, func() { u.Engine.logFailed(failed) })
	}
	for _, keep := range u.Engine.points.keep {
		keep(u, fx)
	}
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

// Doc returns a record as the commands so far have left it, or nil if there is none. The transaction must have looked for it.
func (u *Tx) Doc(ref store.DocRef) *store.Doc { return u.Docs[ref] }

// PutDoc writes a record, whether it exists or not.
func (u *Tx) PutDoc(doc store.Doc) {
	SetIn(&u.Docs, doc.DocRef, &doc)
	for _, pending := range [][]store.Doc{u.Changes.NewDocs, u.Changes.PutDocs} {
		if at := slices.IndexFunc(pending, func(d store.Doc) bool { return d.DocRef == doc.DocRef }); at >= 0 {
			pending[at] = doc
			return
		}
	}
	u.Changes.PutDocs = append(u.Changes.PutDocs, doc)
}

// PutOrAdd writes a record that the transaction has looked for. A record that exists must be locked. One that does not exist is inserted; if another
// transaction inserts it first, the commit fails with Conflict and does not overwrite it.
func (u *Tx) PutOrAdd(doc store.Doc) {
	if u.Doc(doc.DocRef) != nil {
		u.PutDoc(doc)
		return
	}
	SetIn(&u.Docs, doc.DocRef, &doc)
	u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
}

// DropDoc removes a record, also one that this transaction is going to write.
func (u *Tx) DropDoc(ref store.DocRef) {
	SetIn(&u.Docs, ref, nil)
	isIt := func(d store.Doc) bool { return d.DocRef == ref }
	u.Changes.PutDocs = slices.DeleteFunc(u.Changes.PutDocs, isIt)
	if at := slices.IndexFunc(u.Changes.NewDocs, isIt); at >= 0 { // there was none: one that is there now belongs to another transaction
		u.Changes.NewDocs = slices.Delete(u.Changes.NewDocs, at, at+1)
		return
	}
	u.Changes.DropDocs = append(u.Changes.DropDocs, ref)
}

// Lane returns the lane of an execution, or nil if it is not known.
func (u *Tx) Lane(x *core.Execution) *core.Lane { return u.LaneNamed(x.Class.Lane) }

// Record returns the lease history entry that a fence names, as this transaction writes it, else as it was loaded.
func (u *Tx) Record(id base.UUID, epoch int64) *core.LeaseRecord {
	if pending := u.pending(id, epoch); pending != nil {
		copied := *pending
		return &copied
	}
	if rec, ok := u.history[historyKey{id, epoch}]; ok {
		return &rec
	}
	return nil
}

// LaneState returns the state of an execution's lane, or active if the dictionary does not have it.
func (u *Tx) LaneState(x *core.Execution) core.LaneState {
	if lane := u.Lane(x); lane != nil {
		return lane.Settings.State
	}
	return core.LaneActive
}

// Discard drops everything that a command which is alone in its transaction did before it was refused.
func (u *Tx) Discard() {
	u.Changes = store.Changes{}
	u.Order, u.timers, u.After, u.Accounts, u.parts = nil, nil, nil, nil, [slots]any{}
}

// AddDoc writes a record that must not exist: if another transaction inserts it first, the commit fails with Conflict.
func (u *Tx) AddDoc(doc store.Doc) {
	SetIn(&u.Docs, doc.DocRef, &doc)
	u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
}

// ReservedFor returns the epoch of the lease that the current reservation is for. Before it is claimed, that is the epoch that the claim will have (B13).
func ReservedFor(x *core.Execution) int64 {
	if x.Lease == nil {
		return x.LeaseEpoch + 1
	}
	return x.LeaseEpoch
}

// decided reports why the batch must be tried again, although all its commands were decided.
func (u *Tx) decided() error {
	for _, check := range u.Engine.points.decided {
		if err := check(u); err != nil {
			return err
		}
	}
	return nil
}
