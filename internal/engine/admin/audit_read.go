package admin

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// auditBatch is how many rows are read at a time.
const auditBatch = 500

// AuditRequest asks for a page of the audit log (U110).
type AuditRequest struct {
	Filter core.AuditFilter
	Limit  *int // nil: 100
	Cursor string
}

// auditPlace is a position in the audit log: before row number of a chain.
type auditPlace struct {
	namespace string
	number    int64
}

// AuditPage returns rows of the chains that the caller sees: chain by chain in order of their names, in each the newest first.
func (e *Admin) AuditPage(ctx context.Context, c txn.Caller, r AuditRequest) (rows []core.AuditRow, next string, err error) {
	limit, err := core.PageLimit(r.Limit)
	if err != nil {
		return nil, "", err
	}
	if err := r.Filter.Validate(); err != nil {
		return nil, "", err
	}
	scope := "audit\x00" + txn.Fingerprint(r.Filter)
	from, err := parseAuditPlace(scope, r.Cursor)
	if err != nil {
		return nil, "", err
	}
	names, err := e.chainNames(ctx, c, r.Filter.Namespace)
	if err != nil || limit == 0 {
		return nil, "", err
	}
	for _, name := range names {
		if name < from.namespace {
			continue
		}
		below := int64(0)
		if name == from.namespace {
			below = from.number
		}
		more, err := e.auditRows(ctx, name, below, &r.Filter, limit+1-len(rows))
		if err != nil {
			return nil, "", err
		}
		if rows = append(rows, more...); len(rows) > limit {
			rows = rows[:limit]
			last := rows[limit-1]
			return rows, auditPlace{last.Namespace, last.Number}.cursor(scope), nil
		}
	}
	return rows, "", nil
}

func (p auditPlace) cursor(scope string) string {
	return core.EncodeCursor(scope, append(binary.BigEndian.AppendUint64(nil, uint64(p.number)), p.namespace...))
}

func parseAuditPlace(scope, cursor string) (auditPlace, error) {
	if cursor == "" {
		return auditPlace{}, nil
	}
	key, err := core.DecodeCursor(scope, cursor)
	if err != nil {
		return auditPlace{}, err
	}
	if len(key) < 8 {
		return auditPlace{}, base.Errorf(base.CodeInvalidCursor, "the cursor does not belong to this list").WithField("cursor")
	}
	return auditPlace{namespace: string(key[8:]), number: int64(binary.BigEndian.Uint64(key))}, nil
}

// chainNames lists the chains that the caller sees, or the one that is asked for.
func (e *Admin) chainNames(ctx context.Context, c txn.Caller, namespace string) ([]string, error) {
	switch {
	case namespace != "" && !c.Sees(namespace):
		return nil, nil
	case namespace != "":
		return []string{namespace}, nil
	case c.Namespaces != nil:
		return slices.Sorted(slices.Values(c.Namespaces)), nil
	}
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocAuditChain}}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	var names []string
	for _, doc := range loaded.Scanned[0] {
		names = append(names, doc.Key)
	}
	return names, nil
}

// auditRows reads up to limit rows of a chain that match, newest first, below a number (0: from the newest on).
func (e *Admin) auditRows(ctx context.Context, namespace string, below int64, f *core.AuditFilter, limit int) ([]core.AuditRow, error) {
	head, err := e.readChain(ctx, namespace)
	if err != nil || head == nil {
		return nil, err
	}
	oldest, last := head.First, head.Last
	if !head.Possible() { // verification reports it; the rows that exist are shown
		oldest, last = 1, core.MostAuditRows
	}
	if below > 0 {
		last = min(last, below-1)
	}
	var rows []core.AuditRow
	for last >= oldest {
		first := max(oldest, last-auditBatch+1)
		batch, err := e.readAuditRows(ctx, namespace, first, last)
		if err != nil {
			return nil, err
		}
		for _, row := range slices.Backward(batch) {
			switch {
			case row == nil: // retention has it by now
			case row.At < f.From:
				return rows, nil // and so are all before
			case f.Matches(row):
				if rows = append(rows, *row); len(rows) == limit {
					return rows, nil
				}
			}
		}
		last = first - 1
		if !slices.ContainsFunc(batch, func(row *core.AuditRow) bool { return row != nil }) { // a forged head may name any number of rows
			last, err = newestAuditRow(oldest-1, last, func(n int64) (int64, error) { return e.nextAuditRow(ctx, namespace, n) })
			if err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// nextAuditRow returns the number of the first existing row after n, or 0.
func (e *Admin) nextAuditRow(ctx context.Context, namespace string, n int64) (int64, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{behindAuditRow(namespace, n)}})
	if err != nil {
		return 0, txn.PublicFault(err)
	}
	return firstNumber(namespace, loaded.Scanned[0]), nil
}

// behindAuditRow returns the scan for the first row after number n.
func behindAuditRow(namespace string, n int64) store.Scan {
	return store.Scan{Kind: docAuditRow, Prefix: auditRowPrefix(namespace), After: auditRowRef(namespace, n).Key, Limit: 1}
}

// firstNumber returns the number of the first of these rows by its key, or 0 if there is none or its key cannot be that of a row.
func firstNumber(namespace string, docs []store.Doc) int64 {
	if len(docs) == 0 {
		return 0
	}
	number, err := strconv.ParseInt(docs[0].Key[len(auditRowPrefix(namespace)):], 16, 64)
	if err != nil {
		return 0
	}
	return number
}

// newestAuditRow returns the greatest number of a row in (after, upTo], or 0. next returns the first after a number. Rows may be missing in
// between, and the range may have any size: the search takes one step per bit of it.
func newestAuditRow(after, upTo int64, next func(n int64) (int64, error)) (newest int64, err error) {
	for probe := after; after < upTo; probe = after + (upTo-after)/2 {
		switch found, err := next(probe); {
		case err != nil:
			return 0, err
		case found > probe && found <= upTo:
			newest, after = found, found
		default:
			upTo = probe
		}
	}
	return newest, nil
}

// readChain reads the head of a chain; nil when there is none.
func (e *Admin) readChain(ctx context.Context, namespace string) (*core.AuditChain, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ChainRef(namespace)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, found := loaded.Docs[ChainRef(namespace)]
	if !found {
		return nil, nil
	}
	head, err := DecodeChain(&doc)
	return &head, err
}

// readAuditRows reads the rows first..last of a chain; nil for one that does not exist.
func (e *Admin) readAuditRows(ctx context.Context, namespace string, first, last int64) ([]*core.AuditRow, error) {
	refs := auditRowRefs(namespace, first, last)
	loaded, err := e.Store.Read(ctx, store.Want{Docs: refs})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	rows := make([]*core.AuditRow, len(refs))
	for i, ref := range refs {
		if doc, ok := loaded.Docs[ref]; ok {
			row, err := decodeAuditRow(&doc)
			if err != nil {
				return nil, err
			}
			rows[i] = &row
		}
	}
	return rows, nil
}

// AuditCheck is the outcome of a verification of one chain (U131).
type AuditCheck struct {
	Namespace string
	First     int64    // number of the oldest row that is kept
	Last      int64    // number of the newest row; 0: there never was one
	Rows      int64    // that are kept and fit
	Keyed     int64    // number of the first row that was written under the audit key; 0: none, and anyone with write access to the database can rewrite the chain
	Problem   string   // what is wrong; "" when nothing is
	Broken    int64    // number of the first row that does not fit; 0: all do
	Removed   []string // namespaces whose chains were removed; looked for with the chain of what belongs to none
	Hash      []byte   // of the newest row: a copy kept elsewhere shows later whether the chain was set back
}

// VerifyAudit recomputes a chain and finds the first row that was changed or is missing. With an audit key it also finds a chain that was
// rewritten, shortened or removed without that key. Codes: namespace_not_found, master_key_required, master_key_mismatch.
func (e *Admin) VerifyAudit(ctx context.Context, c txn.Caller, namespace string) (AuditCheck, error) {
	if !c.Sees(namespace) {
		return AuditCheck{}, base.Errorf(base.CodeNamespaceNotFound, "no namespace %q", namespace)
	}
	key, err := e.AuditKey(ctx)
	if err != nil {
		return AuditCheck{}, err
	}
	for {
		check, head, err := e.verifyChain(ctx, namespace)
		if err != nil {
			return check, err
		}
		if check.Problem == "" {
			return e.verifySeal(ctx, key, check, head)
		}
		// Retention may have removed the row while it was read. It has not if the oldest row is still the same. Each further look needs a change of
		// the oldest row, so this ends whatever the head contains.
		now, err := e.readChain(ctx, namespace)
		if err != nil || now == nil || now.First <= check.First || now.First <= check.Broken {
			return check, err
		}
	}
}

// verifyChain compares the rows with the head, which is nil if there is none.
func (e *Admin) verifyChain(ctx context.Context, namespace string) (check AuditCheck, stored *core.AuditChain, err error) {
	stored, err = e.readChain(ctx, namespace)
	if err != nil {
		return AuditCheck{Namespace: namespace}, nil, err
	}
	head := core.NewAuditChain(e.Store.Info().Installation, namespace)
	if stored != nil {
		head = *stored
	}
	check = AuditCheck{Namespace: namespace, First: head.First, Last: head.Last, Keyed: head.Keyed}
	if !head.Possible() {
		check.Problem = "the head of the chain was altered: it tells of rows that cannot be"
		return check, stored, nil
	}
	prev := head.Anchor
	for first := head.First; first <= head.Last; first += auditBatch {
		rows, err := e.readAuditRows(ctx, namespace, first, min(head.Last, first+auditBatch-1))
		if err != nil {
			return check, stored, err
		}
		for i, row := range rows {
			number := first + int64(i)
			if row == nil {
				return check.broken(number, "is missing"), stored, nil
			}
			if why := row.Follows(number, prev); why != "" {
				return check.broken(number, why), stored, nil
			}
			prev = row.Hash
			check.Rows++
		}
	}
	check.Hash = head.Hash
	if !bytes.Equal(prev, head.Hash) {
		return check.broken(head.Last+1, "is missing: the head of the chain tells of another last row"), stored, nil
	}
	check, err = e.verifyEnd(ctx, check, head)
	return check, stored, err
}

func (c AuditCheck) broken(number int64, why string) AuditCheck {
	c.Broken, c.Problem = number, "row "+why
	return c
}

// verifyEnd looks for rows that the head does not cover, which shows that the head was set back or removed. Rows appended since the head was read
// do not count.
func (e *Admin) verifyEnd(ctx context.Context, check AuditCheck, head core.AuditChain) (AuditCheck, error) {
	loaded, err := e.Store.Read(ctx, store.Want{
		Docs:  []store.DocRef{ChainRef(check.Namespace)},
		Scans: []store.Scan{behindAuditRow(check.Namespace, head.Last)},
	})
	if err != nil {
		return check, txn.PublicFault(err)
	}
	if doc, ok := loaded.Docs[ChainRef(check.Namespace)]; ok {
		now, err := DecodeChain(&doc)
		if err != nil || now.Last > head.Last {
			return check, err
		}
	}
	if len(loaded.Scanned[0]) > 0 {
		return check.broken(head.Last+1, "stands behind the end of the chain"), nil
	}
	return check, nil
}
