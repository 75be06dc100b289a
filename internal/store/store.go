// Package store defines what FlowFabric requires of a database, in terms of rows and not of operations: load and lock, take ready rows, take due
// rows, write rows, follow the log, find. What a row means, and whether a change is allowed, is decided by package core; a store that contains a
// decision about an execution is wrong.
//
// The suite in internal/store/storetest defines the contract: a store must pass all of it.
package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Store is a database that keeps executions. Every method is safe for concurrent use. Every call ends by the deadline of its context or by the
// store's own statement timeout, whichever is earlier. Failures of the database are *Fault.
type Store interface {
	// Info describes this store. It does not access the database: a LogID that another process has changed is visible once the dictionary has been
	// read.
	Info() Info
	// Now reads the store's clock (L5, L129).
	Now(ctx context.Context) (base.Time, error)
	// Begin opens a transaction, takes the locks that want names in the one order of S73, loads the rows and reads the clock, in one round trip. A
	// want without rows costs no trip: the transaction begins with Commit, and Loaded.Now is the last clock reading, extrapolated with the
	// process's monotonic clock (L5). The caller must end the transaction with Commit or Rollback.
	Begin(ctx context.Context, want Want) (Tx, *Loaded, error)
	// Await waits until no other transaction holds the row, or has inserted it and is still open, at most for patience; then the fault is Busy. It
	// holds no lock after it returns. A store with serialized transactions never reports a held row, and returns at once.
	Await(ctx context.Context, lock Lock, patience time.Duration) error
	// Read loads committed rows of one snapshot without locking anything. For want.Pick it returns only the queue rows.
	Read(ctx context.Context, want Want) (*Loaded, error)

	// Dictionary loads all lanes and classes, and the docs that are rules.
	Dictionary(ctx context.Context) (*Dictionary, error)
	// Register adds the missing lanes and classes in a transaction of its own, and returns all of those named with their numbers, in the order
	// given. Retired classes among them become active again. It raises the dictionary's version by one iff something was added or became active
	// again.
	Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (Registered, error)

	// UnusedClasses returns the classes that have no execution, retired or not. It may read every execution, so it must be called rarely.
	UnusedClasses(ctx context.Context) ([]int32, error)

	// TakeDue returns up to limit timers with At <= now, oldest first, and hides each from other callers for hide, so that one process handles it
	// and another takes over if that one dies. Timers of the kinds in except are not taken. Handled timers are removed by Changes.DropTimers.
	TakeDue(ctx context.Context, limit int, hide time.Duration, except ...TimerKind) ([]Timer, error)
	// HideTimers hides taken timers for hide from now on. It waits for no lock and ignores timers that no longer exist. It never makes a timer due
	// earlier: after a failover that lost commits, the number of a taken timer may be that of another one, which must not fire before its time.
	HideTimers(ctx context.Context, timers []Timer, hide time.Duration) error
	// TimersAhead returns up to limit timers that cannot be taken before from, but can be by to, with numbers above after, in order of number. It
	// changes nothing. It is used when the clock was set back.
	TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) ([]Timer, error)
	// Poll returns everything that an idle process needs to know, in one statement (S71).
	Poll(ctx context.Context, ask PollAsk) (PollAnswer, error)

	// Log returns commits of the event log after a position, oldest first: consecutive ones only, so that a reader never passes a commit that
	// becomes visible later (E33). An empty result means that nothing further is known to be final. A commit whose bytes cannot be read is included
	// and marked as unreadable. The result ends with the commit that fills LogBytes.
	Log(ctx context.Context, after int64, limit int) ([]Commit, error)
	// Project updates search rows and moves the projection from one position to another, in one transaction. If the projection is not at the first
	// position, or the database has another incarnation, nothing happens and the fault is Stale.
	Project(ctx context.Context, p Projection) error
	// Index adds commits to the index of the log and moves its end from one position to another, in one transaction. If the index does not end at
	// the first position, or the database has another incarnation, nothing happens and the fault is Stale.
	Index(ctx context.Context, part IndexPart) error
	// LogOf returns commits that the index has under a subject, oldest first, and the end of the index as of this read. Commits that the log no
	// longer has, or whose positions are above the end, are left out. So are those behind the one that fills LogBytes (before it, of the newest).
	LogOf(ctx context.Context, ask LogOf) (commits []Commit, end int64, err error)
	// Find returns search rows by filter and order. Count returns how many match, counting up to limit. CountBy returns how many of the first limit
	// matches, in any order, have each value. Rows without the requested tag do not match. The values of tags may have spaces in place of control
	// characters.
	Find(ctx context.Context, q Query) ([]Hit, error)
	Count(ctx context.Context, q Query, limit int) (int, error)
	CountBy(ctx context.Context, q Query, by GroupBy, limit int) ([]Group, error)
	// FirstOfLanes takes the first q.Limit rows by filter in order of creation, regardless of q.Order, and returns the first of them for every
	// lane, at most each, in the same order. q.After must be nil.
	FirstOfLanes(ctx context.Context, q Query, each int) ([]LaneHit, error)

	// Notify sends a hint to every other process on this database; Listen calls hear for each until ctx ends. Hints may be lost, duplicated or late
	// (S69). On stores that only one process can open, Notify does nothing, and Listen hears of what transactions of the user have left.
	Notify(ctx context.Context, hint Hint) error
	Listen(ctx context.Context, hear func(Hint)) error

	// Maintain does the periodic maintenance of the database: it drops log rows older than logBefore (none if absent) and vacuums.
	Maintain(ctx context.Context, logBefore base.Time) error
	// Close ends everything that the store started and closes its connections.
	Close() error
}

// Tx is a transaction in which rows are locked. It is used by one goroutine.
type Tx interface {
	// Load locks and loads more rows. Rows of a kind that comes earlier in the lock order than one already locked are taken only if free; those
	// that another transaction holds are missing in Loaded and named in Loaded.Held. Docs to be locked are waited for nevertheless: transactions
	// that lock them late lock them last (S73: audit chains, budgets, rates). Within one Load, as within Begin, docs are locked in order of owner,
	// kind and key, before counters, and counters before lanes.
	Load(ctx context.Context, want Want) (*Loaded, error)
	// Commit writes the changes and commits, in one round trip. It ends the transaction regardless of its result.
	Commit(ctx context.Context, ch *Changes) error
	// Rollback ends the transaction without changes. After Commit it does nothing.
	Rollback(ctx context.Context)
	// Seen calls safe, like Changes.Safe, once everything that a transaction which ends without changes could see is durable.
	Seen(safe func(error))
}

// Info describes an open store.
type Info struct {
	Kind         string    // sqlite, postgres
	Version      string    // of the database
	Schema       int       // migration level
	Tables       string    // schema of the database with the tables; "": none
	Installation base.UUID // fixed when the schema was created
	LogID        base.UUID // identity of the event log: changes when a copy is restored, and with Changes.NewLogID (E32)
	Shared       bool      // other processes may have this database open
	Pool         int       // connections that transactions and reads share; 0: they are serialized
}

// Want names rows to load. Lists may contain duplicates.
type Want struct {
	Keys       []Key       // idempotency keys
	Executions []base.UUID // in order of id; missing ones are omitted from the result
	Patient    bool        // wait up to a second for a lock instead of 50 ms
	SkipLocked bool        // omit executions that another transaction holds, and name them in Loaded.Held
	// SkipUnreadable omits executions whose stored bytes cannot be read, and names them in Loaded.Unreadable. Without it, such an execution is an
	// error of code corruption.
	SkipUnreadable bool
	Inputs         bool   // load the bytes of the executions' inputs (Pick always does)
	Results        bool   // load the bytes of the executions' results
	Pick           []Pick // heads of queues, with their executions; rows that others hold are skipped
	// PickBest limits the result of Pick to the best so many in order of (order key, UUID), and sets Loaded.LeftOut if rows were omitted. 0: all
	// are loaded.
	PickBest   int
	History    []HistoryRef
	Counters   []string // slots in use by key; absent ones count 0
	ShareLanes []int32  // locked against changes until this transaction ends (S4)
	LockLanes  []int32  // to change them
	Docs       []DocRef
	LockDocs   bool // docs without an owner are locked too; a missing one cannot be (NewDocs resolves conflicts between two writers of it)
	Scans      []Scan
	// Owned names owners and kinds of which all docs are loaded. Docs of executions that this very trip locks are as the previous holder of the
	// lock left them.
	Owned []Owned
	// Blocks lists classes for which the block numbers above 0 with rows in the queue are returned. They are read after every lock is taken, at the
	// cost of one step per number, regardless of the number of rows.
	Blocks     []int32
	Inbox      int       // up to so many rows of the inbox (L88), by their ids; those held by others are skipped
	InboxAfter base.UUID // only rows behind this one
}

// Key names an idempotency key (L82). Space separates those of flows from those of executions.
type Key struct {
	Space     KeySpace
	Namespace string
	Text      string
}

// KeySpace is the kind of work an idempotency key names. Values are stored.
type KeySpace uint8

// The key spaces of L82 and F11.
const (
	ExecutionKeys KeySpace = 1
	FlowKeys      KeySpace = 2
)

// KeyRow is a stored idempotency key (L83, L84).
type KeyRow struct {
	Key
	Fingerprint []byte
	ID          base.ID
	ExpiresAt   base.Time
}

// Pick requests the first Limit rows of one queue from Floor on, in order of (order key, UUID).
type Pick struct {
	Class int32
	Block int32 // core.Execution.Block of its rows; never negative
	Floor int64 // lowest order key included; math.MinInt64: all
	Limit int
}

// QueueRow is the place of an execution in a queue.
type QueueRow struct {
	Class int32
	Block int32
	Order int64
	ID    base.UUID
}

// QueueLook is what a Pick saw of a queue besides the returned rows, including rows that others hold.
type QueueLook struct {
	First int64 // order key of the first row from Floor on, held or not; math.MaxInt64: there is none
	Held  int   // rows among the first Limit free ones whose executions are held: they are not returned, nor are others in their place
}

// HistoryRef names entries of a lease history: one epoch, or, if All is set, those above Epoch in ascending order, up to Limit (0: all).
type HistoryRef struct {
	ID    base.UUID
	Epoch int64
	All   bool
	Limit int
}

// DocKind is the kind of a small record (a step, a worker, a recorded answer, ...). Values are stored.
type DocKind uint8

// FirstRule is the first kind of docs that are rules. Rules have no owner and are part of the dictionary, which contains all of them; every commit
// that writes or drops a rule raises its version.
const FirstRule DocKind = 128

// Rule reports whether docs of the kind are part of the dictionary.
func (k DocKind) Rule() bool { return k >= FirstRule }

// DocRef names a small record. Docs of an execution have its UUID's text as Owner and are removed with it; others have Owner "".
type DocRef struct {
	Kind  DocKind
	Owner string
	Key   string
}

// Doc is a small record that only the engine interprets: Body is JSON written by the engine, Data bytes from a caller.
type Doc struct {
	DocRef
	Body      []byte
	Data      []byte
	ExpiresAt base.Time // absent: never; for the engine, stores ignore it
	Damaged   bool      // read only: the stored bytes are not those that were written; Body is then not JSON, and Data absent
}

// Scan requests docs of one kind and owner with keys after After, in byte order of the key.
type Scan struct {
	Kind   DocKind
	Owner  string
	Prefix string // keys that begin so
	After  string
	Limit  int // 0: all
}

// Owned names all docs of one kind and one owner.
type Owned struct {
	Kind  DocKind
	Owner string
}

// InboxRow is what a user's own transaction has left: a submission (L88), or outcomes of an execution (TxOutcomes).
type InboxRow struct {
	ID   base.ID
	Body []byte // the submission; empty: the execution carries outcomes
}

// Loaded is what Begin, Load or Read found.
type Loaded struct {
	Now        base.Time
	Dictionary int64 // version of the dictionary as of this load
	// Incarnation identifies the database as it was in this transaction. It changes whenever commits may have been lost: after a failover, a
	// restore or a restart. If Begin has loaded nothing, it is that of the extrapolated clock reading.
	Incarnation string
	Keys        map[Key]KeyRow
	Executions  map[base.UUID]*core.Execution // requested and picked
	Held        []base.UUID                   // executions that another transaction holds (SkipLocked)
	NotIngested []base.UUID                   // requested, but still submissions in the inbox
	Unreadable  map[base.UUID]error           // executions whose bytes cannot be read (SkipUnreadable); Picked contains their rows nevertheless
	Picked      []QueueRow                    // in order of want.Pick, then of the queue
	LeftOut     bool                          // there were more rows than PickBest
	Looks       []QueueLook                   // in order of want.Pick, if Info.Shared is set and rows are locked; else nil
	History     []core.LeaseRecord            // in order of want.History, then of the epoch
	Counters    map[string]int64
	Lanes       map[int32]core.Lane
	Docs        map[DocRef]Doc
	Scanned     [][]Doc           // one list per Scan
	Owned       map[Owned][]Doc   // in byte order of the key; owners without such docs are absent
	Blocks      map[int32][]int32 // by class, ascending; classes without such rows are absent
	Inbox       []InboxRow
}

// SetUnreadable records an execution whose bytes cannot be read, for stores.
func (l *Loaded) SetUnreadable(id base.UUID, err error) {
	if l.Unreadable == nil {
		l.Unreadable = map[base.UUID]error{}
	}
	l.Unreadable[id] = err
}

// Changes is everything that one transaction writes. All of it is written or nothing.
//
// Assume saves the trip that loads rows which the caller remembers from its last transaction. When they are written, each must still exist with the
// remembered version, and the store's clock must be before AssumeUntil, so that none of their timers has become due meanwhile; else the fault is
// Conflict.
//
// AssumeLanes, AssumeEmpty and AssumeDocs save the trip that checks whether work which this transaction files may be leased in it. The lanes are
// locked against changes until it ends, and the dictionary must have its version after that, else the fault is Stale. The queues must be empty from
// their floors on, apart from what this transaction files, and the docs must exist with these bodies, else it is Conflict. It is also Conflict if
// one of AssumeCounters exceeds its bound once this transaction's differences are added.
type Changes struct {
	Dictionary  int64  // != 0: refuse with the fault Stale unless the dictionary has this version
	Incarnation string // != "": refuse with the fault Stale unless the database has this incarnation

	NewKeys        []KeyRow          // a key that exists already is the fault Conflict
	ReplaceKeys    []KeyRow          // keys that are known to exist: their rows are replaced
	DropKeys       []Key             // removed if ExpiresAt has passed by the store's clock
	Insert         []*core.Execution // with inputs; Version is continued (NextVersion); an id that exists already, or is in the inbox and not dropped, is the fault Conflict
	Update         []*core.Execution // every field except identity, input and policy
	Renew          []*core.Execution // as Update, but only lease times, WakeAt and TimerAt changed (L9)
	Assume         []*core.Execution // as Update, of rows that this transaction has not loaded
	AssumeUntil    base.Time         // absent: no bound
	AssumeLanes    []int32           // only with Dictionary
	AssumeEmpty    []Pick            // their Limit is not used
	AssumeDocs     []Doc             // of no owner
	AssumeCounters map[string]int64  // the largest allowed values
	History        []core.LeaseRecord
	Patches        []core.AttemptPatch
	DropHistory    []HistoryRef // one epoch each
	Enqueue        []QueueRow
	Dequeue        []QueueRow // exactly as they were loaded
	AddTimers      []Timer
	DropTimers     []Timer
	Counters       map[string]int64 // differences; a counter that falls to 0 is removed
	Lanes          []core.Lane      // locked before; raises the dictionary's version
	RetireClasses  []RetiredClass   // those that are not retired yet; raises the dictionary's version
	DropClasses    []RetiredClass   // those that have been retired since exactly that moment; raises the dictionary's version
	PutDocs        []Doc            // inserted or replaced; rules among them, among NewDocs and DropDocs raise the dictionary's version
	NewDocs        []Doc            // a doc that exists already is the fault Conflict
	DropDocs       []DocRef
	DropInbox      []base.UUID
	Remove         []base.UUID // executions, with history, docs, search rows and everything else of theirs
	Strip          []base.UUID // as Remove, but their docs of the kinds in StripLeaves are kept
	StripLeaves    []DocKind
	Events         []core.Event
	NewLogID       base.UUID // not zero: the new identity of the log; raises the dictionary's version

	// Safe is called once none of the changes can be lost any more, or with the fault Unknown if that cannot be determined. Commit may return
	// before that; the changes must not be reported outside of this process before Safe is called. If Safe is nil, Commit returns only then.
	Safe func(error)

	Seq  int64  // set by Commit: position of these events in the log; 0 without events
	Draw uint32 // set by Commit: the random bits of the versions that it has written
}

// NextVersion returns the version of a row after a write: the count of its writes in the upper half, and the writer's random bits in the lower
// half. So two histories of one row with the same number of writes differ: that of a row that was removed and inserted again, and those of a
// database that was restored without its last commits (R4).
//
// The version of a row that carries outcomes (TxOutcomes) is negative. A write of the row ends that.
func NextVersion(version int64, draw uint32) int64 {
	return ((version&math.MaxInt64)>>32+1)<<32 | int64(draw)
}

// Carries reports whether a row with that version carries outcomes: a user's own transaction has left them, and nothing may be decided about the
// execution before they are applied.
func Carries(version int64) bool { return version < 0 }

// Carrying returns the version of a row to which outcomes were added. The random bits are the writer's, so that no cached copy of the row is written.
func Carrying(version int64, draw uint32) int64 {
	return math.MinInt64 | version&math.MaxInt64>>32<<32 | int64(draw)
}

// TimerKind states what a timer is for. Values are stored.
type TimerKind uint8

// Timer is an entry of the due index: at its time the engine processes what it names. Entries may be stale.
type Timer struct {
	At    base.Time
	Seq   int64 // assigned by the store
	Kind  TimerKind
	IDs   []base.UUID
	Texts []string
	Tries int // how often it was taken before
}

// PollAsk states what an idle process waits for.
type PollAsk struct {
	Queues []Before // queues to check for rows
	Docs   []DocRef // docs to check for existence
}

// Before names the rows of one queue whose order keys are below Order, including those that a transaction holds.
type Before struct {
	Class int32
	Block int32
	Order int64
}

// PollAnswer is the result of Poll.
type PollAnswer struct {
	Now         base.Time
	Dictionary  int64
	Incarnation string
	Queues      []bool    // in order of PollAsk.Queues
	Docs        []bool    // in order of PollAsk.Docs
	NextTimer   base.Time // absent: no timer
	LogStart    int64     // position before the oldest commit retained
	LogEnd      int64     // position up to which every commit is known to be final
	LogNewest   int64     // position of the newest commit; above LogEnd while a transaction with a lower number is open
	Projected   int64     // position of the projection
	Inbox       bool      // the inbox has submissions
}

// Projection is what one round of the follower writes.
type Projection struct {
	From, To int64
	// Incarnation is that of the database from which all of this was read: in another one the positions denote other commits.
	Incarnation string            // != "": refuse with the fault Stale unless the database has it
	Rows        []*core.Execution // search rows to write
	Gone        []base.UUID       // search rows to remove
	// Doubted lists executions among Rows that may have been removed since they were loaded: they are locked until the transaction ends, and those
	// that no longer exist are not shown.
	Doubted []base.UUID
}

// Without returns the projection with its doubts resolved: doubted executions for which gone holds are not shown.
func (p Projection) Without(gone func(base.UUID) bool) Projection {
	removed := map[base.UUID]bool{}
	for _, id := range p.Doubted {
		if gone(id) && !removed[id] {
			removed[id] = true
			p.Gone = append(slices.Clip(p.Gone), id)
		}
	}
	if len(removed) > 0 {
		p.Rows = slices.DeleteFunc(slices.Clone(p.Rows), func(x *core.Execution) bool { return removed[x.ID.UUID] })
	}
	return p
}

// IndexPart is what one round of indexing adds to the index of the log.
type IndexPart struct {
	From, To    int64
	Incarnation string // as in Projection
	Mentions    []Mention
}

// LogOf names commits of a subject.
type LogOf struct {
	Subject base.UUID
	After   int64 // only above this position
	Limit   int   // 0: only the end of the index is read
	Newest  bool  // the newest of them; else the oldest
}

// Mention lists commits whose events name a subject, an execution or a flow.
type Mention struct {
	Subject base.UUID
	Seqs    []int64 // ascending; none is below another mention of the subject in the index
}

// LogBytes is how many stored bytes of commits a read of the log returns, about. A commit may hold thousands of events, which take many times
// their stored size in memory.
const LogBytes = 1 << 20

// Full reports whether a read of the log for so many commits may have left out others, because it returned so many or filled LogBytes.
func Full(commits []Commit, limit int) bool {
	stored := 0
	for i := range commits {
		stored += commits[i].Stored
	}
	return len(commits) >= limit || stored >= LogBytes
}

// Commit is one row of the log: the events of one transaction.
type Commit struct {
	Seq        int64
	At         base.Time
	Stored     int // bytes; 0 if it was not read from the store
	Events     []core.Event
	Unreadable error // why there are no events: the stored bytes cannot be read (code corruption)
}

// AnyKey stands in Hint.Keys for all admission keys.
const AnyKey = "*"

// Hint notifies other processes that something happened. Nothing may depend on its arrival.
type Hint struct {
	Lanes      []string // lanes in which work became ready
	Named      bool     // Classes lists the classes of everything that became ready or was blocked; else it may be any class of the lanes
	Classes    []int32
	AllLanes   bool // work may have become ready in any lane
	Log        bool // the log grew
	Dictionary bool // a lane, class or rule changed
	Inbox      bool
	Keys       []string    // admission keys that have room again; AnyKey: any may have
	Blocked    bool        // executions were blocked by admission
	Streams    []base.UUID // executions to whose streams was appended
	AllStreams bool        // appends may have been made to any stream
}

// TxSubmitter is implemented by stores that accept a submission inside the user's own transaction (L88). tx is a pgx.Tx or a *sql.Tx on this
// store's database.
type TxSubmitter interface {
	// SubmitTx inserts the key (nil: none) and the inbox row, and nothing else; listeners get a hint when the transaction commits. If the key or, failing that, the id exists already, it inserts
	// nothing and returns the existing one (L80). A row without a body is never inserted, only looked up. A transaction on another database is code
	// wrong_database. After a refusal the transaction can continue.
	SubmitTx(ctx context.Context, tx any, key *KeyRow, row InboxRow) (existing *Existing, err error)
}

// TxOutcomes is implemented by stores in which a user's own transaction can end the lease of an execution, or store what was done under it. What the
// transaction leaves is applied later, by an engine: it exists if and only if the transaction commits. Like TxSubmitter it returns wrong_database, and
// leaves the transaction usable after a refusal. LockTx returns upgrade_pending if programs may use the store that do not understand outcomes.
//
// From LockTx to its end the user's transaction holds the row of the execution. Nothing can happen to the execution meanwhile, and its row cannot be
// read for a change after it without the mark that LeaveTx has set (Carries): so nothing comes between the decision of the user's transaction and
// its outcome.
type TxOutcomes interface {
	// LockTx locks the row of an execution, and loads it with docs of its own. It waits for a transaction that holds the row, but never inside the
	// database, so that it is no part of a deadlock and never aborts the user's transaction; after some seconds the code is store_unavailable. It
	// returns nil if there is no such execution.
	LockTx(ctx context.Context, tx any, id base.UUID, docs []DocRef, owned []Owned) (*LockedTx, error)
	// LeaveTx writes the doc, marks the row of the execution, which LockTx has locked in this transaction, and puts its id into the inbox, without a
	// body. Other processes get a hint when the transaction commits.
	LeaveTx(ctx context.Context, tx any, id base.ID, doc Doc) error
}

// LockedTx is what LockTx has loaded.
type LockedTx struct {
	Now       base.Time       // the store's clock, once the row was locked
	Execution *core.Execution // without input; of its class only the texts
	Docs      map[DocRef]Doc
	Owned     map[Owned][]Doc
}

// ExternalTx accepts submissions and outcomes for a store that this process has not opened, using only a transaction on its database. Like TxSubmitter it
// returns wrong_database, and leaves the transaction usable after a refusal.
type ExternalTx interface {
	TxSubmitter
	TxOutcomes
	// Glance reads through the transaction what the checks of a submission need: the clock, the lane of that name, and a small record without
	// owner, each nil if it does not exist.
	Glance(ctx context.Context, tx any, lane string, ref DocRef) (Glance, error)
}

// Glance is what an ExternalTx reads of a store.
type Glance struct {
	Now  base.Time
	Lane *core.LaneSettings
	Doc  *Doc
}

// Existing is what already has a key or an id.
type Existing struct {
	KeyRow        // for an id without the key: only the id
	Body   []byte // its submission while it is in the inbox, as the user's transaction sees it; else nil
}

// Sizer reports how many bytes the database takes on its disk, including indexes and its own logs.
type Sizer interface {
	Size(ctx context.Context) (int64, error)
}

// Backuper writes a consistent copy of the whole store to a new file while it is in use.
type Backuper interface {
	// Backup calls progress periodically, in pages of the copy. The total may be slightly off. progress may be nil.
	Backup(ctx context.Context, path string, progress func(done, total int)) error
}
