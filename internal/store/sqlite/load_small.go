package sqlite

import (
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func loadCounters(c *conn, keys []string, to *store.Loaded) error {
	if len(keys) > 0 {
		to.Counters = make(map[string]int64, len(keys))
	}
	for _, key := range keys {
		err := c.each("load counter", func(r row) error {
			to.Counters[key] = r.Int(0)
			return nil
		}, key)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadLanes(want *store.Want, to *store.Loaded) {
	if len(want.ShareLanes)+len(want.LockLanes) == 0 {
		return
	}
	known := s.dictionary.Load()
	to.Lanes = make(map[int32]core.Lane, len(want.ShareLanes)+len(want.LockLanes))
	for _, ids := range [][]int32{want.ShareLanes, want.LockLanes} {
		for _, id := range ids {
			if lane := known.lane(id); lane != nil {
				to.Lanes[id] = *lane
			}
		}
	}
}

func loadDocs(c *conn, refs []store.DocRef, to *store.Loaded) error {
	if len(refs) > 0 {
		to.Docs = make(map[store.DocRef]store.Doc, len(refs))
	}
	for _, ref := range refs {
		err := c.each("load doc", func(r row) error {
			to.Docs[ref] = store.Doc{DocRef: ref, Body: r.Bytes(0), Data: r.Bytes(1), ExpiresAt: r.time(2)}.Unsealed()
			return nil
		}, ref.Owner, int64(ref.Kind), ref.Key)
		if err != nil {
			return err
		}
	}
	return nil
}

func loadScans(c *conn, scans []store.Scan, to *store.Loaded) error {
	for i := range scans {
		scan := &scans[i]
		var docs []store.Doc
		err := c.each("scan docs", func(r row) error {
			docs = append(docs, store.Doc{
				DocRef: store.DocRef{Kind: scan.Kind, Owner: scan.Owner, Key: r.Text(0)},
				Body:   r.Bytes(1), Data: r.Bytes(2), ExpiresAt: r.time(3),
			}.Unsealed())
			return nil
		}, scan.Owner, int64(scan.Kind), scan.After, scan.Prefix, endOf(scan.Prefix), limitOf(scan.Limit))
		if err != nil {
			return err
		}
		to.Scanned = append(to.Scanned, docs)
	}
	return nil
}

func loadOwned(c *conn, owned []store.Owned, to *store.Loaded) error {
	if len(owned) == 0 {
		return nil
	}
	to.Owned = make(map[store.Owned][]store.Doc, len(owned))
	asked, err := ownedList(owned)
	if err != nil {
		return err
	}
	return c.each("load owned docs", func(r row) error {
		whose := store.Owned{Owner: r.Text(0), Kind: store.DocKind(r.Int(1))}
		to.Owned[whose] = append(to.Owned[whose], ownedDocOf(r))
		return nil
	}, asked)
}

// ownedDocOf reads the columns of "load owned docs".
func ownedDocOf(r row) store.Doc {
	return store.Doc{
		DocRef: store.DocRef{Owner: r.Text(0), Kind: store.DocKind(r.Int(1)), Key: r.Text(2)},
		Body:   r.Bytes(3), Data: r.Bytes(4), ExpiresAt: r.time(5),
	}.Unsealed()
}

// ownedList encodes owners and kinds as a JSON array of pairs, each once.
func ownedList(owned []store.Owned) (string, error) {
	seen := make(map[store.Owned]bool, len(owned))
	pairs := make([][2]any, 0, len(owned))
	for _, one := range owned {
		if !seen[one] {
			seen[one] = true
			pairs = append(pairs, [2]any{one.Owner, one.Kind})
		}
	}
	text, err := json.Marshal(pairs)
	return string(text), err
}

// endOf returns the first key after all those that begin with prefix.
func endOf(prefix string) any {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return string(end[:i+1])
		}
	}
	return []byte{} // a blob sorts after every text
}

func loadBlocks(c *conn, classes []int32, to *store.Loaded) error {
	if len(classes) == 0 {
		return nil
	}
	classes = slices.Clone(classes)
	slices.Sort(classes)
	to.Blocks = map[int32][]int32{}
	return c.each("load blocks", func(r row) error {
		class := int32(r.Int(0))
		to.Blocks[class] = append(to.Blocks[class], int32(r.Int(1)))
		return nil
	}, numbersOf(slices.Compact(classes)))
}

func loadInbox(c *conn, limit int, after base.UUID, to *store.Loaded) error {
	if limit == 0 {
		return nil
	}
	return c.each("load inbox", func(r row) error {
		to.Inbox = append(to.Inbox, store.InboxRow{ID: base.ID{N: uint8(r.Int(1)), UUID: r.uuid(0)}, Body: r.Bytes(2)})
		return nil
	}, after[:], int64(limit))
}
