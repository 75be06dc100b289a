package engine_test

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ancestor is a running execution of that partition with one child, and the flow of that child.
func (w *world) ancestor(n uint8, child string) (engine.Task, engine.FlowAnswer) {
	w.t.Helper()
	id := base.ID{N: n, UUID: drawUUID()}.Given()
	w.submit(core.Submission{Kind: "parent", ID: &id})
	task := w.claimKind("parent")
	w.spawn(task, child)
	return task, engine.FlowAnswer{Flow: w.childrenFlow(given(task)).Flow}
}

func memberOf(task engine.Task, name string) core.FlowExtension {
	return core.FlowExtension{Members: []core.FlowMember{{ID: given(task), Name: name}}}
}

func TestF2_FI1_an_execution_becomes_no_member_of_a_flow_below_itself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		top, flow := w.ancestor(7, "child")
		refusal := w.extendErr(flow, memberOf(top, "top"), base.CodeCycleDetected)
		same(t, "its own children", []any{refusal.Field, refusal.Details["cycle"]}, []any{"members[0]", []string{"top", "top"}})

		child := w.claimKind("child")
		w.spawn(child, "grandchild")
		deeper := engine.FlowAnswer{Flow: w.childrenFlow(given(child)).Flow}
		refusal = w.extendErr(deeper, memberOf(top, "top"), base.CodeCycleDetected)
		same(t, "children of its children", refusal.Details["cycle"], any([]string{"top", "child", "top"}))

		other, others := w.ancestor(7, "nephew")
		w.extend(flow, memberOf(other, "late"))
		refusal = w.extendErr(others, memberOf(top, "top"), base.CodeCycleDetected)
		same(t, "children of one that came later", refusal.Details["cycle"], any([]string{"top", "late", "top"}))
		same(t, "it is no member", w.get(given(top)).Member, nil)

		beside, _ := w.ancestor(7, "stranger")
		same(t, "another's", w.extend(others, memberOf(beside, "beside")).Created, true)
	})
}

func TestF2_FI1_of_two_executions_that_become_members_below_each_other_one_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		for range 5 {
			var tasks [2]engine.Task
			var flows [2]engine.FlowAnswer
			for i := range tasks {
				tasks[i], flows[i] = w.ancestor(9, "child")
			}
			var errs [2]error
			var both sync.WaitGroup
			for i := range tasks {
				both.Go(func() {
					x := memberOf(tasks[i], "late")
					x.Flow = flows[1-i].Flow.ID.Given()
					_, errs[i] = engines[i].ExtendFlow(w.ctx(), client, x)
				})
			}
			both.Wait()
			lost := 0
			if errs[0] == nil {
				lost = 1
			}
			same(t, "one wins", errs[1-lost], nil)
			refused(t, errs[lost], base.CodeCycleDetected)
		}
	})
}
