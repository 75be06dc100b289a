package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// unit is one transaction under way: the rows it has locked, as the commands so far have left them, and what is to be written.
type unit struct {
	e       *Engine
	tx      store.Tx
	now     core.Time
	dict    *dictionary
	since   string // the incarnation that it was decided on, known before anything remembered was looked at (R2)
	version int64  // of the dictionary, as last seen
	careful bool
	redo    error                    // set by a command that finds the whole batch must be tried again
	doubted bool                     // set by a command that must not be answered from memory
	picks   bool                     // it is that of a pick, which passes over what needs such rows
	passed  map[core.UUID]store.Lock // what a pick has passed over for that, and cannot settle
	heeds   bool                     // it does not wait for rows that are known to be held
	line    *heldLine

	row       core.UUID // that is handled now
	advancing bool      // flows hear of what has ended now
	leaves    bool      // all edges are left to follow-up work: to resolve them at once made the unit panic
	handing   bool      // work is handed to claims now, which no command asked for
	lent      *pick     // the claims that get it; nil: none
	back      func(*pick, error)

	entries  map[core.UUID]*entry
	order    []*entry // in order of first use
	held     map[core.UUID]bool
	unfiled  map[core.UUID]bool  // ids that submissions in the inbox have
	broken   map[core.UUID]error // executions whose bytes cannot be read
	keys     map[store.Key]store.KeyRow
	docs     map[store.DocRef]*store.Doc // nil: known to be absent
	scanned  [][]store.Doc
	history  map[historyKey]core.LeaseRecord
	ended    map[historyKey]int // place in ch.History
	lanes    map[int32]core.Lane
	counters map[string]int64
	inbox    []store.InboxRow
	picked   []store.QueueRow
	leftOut  bool              // more could have been picked
	looks    []store.QueueLook // of what was picked
	ch       store.Changes
	timers   map[timerKey]*store.Timer
	chains   map[string]*auditChain // by namespace
	rolls    map[int]*auditRoll     // by number
	advanced []func()               // run once flows have advanced
	after    []func()               // run once the transaction has committed
	safe     safety                 // of what it did, and of what it saw
	began    time.Duration          // by the meter's clock
	audits   []core.AuditRow        // what the audit log tells of
	spans    []Span                 // of the commands that it serves
	waits    map[core.UUID]*waitFile

	blocks     map[int32][]int32           // numbers under which classes have rows
	books      *core.Books                 // the budgets at hand; nil: none
	budgets    budgetPart                  // what is known of their rows
	rates      map[string]*core.RateWindow // by key
	opened     int                         // how many docs were looked through for them
	unreadable map[string]bool             // admission keys whose records cannot be read (S45)
	roomBack   []string                    // admission keys that have room again
	believed   map[string]int64            // slots that are believed to be in use: what counters has of them is not locked
	locked     map[string]bool             // those whose counters are

	graph flowPart // flows and edges at hand
}

type historyKey struct {
	id    core.UUID
	epoch int64
}

// entry is an execution inside a unit.
type entry struct {
	x        *core.Execution
	filed    *store.QueueRow // where it was queued when loaded
	blocked  string          // the admission key that it was blocked on when loaded
	holds    []string        // slots that it occupied when loaded
	ended    bool            // it was terminal when loaded
	waited   core.Reason     // what it depended on when loaded
	advanced bool            // its flow knows of its end
	followed bool            // it ended because the flow below it had: that is left alone
	idle     bool            // no timer was armed when it was loaded: its entry in the due index may be used up
	created  bool
	changed  bool
	renewed  bool // only its lease times changed
	removed  bool
	recalled *core.Execution // not loaded: as this process remembers it. Nobody may change it

	waits    *core.Waits       // as they were when it was loaded
	reserved *core.Reservation // as it was when it was loaded
	leased   int64             // the lease epoch that it was for
	used     map[string]int64  // its meters when it was loaded

	readySince core.Time // of one that was acquired: until then it was ready so long
	acquiredAt core.Time
	suspended  bool // of one that was acquired: it goes on after a suspension
}

func (ent *entry) assumed() bool { return ent.recalled != nil }

// justEnded reports whether the execution has ended in this unit. Its flow, its children and its retention hear of that with the commit.
func (ent *entry) justEnded() bool { return ent.x.Status.Terminal() && !ent.ended }

// before is a copy of the execution as it is now, to go back to after a refusal.
func (ent *entry) before() *core.Execution {
	if ent.recalled != nil && !ent.changed && !ent.renewed {
		return ent.recalled // a refusal gives up the whole unit
	}
	return ent.x.Clone()
}

// back undoes what a refused command did to the execution.
func (ent *entry) back(before *core.Execution) {
	if before == ent.recalled {
		before = before.Clone()
	}
	ent.x = before
}

// begin opens a unit with the rows that want names, for what rests on nothing that was remembered before.
func (e *Engine) begin(ctx context.Context, want store.Want) (*unit, error) {
	return e.beginSince(ctx, e.incarnation(), want)
}

// beginSince is begin for what rests on something that was remembered: since is the incarnation that was known before it was looked at.
func (e *Engine) beginSince(ctx context.Context, since string, want store.Want) (*unit, error) {
	u := &unit{e: e, since: since}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

// beginHeeding is beginSince for a batch of commands, which does not wait for rows that are known to be held. line is the one whose commands
// they are. A unit that comes with an error has ended, and tells what it had loaded by then.
func (e *Engine) beginHeeding(ctx context.Context, since string, want store.Want, line *heldLine) (*unit, error) {
	u := &unit{e: e, since: since, heeds: true, line: line}
	err := u.begin(ctx, want)
	if u.tx == nil {
		return nil, err
	}
	return u, err
}

// beginPick is beginSince for a pick, which passes over what needs rows that are known to be held.
func (e *Engine) beginPick(ctx context.Context, since string, want store.Want) (*unit, error) {
	u := &unit{e: e, since: since, picks: true}
	if err := u.begin(ctx, want); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *unit) begin(ctx context.Context, want store.Want) error {
	e, began := u.e, u.e.meter.now()
	tx, loaded, err := e.store.Begin(ctx, want)
	if e.failed(err) != nil {
		return err
	}
	dict, err := e.dictionaryOf(ctx, u.since, loaded)
	if err != nil {
		tx.Rollback(ctx)
		return err
	}
	u.tx, u.now, u.dict, u.began = tx, loaded.Now, dict, began
	e.sweep.clock.of(loaded.Now)
	u.entries = make(map[core.UUID]*entry, len(want.Executions)+len(loaded.Picked))
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

// expect makes room for what so many commands will leave behind.
func (u *unit) expect(commands, endings int) {
	u.ch.Events = slices.Grow(u.ch.Events, commands) // those of budgets that began anew as they were loaded are there already
	u.ch.History = slices.Grow(u.ch.History, endings)
}

// load locks and loads further rows. An empty want costs nothing.
func (u *unit) load(ctx context.Context, want store.Want) error {
	if len(want.Executions)+len(want.Keys)+len(want.History)+len(want.Counters)+len(want.Docs)+len(want.Scans)+len(want.Owned)+len(want.LockLanes)+len(want.ShareLanes) == 0 {
		return nil
	}
	if err := u.meetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.tx.Load(ctx, want)
	if u.e.failed(err) != nil {
		return err
	}
	if want.LockDocs {
		u.now = max(u.now, loaded.Now) // whether an epoch is over is judged by the clock behind the lock (BI9)
	}
	u.absorb(want, loaded)
	if len(want.ShareLanes) > 0 && u.version > u.dict.version { // a rule may have changed before the lanes were held (S36)
		return &store.Fault{Kind: store.Stale, Err: errRulesChanged}
	}
	return u.loadReserved(ctx)
}

var errRulesChanged = errors.New("the rules have changed")

// absorb takes loaded rows into the unit. Rows that it has already stay as the commands left them.
func (u *unit) absorb(want store.Want, loaded *store.Loaded) {
	u.version = max(u.version, loaded.Dictionary)
	for id, x := range loaded.Executions {
		if u.entries[id] == nil {
			u.entries[id] = loadedEntry(x)
		}
	}
	for id, err := range loaded.Unreadable {
		setIn(&u.broken, id, err)
	}
	for _, id := range loaded.Held {
		setIn(&u.held, id, true)
	}
	for _, id := range loaded.Unfiled {
		setIn(&u.unfiled, id, true)
	}
	for key, row := range loaded.Keys {
		setIn(&u.keys, key, row)
	}
	for _, rec := range loaded.History {
		setIn(&u.history, historyKey{rec.ExecutionID.UUID, rec.Epoch}, rec)
	}
	for _, ref := range want.Docs {
		if _, known := u.docs[ref]; !known {
			setIn(&u.docs, ref, nil)
		}
	}
	for ref, doc := range loaded.Docs {
		setIn(&u.docs, ref, &doc)
	}
	for _, key := range want.Counters {
		if !u.locked[key] {
			setIn(&u.counters, key, loaded.Counters[key])
			setIn(&u.locked, key, true)
		}
	}
	for id, lane := range loaded.Lanes {
		setIn(&u.lanes, id, lane)
	}
	u.scanned = append(u.scanned, loaded.Scanned...)
	u.absorbWaits(&want, loaded)
	u.inbox = append(u.inbox, loaded.Inbox...)
	u.picked = append(u.picked, loaded.Picked...)
	u.leftOut = u.leftOut || loaded.LeftOut
	u.looks = append(u.looks, loaded.Looks...)
	for class, blocks := range loaded.Blocks {
		setIn(&u.blocks, class, blocks)
	}
}

func setIn[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

func loadedEntry(x *core.Execution) *entry {
	ent := &entry{x: x, blocked: x.BlockedOn, holds: x.Holds, ended: x.Status.Terminal(), waited: x.Dependency, idle: x.WakeAt == 0, waits: x.Waits, reserved: x.Reservation, leased: reservedFor(x), used: x.Usage}
	if x.Queued() {
		ent.filed = &store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
	}
	return ent
}

// find is the execution that the caller named, or execution_not_found: also for one of another namespace (W5).
func (u *unit) find(c Caller, id core.GivenID) (*entry, error) {
	if err := u.broken[id.UUID]; err != nil {
		return nil, err
	}
	ent := u.entries[id.UUID]
	if ent == nil || ent.removed || !id.Names(ent.x.ID) || !c.sees(ent.x.Class.Namespace) {
		return nil, notFound(id)
	}
	return ent, nil
}

// effects starts the record of what a command of this caller does.
func (u *unit) effects(c Caller) *core.Effects {
	return &core.Effects{
		Now: u.now, Actor: core.Actor{Type: c.Actor, ID: c.Principal}, RequestID: c.RequestID, Jitter: rand.Float64(), Books: u.books, //nolint:gosec // G404: it spreads retries
	}
}

// engineEffects starts the record of what a timer does.
func (u *unit) engineEffects() *core.Effects {
	return u.effects(engineCaller)
}

// on settles the named execution and applies op to it (L76). A refusal leaves the record as settling left it (L78).
// op reports whether it changed the record.
func (u *unit) on(c Caller, id core.GivenID, op func(x *core.Execution, fx *core.Effects) (changed bool, err error)) error {
	ent, err := u.find(c, id)
	if err != nil {
		return err
	}
	return u.apply(c, ent, op)
}

func (u *unit) apply(c Caller, ent *entry, op func(x *core.Execution, fx *core.Effects) (changed bool, err error)) error {
	u.settle(ent)
	u.at("apply", ent.x.ID.UUID)
	before, mark := ent.before(), u.books.Mark()
	fx := u.effects(c)
	fx.Now = max(fx.Now, ent.x.Latest())
	changed, err := op(ent.x, fx)
	u.doubted = u.doubted || ent.assumed() && (err != nil || !changed)
	if err != nil {
		ent.back(before)
		u.books.Back(mark)
		return err
	}
	if changed {
		u.freed(before.Holds, ent.x.Holds)
		u.touch(ent)
		u.keep(fx)
	}
	return nil
}

// settle applies the execution's due timers (L18).
func (u *unit) settle(ent *entry) {
	if ent.x.WakeAt == 0 || ent.x.WakeAt > max(u.now, ent.x.Latest()) {
		return
	}
	u.at("settle", ent.x.ID.UUID)
	fx, held := u.engineEffects(), ent.x.Holds
	if ent.x.Settle(fx) {
		u.freed(held, ent.x.Holds)
		u.touch(ent)
		u.keep(fx)
	}
}

// touch marks an execution as changed.
func (u *unit) touch(ent *entry) {
	if !ent.changed && !ent.renewed {
		u.order = append(u.order, ent)
	}
	ent.changed = true
}

// touchLease marks an execution whose lease times alone changed.
func (u *unit) touchLease(ent *entry) {
	if !ent.changed && !ent.renewed {
		u.order = append(u.order, ent)
	}
	ent.renewed = true
}

// create adds a new execution.
func (u *unit) create(x *core.Execution, fx *core.Effects) {
	ent := &entry{x: x, created: true}
	u.entries[x.ID.UUID] = ent
	u.touch(ent)
	u.keep(fx)
}

// remove takes an execution away with everything that belongs to it.
func (u *unit) remove(ent *entry) {
	ent.removed = true
	u.ch.Remove = append(u.ch.Remove, ent.x.ID.UUID)
	u.removeWhereabouts(ent.x.ID.UUID)
	u.leaveBudgets(ent.x)
}

// keep takes over what a command did besides changing its record.
func (u *unit) keep(fx *core.Effects) {
	u.ch.Events = append(u.ch.Events, fx.Events...)
	for _, rec := range fx.History {
		u.keepRecord(rec)
	}
	for _, patch := range fx.Patches {
		if pending := u.pending(patch.ExecutionID.UUID, patch.Epoch); pending != nil {
			pending.Attempt.State, pending.Attempt.EndedAt, pending.Attempt.Failure = patch.State, patch.EndedAt, patch.Failure
		} else {
			u.ch.Patches = append(u.ch.Patches, patch)
		}
	}
	u.keepWaits(fx.Waits)
	u.giveBack(fx.RatesBack)
}

// keepRecord writes an entry of the lease history; one that this transaction has not yet written is replaced in place.
func (u *unit) keepRecord(rec core.LeaseRecord) {
	if pending := u.pending(rec.ExecutionID.UUID, rec.Epoch); pending != nil {
		rec.Replaces = pending.Replaces
		*pending = rec
		return
	}
	setIn(&u.ended, historyKey{rec.ExecutionID.UUID, rec.Epoch}, len(u.ch.History))
	u.ch.History = append(u.ch.History, rec)
	u.trimHistory(&rec)
}

// pending is an entry of the lease history that this transaction is about to write.
func (u *unit) pending(id core.UUID, epoch int64) *core.LeaseRecord {
	if at, ok := u.ended[historyKey{id, epoch}]; ok {
		return &u.ch.History[at]
	}
	return nil
}

// doc is a small record as the commands so far have left it; nil when there is none.
func (u *unit) doc(ref store.DocRef) *store.Doc { return u.docs[ref] }

// putDoc writes a small record.
func (u *unit) putDoc(doc store.Doc) {
	setIn(&u.docs, doc.DocRef, &doc)
	for _, pending := range [][]store.Doc{u.ch.NewDocs, u.ch.PutDocs} {
		if at := slices.IndexFunc(pending, func(d store.Doc) bool { return d.DocRef == doc.DocRef }); at >= 0 {
			pending[at] = doc
			return
		}
	}
	u.ch.PutDocs = append(u.ch.PutDocs, doc)
}

// putOrAdd writes a small record that the unit has looked for: if it is there it must be locked; if it is not, and somebody else is
// faster, that is Conflict, and not his that is lost.
func (u *unit) putOrAdd(doc store.Doc) {
	if u.doc(doc.DocRef) != nil {
		u.putDoc(doc)
		return
	}
	setIn(&u.docs, doc.DocRef, &doc)
	u.ch.NewDocs = append(u.ch.NewDocs, doc)
}

// dropDoc removes a small record, also one that this transaction was about to write.
func (u *unit) dropDoc(ref store.DocRef) {
	setIn(&u.docs, ref, nil)
	isIt := func(d store.Doc) bool { return d.DocRef == ref }
	u.ch.PutDocs = slices.DeleteFunc(u.ch.PutDocs, isIt)
	if at := slices.IndexFunc(u.ch.NewDocs, isIt); at >= 0 { // it is not there: what is may be another's
		u.ch.NewDocs = slices.Delete(u.ch.NewDocs, at, at+1)
		return
	}
	u.ch.DropDocs = append(u.ch.DropDocs, ref)
}

// lane is the lane of an execution.
func (u *unit) lane(x *core.Execution) *core.Lane { return u.laneNamed(x.Class.Lane) }

// record finds the lease history entry that a fence names: as this transaction writes it, else as it was loaded.
func (u *unit) record(id core.UUID, epoch int64) *core.LeaseRecord {
	if pending := u.pending(id, epoch); pending != nil {
		copied := *pending
		return &copied
	}
	if rec, ok := u.history[historyKey{id, epoch}]; ok {
		return &rec
	}
	return nil
}
