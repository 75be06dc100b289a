package memory

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// lastNext is the highest value that the column next may have.
const lastNext = core.NextResume

// apply writes changes that were checked. Rows are dropped before others are added, so that a row may move within one transaction.
func (m *image) apply(ch *store.Changes, e *encoded, now base.Time) {
	m.applyKeys(ch, now)
	for _, id := range ch.DropInbox {
		m.inbox = slices.DeleteFunc(m.inbox, func(row store.InboxRow) bool { return row.ID.UUID == id })
	}
	m.applyExecutions(e, ch.Draw)
	m.applyHistory(ch, e)
	for _, row := range ch.Dequeue {
		m.dequeue(row)
	}
	for _, row := range ch.Enqueue {
		m.enqueue(row)
	}
	m.applyTimers(ch)
	for key, difference := range ch.Counters {
		if m.counters[key] += difference; m.counters[key] == 0 {
			delete(m.counters, key)
		}
	}
	for _, ref := range ch.DropDocs {
		m.dropDoc(ref)
	}
	for _, docs := range [...][]store.Doc{ch.PutDocs, ch.NewDocs} {
		for i := range docs {
			m.putDoc(&docs[i])
		}
	}
	for _, id := range ch.Remove {
		m.remove(id, nil)
	}
	for _, id := range ch.Strip {
		m.remove(id, ch.StripLeaves)
	}
	m.applyDictionary(ch)
}

func (m *image) applyKeys(ch *store.Changes, now base.Time) {
	for _, key := range ch.DropKeys {
		if row, there := m.keys[key]; there && row.ExpiresAt <= now {
			delete(m.keys, key)
		}
	}
	for _, row := range slices.Concat(ch.ReplaceKeys, ch.NewKeys) {
		row.Fingerprint = slices.Clone(row.Fingerprint)
		m.keys[row.Key] = row
	}
}

func (m *image) applyExecutions(e *encoded, draw uint32) {
	for i := range e.insert {
		row := e.insert[i]
		row.Version = store.NextVersion(row.Version, draw)
		m.executions[row.ID] = &row
	}
	for _, list := range [...][]store.Row{e.update, e.assume} {
		for _, changed := range list {
			row := *m.executions[changed.ID]
			row.Version = store.NextVersion(row.Version, draw)
			row.Status, row.Reason, row.Next, row.Order, row.State = changed.Status, changed.Reason, changed.Next, changed.Order, changed.State
			m.executions[changed.ID] = &row
		}
	}
}

func (m *image) applyHistory(ch *store.Changes, e *encoded) {
	for _, row := range e.history {
		entries := m.history[row.ID]
		at, there := slices.BinarySearchFunc(entries, row.Epoch, func(h *store.HistoryRow, epoch int64) int { return int(h.Epoch - epoch) })
		if there {
			entries[at] = row
			continue
		}
		m.history[row.ID] = slices.Insert(entries, at, row)
	}
	for i, p := range ch.Patches {
		if old := m.entry(p.ExecutionID.UUID, p.Epoch); old != nil {
			row := *old
			row.PatchState, row.PatchBody = p.State, e.patches[i]
			entries := m.history[row.ID]
			entries[slices.Index(entries, old)] = &row
		}
	}
	for _, ref := range ch.DropHistory {
		m.history[ref.ID] = slices.DeleteFunc(m.history[ref.ID], func(h *store.HistoryRow) bool { return h.Epoch == ref.Epoch })
	}
}

// remove removes an execution with everything of it but docs of the kinds in leaves. Its queue row is removed by who files it.
func (m *image) remove(id base.UUID, leaves []store.DocKind) {
	delete(m.executions, id)
	delete(m.history, id)
	delete(m.search, id)
	owner := id.String()
	for kind := range int(store.FirstRule) * 2 {
		if kind := store.DocKind(kind); !slices.Contains(leaves, kind) {
			delete(m.docs, store.Owned{Kind: kind, Owner: owner})
		}
	}
}
