// Package store states what FlowFabric asks of a database, in rows and not in operations: load and lock, take ready rows,
// take due rows, write rows, follow the log, find. What a row means, and whether a change is allowed, is decided by package
// core; a store that contains a decision about an execution is wrong.
//
// The suite in internal/store/storetest defines the contract: a store passes all of it or does not ship.
package store

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Store is a database that keeps executions. Every method may be called from many goroutines at once. Every call ends by the
// deadline of its context or by the store's own statement timeout, whichever is earlier. Failures of the database are *Fault.
type Store interface {
	// Info tells what this store is. It needs no access to the database: a LogID that another process has changed shows once the
	// dictionary was read.
	Info() Info
	// Now reads the store's clock (L5, L129).
	Now(ctx context.Context) (core.Time, error)
	// Begin opens a transaction, takes the locks that want names in the one order of S73, loads the rows and reads the clock,
	// in one round trip. A want without rows costs no trip: the transaction begins with Commit, and Loaded.Now is the clock as
	// last read, carried on by the process's monotonic clock (L5). The caller ends the transaction by Commit or Rollback.
	Begin(ctx context.Context, want Want) (Tx, *Loaded, error)
	// Await waits until no other transaction holds the row, or has made it and is still open, at most for patience; then the fault is
	// Busy. It locks nothing beyond its return. A store on which transactions take turns never names a row that is held, and returns at
	// once.
	Await(ctx context.Context, lock Lock, patience time.Duration) error
	// Read loads committed rows of one snapshot without locking anything. Of want.Pick it answers the queue rows alone.
	Read(ctx context.Context, want Want) (*Loaded, error)

	// Dictionary loads all lanes and classes, and the docs that are rules.
	Dictionary(ctx context.Context) (*Dictionary, error)
	// Register adds the lanes and classes that are not there yet, in a transaction of its own, and returns all of those named
	// with their numbers, in the order given. Retired classes are so no more. It raises the dictionary's version, by one, iff
	// something was added or came back.
	Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (Registered, error)

	// UnusedClasses names the classes that have no execution, retired or not. It may look at every execution: it is for once in
	// a while.
	UnusedClasses(ctx context.Context) ([]int32, error)

	// TakeDue returns up to limit timers with At <= now, oldest first, and hides each from other callers for hide, so that one
	// process handles it and another takes over if that one dies. Timers of the kinds named last stay where they are. Handled
	// timers are removed by Changes.DropTimers.
	TakeDue(ctx context.Context, limit int, hide time.Duration, except ...TimerKind) ([]Timer, error)
	// HideTimers hides timers that were taken for hide from now on. It waits for no lock, and those that are gone stay so.
	HideTimers(ctx context.Context, timers []Timer, hide time.Duration) error
	// TimersAhead returns up to limit timers that nobody takes before from, but somebody may by to, with numbers above after, in order of
	// these. It changes nothing, and is for when the clock was set back.
	TimersAhead(ctx context.Context, from, to core.Time, after int64, limit int) ([]Timer, error)
	// Poll answers, in one statement, whatever an idle process must know (S71).
	Poll(ctx context.Context, ask PollAsk) (PollAnswer, error)

	// Log returns commits of the event log after a position, oldest first: consecutive ones only, so that a reader never passes
	// a commit that becomes visible later (E33). An empty answer means that nothing further is known to be final. A commit whose
	// bytes cannot be read has its place among them all the same, and says so.
	Log(ctx context.Context, after int64, limit int) ([]Commit, error)
	// Project brings search rows up to date and moves the projection from one position to another, in one transaction. If it does
	// not stand at the first, or the database has another incarnation, nothing happens and the fault is Stale.
	Project(ctx context.Context, p Projection) error
	// Find returns search rows by filter and order; Count how many match, counting no further than limit; CountBy how many of the
	// first limit that match, in any order, have each value. Rows without the tag that is asked for do not match. The values of
	// tags may come with spaces in place of control characters.
	Find(ctx context.Context, q Query) ([]Hit, error)
	Count(ctx context.Context, q Query, limit int) (int, error)
	CountBy(ctx context.Context, q Query, by GroupBy, limit int) ([]Group, error)
	// FirstOfLanes looks at the first q.Limit rows by filter, in order of creation whatever q.Order says, and returns of every lane the first
	// few of them, at most each, in the same order. q.After must be nil.
	FirstOfLanes(ctx context.Context, q Query, each int) ([]LaneHit, error)

	// Notify sends a hint to every other process on this database; Listen calls hear for each until ctx ends. Hints may be lost,
	// doubled or late (S69). Stores that only one process can open do nothing.
	Notify(ctx context.Context, hint Hint) error
	Listen(ctx context.Context, hear func(Hint)) error

	// Maintain does what the database itself needs now and then: drop log rows older than keep (none if absent), vacuum.
	Maintain(ctx context.Context, logBefore core.Time) error
	// Close ends everything that the store started and frees its connections.
	Close() error
}

// Tx is a transaction in which rows are locked. It is used by one goroutine.
type Tx interface {
	// Load locks and loads more rows. Rows of a kind that comes earlier in the lock order than one already taken are taken only
	// if free; what another transaction holds is then missing in Loaded and named in Loaded.Held. Docs to be
	// locked are waited for all the same: whoever takes them late takes them last (S73: audit chains, budgets, rates). Within one
	// Load, as within Begin, docs are locked in order of owner, kind and key, and before counters, and those before lanes.
	Load(ctx context.Context, want Want) (*Loaded, error)
	// Commit writes the changes and commits, in one round trip. It ends the transaction whatever it returns.
	Commit(ctx context.Context, ch *Changes) error
	// Rollback ends the transaction without a trace. After Commit it does nothing.
	Rollback(ctx context.Context)
	// Seen calls safe as that of Changes is called, about all that a transaction which ends without changes could see.
	Seen(safe func(error))
}

// Info describes an open store.
type Info struct {
	Kind         string    // sqlite, postgres
	Version      string    // of the database
	Schema       int       // migration level
	Installation core.UUID // fixed when the schema was created
	LogID        core.UUID // identity of the event log: another when a copy is restored, and after Changes.NewLogID (E32)
	Shared       bool      // other processes may have this database open
	Pool         int       // connections that transactions and reads share; 0: they take turns
}

// Want names rows to load. All lists may hold a row twice.
type Want struct {
	Keys       []Key       // idempotency keys
	Executions []core.UUID // in order of id; those that do not exist are left out of the answer
	Patient    bool        // wait up to a second for a lock instead of 50 ms
	SkipLocked bool        // leave out executions that another transaction holds, and name them in Loaded.Held
	// SkipUnreadable leaves out executions whose stored bytes cannot be read, and names them in Loaded.Unreadable. Without it
	// one of them is an error of code corruption.
	SkipUnreadable bool
	Inputs         bool   // load the bytes of the executions' inputs (Pick always does)
	Results        bool   // load the bytes of the executions' results
	Pick           []Pick // heads of queues, with their executions; rows that others hold are passed over
	// PickBest leaves out, of all that Pick finds, what is not among the best so many in order of (order key, UUID), and says so in
	// Loaded.LeftOut. 0: all are loaded.
	PickBest   int
	History    []HistoryRef
	Counters   []string // slots in use by key; absent ones count 0
	ShareLanes []int32  // so that they do not change before this transaction ends (S4)
	LockLanes  []int32  // to change them
	Docs       []DocRef
	LockDocs   bool // docs of no owner are locked too; one that is not there cannot be (NewDocs tells two writers of it apart)
	Scans      []Scan
	// Owned names owners of whose docs all of a kind are loaded. Those of executions that this very trip locks are as whoever held
	// the lock before has left them.
	Owned []Owned
	// Blocks names classes: under which numbers above 0 have they rows in the queue? It is looked at when every lock is taken, and
	// costs a step a number, however many rows there are.
	Blocks []int32
	Inbox  int // up to so many adopted submissions (L88), those held by others passed over
}

// Key names an idempotency key (L82). Space keeps those of flows apart from those of executions.
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
	ID          core.ID
	ExpiresAt   core.Time
}

// Pick asks for the first Limit rows of one queue from Floor on, in order of (order key, UUID).
type Pick struct {
	Class int32
	Block int32 // core.Execution.Block of those in it; never below 0
	Floor int64 // lowest order key looked at; math.MinInt64: all
	Limit int
}

// QueueRow is the place of an execution in a queue.
type QueueRow struct {
	Class int32
	Block int32
	Order int64
	ID    core.UUID
}

// QueueLook is what a Pick saw of a queue besides the rows that came: others hold rows too.
type QueueLook struct {
	First int64 // order key of the first row from Floor on, held or not; math.MaxInt64: there is none
	Held  int   // rows among the first Limit free ones whose executions are held: they do not come, and none comes in their place
}

// HistoryRef names entries of a lease history: one epoch, or, if All is set, those above Epoch in ascending order, up to Limit (0: all).
type HistoryRef struct {
	ID    core.UUID
	Epoch int64
	All   bool
	Limit int
}

// DocKind is the kind of a small record (a step, a worker, a recorded answer, ...). Values are stored.
type DocKind uint8

// FirstRule is the first kind of docs that are rules: they belong to no owner and to the dictionary, which is loaded with all of them,
// and whose version every commit raises that writes or drops one.
const FirstRule DocKind = 128

// Rule reports whether docs of the kind are part of the dictionary.
func (k DocKind) Rule() bool { return k >= FirstRule }

// DocRef names a small record. Docs of one execution have its UUID's text as Owner and go with it; others have Owner "".
type DocRef struct {
	Kind  DocKind
	Owner string
	Key   string
}

// Doc is a small record whose meaning only the engine knows: Body is JSON that we wrote, Data bytes that somebody gave us.
type Doc struct {
	DocRef
	Body      []byte
	Data      []byte
	ExpiresAt core.Time // absent: never; for the engine, no store acts on it
	Damaged   bool      // read only: the stored bytes are not those that were written; Body is then no JSON, and Data absent
}

// Scan asks for docs of one kind and owner with keys after After, in byte order of the key.
type Scan struct {
	Kind   DocKind
	Owner  string
	Prefix string // keys that begin so
	After  string
	Limit  int // 0: all
}

// Owned names all docs of one kind that one owner has.
type Owned struct {
	Kind  DocKind
	Owner string
}

// InboxRow is a submission that a user's own transaction left behind (L88).
type InboxRow struct {
	ID   core.ID
	Body []byte
}

// Loaded is what Begin, Load or Read found.
type Loaded struct {
	Now        core.Time
	Dictionary int64 // version of the dictionary at this moment
	// Incarnation names the database as it was in this transaction. It is another one whenever commits may have been lost: after a
	// failover, a restore or a restart. Where Begin has loaded nothing it is that of the clock which was carried on.
	Incarnation string
	Keys        map[Key]KeyRow
	Executions  map[core.UUID]*core.Execution // asked for and picked
	Held        []core.UUID                   // executions that another transaction holds (SkipLocked)
	Unfiled     []core.UUID                   // asked for, and submissions in the inbox as yet
	Unreadable  map[core.UUID]error           // executions whose bytes cannot be read (SkipUnreadable); Picked has their rows all the same
	Picked      []QueueRow                    // in order of want.Pick, then of the queue
	LeftOut     bool                          // there were more rows than PickBest
	Looks       []QueueLook                   // in order of want.Pick, where Info.Shared is set and rows are locked; else nil
	History     []core.LeaseRecord            // in order of want.History, then of the epoch
	Counters    map[string]int64
	Lanes       map[int32]core.Lane
	Docs        map[DocRef]Doc
	Scanned     [][]Doc           // one list a Scan
	Owned       map[Owned][]Doc   // in byte order of the key; owners without such docs are not in it
	Blocks      map[int32][]int32 // by class, ascending; those without such rows are not in it
	Inbox       []InboxRow
}

// SetUnreadable names an execution whose bytes cannot be read, for stores.
func (l *Loaded) SetUnreadable(id core.UUID, err error) {
	if l.Unreadable == nil {
		l.Unreadable = map[core.UUID]error{}
	}
	l.Unreadable[id] = err
}

// Changes is everything one transaction writes. All of it is written or nothing.
//
// Assume saves the trip that loads rows which the caller remembers from its last transaction. When they are written each must
// still be there with the version it remembers, and the store's clock must stand before AssumeUntil, so that no timer of
// theirs has come between; else the fault is Conflict.
//
// AssumeLanes, AssumeEmpty and AssumeDocs save the trip that looks whether work which this transaction files may be leased in it:
// the lanes are held against changes until it ends and the dictionary must have its version after that, else the fault is Stale;
// the queues must be empty from their floors on but for what this transaction files, and the docs be there with these bodies,
// else it is Conflict. So it is if one of AssumeCounters stands above its bound once this transaction's differences are added.
type Changes struct {
	Dictionary  int64  // != 0: refuse with the fault Stale unless the dictionary has this version
	Incarnation string // != "": refuse with the fault Stale unless the database has this incarnation

	NewKeys        []KeyRow          // a key that is there already is the fault Conflict
	ReplaceKeys    []KeyRow          // keys known to be there: take over their rows
	DropKeys       []Key             // removed if ExpiresAt has passed by the store's clock
	Insert         []*core.Execution // with inputs; Version is counted on (NextVersion); an id that is there already, or in the inbox and not dropped, is the fault Conflict
	Update         []*core.Execution // every field but identity, input and policy
	Renew          []*core.Execution // as Update, but only lease times, WakeAt and TimerAt changed (L9)
	Assume         []*core.Execution // as Update, of rows that this transaction has not loaded
	AssumeUntil    core.Time         // absent: no bound
	AssumeLanes    []int32           // only with Dictionary
	AssumeEmpty    []Pick            // their Limit is not used
	AssumeDocs     []Doc             // of no owner
	AssumeCounters map[string]int64  // the most that they may be
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
	DropClasses    []RetiredClass   // those that are retired since just that moment; raises the dictionary's version
	PutDocs        []Doc            // inserted or replaced; rules among them, among NewDocs and DropDocs raise the dictionary's version
	NewDocs        []Doc            // a doc that is there already is the fault Conflict
	DropDocs       []DocRef
	DropInbox      []core.UUID
	Remove         []core.UUID // executions, with history, docs, search rows and everything else of theirs
	Strip          []core.UUID // as Remove, but their docs of the kinds in StripLeaves stay
	StripLeaves    []DocKind
	Events         []core.Event
	NewLogID       core.UUID // not zero: the log has this identity from now on; raises the dictionary's version

	// Safe is called once nothing of this can be lost any more, or with the fault Unknown when nobody knows. Commit may return before
	// that; who hears of the changes outside of this process must wait for it. Nil: Commit returns only then.
	Safe func(error)

	Seq  int64  // set by Commit: position of these events in the log; 0 without events
	Draw uint32 // set by Commit: the random bits of the versions that it has written
}

// NextVersion is the version of a row after a write: the count of its writes in the upper half, and what the writer has drawn in the
// lower one. So two histories of one row that were written equally often differ: that of a row which was removed and made again, and
// those of a database which came back without its last commits (R4).
func NextVersion(version int64, draw uint32) int64 { return (version>>32+1)<<32 | int64(draw) }

// TimerKind says what a timer is for. Values are stored.
type TimerKind uint8

// Timer is an entry of the due index: at its time the engine looks at what it names. Entries may be stale.
type Timer struct {
	At    core.Time
	Seq   int64 // given by the store
	Kind  TimerKind
	IDs   []core.UUID
	Texts []string
	Tries int // how often it was taken before
}

// PollAsk says what an idle process waits for.
type PollAsk struct {
	Queues []Before // is there a row?
	Docs   []DocRef // is it there?
}

// Before names the rows of one queue whose order keys are below Order, including those that a transaction holds.
type Before struct {
	Class int32
	Block int32
	Order int64
}

// PollAnswer is what Poll saw.
type PollAnswer struct {
	Now         core.Time
	Dictionary  int64
	Incarnation string
	Queues      []bool    // in order of PollAsk.Queues
	Docs        []bool    // in order of PollAsk.Docs
	NextTimer   core.Time // absent: no timer
	LogStart    int64     // position before the oldest commit retained
	LogEnd      int64     // position of the newest commit known to be final
	Projected   int64     // position of the projection
	Inbox       bool      // submissions wait to be adopted
}

// Projection is what a round of the follower writes.
type Projection struct {
	From, To int64
	// Incarnation is that of the database on which all of this was read: in another one the positions mean other commits.
	Incarnation string            // != "": refuse with the fault Stale unless the database has it
	Rows        []*core.Execution // to be shown as they are here
	Gone        []core.UUID       // to be shown no more
	// Doubted are executions among Rows that may have been removed since they were loaded: they are held until the transaction
	// ends, and those that are gone are not shown.
	Doubted []core.UUID
}

// Without is the projection with its doubts settled: of the doubted executions those that are gone are not shown.
func (p Projection) Without(gone func(core.UUID) bool) Projection {
	removed := map[core.UUID]bool{}
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

// Commit is one row of the log: the events of one transaction.
type Commit struct {
	Seq        int64
	At         core.Time
	Events     []core.Event
	Unreadable error // why there are no events: the stored bytes cannot be read (code corruption)
}

// AnyKey stands in Hint.Keys for all admission keys.
const AnyKey = "*"

// Hint tells other processes that something happened. It is never more than a hint.
type Hint struct {
	Lanes      []string // work became ready there
	Named      bool     // Classes names the classes of all that became ready or was blocked; else it may be any of the lanes
	Classes    []int32
	AllLanes   bool // work may have become ready in any lane
	Log        bool // the log grew
	Dictionary bool // a lane, class or rule changed
	Inbox      bool
	Keys       []string // admission keys that have room again; AnyKey: any may have
	Blocked    bool     // executions were blocked by admission
}

// TxSubmitter is the ability of stores to accept a submission inside the user's own transaction (L88). tx is a pgx.Tx or a
// *sql.Tx on this store's database.
type TxSubmitter interface {
	// SubmitTx inserts the key (nil: none) and the inbox row, and nothing else. If the key or, failing that, the id is there
	// already, it inserts nothing and returns what is there (L80). A row without a body is never inserted, only looked for.
	// Not this database: code wrong_database. After a refusal the transaction can go on.
	SubmitTx(ctx context.Context, tx any, key *KeyRow, row InboxRow) (existing *Existing, err error)
}

// Guest takes submissions for a store that this process has not opened: all it has is a transaction on its database. Like
// TxSubmitter it answers wrong_database, and leaves the transaction usable after a refusal.
type Guest interface {
	TxSubmitter
	// Glance reads through the transaction what a submission is judged by: the clock, the lane of that name, and a small record
	// without owner. nil: there is none.
	Glance(ctx context.Context, tx any, lane string, ref DocRef) (Glance, error)
}

// Glance is what a Guest sees of a store.
type Glance struct {
	Now  core.Time
	Lane *core.LaneSettings
	Doc  *Doc
}

// Existing is what has a key or an id already.
type Existing struct {
	KeyRow        // of an id without the key: the id alone
	Body   []byte // its submission while that waits in the inbox, as the user's transaction sees it; else nil
}

// Dumper is the ability to name the command that copies a database which has its own means. No secret is in it.
type Dumper interface {
	DumpLine() string
}

// Sizer is the ability to tell how many bytes the database takes on its disk, indexes and logs of its own included.
type Sizer interface {
	Size(ctx context.Context) (int64, error)
}

// Backuper is the ability to write a consistent copy of the whole store to a new file while it is in use.
type Backuper interface {
	// Backup tells progress, in pages of the copy, now and then. The total may be a little off; nil: nobody wants to know.
	Backup(ctx context.Context, path string, progress func(done, total int)) error
}
