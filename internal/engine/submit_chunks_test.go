package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL87_of_two_items_with_one_key_or_id_the_first_creates_however_far_they_are_apart(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := base.GivenID{UUID: base.UUID{0: 9, 15: 1}}
		for name, twice := range map[string]core.Submission{"key": {Kind: "k", IdempotencyKey: "once"}, "id": {Kind: "k", ID: &own}} {
			all := make([]core.Submission, 2500) // three chunks
			for i := range all {
				all[i] = core.Submission{Kind: "k"}
			}
			all[0], all[2400] = twice, twice
			items := must(w.e.SubmitMany(w.ctx(), client, all, false))(t)
			for i, item := range items {
				want := "created"
				if i == 2400 {
					want = "duplicate"
				}
				if item.Err != nil || item.Outcome != want {
					t.Fatalf("%s: item %d is %q, %v, want %s", name, i, item.Outcome, item.Err, want)
				}
			}
			same(t, name, items[2400].ID, items[0].ID)
		}
	})
}
