package store

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Examiner is the ability to tell how the database itself is, for those who look after it. It takes no locks and costs little.
type Examiner interface {
	Examine(ctx context.Context, now core.Time) (*Condition, error)
}

// Condition is facts about a database. What they mean is not for a store to say.
type Condition struct {
	Risks   []string // settings in force under which an acknowledged commit may be lost
	Size    int64    // bytes that the database takes
	Place   string   // directory that it is in; "": on another machine, or not told
	Free    int64    // bytes that are free there
	Overdue int      // timers whose time has come and that nobody handles, counted no further than OverdueBound
	// OldestDue is the time of the oldest of them.
	OldestDue core.Time

	Standbys     *Standbys    // nil: there can be none, or a service looks after them
	Connections  *Connections // nil: nothing is connected to
	Transactions []OpenTransaction
	Vacuum       *Vacuum // nil: the database tidies up by itself
	Tables       []Table // those with the most dead rows first
}

// Standbys are the servers that may take over.
type Standbys struct {
	Count       int
	Synchronous bool // commits wait for one of them
}

// OverdueBound is how far overdue timers are counted.
const OverdueBound = 10_000

// Connections is how a process reaches the database.
type Connections struct {
	Pool     int  // that this process may open
	Used     int  // of all processes
	Max      int  // that the database allows
	Reserved int  // of those, for administrators
	Pooled   bool // a pooler stands between
	Direct   bool // hints are heard on a connection past it
}

// OpenTransaction is one of the transactions that are open for longest.
type OpenTransaction struct {
	Session     int64
	Application string
	State       string
	Age         time.Duration
}

// Vacuum says whether the database removes dead rows.
type Vacuum struct {
	On  bool
	Off []string // tables that it leaves out
}

// Table is how much of a table is in use.
type Table struct {
	Name       string
	Live, Dead int64 // rows; of a file: pages
}

// Checker is the ability to look for damage in the database's own structures. It reads everything.
type Checker interface {
	// Check tells what is wrong, a line each; nothing when all is well.
	Check(ctx context.Context) ([]string, error)
}

// Scrubber is the ability to compare everything that is stored with its checksums. It reads everything.
type Scrubber interface {
	// Scrub calls damaged for every record or payload that cannot be read, or that is not what was written. Codes of what: corruption.
	Scrub(ctx context.Context, damaged func(what error)) error
}

// Schema is how far the schema of a database is.
type Schema struct {
	Kind  string
	Level int // that the database has
	Known int // that this program has
	Steps []SchemaStep
}

// SchemaStep is one step of the schema.
type SchemaStep struct {
	Number  int
	Name    string
	Applied bool          // the database has it
	Took    time.Duration // of one that was just applied
}

// CheckDetail names, among the details of a refusal to open a store, the check of the doctor that it is about (U165).
const CheckDetail = "check"

// Newer refuses a schema of the future (U163).
func (s Schema) Newer() error {
	if s.Level <= s.Known {
		return nil
	}
	return core.Invalid("store", "the store has schema %d, this program knows schema %d", s.Level, s.Known).With(CheckDetail, "schema").
		WithHint("use a flowfabric that knows schema %d or a later one: flowfabric version tells what it knows", s.Level)
}

// Older refuses a schema that is to be brought up to date first (U184).
func (s Schema) Older() error {
	if s.Level == 0 {
		return core.Invalid("store", "this is not a FlowFabric store: it has no tables of FlowFabric").With(CheckDetail, "schema").
			WithHint("see that the address is right; flowfabric migrate up makes a store there, beside what it holds")
	}
	return core.Invalid("store", "the store has schema %d, this program needs schema %d", s.Level, s.Known).With(CheckDetail, "schema").
		WithHint("run flowfabric migrate up, or open the store with migrate set to auto")
}

// Target is the level to migrate to: to, or all the way for 0. It never lies behind what is there.
func (s Schema) Target(to int) (int, error) {
	switch err := s.Newer(); {
	case err != nil:
		return 0, err
	case to == 0:
		return s.Known, nil
	case to < 0 || to > s.Known:
		return 0, core.Invalid("to", "there is no schema %d, the last one is %d", to, s.Known)
	case to < s.Level:
		return 0, core.Invalid("to", "the store has schema %d: a schema only goes forward", s.Level).
			WithHint("to go back restore a copy that was made before")
	default:
		return to, nil
	}
}
