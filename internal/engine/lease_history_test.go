package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestL40_the_newest_1000_leases_are_kept_and_all_attempts(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const leases, anAttempt = 1105, 90
		id := w.submit(core.Submission{PolicyJSON: []byte(`{"retry_policy":{"max_retries":1000,"backoff":{"strategy":"fixed","delay_ms":0}}}`)})
		var tasks []engine.Task
		for n := 1; n <= leases; n++ {
			task := w.claim()
			tasks = append(tasks, task)
			if n%anAttempt == 0 {
				w.fail(task, "transient")
			} else {
				w.release(task)
			}
		}
		var epochs []int64
		for after, more := int64(0), true; more; after = epochs[len(epochs)-1] {
			var entries []core.LeaseRecord
			var err error
			entries, more, err = w.e.Leases(w.ctx(), client, id, after, 300)
			ok(t, err)
			for _, entry := range entries {
				epochs = append(epochs, entry.Epoch)
			}
		}
		same(t, "entries", [3]int64{int64(len(epochs)), epochs[0], epochs[len(epochs)-1]}, [3]int64{1000, leases - 999, leases})
		attempts := must(w.e.Attempts(w.ctx(), client, id))(t)
		same(t, "attempts", len(attempts), leases/anAttempt+1)
		for i, a := range attempts[:len(attempts)-1] {
			same(t, "attempt", [3]any{a.Index, a.State, a.LastEpoch}, [3]any{i, core.EndedFailure, int64(anAttempt * (i + 1))})
		}
		release := func(task engine.Task) func() error {
			return func() error { _, err := w.e.Release(w.ctx(), client, id, fence(task), "stopping"); return err }
		}
		w.untouched(id, release(tasks[leases-1000]), "")
		w.untouched(id, release(tasks[leases-1001]), base.CodeStaleLease)
		eventually(t, "of the first hundred one attempt is left", func() bool {
			all := must(w.store.Read(w.ctx(), store.Want{History: []store.HistoryRef{{ID: id.UUID, All: true}}}))(t).History
			return all[0].Epoch == anAttempt && all[1].Epoch == 101 && len(all) == leases-99
		})
	})
}
