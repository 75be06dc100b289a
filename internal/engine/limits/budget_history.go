package limits

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// scope splits the filter by scope: a type, or type:value.
func (q *BudgetQuery) scope() (kind, value string) {
	kind, value, _ = strings.Cut(q.Scope, ":")
	return kind, value
}

// BudgetEpochs lists the epochs of a budget that are over, newest first (B40).
func (e *Admission) BudgetEpochs(ctx context.Context, c txn.Caller, ref BudgetRef, cursor string, limit *int) ([]core.EpochRecord, string, error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return nil, "", err
	}
	b, closed, err := e.readSettled(ctx, found.ID)
	if err != nil {
		return nil, "", err
	}
	scope := "epochs\x00" + found.ID.String()
	before, err := decodeEpochCursor(scope, cursor, b.Epoch)
	if err != nil || n == 0 {
		return nil, "", err
	}
	var refs []store.DocRef
	for epoch := before - 1; epoch >= 1 && len(refs) < n; epoch-- {
		refs = append(refs, epochRef(b.ID, epoch))
	}
	docs, err := e.ReadDocs(ctx, refs...)
	if err != nil {
		return nil, "", err
	}
	records, err := epochsIn(refs, docs, closed)
	if err != nil || len(records) < n || before-int64(n) <= 1 {
		return records, "", err
	}
	return records, core.EncodeCursor(scope, []byte(strconv.FormatInt(before-int64(n), 10))), nil
}

// epochsIn reads the rows in this order. Old ones may have been removed already; closed are those that are not written yet.
func epochsIn(refs []store.DocRef, docs map[store.DocRef]store.Doc, closed []core.EpochRecord) (records []core.EpochRecord, err error) {
	for _, ref := range refs {
		doc, ok := docs[ref]
		if !ok {
			at := slices.IndexFunc(closed, func(r core.EpochRecord) bool { return epochRef(r.Budget, r.Epoch) == ref })
			if at >= 0 {
				records = append(records, closed[at])
			}
			continue
		}
		record, err := core.DecodeEpochRecord(doc.Body)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func decodeEpochCursor(scope, cursor string, present int64) (int64, error) {
	if cursor == "" {
		return present, nil
	}
	key, err := core.DecodeCursor(scope, cursor)
	if err != nil {
		return 0, err
	}
	before, err := strconv.ParseInt(string(key), 10, 64)
	if err != nil {
		return 0, base.Errorf(base.CodeInvalidCursor, "the cursor is not one of this list").WithField("cursor")
	}
	return min(before, present), nil
}

// readSettled reads a budget as its due reset leaves it, and the epoch that this closes.
func (e *Admission) readSettled(ctx context.Context, id base.UUID) (*core.Budget, []core.EpochRecord, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{BudgetDocRef(id)}})
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[BudgetDocRef(id)]
	if !ok {
		return nil, nil, core.BudgetNotFound(id.String())
	}
	b, err := DecodeBudget(&doc)
	if err != nil {
		return nil, nil, err
	}
	books := core.NewBudgetSet()
	books.Add(b)
	books.SettleResets(&core.Effects{Now: loaded.Now, Budgets: books})
	return books.Get(id), books.Epochs(), nil
}

// BudgetSpend lists what executions have used of a budget in an epoch, largest first (B40).
func (e *Admission) BudgetSpend(ctx context.Context, c txn.Caller, ref BudgetRef, q SpendQuery) ([]SpendRow, string, error) {
	n, err := core.PageLimit(q.Limit)
	if err != nil {
		return nil, "", err
	}
	if q.Epoch != nil && *q.Epoch < 0 {
		return nil, "", base.Invalid("epoch", "epochs are numbered from 0")
	}
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return nil, "", err
	}
	b, _, err := e.readSettled(ctx, found.ID)
	if err != nil {
		return nil, "", err
	}
	epoch := b.Epoch
	if q.Epoch != nil {
		epoch = *q.Epoch
	}
	if q.Execution != nil {
		return e.spendOf(ctx, b.ID, epoch, *q.Execution)
	}
	list := spendList{limit: n, scope: "spend\x00" + b.ID.String() + epochText(epoch)}
	if err := list.from(q.Cursor); err != nil || n == 0 {
		return nil, "", err
	}
	if err := list.read(ctx, e.Engine, b.ID, epoch); err != nil {
		return nil, "", err
	}
	rows, next := list.page()
	return rows, next, nil
}

// spendOf is the row of one execution, if there is one.
func (e *Admission) spendOf(ctx context.Context, budget base.UUID, epoch int64, execution base.GivenID) ([]SpendRow, string, error) {
	ref := ledgerRef(budget, epoch, execution.UUID)
	docs, err := e.ReadDocs(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	doc, ok := docs[ref]
	if !ok {
		return nil, "", nil
	}
	row, err := spendRow(&doc)
	if err != nil || !execution.Names(row.ExecutionID) {
		return nil, "", err
	}
	return []SpendRow{row}, "", nil
}

func spendRow(doc *store.Doc) (SpendRow, error) {
	_, epoch, _, err := splitLedgerKey(doc.Key)
	if err != nil {
		return SpendRow{}, err
	}
	row, err := decodeLedgerRow(doc)
	if err != nil {
		return SpendRow{}, err
	}
	shown := SpendRow{Epoch: epoch, ExecutionID: row.ExecutionID, Used: map[string]int64{}}
	for name, amount := range row.Used {
		dimension := core.LedgerDimension(name) // also of one that was removed and is there again
		shown.Used[dimension] = core.AddAmounts(shown.Used[dimension], amount)
		shown.Total = core.AddAmounts(shown.Total, amount)
	}
	return shown, nil
}

// spendList keeps the first rows of a ledger in order: largest first, then by execution.
type spendList struct {
	limit int
	scope string
	after *SpendRow // of the page before
	rows  []SpendRow
}

func compareSpend(a, b SpendRow) int {
	return cmp.Or(-cmp.Compare(a.Total, b.Total), strings.Compare(a.ExecutionID.UUID.String(), b.ExecutionID.UUID.String()))
}

func (l *spendList) from(cursor string) error {
	if cursor == "" {
		return nil
	}
	key, err := core.DecodeCursor(l.scope, cursor)
	if err != nil {
		return err
	}
	total, execution, _ := strings.Cut(string(key), "/")
	n, wrong := strconv.ParseInt(total, 10, 64)
	id, ok := base.ParseUUID(execution)
	if wrong != nil || !ok {
		return base.Errorf(base.CodeInvalidCursor, "the cursor is not one of this list").WithField("cursor")
	}
	l.after = &SpendRow{Total: n, ExecutionID: base.IDOf(id)}
	return nil
}

// read reads the whole ledger of the epoch and keeps one row more than a page has.
func (l *spendList) read(ctx context.Context, e *txn.Engine, budget base.UUID, epoch int64) error {
	scan := store.Scan{Kind: DocLedger, Prefix: ledgerPrefix(budget, epoch), Limit: dropBatch}
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return txn.PublicFault(err)
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			row, err := spendRow(&docs[i])
			if err != nil {
				return err
			}
			l.keep(row)
		}
		if len(docs) < scan.Limit {
			return nil
		}
		scan.After = docs[len(docs)-1].Key
	}
}

func (l *spendList) keep(row SpendRow) {
	if l.after != nil && compareSpend(row, *l.after) <= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(l.rows, row, compareSpend)
	if at > l.limit {
		return
	}
	l.rows = slices.Insert(l.rows, at, row)
	l.rows = l.rows[:min(len(l.rows), l.limit+1)]
}

func (l *spendList) page() ([]SpendRow, string) {
	if len(l.rows) <= l.limit {
		return l.rows, ""
	}
	rows := l.rows[:l.limit]
	last := rows[l.limit-1]
	return rows, core.EncodeCursor(l.scope, []byte(strconv.FormatInt(last.Total, 10)+"/"+last.ExecutionID.UUID.String()))
}
