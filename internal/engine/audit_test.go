package engine_test

import "github.com/flowfabric/flowfabric/internal/invariants"

// audit holds everything in the store to the invariants of the specification. It runs at the end of every test, while the
// test's context still lives. The engine may still be at work, and the store is read in several looks: what a later look does not
// find was on its way.
func (w *world) audit() {
	w.t.Helper()
	var found []string
	defer func() {
		for _, text := range found {
			w.t.Log(text)
		}
	}()
	eventually(w.t, "every invariant holds", func() bool {
		var err error
		if found, err = invariants.Audit(w.ctx(), w.store); err != nil {
			w.t.Fatalf("audit: %v", err)
		}
		return len(found) == 0
	})
}
