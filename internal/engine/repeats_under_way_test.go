package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// underWay are commands under a key that look at what there is before their transaction: done again they find that nothing is left to do.
// Each is about something of its own that has the name.
var underWay = map[string]func(w *world, name string) (run func(context.Context) error){
	"delete namespace": func(w *world, name string) func(context.Context) error {
		w.namespace(name, core.NamespaceSettings{})
		return func(ctx context.Context) error {
			return w.e.DeleteNamespace(ctx, admin, name, engine.AdminAction{RequestKey: "once"})
		}
	},
	"delete quota": func(w *world, name string) func(context.Context) error {
		w.quota(name, core.QuotaSettings{ConcurrencyLimit: 1})
		return func(ctx context.Context) error {
			return w.e.DeleteQuota(ctx, admin, name, false, engine.AdminAction{RequestKey: "once"})
		}
	},
	"delete budget": func(w *world, name string) func(context.Context) error {
		w.create(tokens(name, 10, covering(core.ScopeNamespace, "")))
		ref := engine.BudgetRef{Namespace: "default", Budget: name}
		return func(ctx context.Context) error {
			return w.e.DeleteBudget(ctx, admin, ref, engine.AdminAction{RequestKey: "once"})
		}
	},
	"delete execution": func(w *world, _ string) func(context.Context) error {
		id := w.submit(core.Submission{})
		w.cancel(id)
		return func(ctx context.Context) error {
			return w.e.Delete(ctx, operator, id, engine.Operator{RequestKey: "once"})
		}
	},
	"delete flow": func(w *world, _ string) func(context.Context) error {
		flow, by := w.submitFlow(core.FlowSubmission{Kind: "f"}).Flow.ID.Given(), operator
		by.RequestKey = "once"
		return func(ctx context.Context) error { return w.e.DeleteFlow(ctx, by, engine.DeleteFlowRequest{Flow: flow}) }
	},
	"extend and seal a flow": func(w *world, _ string) func(context.Context) error {
		flow, by := w.submitFlow(core.FlowSubmission{Kind: "f", Unsealed: true}).Flow.ID.Given(), client
		by.RequestKey = "once"
		return func(ctx context.Context) error {
			_, err := w.e.ExtendFlow(ctx, by, core.FlowExtension{Flow: flow, Nodes: []core.FlowNode{{Name: "b", Kind: "k"}}, Seal: true})
			return err
		}
	},
	"replay": func(w *world, _ string) func(context.Context) error {
		id := w.submit(core.Submission{})
		w.cancel(id)
		return func(ctx context.Context) error {
			_, err := w.e.Replay(ctx, operator, id, engine.ReplayRequest{}, engine.Operator{RequestKey: "once"})
			return err
		}
	},
	"replay of a member and what follows it": func(w *world, name string) func(context.Context) error {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: name + "a"}, {Name: "b", Kind: name + "b", After: []string{"a"}}}})
		w.end(name + "a")
		w.end(name + "b")
		w.finished(flow)
		return func(ctx context.Context) error {
			_, err := w.e.Replay(ctx, operator, flow.Members["a"].Given(), engine.ReplayRequest{Cascade: core.CascadeAll}, engine.Operator{RequestKey: "once"})
			return err
		}
	},
	"cancel of a flow": func(w *world, _ string) func(context.Context) error {
		flow, by := w.submitFlow(chain("a", "b")).Flow.ID.Given(), operator
		by.RequestKey = "once"
		return func(ctx context.Context) error {
			_, err := w.e.CancelFlow(ctx, by, engine.CancelFlowRequest{Flow: flow, Policy: core.CancelAll, Reason: "over"})
			return err
		}
	},
	"bulk": func(w *world, kind string) func(context.Context) error {
		w.submit(core.Submission{Kind: kind})
		return func(ctx context.Context) error {
			defer w.submit(core.Submission{Kind: kind}) // more match then than may be affected
			_, err := w.e.Bulk(ctx, operator, engine.BulkRequest{Action: "hold", Filter: kindFilter(kind), MaxAffected: ptr(1), RequestKey: kind})
			return err
		}
	},
}

// looksOf is a store that lets a test act after each look of one caller.
type looksOf struct {
	store.Store
	looked func()
}

type looksKey struct{}

func (l *looksOf) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := l.Store.Read(ctx, want)
	if ctx.Value(looksKey{}) != nil {
		l.looked()
	}
	return loaded, err
}

// The first try commits after any of the looks that the repeat takes.
func TestL117_a_repeat_whose_first_try_is_under_way_is_answered_as_that(t *testing.T) {
	t.Parallel()
	for name, prepare := range underWay {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				closeEngine(t, w.e)
				l := &looksOf{Store: w.store}
				w.e = w.openEngine(l)
				for after, looks := 1, 1; after <= looks; after++ {
					run, seen := prepare(w, fmt.Sprint("n", after)), 0
					l.looked = func() {
						if seen++; seen == after {
							ok(t, run(w.ctx()))
						}
					}
					if err := run(context.WithValue(w.ctx(), looksKey{}, true)); err != nil {
						t.Errorf("after look %d: %v", after, err)
					}
					looks = seen
				}
			})
		})
	}
}
