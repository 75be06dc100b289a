package flowfabric_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Not among the tests under the race detector (Makefile), which takes minutes for these bytes.
func TestW80_U141_ask_fetches_what_had_no_room_in_the_answer(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		a := w.asks(t, flowfabric.Approval{Key: "go", Approvers: []string{"ann"}, Quorum: 2})
		links := receive(t, a.links)
		const many = 33 // of the largest payloads 32 have room
		for i := range many {
			said := fmt.Sprintf(`{"comment":"%d","pad":"%s"}`, i+1, strings.Repeat("x", 262_000))
			must[api.SignalReceipt](t)(w.Operate().Approve(ctx, a.ID(), ops.Approve{
				Suffix: fmt.Sprint(i), Payload: flowfabric.Payload{Data: []byte(said), ContentType: "application/json"},
			}))
		}
		open := must[*api.SuspensionRecord](t)(w.Executions().Suspension(ctx, a.ID()))
		if last := open.Signals[many-1].Payload; !last.Omitted() || last.Size() < 262_000 || last.Data != nil {
			t.Errorf("the last signal has %d of %d bytes, omitted: %v", len(last.Data), last.Size(), last.Omitted())
		}
		a.decides(t, links[0], "approve", "")
		if d := receive(t, a.answer); !d.Approved || d.Comment != fmt.Sprint(many) {
			t.Errorf("approved: %v, comment %q", d.Approved, d.Comment)
		}
		must[[]string](t)(a.Result(ctx))
	})
}
