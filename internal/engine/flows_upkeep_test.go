package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestF37_L140_members_go_together_when_the_time_of_the_last_is_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("a", "b")
		s.Nodes[0].PolicyJSON = []byte(`{"retention_ms":1000}`)
		s.Nodes[1].PolicyJSON = []byte(`{"retention_ms":60000}`)
		line := w.submitFlow(s)
		w.run(line, "a")
		w.turn(5000)
		same(t, "a stays while its flow is open", w.member(line, "a").Status, core.Succeeded)
		w.run(line, "b")
		w.turn(30_000)
		same(t, "a stays while b does", w.member(line, "a").Status, core.Succeeded)
		w.turn(31_000)
		eventually(t, "the flow is gone", func() bool {
			_, err := w.e.Flow(w.ctx(), client, line.Flow.ID.Given())
			return base.CodeOf(err) == base.CodeFlowNotFound
		})
		for _, id := range line.Members {
			eventually(t, "its members are gone", func() bool {
				_, err := w.e.Describe(w.ctx(), client, id.Given())
				return base.CodeOf(err) == base.CodeExecutionNotFound
			})
			w.erased(id)
		}
		same(t, "no flow is listed", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 0)
	})
}

func TestL139_L140_a_flow_that_was_cancelled_alone_goes_after_its_last_member(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "pair", Nodes: nodesNamed("a", "b")}
		s.Defaults.PolicyJSON = []byte(`{"retention_ms":1000}`)
		flow := w.submitFlow(s)
		a, b := w.claimKind("a"), w.claimKind("b")
		w.complete(a)
		w.cancelFlow(flow, core.CancelFlowOnly, "")
		w.turn(5000)
		w.workedOff("remove_flow") // it has looked in vain
		same(t, "a stays while b runs", w.member(flow, "a").Status, core.Succeeded)
		w.complete(b)
		w.turn(5000)
		for _, id := range flow.Members {
			w.gone(id.Given())
		}
		same(t, "no flow is listed", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 0)
	})
}

func TestL140_a_member_of_a_flow_that_works_is_not_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b"))
		refused(t, w.e.Delete(w.ctx(), operator, line.Members["a"].Given(), engine.Operator{}), base.CodeExecutionNotTerminal)
		w.run(line, "a")
		refused(t, w.e.Delete(w.ctx(), operator, line.Members["a"].Given(), engine.Operator{}), base.CodeRetained)
	})
}

func TestF62_S56_explain_names_whom_a_member_waits_for(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("a", "b")
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "c", Kind: "work", After: []string{"a", "b"}})
		flow := w.submitFlow(s)
		w.run(flow, "a")
		w.claimMember(flow, "b")
		told := w.explain(flow.Members["c"].Given())
		same(t, "code", told.Blockers[0].Code, core.BlockerDependencies)
		if text := told.Blockers[0].Message; !strings.Contains(text, "1 of 2") || !strings.Contains(text, "b (active)") || strings.Contains(text, "a (") {
			t.Errorf("it says: %s", text)
		}

		inner := chain("x")
		inner.Kind = ""
		outer := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "sub", Flow: &inner}}})
		eventually(t, "the sub-flow has begun", func() bool { return w.member(outer, "sub").Children != nil })
		told = w.explain(outer.Members["sub"].Given())
		same(t, "code", told.Blockers[0].Code, core.BlockerSubflow)
		if text := told.Blockers[0].Message; !strings.Contains(text, "0 of 1 members") {
			t.Errorf("it says: %s", text)
		}
	})
}

func TestU113_FI2_FI3_FI10_a_recount_of_flows_finds_no_difference_and_finds_one_that_is_there(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		line := w.submitFlow(chain("a", "b", "c"))
		w.run(line, "a")
		report := must(w.e.Integrity(w.ctx()))(t)
		same(t, "differences", report.Differences, nil)
		w.miscountFlow(line)
		report = must(w.e.Integrity(w.ctx()))(t)
		same(t, "what", len(report.Differences), 1)
		same(t, "which", report.Differences[0], engine.Difference{What: "flows", Key: line.Flow.ID.String() + " open", Stored: 7, Found: 2})
	})
}

// miscountFlow makes the record of a flow tell another number of members that have not ended.
func (w *world) miscountFlow(of engine.FlowAnswer) {
	w.t.Helper()
	f := *w.flow(of).Flow
	f.Open = 7
	body := must(json.Marshal(&f))(w.t)
	w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 29, Key: f.ID.UUID.String()}, Body: body}}})
}
