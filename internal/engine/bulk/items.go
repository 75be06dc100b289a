package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// keptItems bounds what a job records of single executions: the first that were done, and as many that were refused. The job only counts the
// others.
const keptItems = 10_000

// BulkItem is what a job did to one execution (U58).
type BulkItem struct {
	ID  base.ID
	Err *base.Error // why it was refused; nil: done
}

// BulkItemsRequest asks for what a job did.
type BulkItemsRequest struct {
	OK     *bool // only what was done, or only what was refused
	Limit  *int  // nil: 100
	Cursor string
}

// storedItem is a BulkItem as a job's batch leaves it behind.
type storedItem struct {
	ID      string    `json:"id"`
	Code    base.Code `json:"code,omitempty"`
	Field   string    `json:"field,omitempty"`
	Message string    `json:"message,omitempty"`
}

// itemsPrefix is the prefix of the keys of a job's items; there is one record per batch, in order.
func itemsPrefix(job base.UUID) string { return job.String() + "/" }

func itemsKey(job base.UUID, batch int) string { return fmt.Sprintf("%s%08d", itemsPrefix(job), batch) }

// itemOf is what is remembered of one execution.
func itemOf(id base.GivenID, err error) storedItem {
	item := storedItem{ID: id.ID().String(), Code: base.CodeOf(err)}
	var refusal *base.Error
	if errors.As(err, &refusal) {
		item.Field, item.Message = refusal.Field, refusal.Message
	}
	return item
}

// keepItems records what a batch did, up to the bounds.
func (j *job) keepItems(u *txn.Tx, items []storedItem) {
	kept := items[:0:0]
	for _, item := range items {
		n := &j.KeptDone
		if item.Code != "" {
			n = &j.KeptRefused
		}
		if *n < keptItems {
			*n++
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		return
	}
	body, _ := json.Marshal(kept)
	u.PutDoc(store.Doc{DocRef: store.DocRef{Kind: docJobItems, Key: itemsKey(j.ID, j.Batches)}, Body: body})
	j.Batches++
}

// ItemsScope names the list of what a job did to executions, or to those of one outcome.
func ItemsScope(id base.UUID, ok *bool) string { return "bulk items\x00" + txn.Fingerprint(id, ok) }

// itemPlace is a place among what a job did.
type itemPlace struct{ batch, index int }

func (p itemPlace) cursor(scope string) string {
	return core.EncodeNumbers(scope, int64(p.batch), int64(p.index))
}

func parseItemPlace(scope, cursor string) (itemPlace, error) {
	var batch, index int64
	if cursor == "" {
		return itemPlace{}, nil
	}
	err := core.DecodeNumbers(scope, cursor, &batch, &index)
	return itemPlace{int(batch), int(index)}, err
}

// itemBatches is how many batches of a job are read at a time.
const itemBatches = 16

// BulkItems shows what a job did, in the order in which it was done.
func (e *Jobs) BulkItems(ctx context.Context, c txn.Caller, id base.UUID, r BulkItemsRequest) ([]BulkItem, string, error) {
	limit, err := core.PageLimit(r.Limit)
	if err != nil {
		return nil, "", err
	}
	scope := ItemsScope(id, r.OK)
	at, err := parseItemPlace(scope, r.Cursor)
	if err != nil {
		return nil, "", err
	}
	if _, err := e.readJob(ctx, c, id); err != nil {
		return nil, "", err
	}
	items := []BulkItem{}
	for limit > 0 {
		scan := store.Scan{Kind: docJobItems, Prefix: itemsPrefix(id), Limit: itemBatches}
		if at.batch > 0 {
			scan.After = itemsKey(id, at.batch-1)
		}
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return nil, "", txn.PublicFault(err)
		}
		for i := range loaded.Scanned[0] {
			full, err := r.collect(&items, &at, limit, &loaded.Scanned[0][i])
			if err != nil {
				return nil, "", err
			}
			if full {
				return items, at.cursor(scope), nil
			}
		}
		if len(loaded.Scanned[0]) < itemBatches {
			break
		}
	}
	return items, "", nil
}

// collect takes items of one batch, from a place on. It reports whether there was no room for one more; at is then its place.
func (r *BulkItemsRequest) collect(items *[]BulkItem, at *itemPlace, limit int, doc *store.Doc) (full bool, err error) {
	var stored []storedItem
	if err := json.Unmarshal(doc.Body, &stored); err != nil {
		return false, txn.Corrupt("bulk items", err)
	}
	for ; at.index < len(stored); at.index++ {
		item := stored[at.index]
		if r.OK != nil && *r.OK != (item.Code == "") {
			continue
		}
		if len(*items) == limit {
			return true, nil
		}
		id, err := base.ParseID(item.ID)
		if err != nil {
			return false, txn.Corrupt("bulk items", err)
		}
		shown := BulkItem{ID: id.ID()}
		if item.Code != "" {
			shown.Err = base.Errorf(item.Code, "%s", item.Message).WithField(item.Field)
		}
		*items = append(*items, shown)
	}
	*at = itemPlace{batch: at.batch + 1}
	return false, nil
}

// forgetJob removes a job with everything that it remembers.
func (e *Jobs) forgetJob(ctx context.Context, id base.UUID) error {
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docJobItems, Prefix: itemsPrefix(id), Limit: bulkBatch}}})
		if err != nil {
			return err
		}
		ch := &store.Changes{}
		for i := range loaded.Scanned[0] {
			ch.DropDocs = append(ch.DropDocs, loaded.Scanned[0][i].DocRef)
		}
		last := len(ch.DropDocs) < bulkBatch
		if last {
			ch.DropDocs = append(ch.DropDocs, jobRef(id))
		}
		if err := e.Write(ctx, "forget_job", ch); err != nil || last {
			return err
		}
	}
}
