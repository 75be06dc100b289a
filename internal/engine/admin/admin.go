// Package admin does what operators and administrators ask for, and records it: API keys, signing keys, namespaces, operators' commands on one execution,
// and the audit log.
//
// The audit log is a chain of rows for each namespace. Its heads are locked behind everything but graphs (AtAudit in the lock order, S73), by the commands
// that name a chain; all others pay nothing for it.
package admin

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Admin is what operators and administrators do, and what is recorded of it: API keys, signing keys, namespaces, operators' commands on executions,
// and the audit log.
type Admin struct {
	*txn.Engine
	Signing *keyRings
	Spaces  *namespaceCache

	keys     *keyCache
	refusals *refusals
	auditing auditKeys
	data     atomic.Pointer[keyring.MasterKey] // see DataKey
	listed   []listedKind
	// checkDefaults checks the quotas that a namespace is to give to its submits.
	checkDefaults func(*txn.Tx, []core.QuotaUse) error
}

// adminSlot is the place of chainPart in a transaction.
const adminSlot txn.Slot = 0

// chainPart is what a transaction has of the audit log.
type chainPart struct {
	chains map[string]*auditChain // by namespace
	rolls  map[int]*auditRoll     // by number
}

// partsOf returns what a transaction has of the audit log.
func partsOf(u *txn.Tx) *chainPart { return txn.State[chainPart](u, adminSlot) }

// Of returns the room of administration of the transaction's engine.
func Of(u *txn.Tx) *Admin { return txn.Room[Admin](u.Engine, adminSlot) }

// New makes the room of administration, and registers it with the kernel.
func New(ctx context.Context, e *txn.Engine) (*Admin, error) {
	a := &Admin{
		Engine: e, Signing: newKeyRings(e.Cfg.MasterKey), Spaces: newNamespaceCache(e.Store), keys: newKeyCache(), refusals: newRefusals(),
		checkDefaults: func(*txn.Tx, []core.QuotaUse) error { return nil },
	}
	txn.UseRoom(e, adminSlot, a)
	e.OnReborn(func() {
		a.keys.forgetAll()
		a.Spaces.forget()
		a.Signing.forget()
		a.auditing.known.Store(nil)
		a.data.Store(nil)
	})
	e.OnPhases(txn.Phases{
		At: txn.AtAudit, Needs: needsChain,
		Lock:    lockChains,
		Refuse:  fullChain,
		Decided: closedChain,
		Flush:   func(u *txn.Tx) { writeChains(u) },
	})
	e.OnStart(a.startKeys)
	e.OnLoop(a.writeRefusals)
	e.OnClose(func(ctx context.Context) { a.writeCounted(ctx, true) })
	e.OnTimer(timerAudit, txn.TimerRule{Label: "audit", Do: a.sweepAudit})
	e.OnTimer(timerSigningKeys, txn.TimerRule{Label: "signing_key", Do: a.sweepSigningKeys})
	e.CountRemoved(docAuditRow, "audit_row")
	e.UseNamespaces(a.Spaces.knows)
	e.UseLossRecord(a.recordLoss)
	_, err := a.Spaces.Of(ctx, "", e.Cfg.Clock.Now())
	return a, err
}

// UseDefaultCheck sets what checks the quotas that a namespace is to give to its submits. It must be set before Start.
func (e *Admin) UseDefaultCheck(check func(u *txn.Tx, uses []core.QuotaUse) error) {
	e.checkDefaults = check
}

// needsChain reports whether a command needs the head of an audit chain, or the list of one that is new.
func needsChain(u *txn.Tx, cmd txn.Command, lock store.Lock) bool {
	a, ok := cmd.(audited)
	if !ok {
		return false
	}
	switch lock.Doc.Kind {
	case DocAuditChain:
		return slices.Contains(a.Chains(u), lock.Doc.Key)
	case docAuditRoll:
		return slices.ContainsFunc(a.Chains(u), func(name string) bool { return needsRoll(u, name, lock) })
	}
	return false
}
