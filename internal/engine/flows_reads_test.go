package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// recount counts the members of a flow by reading each.
func (w *world) recount(of engine.FlowAnswer) (counts map[string]int, has map[core.Status]bool) {
	w.t.Helper()
	counts, has = map[string]int{}, map[core.Status]bool{}
	for _, state := range core.PublicStates() {
		counts[state] = 0
	}
	for _, id := range of.Members {
		view := must(w.e.Describe(w.ctx(), client, id.Given()))(w.t)
		public, _ := core.Derive(view.Execution, view.Lane)
		counts[public]++
		has[view.Execution.Status] = true
	}
	return counts, has
}

func TestF6_F59_FI10_counts_and_phase_equal_recomputation(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		flow, task := w.motley()
		check := func(phase string) {
			t.Helper()
			view := w.flow(flow)
			counts, has := w.recount(flow)
			same(t, "counts", view.Counts, counts)
			same(t, "phase", []string{view.Phase, core.Phase(func(s core.Status) bool { return has[s] })}, []string{phase, phase})
			total := 0
			for _, n := range view.Counts {
				total += n
			}
			same(t, "total", []int{total, len(flow.Members)}, []int{view.Nodes, view.Nodes})
			joins := view.Joins["pending"] + view.Joins["satisfied"] + view.Joins["impossible"]
			same(t, "joins", joins, 2)
		}
		check("running")
		w.complete(task)
		check("running") // one is granted
		for _, name := range []string{"granted", "ready", "delayed", "retrying", "blocked"} {
			w.cancel(flow.Members[name].Given())
		}
		check("suspended")
		w.cancel(flow.Members["suspended"].Given())
		same(t, "state", w.flow(flow).State, core.FlowFailed)
		counts, _ := w.recount(flow)
		same(t, "counts", w.flow(flow).Counts, counts)
	})
}

func TestF60_the_graph_comes_in_pages_by_name(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("b", "a", "d", "c", "e")
		s.Nodes[2].MayFail = true
		flow := w.submitFlow(s)
		w.run(flow, "b")
		whole := must(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), "", 0))(t)
		same(t, "whole", []any{len(whole.Members), len(whole.Edges), whole.Next, whole.Flow.Revision}, []any{5, 4, "", int64(1)})
		var names, edges []string
		for after, pages := "", 0; ; pages++ {
			page := must(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), after, 2))(t)
			for _, m := range page.Members {
				names = append(names, fmt.Sprintf("%s %s %s %t", m.Execution.Member.Name, m.Execution.Status, m.Join.State, m.Execution.Member.MayFail))
			}
			for _, e := range page.Edges {
				edges = append(edges, fmt.Sprintf("%s-%s %s", e.From.Name, e.To.Name, e.State))
			}
			if after = page.Next; after == "" {
				same(t, "pages", pages, 2)
				break
			}
		}
		same(t, "members", names, []string{"a ready satisfied false", "b succeeded  false", "c blocked pending false", "d blocked pending true", "e blocked pending false"})
		same(t, "edges", edges, []string{"a-d pending", "b-a satisfied", "c-e pending", "d-c pending"})
		_, err := w.e.Graph(w.ctx(), engine.Caller{Principal: "x", Actor: "client", Namespaces: []string{"other"}}, flow.Flow.ID.Given(), "", 0)
		refused(t, err, base.CodeFlowNotFound)
	})
}

// membersIn lists the names of members in a state, page by page.
func (w *world) membersIn(of engine.FlowAnswer, state string, limit int) (names []string) {
	w.t.Helper()
	for after := ""; ; {
		page := must(w.e.FlowMembers(w.ctx(), client, of.Flow.ID.Given(), state, after, limit))(w.t)
		for _, m := range page.Members {
			names = append(names, m.Execution.Member.Name)
		}
		if after = page.Next; after == "" {
			return names
		}
	}
}

// edgesBy lists edges, page by page.
func (w *world) edgesBy(of engine.FlowAnswer, q engine.EdgeQuery) (edges []string) {
	w.t.Helper()
	for {
		page := must(w.e.FlowEdges(w.ctx(), client, of.Flow.ID.Given(), q))(w.t)
		for _, e := range page.Edges {
			edges = append(edges, e.From.Name+"-"+e.To.Name)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			slices.Sort(edges)
			return edges
		}
	}
}

func TestF60_members_by_state_edges_by_end_and_the_view_of_a_join(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "grid", Nodes: nodesNamed("a", "b", "c")}
		ends := []string{"x", "y", "z"}
		var all []string
		for _, to := range ends {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: to, Kind: to, After: []string{"a", "b", "c"}})
			all = append(all, "a-"+to, "b-"+to, "c-"+to)
		}
		slices.Sort(all)
		flow := w.submitFlow(s)
		w.workOff("b", 1, succeeds)
		for limit := 1; limit <= 10; limit++ {
			same(t, "all", w.edgesBy(flow, engine.EdgeQuery{Limit: limit}), all)
			same(t, "from", w.edgesBy(flow, engine.EdgeQuery{From: "b", Limit: limit}), []string{"b-x", "b-y", "b-z"})
			same(t, "to", w.edgesBy(flow, engine.EdgeQuery{To: flow.Members["y"].String(), Limit: limit}), []string{"a-y", "b-y", "c-y"})
			same(t, "both", w.edgesBy(flow, engine.EdgeQuery{From: "c", To: "y", Limit: limit}), []string{"c-y"})
			same(t, "waiting", w.membersIn(flow, "waiting", limit), []string{"a", "c"})
			same(t, "completed", w.membersIn(flow, "completed", limit), []string{"b"})
			same(t, "members", w.membersIn(flow, "", limit), []string{"a", "b", "c", "x", "y", "z"})
		}
		_, err := w.e.FlowMembers(w.ctx(), client, flow.Flow.ID.Given(), "sleeping", "", 0)
		refused(t, err, base.CodeInvalidArgument)
		for _, err := range []error{
			second(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), "a", 0)), second(w.e.FlowMembers(w.ctx(), client, flow.Flow.ID.Given(), "", "a", 0)),
			second(w.e.FlowEdges(w.ctx(), client, flow.Flow.ID.Given(), engine.EdgeQuery{Cursor: "a"})),
		} {
			refused(t, err, base.CodeInvalidCursor)
		}
		_, err = w.e.FlowEdges(w.ctx(), client, flow.Flow.ID.Given(), engine.EdgeQuery{From: "missing"})
		refused(t, err, base.CodeExecutionNotInFlow)

		join := must(w.e.Join(w.ctx(), client, flow.Flow.ID.Given(), "y"))(t)
		same(t, "join", []any{join.N, join.Satisfied, join.Impossible, join.State}, []any{3, 1, 0, core.JoinPending})
		same(t, "undecided", []string{join.Waiting[0].Name, join.Waiting[1].Name}, []string{"a", "c"})

		edges := must(w.e.FlowEdges(w.ctx(), client, flow.Flow.ID.Given(), engine.EdgeQuery{From: "b", To: "x"}))(t).Edges
		edge := must(w.e.FlowEdge(w.ctx(), client, flow.Flow.ID.Given(), edges[0].ID))(t)
		same(t, "edge", []any{edge.State, edge.End.Status, edge.Kind, edge.Pass}, []any{core.EdgeSatisfied, core.Succeeded, core.SuccessOnly, "b"})
		_, err = w.e.FlowEdge(w.ctx(), client, flow.Flow.ID.Given(), base.UUID{1})
		refused(t, err, base.CodeEdgeNotFound)
	})
}

// flowsBy lists flows, page by page, by their kinds.
func (w *world) flowsBy(q engine.FlowQuery) (kinds []string) {
	w.t.Helper()
	for {
		page := must(w.e.Flows(w.ctx(), client, q))(w.t)
		for _, f := range page.Flows {
			kinds = append(kinds, f.Kind)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return kinds
		}
	}
}

func TestF60_flows_are_listed_newest_first_by_every_filter(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		begun := w.now()
		for i := range 6 {
			s := core.FlowSubmission{Kind: fmt.Sprint("k", i), Tags: base.Tags{"parity": fmt.Sprint(i % 2)}, Unsealed: i < 2}
			if i == 5 {
				s.Namespace = "other"
			}
			w.submitFlow(s)
			w.turn(10)
		}
		for limit := 1; limit <= 7; limit++ {
			list := func(q engine.FlowQuery) []string {
				q.Limit = limit
				return w.flowsBy(q)
			}
			same(t, "all", list(engine.FlowQuery{}), []string{"k4", "k3", "k2", "k1", "k0", "k5"})
			same(t, "of a namespace", list(engine.FlowQuery{Namespaces: []string{"other"}}), []string{"k5"})
			same(t, "of two", list(engine.FlowQuery{Namespaces: []string{"other", "default"}}), []string{"k4", "k3", "k2", "k1", "k0", "k5"})
			same(t, "kind", list(engine.FlowQuery{Kind: "k3"}), []string{"k3"})
			same(t, "state", list(engine.FlowQuery{State: "open"}), []string{"k1", "k0"})
			same(t, "tag", list(engine.FlowQuery{Tags: map[string]string{"parity": "1"}}), []string{"k3", "k1", "k5"})
			same(t, "range", list(engine.FlowQuery{CreatedFrom: begun.Add(10), CreatedTo: begun.Add(30)}), []string{"k2", "k1"})
			same(t, "range in a namespace", list(engine.FlowQuery{Namespaces: []string{"default"}, CreatedFrom: begun.Add(10), CreatedTo: begun.Add(30)}), []string{"k2", "k1"})
		}
		_, err := w.e.Flows(w.ctx(), client, engine.FlowQuery{State: "sleeping"})
		refused(t, err, base.CodeInvalidArgument)
		_, err = w.e.Flows(w.ctx(), client, engine.FlowQuery{Cursor: "nonsense"})
		refused(t, err, base.CodeInvalidCursor)
		narrow := engine.Caller{Principal: "x", Actor: "client", Namespaces: []string{"other"}}
		same(t, "what a caller may see", len(must(w.e.Flows(w.ctx(), narrow, engine.FlowQuery{}))(t).Flows), 1)
		same(t, "and may not", len(must(w.e.Flows(w.ctx(), narrow, engine.FlowQuery{Namespaces: []string{"default"}}))(t).Flows), 0)
	})
}

func TestF61_a_wait_ends_with_the_flow_and_tags_change(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(chain("a"))
		task := w.claimMember(flow, "a")
		early := must(w.e.WaitFlow(w.ctx(), client, flow.Flow.ID.Given(), time.Millisecond))(t)
		same(t, "time is over", []any{early.State, early.Phase}, []any{core.FlowOpen, "running"})
		ended := make(chan core.FlowState, 1)
		go func() {
			view, err := w.e.WaitFlow(w.ctx(), client, flow.Flow.ID.Given(), patience)
			if err != nil {
				t.Errorf("refused: %v", err)
				ended <- ""
				return
			}
			ended <- view.State
		}()
		w.complete(task)
		same(t, "ended", <-ended, core.FlowCompleted)
		_, err := w.e.WaitFlow(w.ctx(), client, base.IDOf(base.UUID{3}).Given(), time.Millisecond)
		refused(t, err, base.CodeFlowNotFound)

		id := flow.Flow.ID.Given()
		same(t, "set", must(w.e.SetFlowTags(w.ctx(), client, id, map[string]*string{"a": ptr("1"), "b": ptr("2")}, false))(t), base.Tags{"a": "1", "b": "2"})
		same(t, "changed", must(w.e.SetFlowTags(w.ctx(), client, id, map[string]*string{"a": nil, "c": ptr("3")}, false))(t), base.Tags{"b": "2", "c": "3"})
		same(t, "replaced", must(w.e.SetFlowTags(w.ctx(), client, id, map[string]*string{"d": ptr("4")}, true))(t), base.Tags{"d": "4"})
		same(t, "kept", w.flow(flow).Tags, base.Tags{"d": "4"})
		_, err = w.e.SetFlowTags(w.ctx(), client, id, map[string]*string{"no tag": ptr("4")}, false)
		refused(t, err, base.CodeInvalidTagKey)
	})
}
