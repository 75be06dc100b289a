package postgres

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/store"
)

// addDocs adds the docs without an owner.
func (l *load) addDocs(t *trip) {
	w := l.want
	name := "read_docs"
	if l.locks && w.LockDocs {
		name = "lock_docs"
	}
	l.addDocRefs(t, name, func(ref store.DocRef) bool { return ref.Owner == "" })
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

// addDocRefs adds the docs that are requested by name and are of that sort.
func (l *load) addDocRefs(t *trip, statement string, sort func(store.DocRef) bool) {
	refs := l.want.Docs
	if !allOf(refs, sort) {
		refs = nil
		for _, ref := range l.want.Docs {
			if sort(ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return
	}
	t.add(statement, func(r row) error {
		doc := docOf(r)
		l.out.Docs[doc.DocRef] = doc
		return nil
	}, docRefColumns(refs)...)
}

func allOf(refs []store.DocRef, sort func(store.DocRef) bool) bool {
	for _, ref := range refs {
		if !sort(ref) {
			return false
		}
	}
	return true
}

// addOwned adds the docs of executions. It comes after the statements that lock the executions: each statement sees what was committed before it
// began, so the docs are as the previous holder of the execution's lock left them. That lock protects the docs too.
func (l *load) addOwned(t *trip) {
	l.addDocRefs(t, "read_docs", func(ref store.DocRef) bool { return ref.Owner != "" })
	owned := slices.Clone(l.want.Owned)
	if len(owned) == 0 {
		return
	}
	slices.SortFunc(owned, func(a, b store.Owned) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind))
	})
	owned = slices.Compact(owned)
	l.out.Owned = make(map[store.Owned][]store.Doc, len(owned))
	kind, owner := smallints(len(owned)), texts(len(owned))
	for _, one := range owned {
		kind.smallint(int(one.Kind))
		owner.text(one.Owner)
	}
	t.add("owned_docs", func(r row) error {
		doc := docOf(r)
		whose := store.Owned{Kind: doc.Kind, Owner: doc.Owner}
		l.out.Owned[whose] = append(l.out.Owned[whose], doc)
		return nil
	}, arguments(kind, owner)...)
}

// prefixEnd returns the first key after all those that begin with the prefix; there is none for a prefix of 0xff bytes only.
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
	}.Unsealed()
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
