package postgres

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

func (l *load) addDocs(t *trip) {
	w := l.want
	if len(w.Docs) > 0 {
		name := "read_docs"
		if l.locks && w.LockDocs {
			name = "lock_docs"
		}
		t.add(name, func(r row) error {
			doc := docOf(r)
			l.out.Docs[doc.DocRef] = doc
			return nil
		}, docRefColumns(w.Docs)...)
	}
	if len(w.Scans) > 0 {
		l.out.Scanned = make([][]store.Doc, len(w.Scans))
	}
	for i, scan := range w.Scans {
		l.addScan(t, i, scan)
	}
}

func (l *load) addScan(t *trip, place int, scan store.Scan) {
	read := func(r row) error {
		l.out.Scanned[place] = append(l.out.Scanned[place], docOf(r))
		return nil
	}
	from := scan.Prefix
	if scan.After != "" {
		from = max(from, scan.After+"\x00") // the first key after it
	}
	values := [][]byte{text(scan.Owner), smallint(int16(scan.Kind)), []byte(from)}
	limit := bigint(limitOf(scan.Limit))
	if end, bounded := prefixEnd(scan.Prefix); bounded {
		t.add("scan_docs", read, append(values, []byte(end), limit)...)
		return
	}
	t.add("scan_all_docs", read, append(values, limit)...)
}

// prefixEnd is the first key after all those that begin with the prefix; there is none for a prefix of 0xff bytes only.
func prefixEnd(prefix string) (string, bool) {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < math.MaxUint8 {
			end[i]++
			return string(end[:i+1]), true
		}
	}
	return "", false
}

func docOf(r row) store.Doc {
	return store.Doc{
		DocRef: store.DocRef{Kind: store.DocKind(r.smallint(0)), Owner: r.text(1), Key: r.text(2)},
		Body:   r.blob(3), Data: r.blob(4), ExpiresAt: r.time(5),
	}
}

func docRefColumns(refs []store.DocRef) [][]byte {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, compareDocs)
	kind, owner, key := smallints(len(refs)), texts(len(refs)), blobs(len(refs))
	for _, ref := range refs {
		kind.smallint(int(ref.Kind))
		owner.text(ref.Owner)
		key.text(ref.Key)
	}
	return arguments(kind, owner, key)
}
