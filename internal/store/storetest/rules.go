package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

func ruleTests() []test {
	return []test{
		{"S36: docs that are rules are part of the dictionary, in order of kind and key", rulesInTheDictionary, anyStore},
		{"S36: a commit that writes or drops rules raises the dictionary's version by one, and none that does not", rulesRaiseTheVersion, anyStore},
		{"S36: changes decided by other rules are stale", otherRulesAreStale, anyStore},
		{"S36: the rules of a dictionary are those of its version", rulesOfOneVersion, anyStore},
		{"S36: rules that another process wrote are seen", rulesOfAnotherProcess, shared},
	}
}

// rule returns a doc that is a rule.
func rule(kind int, key, body string) store.Doc {
	return doc(store.FirstRule+store.DocKind(kind), "", key, body)
}

func rulesInTheDictionary(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.equal("no rules", 0, len(w.dictionary(ctx).Rules))
	docs := []store.Doc{
		rule(1, "a", `{"n":1}`), rule(0, "b", `{"n":2}`), rule(0, "B", `3`), rule(0, "é/%", `4`), rule(0, "10", `5`), rule(0, "9", `6`),
		rule(127, "z", `{"n":7}`),
		doc(store.FirstRule-1, "", "no rule", `8`), doc(1, "", "a", `9`),
	}
	docs[1].Data, docs[1].ExpiresAt = everyByte(), w.now
	w.add(ctx, &store.Changes{NewDocs: docs})
	want := slices.Clone(docs[:7])
	slices.SortFunc(want, func(a, b store.Doc) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key)) })
	w.equal("rules", want, w.dictionary(ctx).Rules)
	w.equal("as docs", docMap(docs...), w.read(ctx, store.Want{Docs: refsOf(docs)}).Docs)

	before := w.dictionary(ctx)
	w.register(ctx, []core.Lane{w.newLane("second")}, []core.Class{newClass("second", "k")})
	w.equal("rules after a registration", want, w.dictionary(ctx).Rules)
	want[0].Body = []byte(`{}`)
	w.add(ctx, &store.Changes{PutDocs: want[:1], DropDocs: refsOf(want[1:3])})
	w.equal("rules after a change", slices.Concat(want[:1], want[3:]), w.dictionary(ctx).Rules)
	w.equal("rules of the dictionary that was asked for before", 7, len(before.Rules))
}

func rulesRaiseTheVersion(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	v := w.version(ctx)
	a, b := rule(0, "a", `1`), rule(1, "b", `2`)
	lane := store.Want{LockLanes: []int32{w.lane.ID}}
	for _, step := range []struct {
		what  string
		rises int64
		want  store.Want
		ch    *store.Changes
	}{
		{"other docs", 0, store.Want{}, &store.Changes{NewDocs: []store.Doc{doc(1, "", "x", `1`)}, PutDocs: []store.Doc{doc(store.FirstRule-1, "", "y", `1`)}}},
		{"a new rule", 1, store.Want{}, &store.Changes{NewDocs: []store.Doc{doc(2, "", "x", `1`), a}}},
		{"a rule that is put", 1, store.Want{}, &store.Changes{PutDocs: []store.Doc{b}}},
		{"several, and a lane", 1, lane, &store.Changes{PutDocs: []store.Doc{a, b}, NewDocs: []store.Doc{rule(2, "c", `3`)}, Lanes: []core.Lane{w.lane}}},
		{"dropped docs", 0, store.Want{}, &store.Changes{DropDocs: []store.DocRef{{Kind: 1, Key: "x"}}}},
		{"a dropped rule", 1, store.Want{}, &store.Changes{DropDocs: []store.DocRef{a.DocRef, {Kind: 2, Key: "x"}}}},
		{"a rule that is locked first", 1, store.Want{Docs: []store.DocRef{b.DocRef}, LockDocs: true}, &store.Changes{DropDocs: []store.DocRef{b.DocRef}}},
	} {
		w.put(ctx, step.want, step.ch)
		v += step.rises
		tx, begun := w.begin(ctx, store.Want{})
		tx.Rollback(ctx)
		if now, d := w.version(ctx), w.dictionary(ctx); now != v || d.Version != v || begun.Dictionary != v {
			t.Fatalf("%s: Poll says version %d, Dictionary %d, Begin %d, want %d", step.what, now, d.Version, begun.Dictionary, v)
		}
	}
	w.refuse(ctx, store.Want{}, &store.Changes{NewDocs: []store.Doc{rule(2, "c", `4`)}}, store.Conflict)
	w.equal("version after a refusal", v, w.version(ctx))
	w.equal("rules", []store.Doc{rule(2, "c", `3`)}, w.dictionary(ctx).Rules)
}

func otherRulesAreStale(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	v := w.version(ctx)
	x := w.execution()
	w.add(ctx, &store.Changes{Dictionary: v, PutDocs: []store.Doc{rule(0, "a", `1`)}})
	w.refuse(ctx, store.Want{}, &store.Changes{Dictionary: v, Insert: []*core.Execution{x}}, store.Stale)
	w.refuse(ctx, store.Want{}, &store.Changes{Dictionary: v, DropDocs: []store.DocRef{rule(0, "a", ``).DocRef}}, store.Stale)
	w.gone(ctx, x.ID.UUID)
	w.add(ctx, &store.Changes{Dictionary: v + 1, Insert: []*core.Execution{x}})
}

// rulesOfOneVersion writes two rules with the number of the version that they produce, while others read.
func rulesOfOneVersion(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	first := w.version(ctx)
	var done atomic.Bool
	err := together(3, func(i int) error {
		if i > 0 {
			for !done.Load() {
				if err := sameVersion(ctx, w.s, first); err != nil {
					return err
				}
			}
			return nil
		}
		defer done.Store(true)
		for n := range int64(60) {
			body := strconv.FormatInt(first+n+1, 10)
			ch := &store.Changes{PutDocs: []store.Doc{rule(0, "a", body), rule(1, "b", body)}}
			if err := insist(ctx, w.s, store.Want{}, func(*store.Loaded) *store.Changes { return ch }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.equal("version", first+60, w.dictionary(ctx).Version)
}

func sameVersion(ctx context.Context, s store.Store, first int64) error {
	d, err := s.Dictionary(ctx)
	if err != nil || d.Version == first {
		return err
	}
	for _, r := range d.Rules {
		if string(r.Body) != strconv.FormatInt(d.Version, 10) {
			return fmt.Errorf("a dictionary of version %d has the rule %s", d.Version, r.Body)
		}
	}
	if len(d.Rules) != 2 {
		return fmt.Errorf("%d rules in version %d", len(d.Rules), d.Version)
	}
	return nil
}

func rulesOfAnotherProcess(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	other := w.at(f.OpenAgain(t, w.s))
	w.equal("rules", 0, len(other.dictionary(ctx).Rules))
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{rule(0, "a", `1`)}})
	w.equal("rules", []store.Doc{rule(0, "a", `1`)}, other.dictionary(ctx).Rules)
	w.equal("version", w.version(ctx), other.version(ctx))
}
