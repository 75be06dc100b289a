package memory

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// findDoc returns the place of a key in docs.
func findDoc(docs []store.Doc, key string) (int, bool) {
	return slices.BinarySearchFunc(docs, key, func(d store.Doc, key string) int { return strings.Compare(d.Key, key) })
}

// doc returns a small record; nil if there is none.
func (m *image) doc(ref store.DocRef) *store.Doc {
	docs := m.docs[store.Owned{Kind: ref.Kind, Owner: ref.Owner}]
	if at, there := findDoc(docs, ref.Key); there {
		return &docs[at]
	}
	return nil
}

func (m *image) putDoc(d *store.Doc) {
	whose := store.Owned{Kind: d.Kind, Owner: d.Owner}
	docs := m.docs[whose]
	at, there := findDoc(docs, d.Key)
	if there {
		docs[at] = copyDoc(d)
		return
	}
	m.docs[whose] = slices.Insert(docs, at, copyDoc(d))
}

func (m *image) dropDoc(ref store.DocRef) {
	whose := store.Owned{Kind: ref.Kind, Owner: ref.Owner}
	docs := m.docs[whose]
	at, there := findDoc(docs, ref.Key)
	if !there {
		return
	}
	if docs = slices.Delete(docs, at, at+1); len(docs) == 0 {
		delete(m.docs, whose)
		return
	}
	m.docs[whose] = docs
}

func (m *image) scan(scan store.Scan) (found []store.Doc) {
	docs := m.docs[store.Owned{Kind: scan.Kind, Owner: scan.Owner}]
	from, _ := findDoc(docs, max(scan.Prefix, scan.After))
	for i := from; i < len(docs) && (scan.Limit == 0 || len(found) < scan.Limit); i++ {
		switch d := &docs[i]; {
		case !strings.HasPrefix(d.Key, scan.Prefix):
			return found
		case scan.After == "" || d.Key > scan.After:
			found = append(found, copyDoc(d))
		}
	}
	return found
}

func (m *image) class(id int32) *core.Class {
	for _, class := range m.classes {
		if class.ID == id {
			return class
		}
	}
	return nil
}

func (m *image) lane(id int32) *core.Lane {
	if id < 1 || int(id) > len(m.lanes) {
		return nil
	}
	return &m.lanes[id-1] // lanes are never removed
}

func (m *image) entry(id base.UUID, epoch int64) *store.HistoryRow {
	for _, row := range m.history[id] {
		if row.Epoch == epoch {
			return row
		}
	}
	return nil
}

// notIngested returns the place of a submission in the inbox; -1 if it is not there.
func (m *image) notIngested(id base.UUID) int {
	return slices.IndexFunc(m.inbox, func(row store.InboxRow) bool { return row.ID.UUID == id && len(row.Body) > 0 })
}

func (m *image) enqueue(row store.QueueRow) {
	key := queueKey{row.Class, row.Block}
	rows := m.queues[key]
	if at, there := slices.BinarySearchFunc(rows, row, store.QueueRow.Compare); !there {
		m.queues[key] = slices.Insert(rows, at, row)
	}
}

func (m *image) dequeue(row store.QueueRow) {
	key := queueKey{row.Class, row.Block}
	rows := m.queues[key]
	at, there := slices.BinarySearchFunc(rows, row, store.QueueRow.Compare)
	if !there {
		return
	}
	if rows = slices.Delete(rows, at, at+1); len(rows) == 0 {
		delete(m.queues, key)
		return
	}
	m.queues[key] = rows
}
