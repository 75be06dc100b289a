package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

const memberPolicy = `{"max_reclaim_count":1000,"max_replay_count":20,"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":300}}}`

// graph draws a flow: edges lead from nodes to later ones.
func graph(r *rand.Rand, depth int) core.FlowSubmission {
	s := core.FlowSubmission{Kind: "graph"}
	for i := range 2 + r.IntN(5) {
		node := core.FlowNode{Name: fmt.Sprintf("n%d", i), Lane: pick(r, lanes()...), Kind: "member", PolicyJSON: []byte(memberPolicy), MayFail: r.IntN(5) == 0}
		if depth > 0 && r.IntN(6) == 0 {
			sub := graph(r, depth-1)
			node.Flow, node.Kind, node.Lane, node.PolicyJSON = &sub, "", "", nil
		}
		edges := 0
		for from := range i {
			if r.IntN(2) == 0 {
				edges++
				s.Edges = append(s.Edges, core.FlowEdge{
					From: fmt.Sprintf("n%d", from), To: node.Name, Kind: pick(r, core.SuccessOnly, core.SuccessOnly, core.AnyTerminal, core.FailureOnly), Pass: pick(r, "", fmt.Sprintf("n%d", from)),
				})
			}
		}
		if edges > 0 {
			spec := core.JoinSpec{Policy: pick(r, core.AllOf, core.AllOf, core.AnyOf, core.Quorum), OnSatisfied: pick(r, core.LetRun, core.CancelRemaining)}
			if spec.Policy == core.Quorum {
				spec.K = 1 + r.IntN(edges)
			}
			node.Join = &spec
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

func submitFlow(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	s := graph(r, 1)
	s.IdempotencyKey = w.requestKey()
	s.Unsealed = r.IntN(4) == 0
	w.issue(p, "submit flow", func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.SubmitFlow(ctx, client(""), s)
	}, func(answer any, err error) {
		if err == nil {
			a := answer.(engine.FlowAnswer)
			w.knowFlow(a.Flow.ID, a.Members, !s.Unsealed)
		}
	})
}

// knowFlow takes in the members of a flow.
func (w *World) knowFlow(id base.ID, members map[string]base.ID, sealed bool) {
	i := slices.IndexFunc(w.journal.flows, func(f *flow) bool { return f.id == id })
	if i < 0 {
		w.journal.flows = append(w.journal.flows, &flow{id: id, members: map[string]base.ID{}})
		i = len(w.journal.flows) - 1
	}
	f := w.journal.flows[i]
	f.sealed = sealed
	maps.Copy(f.members, members)
	f.names = slices.Sorted(maps.Keys(f.members))
	for _, name := range f.names {
		w.journal.job(f.members[name], "").member = true
	}
}

func (w *World) someFlow(r *rand.Rand) *flow {
	if n := len(w.journal.flows); n > 0 {
		return w.journal.flows[max(0, n-1-r.IntN(4))]
	}
	return nil
}

func cancelFlow(w *World, r *rand.Rand) {
	p, f := w.up(r), w.someFlow(r)
	if p == nil || f == nil {
		return
	}
	policy := pick(r, core.CancelAll, core.CancelPending, core.CancelFlowOnly)
	w.issue(p, "cancel flow "+short(f.id)+" "+string(policy), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.CancelFlow(ctx, operator(), engine.CancelFlowRequest{Flow: f.id.Given(), Policy: policy})
	}, func(any, error) {})
}

func extendFlow(w *World, r *rand.Rand) {
	p, f := w.up(r), w.someFlow(r)
	if p == nil || f == nil || len(f.names) == 0 {
		return
	}
	name := fmt.Sprintf("x%d", len(w.journal.flows)*100+r.IntN(50))
	x := core.FlowExtension{
		Flow: f.id.Given(), Seal: r.IntN(2) == 0,
		Nodes: []core.FlowNode{{Name: name, Lane: pick(r, lanes()...), Kind: "member", PolicyJSON: []byte(memberPolicy)}},
		Edges: []core.FlowEdge{{From: pick(r, f.names...), To: name, Kind: pick(r, core.SuccessOnly, core.AnyTerminal)}},
	}
	c := client(w.requestKey())
	w.issue(p, "extend flow "+short(f.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.ExtendFlow(ctx, c, x)
	}, func(answer any, err error) {
		if err == nil {
			w.knowFlow(f.id, answer.(engine.FlowAnswer).Members, x.Seal)
		}
	})
}

func replay(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if f := w.someFlow(r); f != nil && len(f.names) > 0 && r.IntN(3) > 0 {
		j = w.journal.job(f.members[pick(r, f.names...)], "")
	}
	if p == nil || j == nil {
		return
	}
	q := engine.ReplayRequest{KeepSteps: r.IntN(2) == 0, Cascade: pick(r, "none", "skipped", "all"), IgnoreDependencies: r.IntN(4) == 0}
	for _, f := range w.journal.flows { // its descendants run again, too
		if slices.Contains(slices.Collect(maps.Values(f.members)), j.id) {
			for _, id := range f.members {
				w.journal.job(id, "").replayed = true
			}
		}
	}
	j.replayed = true
	op := engine.Operator{RequestKey: w.requestKey()}
	w.issue(p, fmt.Sprintf("replay %s %+v", short(j.id), q), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Replay(ctx, operator(), j.id.Given(), q, op)
	}, func(any, error) {})
}

func spawn(w *World, r *rand.Rand) {
	n, waits, ends := 1+r.IntN(3), r.IntN(2) == 0, pick(r, "", core.CancelAlways, core.CancelOnFailure, core.Detach)
	name, key := fmt.Sprintf("c%d", w.journal.keys), w.requestKey()
	lane := pick(r, lanes()...)
	underLease(w, r, "spawn", waits, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		q := engine.SpawnRequest{ID: l.j.id.Given(), Fence: l.f, OnParentEnd: ends}
		for i := range n {
			q.Children = append(q.Children, core.FlowNode{Name: fmt.Sprintf("%s-%d", name, i), Lane: lane, Kind: "child", PolicyJSON: []byte(memberPolicy)})
		}
		if waits {
			q.Wait = &engine.ChildrenWaitRequest{}
		}
		return e.Spawn(ctx, client(key), q)
	}, func(_ *lease, _ int64, answer any, err error) {
		if err != nil {
			return
		}
		members := answer.(engine.SpawnAnswer).Children
		for _, name := range slices.Sorted(maps.Keys(members)) {
			w.journal.job(members[name], lane).member = true
		}
	})
}

// seal ends the growth of flows, so that they can end.
func (w *World) seal() {
	for _, f := range w.journal.flows {
		if !f.sealed && len(w.findings) == 0 {
			_, _, _ = w.call(0, "seal", func(ctx context.Context, e *engine.Engine) (any, error) {
				return e.ExtendFlow(ctx, client(""), core.FlowExtension{Flow: f.id.Given(), Seal: true})
			})
		}
	}
}
