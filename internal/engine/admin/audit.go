package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The audit log is one chain of rows per namespace (U131). A row is written in the transaction of the change that it describes. That transaction
// locks the head of the chain after all other locks but those of flows (S73), in a trip of its own. Commands of clients and workers have no audit
// row and make no such trip.

// audited is a command that may leave a row in the audit log.
type audited interface {
	txn.Command
	// Chains returns the namespaces of the rows, once the command's own rows are loaded. None: the command writes no row.
	Chains(u *txn.Tx) []string
	// By returns the caller, whose rows may be bounded.
	By() txn.Caller
}

// auditChain is the head of a chain inside a transaction.
type auditChain struct {
	core.AuditChain
	created bool
	grown   bool
	key     keyring.AuditKey // that seals it when it is written; none: it is written with the seal that it has
	altered bool             // it is not as the engine left it
	closed  error            // why it cannot be sealed, and so must not grow; nil: it may
}

// Audits reports whether changes by the caller are recorded in the audit log.
func Audits(c txn.Caller) bool { return c.Actor == "operator" }

// ChainOf returns the chain for changes that concern these namespaces: that of the namespace if there is exactly one, otherwise keyring.Everywhere.
func ChainOf(namespaces []string) string {
	if len(namespaces) == 1 {
		return namespaces[0]
	}
	return keyring.Everywhere
}

// ChainRef names the record of the head of an audit chain.
func ChainRef(namespace string) store.DocRef {
	return store.DocRef{Kind: DocAuditChain, Key: namespace}
}

func auditRowRef(namespace string, number int64) store.DocRef {
	return store.DocRef{Kind: docAuditRow, Key: auditRowPrefix(namespace) + fmt.Sprintf("%016x", number)}
}

func auditRowPrefix(namespace string) string { return namespace + "\x01" }

// auditRowRefs returns the references of the rows first..last.
func auditRowRefs(namespace string, first, last int64) []store.DocRef {
	refs := make([]store.DocRef, 0, last-first+1)
	for n := first; n <= last; n++ {
		refs = append(refs, auditRowRef(namespace, n))
	}
	return refs
}

// lockChains locks the heads of the chains that the batch will lengthen.
func lockChains(ctx context.Context, u *txn.Tx, batch []*txn.Request) error {
	var names []string
	for _, r := range batch {
		if a, ok := r.Command.(audited); ok {
			names = append(names, a.Chains(u)...)
		}
	}
	if len(names) == 0 {
		return nil
	}
	want := store.Want{LockDocs: true}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if partsOf(u).chains[name] == nil {
			want.Docs = append(want.Docs, ChainRef(name))
		}
	}
	if err := u.Load(ctx, want); err != nil {
		return err
	}
	for _, ref := range want.Docs {
		chain, err := chain(u, ref)
		if err != nil {
			return err
		}
		txn.SetIn(&partsOf(u).chains, ref.Key, chain)
	}
	if err := trustChains(ctx, u, want.Docs); err != nil {
		return err
	}
	return mendChains(ctx, u, want.Docs)
}

// chain reads the head of a chain, or makes that of a new one.
func chain(u *txn.Tx, ref store.DocRef) (*auditChain, error) {
	doc := u.Doc(ref)
	if doc == nil {
		return &auditChain{AuditChain: core.NewAuditChain(u.Engine.Store.Info().Installation, ref.Key), created: true}, nil
	}
	head, err := DecodeChain(doc)
	return &auditChain{AuditChain: head}, err
}

// DecodeChain reads the head of an audit chain. Codes: corruption.
func DecodeChain(doc *store.Doc) (head core.AuditChain, err error) {
	if err := json.Unmarshal(doc.Body, &head); err != nil {
		return head, txn.Corrupt("audit chain", err)
	}
	return head, nil
}

func decodeAuditRow(doc *store.Doc) (row core.AuditRow, err error) {
	if err := json.Unmarshal(doc.Body, &row); err != nil {
		return row, txn.Corrupt("audit row", err)
	}
	return row, nil
}

// Audit appends a row to the chain of its namespace, which the command must have named in chains. before and after are the states of what was
// changed.
func Audit(u *txn.Tx, c txn.Caller, row core.AuditRow, before, after any) {
	chain := partsOf(u).chains[row.Namespace]
	row.At, row.Principal, row.RequestID, row.Address = u.Now, c.Principal, c.RequestID, c.Address
	row.Before, row.After = core.AuditChanges(before, after)
	if row.Outcome == "" {
		row.Outcome = core.AuditDone
	}
	row = chain.Append(row)
	if c.Bounded {
		chain.CountRow(u.Now, row.Outcome)
	}
	u.Audits = append(u.Audits, row)
	chain.grown = true
	body, _ := json.Marshal(row)
	u.Changes.NewDocs = append(u.Changes.NewDocs, store.Doc{DocRef: auditRowRef(row.Namespace, row.Number), Body: body})
	if keep := u.Engine.Cfg.AuditRetention; keep > 0 && chain.LookAt == 0 {
		armAudit(u, row.Namespace, &chain.AuditChain, row.At.Add(keep.Milliseconds()))
	}
}

// armAudit arms the timer of a chain for the time when its oldest row may be removed.
func armAudit(u *txn.Tx, namespace string, chain *core.AuditChain, at base.Time) {
	chain.LookAt = txn.RoundUp(at, base.Minute)
	timer := u.TimerAt(timerAudit, chain.LookAt)
	timer.Texts = append(timer.Texts, namespace)
}

// writeChains writes the heads of the chains that have changed. If another process creates the same chain at the same time, the commit fails with
// Conflict.
func writeChains(u *txn.Tx) {
	parts := txn.Known[chainPart](u, adminSlot)
	if parts == nil {
		return
	}
	for name, chain := range parts.chains {
		if !chain.grown {
			continue
		}
		if chain.altered {
			onceSure(u, func() {
				u.Engine.QuietLog.Error("an audit chain was altered by somebody else", "namespace", name, "row", chain.Altered)
			})
		}
		if !chain.key.IsZero() {
			enroll(u, name, chain)
			chain.SealUnder(chain.key, name)
		}
		body, _ := json.Marshal(chain.AuditChain)
		doc := store.Doc{DocRef: ChainRef(name), Body: body}
		if chain.created {
			u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
		} else {
			u.PutDoc(doc)
		}
	}
	writeRolls(u)
	parts.chains, parts.rolls = nil, nil
}

// ExecutionChain returns the chain of a command on an execution, or none if nothing is recorded.
func ExecutionChain(u *txn.Tx, c txn.Caller, id base.GivenID) []string {
	if !Audits(c) {
		return nil
	}
	ent, err := u.Find(c, id)
	if err != nil {
		return nil
	}
	return []string{ent.Exec.Class.Namespace}
}

// AuditExecution records a change of an execution.
func AuditExecution(u *txn.Tx, c txn.Caller, action, reason string, x *core.Execution, before, after any) {
	Audit(u, c, core.AuditRow{
		Namespace: x.Class.Namespace, Action: action, Entity: "execution", EntityID: x.ID.String(), Reason: reason,
	}, before, after)
}

// AuditPart records a change of something that belongs to an execution.
func AuditPart(u *txn.Tx, c txn.Caller, action, reason string, x *core.Execution, t AuditedChange) {
	Audit(u, c, core.AuditRow{Namespace: x.Class.Namespace, Action: action, Entity: t.Entity, EntityID: t.ID, Reason: reason}, t.Before, t.After)
}
