package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// The oracle knows a graph by numbers: what its nodes are, which edges lead to them, and how their runs end. It works everything else out
// anew at each step, from the tables of section 5 and the words of F5, F30 and F31.

type oracleEdge struct {
	from int
	kind core.EdgeKind
}

type oracleNode struct {
	ups     []oracleEdge
	join    core.JoinSpec
	mayFail bool
	late    bool // it comes with an extension
}

// oraclePlan is a graph and the choices made on the way through it.
type oraclePlan struct {
	nodes   []oracleNode
	choices []int
}

func drawPlan(t *rapid.T) oraclePlan {
	var p oraclePlan
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		n := oracleNode{mayFail: rapid.IntRange(0, 4).Draw(t, "may fail") == 0, late: rapid.IntRange(0, 3).Draw(t, "late") == 0}
		for from := range i {
			if rapid.Bool().Draw(t, "edge") {
				n.ups = append(n.ups, oracleEdge{from, rapid.SampledFrom([]core.EdgeKind{core.SuccessOnly, core.SuccessOnly, core.FailureOnly, core.AnyTerminal}).Draw(t, "kind")})
			}
		}
		if len(n.ups) > 0 {
			n.join.Policy = rapid.SampledFrom([]core.JoinPolicy{core.AllOf, core.AnyOf, core.Quorum}).Draw(t, "policy")
			n.join.OnSatisfied = rapid.SampledFrom([]core.OnSatisfied{core.LetRun, core.CancelRemaining}).Draw(t, "on satisfied")
			if n.join.Policy == core.Quorum {
				n.join.K = rapid.IntRange(1, len(n.ups)+1).Draw(t, "k")
			}
		}
		p.nodes = append(p.nodes, n)
	}
	p.choices = rapid.SliceOfN(rapid.IntRange(0, 1000), 64, 64).Draw(t, "choices")
	return p
}

// oracleState is what is known of the graph without asking the engine.
type oracleState struct {
	oraclePlan
	there   []bool // it was added
	sealed  bool
	running []bool
	ended   []core.Status // by the hand of the test, or by a join that cancelled it; 0: it has not
	lost    []bool        // by such a join
	held    []bool        // joins that were decided before this step
}

func newOracle(p oraclePlan) *oracleState {
	n := len(p.nodes)
	return &oracleState{oraclePlan: p, there: make([]bool, n), running: make([]bool, n), ended: make([]core.Status, n), lost: make([]bool, n), held: make([]bool, n)}
}

// counts are the edges into a node, by the fates of its upstreams.
func (o *oracleState) counts(i int) (satisfied, impossible int) {
	for _, e := range o.nodes[i].ups {
		switch fate := o.fate(e.from); {
		case !fate.Terminal():
		case e.kind == core.AnyTerminal, e.kind == core.SuccessOnly && fate == core.Succeeded, e.kind == core.FailureOnly && (fate == core.Failed || fate == core.Cancelled):
			satisfied++
		default:
			impossible++
		}
	}
	return satisfied, impossible
}

// verdict is the state of the join of a node by the numbers.
func (o *oracleState) verdict(i int) core.JoinState {
	n := len(o.nodes[i].ups)
	if n == 0 {
		return core.JoinNone
	}
	satisfied, impossible := o.counts(i)
	k := map[core.JoinPolicy]int{core.AllOf: n, core.AnyOf: 1, core.Quorum: o.nodes[i].join.K}[o.nodes[i].join.Policy]
	switch {
	case k > n && !o.sealed:
		return core.JoinPending
	case k > n || impossible > n-k:
		return core.JoinBroken
	case satisfied >= k:
		return core.JoinHeld
	default:
		return core.JoinPending
	}
}

// join is the state that is shown: one that ended before its join was decided keeps it pending.
func (o *oracleState) join(i int) core.JoinState {
	if o.ended[i] != 0 && !o.held[i] && o.verdict(i) != core.JoinNone {
		return core.JoinPending
	}
	return o.verdict(i)
}

// fate is the status of a node.
func (o *oracleState) fate(i int) core.Status {
	switch verdict := o.verdict(i); {
	case o.ended[i] != 0:
		return o.ended[i]
	case verdict == core.JoinBroken:
		return core.Skipped
	case verdict == core.JoinPending:
		return core.Blocked
	case o.running[i]:
		return core.Running
	default:
		return core.Ready
	}
}

// outs are the nodes that edges from a node lead to, among those that are there.
func (o *oracleState) outs(i int) (to []int) {
	for d := range o.nodes {
		if o.there[d] && slices.ContainsFunc(o.nodes[d].ups, func(e oracleEdge) bool { return e.from == i }) {
			to = append(to, d)
		}
	}
	return to
}

// settle follows the joins that this step has decided: those with cancel_remaining end what is not needed any more (F30, F31).
// It reports whether there was one.
func (o *oracleState) settle() (cancels bool) {
	var fed []int
	for i := range o.nodes {
		if !o.there[i] || o.held[i] || o.ended[i] != 0 || o.verdict(i) <= core.JoinPending {
			continue
		}
		o.held[i] = true
		if o.nodes[i].join.OnSatisfied == core.CancelRemaining {
			fed = append(fed, i)
		}
	}
	for cancels = len(fed) > 0; len(fed) > 0; {
		d := fed[0]
		fed = fed[1:]
		for _, e := range o.nodes[d].ups {
			needed := slices.ContainsFunc(o.outs(e.from), func(to int) bool { return !o.fate(to).Terminal() && o.verdict(to) <= core.JoinPending })
			if !o.fate(e.from).Terminal() && !needed {
				o.ended[e.from], o.lost[e.from] = core.Cancelled, true
				fed = append(fed, e.from)
			}
		}
	}
	return cancels
}

// flow is the state of the flow by F4 and F5.
func (o *oracleState) flow() core.FlowState {
	failed := false
	for i := range o.nodes {
		fate := o.fate(i)
		if !o.there[i] || !fate.Terminal() {
			return core.FlowOpen
		}
		outs := o.outs(i)
		cared := len(outs) > 0 && !slices.ContainsFunc(outs, func(d int) bool { return o.join(d) != core.JoinHeld })
		bad := fate == core.Failed || fate == core.Cancelled && !o.lost[i]
		failed = failed || bad && !o.nodes[i].mayFail && !cared
	}
	switch {
	case !o.sealed:
		return core.FlowOpen
	case failed:
		return core.FlowFailed
	default:
		return core.FlowCompleted
	}
}

// picture is everything that the engine must show, in words.
func (o *oracleState) picture() map[string]string {
	all := map[string]string{"flow": string(o.flow())}
	for i := range o.nodes {
		if o.there[i] {
			satisfied, impossible := o.counts(i)
			all[nodeName(i)] = fmt.Sprintf("%s, join %s %d+%d of %d, lost %t", o.fate(i), o.join(i), satisfied, impossible, len(o.nodes[i].ups), o.lost[i])
		}
	}
	return all
}

func nodeName(i int) string { return fmt.Sprint("n", i) }

// shown is the same picture as the engine has it.
func (w *world) shown(of engine.FlowAnswer) map[string]string {
	w.t.Helper()
	graph := must(w.e.Graph(w.ctx(), client, of.Flow.ID.Given(), "", 0))(w.t)
	all := map[string]string{"flow": string(graph.Flow.State)}
	for _, m := range graph.Members {
		x, j := m.Execution, m.Join
		lost := x.Reason == core.JoinSatisfied || x.Reason == core.JoinImpossible
		all[x.Member.Name] = fmt.Sprintf("%s, join %s %d+%d of %d, lost %t", x.Status, j.State, j.Satisfied, j.Impossible, j.N, lost)
	}
	return all
}

// oracleRun walks a plan in the engine and in the oracle, side by side.
type oracleRun struct {
	*oracleState
	t     rapid.TB
	w     *world
	flow  engine.FlowAnswer
	tasks map[int]engine.Task
	trace []string
}

func (r *oracleRun) node(i int) (core.FlowNode, []core.FlowEdge) {
	n := &r.nodes[i]
	node := core.FlowNode{Name: nodeName(i), Kind: nodeName(i), MayFail: n.mayFail}
	var edges []core.FlowEdge
	for _, e := range n.ups {
		edges = append(edges, core.FlowEdge{From: nodeName(e.from), To: node.Name, Kind: e.kind})
	}
	if len(n.ups) > 0 {
		node.Join = &n.join
	}
	return node, edges
}

// begin submits what comes at once.
func (r *oracleRun) begin() {
	s := core.FlowSubmission{Kind: "oracle", Unsealed: true}
	for i := range r.nodes {
		if n := &r.nodes[i]; !n.late && !slices.ContainsFunc(n.ups, func(e oracleEdge) bool { return !r.there[e.from] }) {
			node, edges := r.node(i)
			s.Nodes, s.Edges = append(s.Nodes, node), append(s.Edges, edges...)
			r.there[i] = true
		}
	}
	r.flow = r.w.submitFlow(s)
}

// moves are what can be done next, by name.
func (r *oracleRun) moves() (names []string, do []func()) {
	add := func(name string, act func()) { names, do = append(names, name), append(do, act) }
	missing := false
	for i := range r.nodes {
		switch fate := r.fate(i); {
		case !r.there[i]:
			if missing = true; !slices.ContainsFunc(r.nodes[i].ups, func(e oracleEdge) bool { return !r.there[e.from] }) {
				add("add "+nodeName(i), func() { r.add(i) })
			}
		case fate == core.Ready:
			add("start "+nodeName(i), func() { r.start(i) })
		case fate == core.Running:
			add("complete "+nodeName(i), func() { r.end(i, core.Succeeded) })
			add("fail "+nodeName(i), func() { r.end(i, core.Failed) })
		}
		if r.there[i] && !r.fate(i).Terminal() && i%3 == 0 {
			add("cancel "+nodeName(i), func() { r.cancel(i) })
		}
	}
	if !missing && !r.sealed {
		add("seal", func() {
			r.w.extend(r.flow, core.FlowExtension{Seal: true})
			r.sealed = true
		})
	}
	return names, do
}

func (r *oracleRun) add(i int) {
	node, edges := r.node(i)
	grown := r.w.extend(r.flow, core.FlowExtension{Nodes: []core.FlowNode{node}, Edges: edges})
	r.flow.Members[node.Name] = grown.Members[node.Name]
	r.there[i] = true
}

func (r *oracleRun) start(i int) {
	r.tasks[i] = r.w.takeKind(nodeName(i), 1)[0]
	if r.tasks[i].Execution.ID != r.flow.Members[nodeName(i)] {
		r.t.Fatalf("%v: somebody else was claimed", r.trace)
	}
	r.running[i] = true
}

func (r *oracleRun) end(i int, outcome core.Status) {
	end := succeeds
	if outcome == core.Failed {
		end = fails
	}
	r.accepted(end(r.w.e, r.w, r.tasks[i]))
	r.ended[i] = outcome
}

func (r *oracleRun) cancel(i int) {
	_, err := r.w.e.Cancel(r.w.ctx(), operator, r.flow.Members[nodeName(i)].Given(), nil, "", engine.Operator{})
	r.accepted(err)
	r.ended[i] = core.Cancelled
}

// accepted fails the test on a refusal of what the oracle allows.
func (r *oracleRun) accepted(err error) {
	if err != nil {
		r.t.Fatalf("after %v: %v; (-oracle +engine):\n%s\n%+v", r.trace, err, cmp.Diff(r.picture(), r.w.shown(r.flow)), r.oraclePlan)
	}
}

// followed waits until the follow-up work of joins, edges and ended parents is done.
func (w *world) followed() {
	w.t.Helper()
	eventually(w.t, "nothing is left to be done", func() bool {
		scan := store.Scan{Kind: docTask}
		for _, doc := range must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{scan}}))(w.t).Scanned[0] {
			for _, kind := range []string{"cancel_losers", "resolve_edges", "end_children", "cancel_members"} {
				if strings.Contains(string(doc.Body), kind) {
					return false
				}
			}
		}
		return true
	})
}

// docTask is the kind of the records of follow-up work.
const docTask store.DocKind = 7

// compare waits until the engine shows what the oracle says.
func (r *oracleRun) compare() {
	if r.settle() {
		r.w.followed()
	}
	want := r.picture()
	over := time.Now().Add(giveUp)
	for {
		diff := cmp.Diff(want, r.w.shown(r.flow))
		if diff == "" {
			return
		}
		if time.Now().After(over) {
			r.t.Fatalf("after %v (-oracle +engine):\n%s\n%+v", r.trace, diff, r.oraclePlan)
		}
	}
}

// walk goes from the submit to the end of the flow.
func (r *oracleRun) walk() {
	r.begin()
	defer func() {
		if !r.w.flow(r.flow).State.Terminal() { // it has failed: leave nothing to the next
			r.w.cancelFlow(r.flow, core.CancelAll, "")
		}
	}()
	r.compare()
	for _, choice := range r.choices {
		names, do := r.moves()
		if len(do) == 0 {
			break
		}
		at := choice % len(do)
		r.trace = append(r.trace, names[at])
		r.w.turn(1)
		do[at]()
		r.compare()
	}
	if names, _ := r.moves(); len(names) == 0 && !r.flow0().Terminal() {
		r.t.Fatalf("%v: nothing can run any more and the flow is %s", r.trace, r.flow0())
	}
}

func (r *oracleRun) flow0() core.FlowState { return r.oracleState.flow() }

func (w *world) walkPlan(t rapid.TB, p oraclePlan) {
	r := &oracleRun{oracleState: newOracle(p), t: t, w: w, tasks: map[int]engine.Task{}}
	r.walk()
}

func TestFI3_FI5_FI7_FI8_FI14_the_fate_of_every_member_is_the_closed_form(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		onOneStore(t, func(t *testing.T, w *world) {
			testseed.Check(t, func(rt *rapid.T) { w.walkPlan(rt, drawPlan(rt)) })
		})
	})
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		plans := rapid.Custom(drawPlan)
		for seed := range 12 {
			w.walkPlan(t, testseed.Example(t, plans, seed))
		}
	})
}
