package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// part is work that joins what it got, and fails when its input says so.
const part flowfabric.Kind[string, string] = "part"

// parts runs a worker for them: the result is the input and what came from others, by name.
func (w *world) parts(t *testing.T) (stop func()) {
	t.Helper()
	_, stop = w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, part, func(_ context.Context, task *flowfabric.Task, in string) (string, error) {
			if in == "fail" {
				return "", flowfabric.Permanent(errors.New("it was told to"))
			}
			for _, input := range task.Inputs() {
				text, err := flowfabric.InputFrom[string](task, input.Name)
				if err != nil && !input.Present {
					text = string(input.Outcome)
				} else if err != nil {
					return "", err
				}
				in += "," + input.Name + "=" + text
			}
			return in, nil
		})
	})
	return stop
}

// flow submits a graph.
func (w *world) flow(t testing.TB, f flowfabric.Flow) *flowfabric.FlowRun {
	t.Helper()
	return must[*flowfabric.FlowRun](t)(w.Flows().Submit(inTime(t), f))
}

// result is the result of a member.
func (w *world) result(t testing.TB, run *flowfabric.FlowRun, name string) string {
	t.Helper()
	return string(must[flowfabric.Payload](t)(w.Executions().Result(inTime(t), run.Members[name])).Data)
}

// diamond is a graph of four.
func diamond() flowfabric.Flow {
	return flowfabric.Flow{Kind: "diamond", Nodes: []flowfabric.Node{
		part.Node("a", "A"), part.Node("b", "B").After("a"), part.Node("c", "C").After("a").PassAs("a", "first"), part.Node("d", "D").After("b", "c"),
	}, Output: "d", Tags: map[string]string{"team": "blue"}}
}

func TestU150_a_flow_in_one_call_passes_results_along_its_edges(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.flow(t, diamond())
		if !run.Created || run.State != flowfabric.FlowOpen || !run.Sealed || run.Revision != 1 || run.Nodes != 4 || run.Edges != 4 || len(run.Members) != 4 || run.RootID != run.ID || run.Creator != w.who {
			t.Errorf("%+v", run)
		}
		before := must[*flowfabric.FlowView](t)(w.Flows().Get(ctx, run.ID))
		if before.Phase != "waiting" || before.Counts["waiting"] != 1 || before.Counts["waiting_children"] != 3 || before.Joins["pending"] != 3 {
			t.Errorf("%+v", before)
		}
		blocked := must[*flowfabric.Execution](t)(w.Get(ctx, run.Members["d"]))
		if blocked.FlowID != run.ID || blocked.RootFlowID != run.ID || blocked.Name != "d" || blocked.Status != flowfabric.StatusBlocked || blocked.Reason != "waiting_for_children" ||
			blocked.Join == nil || blocked.Join.N != 2 || blocked.Join.State != "pending" {
			t.Errorf("%+v", blocked)
		}
		w.parts(t)
		ended := must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		if ended.State != flowfabric.FlowCompleted || ended.EndedAt.IsZero() || ended.Counts["completed"] != 4 || ended.Joins["satisfied"] != 3 || ended.Phase != "" {
			t.Errorf("%+v", ended)
		}
		whole := must[*flowfabric.Execution](t)(w.Get(ctx, run.Members["d"]))
		if len(whole.Inputs) != 2 || whole.Inputs[0].Name != "b" || whole.Inputs[0].FromID != run.Members["b"] || !whole.Inputs[0].Present || whole.Inputs[0].Result.Size() != len("B,a=A") || !whole.Inputs[0].Result.Omitted() {
			t.Errorf("%+v", whole.Inputs)
		}
		if got := w.result(t, run, "d"); got != "D,b=B,a=A,c=C,first=A" {
			t.Errorf("d left %q", got)
		}
		if got := must[flowfabric.Payload](t)(w.Executions().NamedInput(ctx, run.Members["c"], "first")); string(got.Data) != "A" || got.ContentType != "text/plain; charset=utf-8" {
			t.Errorf("%+v", got)
		}
		refusedWith(t, "input_not_found")(w.Executions().NamedInput(ctx, run.Members["c"], "a"))
	})
}

func TestF11_the_same_flow_again_is_the_one_that_there_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		keyed := diamond()
		keyed.IdempotencyKey = "release-4.2"
		first, again := w.flow(t, keyed), w.flow(t, keyed)
		if !first.Created || again.Created || again.ID != first.ID || !maps.Equal(again.Members, first.Members) {
			t.Errorf("%+v\n%+v", first, again)
		}
		keyed.Nodes = keyed.Nodes[:1]
		keyed.Output = ""
		refusedWith(t, "idempotency_conflict")(w.Flows().Submit(ctx, keyed))
		named := diamond()
		named.ID = "0198f0a0-0000-7000-8000-000000000017"
		if one, two := w.flow(t, named), w.flow(t, named); !one.Created || two.Created || one.ID != two.ID || !strings.HasSuffix(string(one.ID), string(named.ID)) {
			t.Errorf("%+v\n%+v", one, two)
		}
		named.Kind = "other"
		refusedWith(t, "flow_already_exists")(w.Flows().Submit(ctx, named))
	})
}

func TestU89_a_dry_run_checks_all_and_writes_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		order := must[[]string](t)(w.Flows().Check(ctx, diamond()))
		if slices.Index(order, "a") != 0 || slices.Index(order, "d") != 3 || len(order) != 4 {
			t.Errorf("%q", order)
		}
		cyclic := diamond()
		cyclic.Edges = []flowfabric.Edge{{From: "d", To: "b"}}
		_, err := w.Flows().Check(ctx, cyclic)
		if flowfabric.CodeOf(err) != "cycle_detected" {
			t.Errorf("%v", err)
		}
		bad := diamond()
		bad.Nodes[2].Lane = "no such name of a lane"
		if _, err := w.Flows().Submit(ctx, bad); flowfabric.CodeOf(err) != "invalid_argument" || !hasPlace(err, "nodes[2].lane") {
			t.Errorf("%v", err)
		}
		for flow, err := range w.Flows().List(ctx) {
			t.Errorf("%+v %v", flow, err)
		}
		if n := must[api.Count](t)(w.Executions().Count(ctx, ops.Filter{})); n.Total != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// hasPlace reports whether the error names this place, as a path or as a JSON pointer.
func hasPlace(err error, place string) bool {
	var refusal *flowfabric.Error
	return errors.As(err, &refusal) && (refusal.Field == place || refusal.Field == "/"+strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(place))
}

func TestF14_a_flow_grows_and_is_sealed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := must[*flowfabric.FlowRun](t)(w.Flows().Create(ctx, flowfabric.Flow{Kind: "growing", Tags: map[string]string{"a": "b"}}))
		if !run.Created || run.Sealed || run.Revision != 0 || run.Nodes != 0 || run.Tags["a"] != "b" {
			t.Errorf("%+v", run)
		}
		refusedWith(t, "invalid_flow")(w.Flows().Create(ctx, diamond()))
		zero := int64(0)
		first := flowfabric.FlowExtension{Nodes: []flowfabric.Node{part.Node("a", "A"), part.Node("b", "B").After("a")}, Revision: &zero}
		grown := must[*flowfabric.FlowRun](t)(w.Flows().Extend(ctx, run.ID, first))
		if !grown.Created || grown.Revision != 1 || grown.Nodes != 2 || grown.Edges != 1 || len(grown.Members) != 2 {
			t.Errorf("%+v", grown)
		}
		refusedWith(t, "stale_graph_revision")(w.Flows().Extend(ctx, run.ID, first))
		first.Revision = nil
		if same := must[*flowfabric.FlowRun](t)(w.Flows().Extend(ctx, run.ID, first)); same.Created || same.Revision != 1 || same.Members["a"] != grown.Members["a"] {
			t.Errorf("%+v", same)
		}
		more := flowfabric.FlowExtension{Nodes: []flowfabric.Node{part.Node("c", "C")}, Edges: []flowfabric.Edge{{From: "b", To: "c", Kind: flowfabric.OnEnd}}}
		must[*flowfabric.FlowRun](t)(w.Flows().Extend(ctx, run.ID, more))
		if sealed := must[*flowfabric.FlowRun](t)(w.Flows().Seal(ctx, run.ID)); !sealed.Sealed || !sealed.Created {
			t.Errorf("%+v", sealed)
		}
		if again := must[*flowfabric.FlowRun](t)(w.Flows().Seal(ctx, run.ID)); !again.Sealed || again.Created {
			t.Errorf("%+v", again)
		}
		refusedWith(t, "flow_sealed")(w.Flows().Extend(ctx, run.ID, flowfabric.FlowExtension{Nodes: []flowfabric.Node{part.Node("z", "Z")}}))
		w.parts(t)
		if ended := must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID)); ended.State != flowfabric.FlowCompleted || ended.Revision < 2 {
			t.Errorf("%+v", ended)
		}
		refusedWith(t, "flow_already_terminal")(w.Flows().Extend(ctx, run.ID, more))
	})
}

func TestF18_a_join_is_set_before_the_first_edge_and_fixed_by_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.flow(t, flowfabric.Flow{Kind: "k", Unsealed: true, Nodes: []flowfabric.Node{
			part.Node("a", "A", flowfabric.SubmitOptions{Delay: time.Hour}), part.Node("b", "B", flowfabric.SubmitOptions{Delay: time.Hour}),
			part.Node("c", "C", flowfabric.SubmitOptions{Delay: time.Hour}),
		}})
		any := flowfabric.Join{Policy: flowfabric.JoinAny, CancelRemaining: true}
		if set := must[*api.JoinView](t)(w.Flows().SetJoin(ctx, run.ID, "c", any)); !set.Changed || set.Join != any || set.State != "" {
			t.Errorf("%+v", set)
		}
		if same := must[*api.JoinView](t)(w.Flows().SetJoin(ctx, run.ID, "c", any)); same.Changed {
			t.Errorf("%+v", same)
		}
		refusedWith(t, "invalid_join")(w.Flows().SetJoin(ctx, run.ID, "c", flowfabric.Join{Policy: flowfabric.JoinQuorum}))
		refusedWith(t, "execution_not_in_flow")(w.Flows().SetJoin(ctx, run.ID, "z", any))
		must[*flowfabric.FlowRun](t)(w.Flows().Extend(ctx, run.ID, flowfabric.FlowExtension{Edges: []flowfabric.Edge{{From: "a", To: "c"}, {From: "b", To: "c"}}}))
		refusedWith(t, "join_already_fixed")(w.Flows().SetJoin(ctx, run.ID, "c", flowfabric.Join{}))
		join := must[*api.JoinView](t)(w.Flows().Join(ctx, run.ID, "c"))
		if join.Join != any || join.N != 2 || join.State != "pending" || len(join.Waiting) != 2 || join.Waiting[0].Name != "a" || join.Waiting[0].ID != run.Members["a"] {
			t.Errorf("%+v", join)
		}
	})
}

func TestU91_a_flow_is_read_by_graph_members_edges_and_lists(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.flow(t, diamond())
		graph := must[*api.FlowGraph](t)(w.Flows().Graph(ctx, run.ID))
		if graph.Flow.ID != run.ID || len(graph.Members) != 4 || len(graph.Edges) != 4 || graph.NextCursor != "" || graph.Members[0].Name != "a" || graph.Members[3].Join.N != 2 || graph.Members[0].Join != nil {
			t.Errorf("%+v", graph)
		}
		half := must[*api.FlowGraph](t)(w.Flows().GraphPage(ctx, run.ID, flowfabric.PageOptions{Limit: 3}))
		rest := must[*api.FlowGraph](t)(w.Flows().GraphPage(ctx, run.ID, flowfabric.PageOptions{Cursor: half.NextCursor}))
		if len(half.Members) != 3 || len(rest.Members) != 1 || len(half.Edges)+len(rest.Edges) != 4 {
			t.Errorf("%+v\n%+v", half, rest)
		}
		w.parts(t)
		must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		var names []string
		for m, err := range w.Flows().Members(ctx, run.ID, flowfabric.MemberQuery{State: "completed", PageOptions: flowfabric.PageOptions{Limit: 3}}) {
			names = append(names, m.Name)
			if err != nil || m.ID != run.Members[m.Name] || m.Kind != "part" || m.Status != flowfabric.StatusSucceeded || m.StartedAt.IsZero() || m.EndedAt.IsZero() {
				t.Errorf("%+v %v", m, err)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c", "d"}) {
			t.Errorf("%q", names)
		}
		if none := must[flowfabric.Page[api.FlowMember]](t)(w.Flows().MembersPage(ctx, run.ID, flowfabric.MemberQuery{State: "failed"})); len(none.Items) != 0 {
			t.Errorf("%+v", none)
		}
		into := must[flowfabric.Page[api.EdgeView]](t)(w.Flows().EdgesPage(ctx, run.ID, flowfabric.EdgeQuery{To: "d"}))
		if len(into.Items) != 2 || into.Items[0].From != "b" || into.Items[0].ToID != run.Members["d"] || into.Items[0].State != "satisfied" || into.Items[0].Outcome != flowfabric.StatusSucceeded || into.Items[0].Pass != "b" {
			t.Errorf("%+v", into)
		}
		if edge := must[*api.EdgeView](t)(w.Flows().Edge(ctx, run.ID, into.Items[1].ID)); *edge != into.Items[1] {
			t.Errorf("%+v, not %+v", edge, into.Items[1])
		}
		refusedWith(t, "edge_not_found")(w.Flows().Edge(ctx, run.ID, "0198f0a0-0000-7000-8000-000000000017"))
		refusedWith(t, "invalid_id")(w.Flows().Edge(ctx, run.ID, "x"))
		refusedWith(t, "flow_not_found")(w.Flows().Get(ctx, "0198f0a0-0000-7000-8000-000000000017"))
		usage := must[map[string]int64](t)(w.Flows().Usage(ctx, run.ID))
		if _, timed := usage["wall_ms"]; !timed {
			t.Errorf("%+v", usage)
		}
	})
}

func TestF60_flows_are_listed_newest_first_and_by_what_they_are(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var made []flowfabric.ID
		for i := range 5 {
			f := diamond()
			f.Kind, f.Tags = fmt.Sprintf("kind-%d", i%2), map[string]string{"n": fmt.Sprint(i)}
			made = append(made, w.flow(t, f).ID)
		}
		list := func(q flowfabric.FlowQuery) (found []flowfabric.ID) {
			for flow, err := range w.Flows().List(ctx, q) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, flow.ID)
			}
			return found
		}
		all := list(flowfabric.FlowQuery{PageOptions: flowfabric.PageOptions{Limit: 2}})
		if slices.Sort(made); len(all) != 5 || !slices.Equal(slices.Sorted(slices.Values(all)), made) {
			t.Errorf("%v of %v", all, made)
		}
		for name, c := range map[string]struct {
			query flowfabric.FlowQuery
			want  int
		}{
			"a kind":       {flowfabric.FlowQuery{Kind: "kind-1"}, 2},
			"a state":      {flowfabric.FlowQuery{State: flowfabric.FlowOpen}, 5},
			"no such":      {flowfabric.FlowQuery{State: flowfabric.FlowFailed}, 0},
			"a tag":        {flowfabric.FlowQuery{Tags: map[string]string{"n": "3"}}, 1},
			"a principal":  {flowfabric.FlowQuery{Creator: w.who}, 5},
			"another":      {flowfabric.FlowQuery{Creator: "missing"}, 0},
			"from then on": {flowfabric.FlowQuery{CreatedFrom: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}, 5},
			"before":       {flowfabric.FlowQuery{CreatedTo: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}, 0},
		} {
			if got := list(c.query); len(got) != c.want {
				t.Errorf("%s: %d flows, want %d", name, len(got), c.want)
			}
		}
		refusedWith(t, "invalid_argument")(w.Flows().Page(ctx, flowfabric.FlowQuery{State: "odd"}))
		refusedWith(t, "invalid_cursor")(w.Flows().Page(ctx, flowfabric.FlowQuery{PageOptions: flowfabric.PageOptions{Cursor: "odd"}}))
	})
}

func TestU94_tags_of_a_flow_are_merged_or_replaced(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.flow(t, diamond())
		red := "red"
		if tags := must[map[string]string](t)(w.Flows().SetTags(ctx, run.ID, map[string]*string{"team": nil, "colour": &red})); !maps.Equal(tags, map[string]string{"colour": "red"}) {
			t.Errorf("%v", tags)
		}
		if tags := must[map[string]string](t)(w.Flows().ReplaceTags(ctx, run.ID, map[string]string{"team": "green"})); !maps.Equal(tags, map[string]string{"team": "green"}) {
			t.Errorf("%v", tags)
		}
		if shown := must[*flowfabric.FlowView](t)(w.Flows().Get(ctx, run.ID)); !maps.Equal(shown.Tags, map[string]string{"team": "green"}) {
			t.Errorf("%v", shown.Tags)
		}
		refusedWith(t, "invalid_tag_key")(w.Flows().ReplaceTags(ctx, run.ID, map[string]string{"": "x"}))
	})
}

func TestU93_a_flow_is_cancelled_with_its_members_and_told_how_far(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.flow(t, diamond())
		told := 0
		progress := must[api.FlowCancelProgress](t)(w.Flows().Cancel(ctx, run.ID, flowfabric.FlowCancel{
			Reason: "wrong version", Wait: 20 * time.Second, Progress: func(api.FlowCancelProgress) { told++ },
		}))
		if progress.State != flowfabric.FlowCancelled || progress.Policy != flowfabric.CancelAll || progress.Reason != "wrong version" || progress.Cancelled != 4 || progress.Remaining != 0 || progress.AlreadyTerminal {
			t.Errorf("%+v", progress)
		}
		shown := must[*flowfabric.FlowView](t)(w.Flows().Get(ctx, run.ID))
		if shown.Cancelled == nil || shown.Cancelled.By != w.who || shown.Cancelled.Policy != flowfabric.CancelAll || shown.Counts["cancelled"] != 4 {
			t.Errorf("%+v", shown)
		}
		again := must[api.FlowCancelProgress](t)(w.Flows().Cancel(ctx, run.ID, flowfabric.FlowCancel{Policy: flowfabric.CancelFlowOnly, Reason: "other"}))
		if again.Reason != "wrong version" || again.Policy != flowfabric.CancelAll || again.Cancelled != 4 {
			t.Errorf("%+v", again)
		}
		refusedWith(t, "flow_not_found")(w.Flows().Cancel(ctx, "0198f0a0-0000-7000-8000-000000000017", flowfabric.FlowCancel{Reason: "r"}))
		w.parts(t)
		done := w.flow(t, diamond())
		must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, done.ID))
		late := must[api.FlowCancelProgress](t)(w.Flows().Cancel(ctx, done.ID, flowfabric.FlowCancel{Reason: "late"}))
		if !late.AlreadyTerminal || late.State != flowfabric.FlowCompleted || late.Remaining != 0 {
			t.Errorf("%+v", late)
		}
	})
}

func TestU46_a_replay_of_a_member_takes_the_skipped_along(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.parts(t)
		run := w.flow(t, flowfabric.Flow{Kind: "k", Nodes: []flowfabric.Node{
			part.Node("a", "fail"), part.Node("b", "B").After("a"), part.Node("c", "C").After("b"), part.Node("alarm", "!").AfterFailure("a").MayFail(),
		}})
		failed := must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		if failed.Counts["skipped"] != 2 || failed.Counts["failed"] != 1 || w.result(t, run, "alarm") != "!,a=failed" {
			t.Errorf("%+v", failed)
		}
		_, err := w.Operate().Replay(ctx, run.Members["b"])
		if flowfabric.CodeOf(err) != "dependencies_impossible" {
			t.Errorf("%v", err)
		}
		b := must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.Members["b"], ops.ReplayOptions{IgnoreDependencies: true, Cascade: ops.CascadeSkipped}))
		if b.RunIndex != 1 {
			t.Errorf("%+v", b)
		}
		if b = must[*flowfabric.Execution](t)(w.Get(ctx, b.ID)); b.Join == nil || b.Join.State != "overridden" {
			t.Errorf("%+v", b.Join)
		}
		must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		if got := w.result(t, run, "c"); got != "C,b=B" {
			t.Errorf("%q", got)
		}
		_, err = w.Operate().Replay(ctx, run.Members["a"], ops.ReplayOptions{Cascade: "most"})
		if flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("%v", err)
		}
	})
}

func TestF46_a_node_may_be_a_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.parts(t)
		run := w.flow(t, flowfabric.Flow{Kind: "outer", Nodes: []flowfabric.Node{
			part.Node("a", "A"),
			flowfabric.SubFlow("inner", flowfabric.Flow{Nodes: []flowfabric.Node{part.Node("x", "X"), part.Node("y", "Y").After("x")}, Output: "y"}).After("a"),
			part.Node("z", "Z").After("inner"),
		}})
		ended := must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		if got := w.result(t, run, "z"); ended.State != flowfabric.FlowCompleted || got != "Z,inner=Y,x=X,a=A" {
			t.Errorf("%+v %q", ended, got)
		}
		member := must[flowfabric.Page[api.FlowMember]](t)(w.Flows().MembersPage(ctx, run.ID)).Items[1]
		if member.Name != "inner" || !member.SubFlow {
			t.Errorf("%+v", member)
		}
	})
}
