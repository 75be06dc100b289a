package engine_test

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// The race detector judges this test: a command whose caller gave up goes on, and writes its answer where it must not be read.
func TestS72_a_caller_that_gave_up_does_not_look_at_what_its_command_goes_on_to_write(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, w *world) {
		over, end := context.WithCancel(t.Context())
		end()
		w.submit(core.Submission{Kind: "k"})
		task := w.claim()
		id, f := given(task), fence(task)
		calls := map[string]func() error{
			"PutStep": func() error {
				_, err := w.e.PutStep(over, client, id, f, "once", core.Payload{Data: []byte(`1`)})
				return err
			},
			"Renew": func() error {
				items, err := w.e.Renew(over, client, []engine.LeaseRef{{ID: id, Fence: f}})
				ok(t, err)
				return items[0].Err
			},
			"AcquireSlots": func() error {
				_, err := w.e.AcquireSlots(over, "p", 10, 1)
				return err
			},
			"TakeRate": func() error {
				_, _, err := w.e.TakeRate(over, "r", 10, 1)
				return err
			},
			"CompleteMany": func() error {
				return w.e.CompleteMany(over, client, []engine.Ending{{ID: id, Completion: core.Completion{Fence: f}}})[0].Err
			},
		}
		for name, call := range calls {
			if err := call(); err != nil && base.CodeOf(err) != base.CodeTimeout {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	onAlone(t, engine.Config{}, test)
	onShared(t, engine.Config{}, test)
}
