package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestW66_two_links_for_one_person_make_no_quorum_of_two(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		waitpoint := w.rests(task, core.SuspendCommand{Waitpoints: freshAt("a"), Condition: people(2, "a")}).Waitpoints[0].ID
		for _, name := range []string{"ana@example.com", "ANA@example.com", "ana@example.com "} {
			must(w.decideLink(w.link(waitpoint, name), "approve"))(t)
		}
		same(t, "it waits on", w.get(id).Status, core.Suspended)
		_, err := w.e.CreateLink(w.ctx(), operator, core.CreateLinkCommand{WaitpointID: waitpoint, Approver: "ana@example.com\u200b"}, engine.Operator{})
		same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "approver")
		must(w.decideLink(w.link(waitpoint, "bob"), "approve"))(t)
		same(t, "two people", w.get(id).Status, core.Ready)
	})
}
