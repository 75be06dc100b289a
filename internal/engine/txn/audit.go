package txn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The audit log is one chain of rows per namespace (U131). A row is written in the transaction of the change that it describes. That transaction
// locks the head of the chain after all other locks but those of flows (S73), in a trip of its own. Commands of clients and workers have no audit
// row and make no such trip.

// audited is a command that may leave a row in the audit log.
type audited interface {
	Command
	// Chains returns the namespaces of the rows, once the command's own rows are loaded. None: the command writes no row.
	Chains(u *Tx) []string
}

// auditChain is the head of a chain inside a unit.
type auditChain struct {
	core.AuditChain
	created bool
	grown   bool
	key     keyring.AuditKey // that seals it when it is written; none: it is written with the seal that it has
	altered bool             // it is not as the engine left it
	closed  error            // why it cannot be sealed, and so must not grow; nil: it may
}

// Audits reports whether changes by the caller are recorded in the audit log.
func (c Caller) Audits() bool { return c.Actor == "operator" }

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
func (u *Tx) lockChains(ctx context.Context, batch []*Request) error {
	var names []string
	for _, r := range batch {
		if a, ok := r.Command.(audited); ok {
			names = append(names, a.Chains(u)...)
		}
	}
	want := store.Want{LockDocs: true}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if u.chains[name] == nil {
			want.Docs = append(want.Docs, ChainRef(name))
		}
	}
	if err := u.Load(ctx, want); err != nil {
		return err
	}
	for _, ref := range want.Docs {
		chain, err := u.chain(ref)
		if err != nil {
			return err
		}
		SetIn(&u.chains, ref.Key, chain)
	}
	if err := u.trustChains(ctx, want.Docs); err != nil {
		return err
	}
	return u.mendChains(ctx, want.Docs)
}

// chain reads the head of a chain, or makes that of a new one.
func (u *Tx) chain(ref store.DocRef) (*auditChain, error) {
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
		return head, Corrupt("audit chain", err)
	}
	return head, nil
}

func decodeAuditRow(doc *store.Doc) (row core.AuditRow, err error) {
	if err := json.Unmarshal(doc.Body, &row); err != nil {
		return row, Corrupt("audit row", err)
	}
	return row, nil
}

// Audit appends a row to the chain of its namespace, which the command must have named in chains. before and after are the states of what was
// changed.
func (u *Tx) Audit(c Caller, row core.AuditRow, before, after any) {
	chain := u.chains[row.Namespace]
	row.At, row.Principal, row.RequestID, row.Address = u.Now, c.Principal, c.RequestID, c.Address
	row.Before, row.After = core.AuditChanges(before, after)
	if row.Outcome == "" {
		row.Outcome = core.AuditDone
	}
	row = chain.Append(row)
	u.audits = append(u.audits, row)
	chain.grown = true
	body, _ := json.Marshal(row)
	u.Changes.NewDocs = append(u.Changes.NewDocs, store.Doc{DocRef: auditRowRef(row.Namespace, row.Number), Body: body})
	if keep := u.Engine.Cfg.AuditRetention; keep > 0 && chain.LookAt == 0 {
		u.armAudit(row.Namespace, &chain.AuditChain, row.At.Add(keep.Milliseconds()))
	}
}

// armAudit arms the timer of a chain for the time when its oldest row may be removed.
func (u *Tx) armAudit(namespace string, chain *core.AuditChain, at base.Time) {
	chain.LookAt = RoundUp(at, base.Minute)
	timer := u.TimerAt(timerAudit, chain.LookAt)
	timer.Texts = append(timer.Texts, namespace)
}

// writeChains writes the heads of the chains that have changed. If another process creates the same chain at the same time, the commit fails with
// Conflict.
func (u *Tx) writeChains() {
	for name, chain := range u.chains {
		if !chain.grown {
			continue
		}
		if chain.altered {
			u.onceSure(func() {
				u.Engine.Notes.Error("an audit chain was altered by somebody else", "namespace", name, "row", chain.Altered)
			})
		}
		if !chain.key.IsZero() {
			u.enroll(name, chain)
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
	u.writeRolls()
	u.chains, u.rolls = nil, nil
}

// ExecutionChain returns the chain of a command on an execution, or none if nothing is recorded.
func (u *Tx) ExecutionChain(c Caller, id base.GivenID) []string {
	if !c.Audits() {
		return nil
	}
	ent, err := u.Find(c, id)
	if err != nil {
		return nil
	}
	return []string{ent.Exec.Class.Namespace}
}

// AuditExecution records a change of an execution.
func (u *Tx) AuditExecution(c Caller, action, reason string, x *core.Execution, before, after any) {
	u.Audit(c, core.AuditRow{
		Namespace: x.Class.Namespace, Action: action, Entity: "execution", EntityID: x.ID.String(), Reason: reason,
	}, before, after)
}

// AuditPart records a change of something that belongs to an execution.
func (u *Tx) AuditPart(c Caller, action, reason string, x *core.Execution, t ToldChange) {
	u.Audit(c, core.AuditRow{Namespace: x.Class.Namespace, Action: action, Entity: t.Entity, EntityID: t.ID, Reason: reason}, t.Before, t.After)
}
