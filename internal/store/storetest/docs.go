package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func docTests() []test {
	return []test{
		{"LI16: body and data of a doc come back byte for byte", docRoundTrip, anyStore},
		{"docs are put, replaced, created and dropped", docChanges, anyStore},
		{"docs differ by kind, owner and key", docIdentity, anyStore},
		{"scans answer what a sorted list answers, in byte order of the key", scansAgainstAList, anyStore},
		{"docs of many owners answer what sorted lists answer", ownedAgainstLists, anyStore},
		{"docs of an execution that was waited for are as the first transaction left them", waitedDocsAreFresh, anyStore},
		{"a named doc of an execution that was waited for is as the first transaction left it", waitedCountIsFresh, anyStore},
		{"a doc that another transaction locked is busy", lockedDocIsBusy, anyStore},
		{"of concurrent creations of one doc one is written", oneDocWins, anyStore},
	}
}

func doc(kind store.DocKind, owner, key, body string) store.Doc {
	return store.Doc{DocRef: store.DocRef{Kind: kind, Owner: owner, Key: key}, Body: []byte(body)}
}

func docMap(docs ...store.Doc) map[store.DocRef]store.Doc {
	m := map[store.DocRef]store.Doc{}
	for _, d := range docs {
		m[d.DocRef] = d
	}
	return m
}

func refsOf(docs []store.Doc) []store.DocRef {
	refs := make([]store.DocRef, len(docs))
	for i, d := range docs {
		refs[i] = d.DocRef
	}
	return refs
}

func docRoundTrip(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	docs := []store.Doc{
		doc(1, "", "plain", `{ "b" : 1,  "a":"\u0000é", "b2": 1.0 }`),
		doc(100, newUUID(w.now).String(), "data", `{}`),
		doc(3, "", "without data", `[]`),
	}
	docs[1].Data, docs[1].ExpiresAt = everyByte(), w.now.Add(-base.Day) // stores ignore the expiry of a doc
	docs[0].ExpiresAt = w.now.Add(base.Year)
	w.add(ctx, &store.Changes{NewDocs: docs})
	for _, locked := range []bool{false, true} {
		want := store.Want{Docs: refsOf(docs), LockDocs: locked}
		tx, got := w.begin(ctx, want)
		tx.Rollback(ctx)
		w.equal("in a transaction", docMap(docs...), got.Docs)
		w.equal("read", docMap(docs...), w.read(ctx, want).Docs)
	}
}

func docChanges(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	a, b, c := doc(1, "", "a", `1`), doc(1, "", "b", `2`), doc(1, "", "c", `3`)
	a.Data, a.ExpiresAt = []byte("data"), w.now
	w.add(ctx, &store.Changes{PutDocs: []store.Doc{a, b}, NewDocs: []store.Doc{c}})
	next := doc(1, "", "a", `10`)
	w.add(ctx, &store.Changes{PutDocs: []store.Doc{next}, DropDocs: []store.DocRef{b.DocRef, {Kind: 9, Key: "absent"}}})
	all := []store.DocRef{a.DocRef, b.DocRef, c.DocRef}
	w.equal("docs", docMap(next, c), w.read(ctx, store.Want{Docs: all}).Docs)
	w.refuse(ctx, store.Want{}, &store.Changes{NewDocs: []store.Doc{c}}, store.Conflict)
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{b}})
	w.equal("docs", docMap(next, b, c), w.read(ctx, store.Want{Docs: all}).Docs)
}

func docIdentity(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	owner := newUUID(w.now).String()
	docs := []store.Doc{doc(1, "", "k", `1`), doc(2, "", "k", `2`), doc(1, owner, "k", `3`), doc(1, "", "K", `4`), doc(1, "", "", `5`), doc(1, "", "k ", `6`)}
	w.add(ctx, &store.Changes{NewDocs: docs})
	w.equal("docs", docMap(docs...), w.read(ctx, store.Want{Docs: refsOf(docs)}).Docs)
}

func scansAgainstAList(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	owner := newUUID(w.now).String()
	keys := []string{"a", "A", "a%", "a_", "ab", "a/b", "a/c", "a/", "b", "B", "_", "%", "é", "z", "~", "a\\", "a'", "0", "10", "9", "日本", "a\U0010ffff"}
	var docs []store.Doc
	for _, key := range keys {
		docs = append(docs, doc(1, "", key, `1`), doc(1, owner, key, `2`), doc(2, "", key, `3`))
	}
	w.add(ctx, &store.Changes{PutDocs: docs})
	slices.SortFunc(docs, func(a, b store.Doc) int { return strings.Compare(a.Key, b.Key) })
	parts := append([]string{""}, keys...)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		var scans []store.Scan
		var want [][]store.Doc
		for range rapid.IntRange(1, 3).Draw(rt, "scans") {
			scan := store.Scan{
				Kind: store.DocKind(rapid.IntRange(1, 3).Draw(rt, "kind")), Owner: rapid.SampledFrom([]string{"", owner, "other"}).Draw(rt, "owner"),
				Prefix: rapid.SampledFrom(parts).Draw(rt, "prefix"), After: rapid.SampledFrom(parts).Draw(rt, "after"), Limit: rapid.IntRange(0, 6).Draw(rt, "limit"),
			}
			scans, want = append(scans, scan), append(want, scanList(docs, scan))
		}
		w.equal("read", want, w.read(ctx, store.Want{Scans: scans}).Scanned)
		tx, got := w.begin(ctx, store.Want{Scans: scans})
		tx.Rollback(ctx)
		w.equal("in a transaction", want, got.Scanned)
	})
}

// scanList returns what a scan finds in docs sorted by key.
func scanList(docs []store.Doc, scan store.Scan) []store.Doc {
	var found []store.Doc
	for _, d := range docs {
		if d.Kind == scan.Kind && d.Owner == scan.Owner && strings.HasPrefix(d.Key, scan.Prefix) && d.Key > scan.After &&
			(scan.Limit == 0 || len(found) < scan.Limit) {
			found = append(found, d)
		}
	}
	return found
}

func ownedAgainstLists(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	owners := []string{"", newUUID(w.now).String(), newUUID(w.now).String(), newUUID(w.now).String(), "other", `"\'%`}
	var docs []store.Doc
	for i, owner := range owners[:4] {
		for _, key := range []string{"b", "a", "B", "é", "a/", "", "10", "9"} {
			one, other := doc(1, owner, key, `1`), doc(store.DocKind(i+2), owner, key, `2`)
			one.Data, other.ExpiresAt = everyByte(), w.now
			docs = append(docs, one, other)
		}
	}
	docs = append(docs, doc(1, owners[5], "k", `3`))
	w.add(ctx, &store.Changes{PutDocs: docs})
	slices.SortFunc(docs, func(a, b store.Doc) int { return strings.Compare(a.Key, b.Key) })
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		var owned []store.Owned
		want := map[store.Owned][]store.Doc{}
		for range rapid.IntRange(1, 8).Draw(rt, "owned") {
			one := store.Owned{Kind: store.DocKind(rapid.IntRange(1, 5).Draw(rt, "kind")), Owner: rapid.SampledFrom(owners).Draw(rt, "owner")}
			owned = append(owned, one)
			delete(want, one)
			for _, d := range docs {
				if d.Kind == one.Kind && d.Owner == one.Owner {
					want[one] = append(want[one], d)
				}
			}
		}
		w.equal("read", want, w.read(ctx, store.Want{Owned: owned}).Owned)
		tx, got := w.begin(ctx, store.Want{Owned: owned[:1]})
		more, err := tx.Load(ctx, store.Want{Owned: owned})
		tx.Rollback(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		w.equal("in a transaction", want[owned[0]], got.Owned[owned[0]])
		w.equal("loaded later", want, more.Owned)
	})
}

// waitedDocsAreFresh makes two transactions add a doc each to the docs of one execution, serialized by the lock of the execution: each must see
// those of the previous one.
func waitedDocsAreFresh(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	id := w.insert(ctx, x)[0]
	whose := store.Owned{Kind: 1, Owner: id.String()}
	want := store.Want{Executions: []base.UUID{id}, Owned: []store.Owned{whose}}
	const each = 20
	err := together(crowd, func(int) error {
		for range each {
			err := insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
				return &store.Changes{
					Update:  []*core.Execution{got.Executions[id]},
					NewDocs: []store.Doc{doc(1, whose.Owner, fmt.Sprintf("%06d", len(got.Owned[whose])), `1`)},
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.read(ctx, want).Owned[whose]); n != crowd*each {
		t.Fatalf("%d docs, want %d", n, crowd*each)
	}
}

// waitedCountIsFresh is the same for a counter in a doc that is requested by name: no increment is lost.
func waitedCountIsFresh(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	id := w.insert(ctx, x)[0]
	ref := store.DocRef{Kind: 1, Owner: id.String(), Key: "count"}
	want := store.Want{Executions: []base.UUID{id}, Docs: []store.DocRef{ref, {Kind: 2, Key: "of none"}}}
	count := func(got *store.Loaded) int {
		n, _ := strconv.Atoi(string(got.Docs[ref].Body)) // none: 0
		return n
	}
	const each = 20
	err := together(crowd, func(int) error {
		for range each {
			err := insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
				return &store.Changes{
					Update:  []*core.Execution{got.Executions[id]},
					PutDocs: []store.Doc{doc(1, ref.Owner, ref.Key, strconv.Itoa(count(got)+1))},
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(w.read(ctx, want)); n != crowd*each {
		t.Fatalf("counted %d, want %d", n, crowd*each)
	}
}

func lockedDocIsBusy(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	d := doc(1, "", "a", `1`)
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{d}})
	tx, _ := w.begin(ctx, store.Want{Docs: []store.DocRef{d.DocRef}, LockDocs: true})
	w.busy(ctx, store.Want{Docs: []store.DocRef{d.DocRef}, LockDocs: true})
	w.equal("read without waiting", docMap(d), w.read(ctx, store.Want{Docs: []store.DocRef{d.DocRef}}).Docs)
	d.Body = []byte(`2`)
	w.commit(ctx, tx, &store.Changes{PutDocs: []store.Doc{d}})
	tx, got := w.begin(ctx, store.Want{Docs: []store.DocRef{d.DocRef}, LockDocs: true})
	tx.Rollback(ctx)
	w.equal("after the commit", docMap(d), got.Docs)
}

func oneDocWins(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	created := make([]bool, crowd)
	err := together(crowd, func(i int) error {
		err := insist(ctx, w.s, store.Want{}, func(*store.Loaded) *store.Changes {
			return &store.Changes{NewDocs: []store.Doc{doc(1, "", "a", `1`)}, Counters: map[string]int64{"created": 1}}
		})
		created[i] = err == nil
		if err != nil && store.FaultOf(err) != store.Conflict {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, yes := range created {
		if yes {
			n++
		}
	}
	if counted := w.read(ctx, store.Want{Counters: []string{"created"}}).Counters["created"]; n != 1 || counted != 1 {
		t.Fatalf("%d creations of one doc succeeded, %d were written", n, counted)
	}
}
