package admin

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// sweepAudit drops the oldest rows of chains when their retention is over, and keeps the anchor (U131).
func (e *Admin) sweepAudit(ctx context.Context, t store.Timer) error {
	for _, namespace := range t.Texts {
		for more := true; more && ctx.Err() == nil; {
			more = false
			err := e.OnDocs(ctx, DocAuditChain, []string{namespace}, func(u *txn.Tx, doc *store.Doc) (err error) {
				more, err = trimChain(ctx, u, doc)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// trimChain drops up to a batch of rows, and reports whether there may be more to drop. Nothing is dropped from a chain that is not as the engine
// left it: it stays as it is for verification, since retention would otherwise seal a foreign change.
func trimChain(ctx context.Context, u *txn.Tx, doc *store.Doc) (more bool, err error) {
	head, err := DecodeChain(doc)
	if err != nil {
		return false, err
	}
	key, err := auditKey(ctx, u, head.Seal != nil)
	if err != nil {
		return false, err
	}
	namespace := doc.Key
	trimmed := &auditChain{AuditChain: head, grown: true, key: key}
	trimmed.LookAt = 0
	txn.SetIn(&partsOf(u).chains, namespace, trimmed)
	if (head.Seal != nil || !key.IsZero()) && !head.SealedUnder(key, namespace) {
		trimmed.key = keyring.AuditKey{} // the seal stays as it is
		leaveAltered(u, namespace, trimmed, "its head was altered")
		return false, nil
	}
	if !head.Possible() {
		leaveAltered(u, namespace, trimmed, "its head tells of rows that cannot be")
		return false, nil
	}
	return dropOldest(ctx, u, namespace, trimmed)
}

// leaveAltered leaves a chain as it is and checks it again in a day.
func leaveAltered(u *txn.Tx, namespace string, chain *auditChain, why string) {
	u.Engine.QuietLog.Error("an audit chain was altered: retention drops nothing of it", "namespace", namespace, "row", chain.First, "problem", why)
	armAudit(u, namespace, &chain.AuditChain, u.Now.Add(base.Day))
}

// dropOldest drops rows whose retention is over, up to a batch.
func dropOldest(ctx context.Context, u *txn.Tx, namespace string, chain *auditChain) (more bool, err error) {
	keep := u.Engine.Cfg.AuditRetention.Milliseconds()
	refs := auditRowRefs(namespace, chain.First, min(chain.Last, chain.First+auditBatch-1))
	if err := u.Load(ctx, store.Want{Docs: refs}); err != nil {
		return false, err
	}
	for _, ref := range refs {
		rowDoc := u.Doc(ref)
		if rowDoc == nil {
			leaveAltered(u, namespace, chain, "the row is missing")
			return false, nil
		}
		row, err := decodeAuditRow(rowDoc)
		if err != nil {
			return false, err
		}
		if why := row.Follows(chain.First, chain.Anchor); why != "" {
			leaveAltered(u, namespace, chain, "the row "+why)
			return false, nil
		}
		if due := row.At.Add(keep); keep <= 0 || due > u.Now {
			if keep > 0 {
				armAudit(u, namespace, &chain.AuditChain, due)
			}
			return false, nil
		}
		chain.Drop(&row)
		u.DropDoc(ref)
	}
	return len(refs) == auditBatch, nil
}
