package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Schema is how far the tables of a store are.
type Schema struct {
	Kind  string // sqlite, postgres
	Level int    // of the store; 0: it is empty
	Known int    // of this module
	// Oldest is the step that a program must know to use the store. 0: it must know Level.
	Oldest int
	Steps  []SchemaStep
	// Tables is the schema of a Postgres database with the tables, Moves the one that they are to be moved to.
	Tables, Moves string
	Programs      []Program // that have the store open
}

// Program is a program that has a store open.
type Program struct {
	Version   string
	Known     int // how far the tables are that it knows
	StartedAt time.Time
	SeenAt    time.Time // when it last said that it runs
}

// SchemaStep is one step of the tables.
type SchemaStep struct {
	Number  int
	Name    string
	Applied bool
	Took    time.Duration // of one that was just applied
	// Needs is the step that a program must know to run beside this one. 0: the step only adds, and programs that could run before may go on.
	Needs int
}

// MigrateMode says what to do with the schema of a store that is older than the program. A newer one is always refused.
type MigrateMode uint8

// The modes of migration.
const (
	MigrateAuto  MigrateMode = iota // bring it up to date
	MigrateCheck                    // refuse it
	MigrateOff                      // take it as it is
)

var migrateModes = []string{"auto", "check", "off"}

// String is the name of the mode as the settings of a server have it.
func (m MigrateMode) String() string {
	if int(m) < len(migrateModes) {
		return migrateModes[m]
	}
	return fmt.Sprintf("mode %d", m)
}

// ParseMigrateMode reads what String writes; invalid_argument.
func ParseMigrateMode(text string) (MigrateMode, error) {
	mode := slices.Index(migrateModes, text)
	if mode < 0 {
		return 0, Errorf(string(base.CodeInvalidArgument), "%q is no way to deal with an older schema", text).
			At("migrate", "use "+strings.Join(migrateModes, ", "))
	}
	return MigrateMode(mode), nil
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig struct {
	To               int                   // the last step to apply; 0: all there are
	OnStep           func(step SchemaStep) // called with each step when it is done
	UnsafeDurability bool                  // accept a database that may lose acknowledged commits when the power fails
}
