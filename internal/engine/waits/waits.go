// Package waits keeps what executions wait for: suspensions, waitpoints, signals and approval links. A worker suspends, and a caller who holds a token or may
// approve resumes. The records of one execution are loaded together, under its lock (docs.go, state.go); the room keeps them in step with the record
// through the phases that it registers.
package waits

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Waits are what executions wait for: suspensions, waitpoints, signals and links, with the tokens that prove a right to them.
type Waits struct {
	*limits.Admission
	known knownWaitpoints
	meter meter
}

// New makes the room of waits, and registers it with the kernel.
func New(e *limits.Admission) *Waits {
	w := &Waits{Admission: e}
	txn.UseRoom(e.Engine, waitSlot, w)
	e.UseAskedBudget(askedBudget)
	e.OnPhases(txn.Phases{
		Absorb: func(u *txn.Tx, want *store.Want, loaded *store.Loaded) { absorbWaits(u, want, loaded) },
		Keep:   func(u *txn.Tx, fx *core.Effects) { keepWaits(u, fx.Waits) },
		Row:    func(u *txn.Tx, row *txn.Row) { markWaits(u, row) },
		WantRemovable: func(_ *txn.Tx, row *txn.Row, want *store.Want) {
			if row.Exec.Waits != nil {
				want.Owned = append(want.Owned, WaitStateKey(row.Exec.ID.UUID))
			}
		},
		Remove: func(u *txn.Tx, row *txn.Row) { removeLocators(u, row.Exec.ID.UUID) },
	})
	e.OnReborn(w.known.forgetAll)
	w.measure()
	return w
}
