package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Ring is the ring of a transaction of its own, and the moment of that.
func (e *Engine) Ring(ctx context.Context) (*core.KeyRing, core.Time, error) {
	r := &ringLook{}
	err := e.do(ctx, r)
	return r.ring, r.now, err
}

// Unloaded is what a transaction says of a ring whose keys it has not loaded.
func (e *Engine) Unloaded(ctx context.Context) error { return e.do(ctx, &ringLook{forgets: true}) }

// ringLook is Ring on its way.
type ringLook struct {
	forgets bool // to name the rows that it needs
	ring    *core.KeyRing
	now     core.Time
}

func (*ringLook) name() string { return "look_at_ring" }

func (r *ringLook) want(w *store.Want, _ bool) {
	if !r.forgets {
		wantKeys(w)
	}
}

func (r *ringLook) decide(u *unit) (err error) {
	r.now = u.now
	r.ring, err = u.ring()
	return err
}

// WaitingClaims is how many calls have looked and wait for work.
func (e *Engine) WaitingClaims() (n int) {
	e.picker.mu.Lock()
	defer e.picker.mu.Unlock()
	for _, call := range e.picker.waiting {
		if call.looked && !call.serving {
			n++
		}
	}
	return n
}

// TimerLabels are the labels of the timers that the sweep turns; "": one of them has none.
func TimerLabels() (labels []string) {
	for kind := range sweepRules {
		labels = append(labels, timerNames[kind])
	}
	return labels
}

// KnownGauges are the gauges that the process itself knows: who polls them does not wait for the store.
func (e *Engine) KnownGauges() metrics.Collector { return knownGauges{e.gauges} }

type knownGauges struct{ *gauges }

// Collect tells the present values.
func (k knownGauges) Collect() []metrics.Family { return k.known() }

// MarkRemoval begins the removal of a rule and goes no further, as a process does that ends in between.
func (e *Engine) MarkRemoval(ctx context.Context, key string) error {
	return e.do(ctx, &setMark{&removalMark{key: key, Token: e.mint()}})
}

// EndChildren is the follow-up work that the end of a parent leaves for its children.
func (e *Engine) EndChildren(ctx context.Context, parent core.GivenID, flow core.ID) error {
	loaded, err := e.store.Read(ctx, store.Want{Executions: []core.UUID{parent.UUID}})
	if err != nil {
		return err
	}
	return e.endChildren(ctx, task{Kind: taskEndChildren, Execution: parent.UUID, Flow: flow.UUID, End: endOf(loaded.Executions[parent.UUID])})
}

// EndNode tells a flow node once more that its sub-flow has ended, as a second process does that has the same follow-up work (S64).
func (e *Engine) EndNode(ctx context.Context, sub core.ID) error {
	return e.endNode(ctx, task{Kind: taskEndNode, Flow: sub.UUID})
}

// FailNode is what a process does that has seen a flow node and cannot make its sub-flow.
func (e *Engine) FailNode(ctx context.Context, seen *core.Execution, why error) error {
	return e.failNode(ctx, seen, why)
}
