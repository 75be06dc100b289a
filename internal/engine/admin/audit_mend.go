package admin

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Someone with write access to the database can set a head back and leave the rows behind it, or make it name rows that cannot exist. The numbers
// of the next rows would then be taken or invalid, and no act of an operator could be recorded. Therefore the next row follows the newest row that
// exists, and the head records that the chain was altered.

// auditReach is how far behind the end of a chain rows are looked for. A row that was put further away does no harm, and continuing behind it could
// use up the numbers.
const auditReach = 1 << 32

// mendChains makes the heads that the transaction has locked fit for new rows, whatever they contain, and marks those that are not as the engine left
// them. Another process may start a chain that is new here; its rows are then found where none should be, but this commit then fails with Conflict.
func mendChains(ctx context.Context, u *txn.Tx, refs []store.DocRef) error {
	for _, ref := range refs {
		chain := partsOf(u).chains[ref.Key]
		if err := mendEnd(ctx, u, ref.Key, chain); err != nil {
			return err
		}
		if chain.altered {
			chain.MarkAltered()
		}
		if !chain.key.IsZero() && chain.Keyed == 0 {
			chain.Keyed = chain.Last + 1
		}
	}
	return nil
}

// mendEnd brings the end of a chain behind all its rows. It looks for some behind the end only where the head is none that can be, and where
// this batch has met something that exists already.
func mendEnd(ctx context.Context, u *txn.Tx, namespace string, chain *auditChain) error {
	switch {
	case !chain.Possible():
		begin := core.NewAuditChain(u.Engine.Store.Info().Installation, namespace)
		chain.First, chain.Anchor, chain.Last, chain.Hash = begin.First, begin.Anchor, begin.Last, begin.Hash
		chain.altered = true
	case !u.Careful:
		return nil
	}
	newest, err := newestAuditRow(chain.Last, chain.Last+auditReach, func(n int64) (int64, error) { return nextAuditRow(ctx, u, namespace, n) })
	if err != nil || newest == 0 {
		return err
	}
	ref := auditRowRef(namespace, newest)
	if err := u.Load(ctx, store.Want{Docs: []store.DocRef{ref}}); err != nil {
		return err
	}
	row := core.AuditRow{Hash: chain.Hash} // of one that cannot be read
	if doc := u.Doc(ref); doc != nil {
		if read, err := decodeAuditRow(doc); err == nil {
			row = read
		}
	}
	chain.Continue(newest, &row)
	chain.altered = true
	return nil
}

// nextAuditRow returns the number of the first existing row after n, or 0.
func nextAuditRow(ctx context.Context, u *txn.Tx, namespace string, n int64) (int64, error) {
	if err := u.Load(ctx, store.Want{Scans: []store.Scan{behindAuditRow(namespace, n)}}); err != nil {
		return 0, err
	}
	return firstNumber(namespace, u.Scanned[len(u.Scanned)-1]), nil
}
