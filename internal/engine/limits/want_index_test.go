package limits

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestS73_a_record_is_wanted_once_however_many_others_are(t *testing.T) {
	t.Parallel()
	ref := func(i int) store.DocRef { return store.DocRef{Kind: DocBudget, Key: fmt.Sprint(i)} }
	u := &txn.Tx{Docs: map[store.DocRef]*store.Doc{ref(1): nil}}
	count := func(w *store.Want, want int) {
		t.Helper()
		seen := map[store.DocRef]bool{}
		for _, ref := range w.Docs {
			if seen[ref] {
				t.Errorf("%s is wanted twice", ref.Key)
			}
			seen[ref] = true
		}
		if len(w.Docs) != want {
			t.Errorf("%d records are wanted, not %d", len(w.Docs), want)
		}
	}
	var w store.Want
	for range 3 {
		for i := range 10_000 {
			wantDoc(u, &w, ref(i))
		}
	}
	count(&w, 9_999) // without the one that is loaded
	w.Docs = append(w.Docs, ref(20_000))
	wantDoc(u, &w, ref(20_000)) // which somebody else added
	count(&w, 10_000)
	other := store.Want{Docs: w.Docs[:50:50]}
	wantDoc(u, &other, ref(9_000))
	wantDoc(u, &other, ref(2))
	count(&other, 51)
	w = store.Want{}
	for i := range 100 { // begun anew in the same place
		wantDoc(u, &w, ref(30_000+i))
	}
	w = store.Want{Docs: other.Docs}
	wantDoc(u, &w, ref(30_000))
	count(&w, 52)
}
