package engine_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// emptyFlow makes a flow that is not sealed.
func (w *world) emptyFlow() engine.FlowAnswer {
	w.t.Helper()
	return must(w.e.CreateFlow(w.ctx(), client, core.FlowSubmission{Kind: "grown"}))(w.t)
}

// extendErr is the refusal of an extension, which changes nothing of the graph.
func (w *world) extendErr(of engine.FlowAnswer, x core.FlowExtension, code base.Code) *base.Error {
	w.t.Helper()
	before := w.flow(of)
	x.Flow = of.Flow.ID.Given()
	_, err := w.e.ExtendFlow(w.ctx(), client, x)
	refusal := refused(w.t, err, code)
	after := w.flow(of)
	same(w.t, "the graph", []any{after.Revision, after.Nodes, after.Edges, after.Sealed}, []any{before.Revision, before.Nodes, before.Edges, before.Sealed})
	return refusal
}

func nodesNamed(names ...string) (nodes []core.FlowNode) {
	for _, name := range names {
		nodes = append(nodes, core.FlowNode{Name: name, Kind: name})
	}
	return nodes
}

func TestF15_the_checks_of_an_extension_come_in_their_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		bad := core.FlowExtension{Expected: ptr(int64(7)), Nodes: []core.FlowNode{{Name: "a", Kind: "k", Lane: "no lane"}}}
		_, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: base.IDOf(base.UUID{9}).Given(), Nodes: bad.Nodes})
		refused(t, err, base.CodeFlowNotFound)
		_, err = w.e.ExtendFlow(w.ctx(), engine.Caller{Principal: "x", Actor: "client", Namespaces: []string{"other"}}, core.FlowExtension{Flow: flow.Flow.ID.Given(), Nodes: nodesNamed("a")})
		refused(t, err, base.CodeFlowNotFound)
		stale := w.extendErr(flow, bad, base.CodeStaleGraphRevision)
		same(t, "current", stale.Details["graph_revision"], any(int64(0)))
		bad.Expected = ptr(int64(0))
		w.extendErr(flow, bad, base.CodeInvalidArgument)
		made := w.extend(flow, core.FlowExtension{Expected: ptr(int64(0)), Nodes: nodesNamed("a", "b"), Edges: []core.FlowEdge{{From: "a", To: "b"}}})
		same(t, "revision", []any{made.Flow.Revision, made.Created}, []any{int64(1), true})
		again := w.extend(flow, core.FlowExtension{Nodes: nodesNamed("a", "b"), Edges: []core.FlowEdge{{From: "a", To: "b"}}})
		same(t, "nothing new", []any{again.Flow.Revision, again.Created, again.Members}, []any{int64(1), false, made.Members})
		w.extendErr(flow, core.FlowExtension{Nodes: []core.FlowNode{{Name: "a", Kind: "other"}}}, base.CodeNameTaken)
		w.extendErr(flow, core.FlowExtension{Nodes: []core.FlowNode{{Name: "a", Kind: "a", MayFail: true}}}, base.CodeNameTaken)
		sealed := w.extend(flow, core.FlowExtension{Seal: true})
		same(t, "sealed", []any{sealed.Flow.Sealed, sealed.Flow.Revision, sealed.Created}, []any{true, int64(2), true})
		twice := w.extend(flow, core.FlowExtension{Seal: true})
		same(t, "twice", []any{twice.Flow.Revision, twice.Created}, []any{int64(2), false})
		w.extendErr(flow, core.FlowExtension{Expected: ptr(int64(1)), Nodes: nodesNamed("c")}, base.CodeFlowSealed)
		w.workOff("a", 1, succeeds)
		w.workOff("b", 1, succeeds)
		w.extendErr(flow, core.FlowExtension{Expected: ptr(int64(1)), Nodes: nodesNamed("c")}, base.CodeFlowAlreadyTerminal)
		same(t, "events", w.flowStory(flow), []string{"flow.created", "flow.extended", "flow.sealed", "flow.completed"})
	})
}

func TestF17_of_sixteen_writers_with_one_revision_one_wins(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		engines := []*engine.Engine{w.e, w.another1()}
		for round := range int64(3) {
			var won, stale atomic.Int64
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					_, err := engines[i%2].ExtendFlow(w.ctx(), client, core.FlowExtension{
						Flow: flow.Flow.ID.Given(), Expected: &round, Nodes: nodesNamed(fmt.Sprintf("n%d-%d", round, i)),
					})
					switch base.CodeOf(err) {
					case "":
						won.Add(1)
					case base.CodeStaleGraphRevision:
						stale.Add(1)
					default:
						t.Errorf("refused: %v", err)
					}
				})
			}
			wg.Wait()
			same(t, "who won", []int64{won.Load(), stale.Load()}, []int64{1, 15})
			same(t, "graph", []any{w.flow(flow).Revision, w.flow(flow).Nodes}, []any{round + 1, int(round) + 1})
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, err := engines[i%2].ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: flow.Flow.ID.Given(), Nodes: nodesNamed(fmt.Sprint("free", i))}); err != nil {
					t.Errorf("refused: %v", err)
				}
			})
		}
		wg.Wait()
		same(t, "who expects nothing wins in turn", []any{w.flow(flow).Revision, w.flow(flow).Nodes}, []any{int64(19), 19})
	})
}

func TestF2_F16_executions_that_are_there_become_members(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow, other := w.emptyFlow(), w.emptyFlow()
		there := func(n uint8) base.GivenID {
			return w.submit(core.Submission{Kind: "old", ID: &base.GivenID{Full: true, N: n, UUID: drawUUID()}})
		}
		member := func(id base.GivenID, name string) core.FlowExtension {
			return core.FlowExtension{Members: []core.FlowMember{{ID: id, Name: name}}}
		}
		n := flow.Flow.ID.N
		unknown := base.ID{N: n, UUID: drawUUID()}.Given()
		w.extendErr(flow, member(unknown, "m"), base.CodeExecutionNotFound)
		w.extendErr(flow, member(there(n+1), "m"), base.CodePartitionMismatch)
		m := there(n)
		added := w.extend(flow, member(m, "m"))
		same(t, "added", []any{added.Flow.Revision, added.Created, added.Members["m"]}, []any{int64(1), true, m.ID()})
		same(t, "again", w.extend(flow, member(m, "m")).Created, false)
		w.extendErr(flow, member(m, "k"), base.CodeExecutionAlreadyInFlow)
		w.extendErr(flow, member(there(n), "m"), base.CodeNameTaken)
		if other.Flow.ID.N == n {
			w.extendErr(other, member(m, "m"), base.CodeExecutionAlreadyInFlow)
		}
		x := w.get(m)
		same(t, "the member knows", []any{x.FlowID, x.Member.Name, x.RootFlowID()}, []any{flow.Flow.ID, "m", flow.Flow.ID})
		grown := w.extend(flow, core.FlowExtension{Nodes: []core.FlowNode{{Name: "d", Kind: "down", After: []string{"m"}}}, Seal: true})
		same(t, "d waits", w.member(grown, "d").Status, core.Blocked)
		w.complete(w.takeKind("old", 3)[0])
		eventually(t, "somebody runs d", func() bool { return w.member(grown, "d").Status == core.Ready || w.get(m).Status != core.Succeeded })
	})
}

// drawUUID makes an id.
func drawUUID() base.UUID {
	id := base.UUID{0: 1, 6: 0x70, 8: 0x80}
	_, _ = rand.Read(id[9:])
	return id
}

func TestF4_F5_an_execution_that_has_failed_before_it_became_a_member_counts(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		id := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "old", ID: &id})
		w.workOff("old", 1, fails)
		w.extend(flow, core.FlowExtension{Members: []core.FlowMember{{ID: id, Name: "m"}}, Seal: true})
		view := w.flow(flow)
		same(t, "failed", []any{view.State, view.Failures, view.Ends.Failed, view.Open}, []any{core.FlowFailed, []string{"m"}, 1, 0})
	})
}

func TestF14_an_execution_whose_deadline_is_over_when_it_becomes_a_member_is_counted_once(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{NoTimers: true, PollInterval: time.Hour}, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		id := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "old", ID: &id, DeadlineAt: w.now().Add(base.Minute)})
		w.turn(2 * base.Minute)
		w.extend(flow, core.FlowExtension{Members: []core.FlowMember{{ID: id, Name: "m"}}, Nodes: []core.FlowNode{{Name: "d", Kind: "d"}}, Edges: []core.FlowEdge{{From: "m", To: "d", Kind: core.FailureOnly}}})
		view := w.flow(flow)
		same(t, "counted", []any{view.Open, view.Ends.Expired, view.Counts["expired"], view.Counts["waiting"]}, []any{1, 1, 1, 1})
	})
}

func TestF19_an_edge_is_refused_in_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		edge := func(e core.FlowEdge) core.FlowExtension { return core.FlowExtension{Edges: []core.FlowEdge{e}} }
		id := drawUUID()
		made := w.extend(flow, core.FlowExtension{
			Nodes: nodesNamed("a", "b", "c", "held", "started"),
			Edges: []core.FlowEdge{{From: "a", To: "b", ID: id}, {From: "b", To: "c", Kind: core.AnyTerminal, Pass: "in"}},
		})
		w.extendErr(flow, edge(core.FlowEdge{From: "x", To: "x"}), base.CodeSelfReferencingEdge)
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "x", Kind: core.AnyTerminal}), base.CodeExecutionNotInFlow)
		same(t, "there already", w.extend(flow, edge(core.FlowEdge{From: "a", To: "b"})).Created, false)
		by := made.Members
		same(t, "by id", w.extend(flow, edge(core.FlowEdge{From: by["a"].String(), To: by["b"].UUID.String()})).Created, false)
		exists := w.extendErr(flow, edge(core.FlowEdge{From: "b", To: "c"}), base.CodeDependencyAlreadyExists)
		same(t, "the edge", exists.Details["edge"].(map[string]any)["kind"], any("any_terminal"))
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "c", ID: id}), base.CodeEdgeIDTaken)
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "c", Kind: "maybe"}), base.CodeInvalidFlow)

		task := w.takeKind("started", 1)[0]
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "started"}), base.CodeDownstreamAlreadyStarted)
		w.release(task) // it is ready, and was claimed in this run
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "started"}), base.CodeDownstreamAlreadyStarted)
		w.workOff("started", 1, succeeds)
		w.extendErr(flow, edge(core.FlowEdge{From: "a", To: "started"}), base.CodeDownstreamAlreadyStarted)

		cycle := w.extendErr(flow, core.FlowExtension{Nodes: nodesNamed("n"), Edges: []core.FlowEdge{{From: "c", To: "n"}, {From: "n", To: "a"}}}, base.CodeCycleDetected)
		same(t, "spelled out", len(cycle.Details["cycle"].([]string)), 5)
		w.extendErr(flow, edge(core.FlowEdge{From: "c", To: "a"}), base.CodeCycleDetected)

		w.workOff("a", 1, succeeds)
		w.extendErr(flow, edge(core.FlowEdge{From: "held", To: "b"}), base.CodeJoinAlreadyDecided)
		w.workOff("b", 1, fails)
		w.workOff("c", 1, succeeds)
		w.extendErr(flow, edge(core.FlowEdge{From: "held", To: "c"}), base.CodeJoinAlreadyDecided)
	})
}

func TestF36_an_edge_that_gives_a_member_an_input_under_a_name_that_it_has_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		w.extend(flow, core.FlowExtension{
			Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "b", Kind: "b"}, {Name: "all", Kind: "k"}, {Name: "any", Kind: "k", Join: &core.JoinSpec{Policy: core.AnyOf}}},
			Edges: []core.FlowEdge{{From: "a", To: "all", Pass: "x"}, {From: "a", To: "any", Pass: "x"}},
		})
		w.extendErr(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "b", To: "all", Pass: "x"}}}, base.CodeDuplicateName)
		same(t, "another name", w.extend(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "b", To: "all", Pass: "y"}}}).Created, true)
		same(t, "any_of", w.extend(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "b", To: "any", Pass: "x"}}}).Created, true)
		id := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "old", ID: &id})
		w.extendErr(flow, core.FlowExtension{
			Members: []core.FlowMember{{ID: id, Name: "m"}}, Edges: []core.FlowEdge{{From: "a", To: "m", Pass: "x"}, {From: "b", To: "m", Pass: "x"}},
		}, base.CodeDuplicateName)
	})
}

func TestF18_a_join_is_set_before_the_first_edge(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		w.extend(flow, core.FlowExtension{Nodes: nodesNamed("a", "b", "d")})
		set := func(spec core.JoinSpec) (bool, error) {
			view, changed, err := w.e.SetJoin(w.ctx(), client, flow.Flow.ID.Given(), "d", spec)
			if err == nil {
				same(t, "join", view.JoinSpec, spec)
			}
			return changed, err
		}
		anyOf := core.JoinSpec{Policy: core.AnyOf}
		same(t, "set", must(set(anyOf))(t), true)
		same(t, "unchanged", must(set(anyOf))(t), false)
		same(t, "revision", w.flow(flow).Revision, int64(2))
		w.extend(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "a", To: "d"}, {From: "b", To: "d"}}})
		same(t, "unchanged", must(set(anyOf))(t), false)
		_, err := set(core.JoinSpec{})
		refused(t, err, base.CodeJoinAlreadyFixed)
		_, err = set(core.JoinSpec{Policy: core.Quorum})
		refused(t, err, base.CodeInvalidJoin)
		_, _, err = w.e.SetJoin(w.ctx(), client, flow.Flow.ID.Given(), "missing", anyOf)
		refused(t, err, base.CodeExecutionNotInFlow)
		w.workOff("a", 1, succeeds)
		w.is(w.memberID(flow, "d"), core.Ready, core.WaitingForWorker)
	})
}

// memberID finds a member by name.
func (w *world) memberID(of engine.FlowAnswer, name string) base.GivenID {
	w.t.Helper()
	graph := must(w.e.Graph(w.ctx(), client, of.Flow.ID.Given(), "", 0))(w.t)
	for _, m := range graph.Members {
		if m.Execution.Member.Name == name {
			return m.Execution.ID.Given()
		}
	}
	w.t.Fatalf("there is no member %s", name)
	return base.GivenID{}
}

func TestF21_ready_and_delayed_members_that_are_given_edges_wait_and_keep_their_delay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		delayed := core.FlowNode{Name: "delayed", Kind: "delayed", DelayMS: ptr(base.Hour)}
		made := w.extend(flow, core.FlowExtension{Nodes: append(nodesNamed("done", "fails", "up", "ready", "skipped", "free"), delayed)})
		w.workOff("done", 1, succeeds)
		w.workOff("fails", 1, fails)
		w.extend(flow, core.FlowExtension{Seal: true, Edges: []core.FlowEdge{
			{From: "up", To: "ready"}, {From: "up", To: "delayed"}, {From: "done", To: "ready"}, {From: "fails", To: "skipped"}, {From: "done", To: "free"},
		}})
		w.is(made.Members["ready"].Given(), core.Blocked, core.WaitingForChildren)
		w.is(made.Members["delayed"].Given(), core.Blocked, core.WaitingForChildren)
		w.is(made.Members["skipped"].Given(), core.Skipped, core.DependencyImpossible)
		free := w.is(made.Members["free"].Given(), core.Ready, core.WaitingForWorker)
		same(t, "decided", free.Member.Join.State, core.JoinHeld)
		same(t, "never told as blocked", w.story(made.Members["free"].Given()), []string{"execution.submitted"})
		w.none("ready")
		w.workOff("up", 1, succeeds)
		w.workOff("ready", 1, succeeds)
		w.is(made.Members["delayed"].Given(), core.Delayed, core.WaitingForDelay)
		w.pass(base.Hour)
		w.workOff("delayed", 1, succeeds)
		w.workOff("free", 1, succeeds)
		same(t, "state", w.flow(flow).Failures, []string{"fails"})
	})
}

func TestW4_U13_an_extension_under_a_request_key_is_done_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		var again atomic.Bool
		keyed := client
		keyed.RequestKey, keyed.Repeated = "k1", &again
		x := core.FlowExtension{Flow: flow.Flow.ID.Given(), Expected: ptr(int64(0)), Nodes: nodesNamed("a")}
		first := must(w.e.ExtendFlow(w.ctx(), keyed, x))(t)
		second := must(w.e.ExtendFlow(w.ctx(), keyed, x))(t)
		same(t, "the same", []any{second.Flow.Revision, second.Members, second.Created, again.Load()}, []any{first.Flow.Revision, first.Members, true, true})
		x.Nodes = nodesNamed("b")
		_, err := w.e.ExtendFlow(w.ctx(), keyed, x)
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestF20_a_cycle_through_a_long_line_of_old_members_is_found(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var names []string
		for i := range 2000 {
			names = append(names, fmt.Sprintf("n%04d", i))
		}
		s := chain(names...)
		s.Unsealed = true
		flow := w.submitFlow(s)
		refusal := w.extendErr(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "n1999", To: "n0000"}}}, base.CodeCycleDetected)
		same(t, "spelled out", len(refusal.Details["cycle"].([]string)), 2001)
		same(t, "an edge that closes none", w.extend(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "n0000", To: "n1999"}}}).Flow.Edges, 2000)
	})
}

func TestW4_L117_a_repeated_seal_of_an_empty_flow_is_answered_alike(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		keyed := client
		keyed.RequestKey = "k"
		seal := core.FlowExtension{Flow: w.emptyFlow().Flow.ID.Given(), Seal: true}
		first := must(w.e.ExtendFlow(w.ctx(), keyed, seal))(t)
		same(t, "state", first.Flow.State, core.FlowCompleted)
		same(t, "repeat", must(w.e.ExtendFlow(w.ctx(), keyed, seal))(t), first)
	})
}
