package flowfabric

import (
	"maps"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of graphs as they are shown (U91..U93).

// countTotal is the member of counts that holds their sum (F59).
const countTotal = "total"

// MarshalJSON writes the flow as the HTTP API shows it (U31).
func (v FlowView) MarshalJSON() ([]byte, error) {
	w := v.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (v *FlowView) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Flow](text)
	*v = flowViewFrom(w)
	return err
}

func (v *FlowView) wire() wire.Flow {
	w := wire.Flow{
		FlowID: string(v.ID), Partition: v.Partition, Namespace: v.Namespace, Kind: v.Kind, State: string(v.State), Phase: v.Phase, Sealed: v.Sealed, GraphRevision: v.Revision,
		NodeCount: v.Nodes, EdgeCount: v.Edges, Output: v.Output, ParentExecutionID: string(v.ParentID), RootFlowID: string(v.RootID), Depth: v.Depth,
		Tags: v.Tags, Creator: v.Creator, CreatedAt: wireTime(v.CreatedAt), LastMutationAt: wireTime(v.LastMutationAt), EndedAt: wireTime(v.EndedAt),
		Joins: v.Joins,
	}
	if c := v.Cancelled; c != nil {
		w.Cancel = &wire.FlowCancel{Policy: string(c.Policy), Reason: c.Reason, By: c.By, RequestedAt: wireTime(c.At)}
	}
	if v.Counts != nil {
		total := 0
		for _, n := range v.Counts {
			total += n
		}
		w.Counts = maps.Clone(v.Counts)
		w.Counts[countTotal] = total
	}
	return w
}

func flowViewFrom(w *wire.Flow) FlowView {
	v := FlowView{
		ID: ID(w.FlowID), Partition: w.Partition, Namespace: w.Namespace, Kind: w.Kind, State: FlowState(w.State), Phase: w.Phase, Sealed: w.Sealed, Revision: w.GraphRevision,
		Nodes: w.NodeCount, Edges: w.EdgeCount, Output: w.Output, ParentID: ID(w.ParentExecutionID), RootID: ID(w.RootFlowID), Depth: w.Depth,
		Tags: w.Tags, Creator: w.Creator, CreatedAt: w.CreatedAt.Time, LastMutationAt: w.LastMutationAt.Time, EndedAt: w.EndedAt.Time, Joins: w.Joins,
	}
	if c := w.Cancel; c != nil {
		v.Cancelled = &FlowCancellation{Policy: CancelPolicy(c.Policy), Reason: c.Reason, By: c.By, At: c.RequestedAt.Time}
	}
	if w.Counts != nil {
		v.Counts = maps.Clone(w.Counts)
		delete(v.Counts, countTotal)
	}
	return v
}

// MarshalJSON writes the answer as the HTTP API shows it (U89, U90).
func (r FlowRun) MarshalJSON() ([]byte, error) {
	w := wire.FlowAnswer{Created: r.Created, Members: make(map[string]string, len(r.Members)), Flow: r.FlowView.wire()}
	for name, id := range r.Members {
		w.Members[name] = string(id)
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *FlowRun) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.FlowAnswer](text)
	*r = *flowRunFrom(w)
	return err
}

func flowRunFrom(w *wire.FlowAnswer) *FlowRun {
	return &FlowRun{FlowView: flowViewFrom(&w.Flow), Members: idsFrom(w.Members), Created: w.Created}
}

// idsFrom are ids by name; never nil.
func idsFrom(w map[string]string) map[string]ID {
	ids := make(map[string]ID, len(w))
	for name, id := range w {
		ids[name] = ID(id)
	}
	return ids
}

// MarshalJSON writes the member as the HTTP API shows it (U91).
func (m FlowMember) MarshalJSON() ([]byte, error) {
	w := m.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (m *FlowMember) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.FlowMember](text)
	*m = memberFrom(*w)
	return err
}

func (m FlowMember) wire() wire.FlowMember {
	w := wire.FlowMember{
		Name: m.Name, ExecutionID: string(m.ID), Kind: m.Kind, Lane: m.Lane, Status: string(m.Status), Reason: m.Reason, PublicState: m.PublicState,
		MayFail: m.Optional, SubFlow: m.SubFlow, RunIndex: m.RunIndex, StartedAt: wireTime(m.StartedAt), EndedAt: wireTime(m.EndedAt),
		DeletedAt: wireTime(m.DeletedAt),
	}
	w.Join = m.Join
	return w
}

func memberFrom(w wire.FlowMember) FlowMember {
	m := FlowMember{
		Name: w.Name, ID: ID(w.ExecutionID), Kind: w.Kind, Lane: w.Lane, Status: Status(w.Status), Reason: w.Reason, PublicState: w.PublicState,
		Optional: w.MayFail, SubFlow: w.SubFlow, RunIndex: w.RunIndex, StartedAt: w.StartedAt.Time, EndedAt: w.EndedAt.Time,
		DeletedAt: w.DeletedAt.Time,
	}
	m.Join = w.Join
	return m
}

// MarshalJSON writes the edge as the HTTP API shows it (U91).
func (e EdgeView) MarshalJSON() ([]byte, error) {
	w := e.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *EdgeView) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Edge](text)
	*e = edgeViewFrom(*w)
	return err
}

func (e EdgeView) wire() wire.Edge {
	w := wire.Edge{
		EdgeID: e.ID, Upstream: e.From, UpstreamID: string(e.FromID), Downstream: e.To, DownstreamID: string(e.ToID), Kind: string(e.Kind), Pass: e.Pass,
		State: e.State, UpstreamOutcome: string(e.Outcome), ResolvedAt: wireTime(e.ResolvedAt),
	}
	if e.Outcome != "" {
		w.UpstreamRun = &e.Run
	}
	return w
}

func edgeViewFrom(w wire.Edge) EdgeView {
	e := EdgeView{
		Edge:   Edge{ID: w.EdgeID, From: w.Upstream, To: w.Downstream, Kind: EdgeKind(w.Kind), Pass: w.Pass},
		FromID: ID(w.UpstreamID), ToID: ID(w.DownstreamID), State: w.State, Outcome: Status(w.UpstreamOutcome), ResolvedAt: w.ResolvedAt.Time,
	}
	if w.UpstreamRun != nil {
		e.Run = *w.UpstreamRun
	}
	return e
}

// MarshalJSON writes the graph as the HTTP API shows it (U91).
func (g FlowGraph) MarshalJSON() ([]byte, error) {
	return wire.Marshal(&wire.Graph{
		Flow: g.Flow.wire(), Nodes: each(g.Members, FlowMember.wire), Edges: each(g.Edges, EdgeView.wire), NextCursor: g.NextCursor,
	})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (g *FlowGraph) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Graph](text)
	*g = *graphShownFrom(w)
	return err
}

func graphShownFrom(w *wire.Graph) *FlowGraph {
	return &FlowGraph{
		Flow: flowViewFrom(&w.Flow), Members: each(w.Nodes, memberFrom), Edges: each(w.Edges, edgeViewFrom), NextCursor: w.NextCursor,
	}
}

// MarshalJSON writes the answer as the HTTP API shows it (U93).
func (p FlowCancelProgress) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.FlowCancelled{
		State: string(p.State), Policy: string(p.Policy), Reason: p.Reason, Cancelled: p.Cancelled, FinishedBefore: p.FinishedBefore,
		Remaining: p.Remaining, AlreadyTerminal: p.AlreadyTerminal,
	})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *FlowCancelProgress) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.FlowCancelled](text)
	*p = cancelProgressFrom(w)
	return err
}

func cancelProgressFrom(w *wire.FlowCancelled) FlowCancelProgress {
	return FlowCancelProgress{
		State: FlowState(w.State), Policy: CancelPolicy(w.Policy), Reason: w.Reason, Cancelled: w.Cancelled, FinishedBefore: w.FinishedBefore,
		Remaining: w.Remaining, AlreadyTerminal: w.AlreadyTerminal,
	}
}
