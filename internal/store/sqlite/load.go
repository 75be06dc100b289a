package sqlite

import (
	"encoding/hex"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// purpose distinguishes a load with the right to write from a plain read.
type purpose bool

const (
	writing purpose = true
	reading purpose = false
)

// isEmpty reports whether want names no rows.
func isEmpty(want *store.Want) bool {
	return len(want.Keys) == 0 && len(want.Executions) == 0 && len(want.Pick) == 0 && len(want.History) == 0 &&
		len(want.Counters) == 0 && len(want.ShareLanes) == 0 && len(want.LockLanes) == 0 && len(want.Docs) == 0 &&
		len(want.Scans) == 0 && len(want.Owned) == 0 && len(want.Blocks) == 0 && want.Inbox == 0
}

// load loads what want names. There is only one lock, so no row is ever held by another transaction.
func (s *Store) load(c *conn, want *store.Want, to *store.Loaded, why purpose) error {
	for _, part := range [...]func() error{
		func() error { return loadKeys(c, want.Keys, to) },
		func() error { return s.loadExecutions(c, want, to, why) },
		func() error { return loadHistory(c, want.History, want.Results, to) },
		func() error { return loadCounters(c, want.Counters, to) },
		func() error { return loadDocs(c, want.Docs, to) },
		func() error { return loadScans(c, want.Scans, to) },
		func() error { return loadOwned(c, want.Owned, to) },
		func() error { return loadBlocks(c, want.Blocks, to) },
		func() error { return loadInbox(c, want.Inbox, want.InboxAfter, to) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	s.loadLanes(want, to)
	return nil
}

func loadKeys(c *conn, keys []store.Key, to *store.Loaded) error {
	if len(keys) > 0 {
		to.Keys = make(map[store.Key]store.KeyRow, len(keys))
	}
	for _, key := range keys {
		err := c.each("load key", func(r row) error {
			to.Keys[key] = keyRowOf(key, r)
			return nil
		}, int64(key.Space), key.Namespace, key.Text)
		if err != nil {
			return err
		}
	}
	return nil
}

func keyRowOf(key store.Key, r row) store.KeyRow {
	return store.KeyRow{
		Key: key, Fingerprint: r.Bytes(0), ID: base.ID{N: uint8(r.Int(2)), UUID: r.uuid(1)}, ExpiresAt: r.time(3),
	}
}

// loadExecutions loads the named executions and, when writing, the picked ones.
func (s *Store) loadExecutions(c *conn, want *store.Want, to *store.Loaded, why purpose) error {
	if len(want.Executions)+len(want.Pick) == 0 {
		return nil
	}
	picked, err := loadPicks(c, want.Pick)
	if err != nil {
		return err
	}
	if why == writing && want.PickBest > 0 && len(picked) > want.PickBest {
		picked, to.LeftOut = store.BestRows(picked, want.PickBest), true
	}
	to.Picked = picked
	to.Executions = make(map[base.UUID]*core.Execution, len(want.Executions)+len(picked))
	if err := s.loadRows(c, want.Executions, want.Inputs, want.SkipUnreadable, to); err != nil {
		return err
	}
	if want.Results {
		if err := loadResults(c, to, want.SkipUnreadable); err != nil {
			return err
		}
	}
	if why == reading || len(picked) == 0 {
		return nil
	}
	ids := make([]base.UUID, len(picked))
	for i := range picked {
		ids[i] = picked[i].ID
	}
	if err := s.loadRows(c, ids, true, want.SkipUnreadable, to); err != nil {
		return err
	}
	to.Picked = slices.DeleteFunc(picked, func(q store.QueueRow) bool { return to.Executions[q.ID] == nil && to.Unreadable[q.ID] == nil })
	return nil
}

func loadPicks(c *conn, picks []store.Pick) (picked []store.QueueRow, err error) {
	for _, pick := range picks {
		err := c.each("pick", func(r row) error {
			picked = append(picked, store.QueueRow{Class: pick.Class, Block: pick.Block, Order: r.Int(0), ID: r.uuid(1)})
			return nil
		}, int64(pick.Class), int64(pick.Block), pick.Floor, int64(pick.Limit))
		if err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// loadRows adds the executions that exist.
func (s *Store) loadRows(c *conn, ids []base.UUID, inputs, skipUnreadable bool, to *store.Loaded) error {
	if len(ids) == 0 {
		return nil
	}
	name := "load executions"
	if inputs {
		name = "load executions with inputs"
	}
	return c.each(name, func(from row) error {
		p := packedOf(from)
		if p.Status == 0 {
			to.NotIngested = append(to.NotIngested, p.ID)
			return nil
		}
		if inputs {
			p.Input = from.Bytes(10)
		}
		class, err := s.class(c, p.Class)
		if err != nil {
			return err
		}
		x, err := p.Execution(class, &s.policies)
		switch {
		case err == nil:
			to.Executions[p.ID] = x
		case skipUnreadable:
			to.SetUnreadable(p.ID, err)
		default:
			return err
		}
		return nil
	}, listOf(ids))
}

// listOf encodes ids as a JSON array of hexadecimal texts.
func listOf(ids []base.UUID) string {
	text := make([]byte, 0, 2+35*len(ids))
	text = append(text, '[')
	for i := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = hex.AppendEncode(text, ids[i][:])
		text = append(text, '"')
	}
	return string(append(text, ']'))
}

// packedOf reads the columns of "load executions". Their bytes stay in SQLite's memory: decoding copies them.
func packedOf(from row) store.Row {
	return store.Row{
		ID: from.uuid(0), N: uint8(from.Int(1)), Class: int32(from.Int(2)), Status: core.Status(from.Int(3)), Reason: core.Reason(from.Int(4)),
		Next: core.Next(from.Int(5)), Order: from.Int(6), State: from.Show(7), Origin: from.Show(8), Version: from.Int(9),
	}
}

func loadResults(c *conn, to *store.Loaded, skipUnreadable bool) error {
	for id, x := range to.Executions {
		if x.Result == nil {
			continue
		}
		err := c.each("load lease", func(r row) (err error) {
			x.Result.Data, err = leaseOf(id, r).CheckedResult(x.ID)
			return err
		}, flag(true), id[:], x.ResultEpoch)
		switch {
		case err == nil:
		case skipUnreadable && base.CodeOf(err) == base.CodeCorruption:
			delete(to.Executions, id)
			to.SetUnreadable(id, err)
		default:
			return err
		}
	}
	return nil
}

// leaseOf reads the columns of "load lease".
func leaseOf(id base.UUID, r row) *store.HistoryRow {
	return &store.HistoryRow{
		ID: id, Epoch: r.Int(1), LeaseID: r.uuid(2), EndedAt: r.time(3), End: core.LeaseEnd(r.Int(4)), Body: r.Bytes(5),
		PatchState: core.AttemptState(r.Int(6)), PatchBody: r.Bytes(7), HasResult: r.Int(8) != 0, Result: r.Bytes(9),
	}
}

func loadHistory(c *conn, refs []store.HistoryRef, results bool, to *store.Loaded) error {
	for i := range refs {
		ref := &refs[i]
		read := func(r row) error {
			record, err := leaseOf(ref.ID, r).Record(base.ID{N: uint8(r.Int(0)), UUID: ref.ID})
			to.History = append(to.History, record)
			return err
		}
		var err error
		if ref.All {
			err = c.each("load leases above", read, flag(results), ref.ID[:], ref.Epoch, limitOf(ref.Limit))
		} else {
			err = c.each("load lease", read, flag(results), ref.ID[:], ref.Epoch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limitOf turns 0, which means all, into SQLite's value for no limit.
func limitOf(n int) int64 {
	if n == 0 {
		return -1
	}
	return int64(n)
}
