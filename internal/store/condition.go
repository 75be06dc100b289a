package store

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Examiner reports the state of the database itself, for its administrators. It takes no locks and is cheap.
type Examiner interface {
	Examine(ctx context.Context, now base.Time) (*Condition, error)
}

// Condition holds facts about a database. A store does not interpret them.
type Condition struct {
	Risks   []string // settings in force under which an acknowledged commit may be lost
	Size    int64    // size of the database in bytes
	Place   string   // directory that contains it; "": on another machine, or unknown
	Free    int64    // free bytes there
	Overdue int      // timers that are due and have not been handled, counted up to OverdueBound
	// OldestDue is the due time of the oldest of them.
	OldestDue base.Time

	Standbys     *Standbys    // nil: there can be none, or a service manages them
	Connections  *Connections // nil: there are no connections
	Transactions []OpenTransaction
	Vacuum       *Vacuum // nil: the database needs no vacuum
	Tables       []Table // those with the most dead rows first
}

// Standbys are the servers that may take over.
type Standbys struct {
	Count       int
	Synchronous bool // commits wait for one of them
}

// OverdueBound is the limit up to which overdue timers are counted.
const OverdueBound = 10_000

// Connections describes how a process reaches the database.
type Connections struct {
	Pool     int  // that this process may open
	Used     int  // of all processes
	Max      int  // that the database allows
	Reserved int  // of those, for administrators
	Pooled   bool // there is a pooler between
	Direct   bool // hints are received on a connection that bypasses it
}

// OpenTransaction is one of the longest-running open transactions.
type OpenTransaction struct {
	Session     int64
	Application string
	State       string
	Age         time.Duration
}

// Vacuum states whether the database removes dead rows.
type Vacuum struct {
	On  bool
	Off []string // tables that are excluded
}

// Table is the usage of a table.
type Table struct {
	Name       string
	Live, Dead int64 // rows; of a file: pages
}

// Checker checks the database's own structures for damage. It reads everything.
type Checker interface {
	// Check returns what is wrong, one line each; nothing if there is no damage.
	Check(ctx context.Context) ([]string, error)
}

// Scrubber compares everything that is stored with its checksums. It reads everything.
type Scrubber interface {
	// Scrub calls damaged for every record or payload that cannot be read or is not what was written. The code of what is corruption.
	Scrub(ctx context.Context, damaged func(what error)) error
}

// Schema is the schema level of a database.
type Schema struct {
	Kind  string
	Level int // of the database
	Known int // of this program
	// Oldest is the step that a program must know to run on the database. 0: the database does not say, and programs must know its level.
	Oldest int
	Steps  []SchemaStep
	// Tables is the schema of the database with the tables, Moves the one that they are to be moved to; "": there is nothing to move.
	Tables, Moves string
	// Programs have the database open.
	Programs []Program
}

// Program is a program that has a database open.
type Program struct {
	Version   string
	Known     int // the last step that it knows
	StartedAt base.Time
	SeenAt    base.Time // when it last said so
}

// SchemaStep is one step of the schema.
type SchemaStep struct {
	Number  int
	Name    string
	Applied bool          // the database has it
	Took    time.Duration // of one that was just applied
	Needs   int           // what a program must know to run beside it; 0: it only adds, and any program that could run before may
}

// CheckDetail is the name of the detail in a refusal to open a store that names the related doctor check (U165).
const CheckDetail = "check"

// OnlyTakes reports whether the steps that the database lacks only take away what older programs need. A program works without them.
func (s Schema) OnlyTakes() bool {
	for _, step := range s.Steps {
		if !step.Applied && step.Needs == 0 {
			return false
		}
	}
	return s.Level > 0
}

// Newer is the refusal of a schema that is newer than the program, unless the schema says that such a program may run (U163).
func (s Schema) Newer() error {
	if s.Level <= s.Known || s.Oldest > 0 && s.Oldest <= s.Known {
		return nil
	}
	return base.Invalid("store", "the store has schema %d, this program knows schema %d", s.Level, s.Known).With(CheckDetail, "schema").
		WithHint("use a flowfabric that knows schema %d or a later one: flowfabric version shows what it knows", s.Level)
}

// UpgradePending is the refusal to leave an outcome in a user's own transaction while programs may use the store that do not understand it.
func UpgradePending() error {
	return base.Errorf(base.CodeUpgradePending, "programs of an earlier version may use the store, and would not notice the outcome of this transaction").
		WithHint("replace them, and run flowfabric migrate up, which names those that are left")
}

// Older is the refusal of a schema that must be migrated first (U184).
func (s Schema) Older() error {
	if s.Level == 0 {
		return base.Invalid("store", "this is not a FlowFabric store: it has no tables of FlowFabric").With(CheckDetail, "schema").
			WithHint("see that the address is right; flowfabric migrate up makes a store there, beside what it holds")
	}
	return base.Invalid("store", "the store has schema %d, this program needs schema %d", s.Level, s.Known).With(CheckDetail, "schema").
		WithHint("run flowfabric migrate up, or open the store with migrate set to auto")
}

// Target returns the level to migrate to: to, or the highest known one for 0. It is never below the present level.
func (s Schema) Target(to int) (int, error) {
	switch err := s.Newer(); {
	case err != nil:
		return 0, err
	case to == 0:
		return max(s.Known, s.Level), nil
	case to < 0 || to > s.Known:
		return 0, base.Invalid("to", "there is no schema %d, the last one is %d", to, s.Known)
	case to < s.Level:
		return 0, base.Invalid("to", "the store has schema %d: a schema only goes forward", s.Level).
			WithHint("to go back restore a copy that was made before")
	default:
		return to, nil
	}
}
