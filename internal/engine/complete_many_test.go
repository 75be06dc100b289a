package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestU77_executions_that_ended_together_share_a_commit_and_each_has_its_own_answer(t *testing.T) {
	t.Parallel()
	onLagging(t, func(t *testing.T, w *world, disk *lagging) {
		var all []engine.Ending
		for range 5 {
			task := w.started(core.Submission{})
			all = append(all, engine.Ending{ID: given(task), Completion: core.Completion{Fence: fence(task)}})
		}
		all[1].Fence.Epoch++
		all[3].Fence = core.Fence{}
		disk.lag(endings)
		answer := make(chan []engine.CompleteItem, 1)
		go func() { answer <- w.e.CompleteMany(w.ctx(), client, all) }()
		eventually(t, "they are committed", func() bool { return disk.waits() > 0 })
		codes := []base.Code{"", base.CodeStaleLease, "", base.CodeFenceRequired, ""}
		for i, code := range codes {
			same(t, "ended by the first commit", w.get(all[i].ID).Status == core.Succeeded, code == "")
		}
		disk.catchUp(nil)
		items := <-answer
		for i, code := range codes {
			same(t, "code", base.CodeOf(items[i].Err), code)
			same(t, "told to have ended", items[i].Status == core.Succeeded, code == "")
		}
		same(t, "a repeat", w.e.CompleteMany(w.ctx(), client, all[:1])[0].Repeated, true)
	})
}
