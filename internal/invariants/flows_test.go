package invariants_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// couple is a flow of two members: b waits for a. A test that damages it finds everything under its name.
type couple struct {
	snap  *invariants.Snapshot
	f     *core.Flow
	a, b  *core.Execution
	edge  *core.Edge
	graph *invariants.Graph
}

func newCouple(t *testing.T) *couple {
	t.Helper()
	a, _ := made(t)
	b, _ := made(t)
	b.ID = base.ID{N: a.ID.N, UUID: base.UUID{0: 2, 15: 2}}
	f := &core.Flow{ID: base.ID{N: a.ID.N, UUID: base.UUID{0: 5}}, State: core.FlowOpen, Sealed: true, Revision: 1, Nodes: 2, Edges: 1, Open: 2}
	f.Root = f.ID
	a.FlowID, a.Member = f.ID, &core.Membership{Name: "a", Root: f.ID, Out: 1}
	b.FlowID, b.Member = f.ID, &core.Membership{Name: "b", Root: f.ID, Join: core.Join{N: 1, State: core.JoinPending}}
	b.Status, b.Reason, b.Dependency = core.Blocked, core.WaitingForChildren, core.WaitingForChildren
	edge := core.Edge{From: core.NodeRef{Name: "a", ID: a.ID}, To: core.NodeRef{Name: "b", ID: b.ID}, Kind: core.SuccessOnly, State: core.EdgePending}
	c := &couple{f: f, a: a, b: b, snap: &invariants.Snapshot{
		Records: map[base.UUID]invariants.Record{a.ID.UUID: {X: a}, b.ID.UUID: {X: b}},
		Queue:   []store.QueueRow{{Class: 1, Order: a.OrderKey, ID: a.ID.UUID}},
		Graphs: []invariants.Graph{{
			Flow: f, Members: map[string]base.ID{"a": a.ID, "b": b.ID}, Edges: []core.Edge{edge}, Upstreams: map[base.UUID][]base.UUID{b.ID.UUID: {a.ID.UUID}},
		}},
	}}
	c.graph = &c.snap.Graphs[0]
	c.edge = &c.graph.Edges[0]
	return c
}

// ends ends a, and resolves its edge.
func (c *couple) ends(status core.Status, reason core.Reason) {
	c.a.Status, c.a.Reason, c.a.Next, c.a.CompletedAt = status, reason, core.NextNone, now
	c.a.Failure = &core.Failure{}
	c.snap.Queue = nil
	c.f.Open--
	c.edge.State, c.edge.End, c.edge.Resolved = core.EdgeSatisfied, &core.EndedRun{Status: status}, now
	switch status {
	case core.Succeeded:
		c.f.Ends.Completed++
		c.b.Member.Join.Satisfied++
	case core.Cancelled:
		c.f.Ends.Cancelled++
	default:
		c.f.Ends.Failed++
	}
	if status != core.Succeeded {
		c.edge.State = core.EdgeImpossible
		c.b.Member.Join.Impossible++
	}
}

// skips skips b, whose join is impossible, and ends the flow.
func (c *couple) skips(state core.FlowState) {
	c.b.Status, c.b.Reason, c.b.Dependency, c.b.CompletedAt, c.b.Next = core.Skipped, core.DependencyImpossible, core.ReasonNone, now, core.NextNone
	c.b.Member.Join.State, c.b.Member.Join.DecidedAt = core.JoinBroken, now
	c.f.Open, c.f.Ends.Skipped, c.f.State, c.f.EndedAt = 0, 1, state, now
}

// waits lets a, outside of the flow, wait for b.
func (c *couple) waits() {
	child := core.Edge{From: core.NodeRef{Name: "b", ID: c.b.ID}, To: core.NodeRef{ID: c.a.ID}, Kind: core.AnyTerminal, Wait: 1, State: core.EdgePending}
	c.graph.Waits = append(c.graph.Waits, child)
	c.a.Status, c.a.Reason, c.a.Dependency = core.Blocked, core.WaitingForChildren, core.WaitingForChildren
	c.a.Children = &core.Children{FlowID: c.f.ID, Waits: 1, Wait: &core.ChildrenWait{Number: 1, Join: core.Join{N: 1, State: core.JoinPending}}}
	c.snap.Queue = nil
}

func TestFI1_FI2_FI3_FI7_FI8_FI9_FI10_FI12_FI14_what_a_flow_does_not_satisfy_is_found(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(c *couple)
		want   string // in the finding; "" for none
	}{
		"a flow at work is whole":        {func(*couple) {}, ""},
		"a node too many":                {func(c *couple) { c.f.Nodes++ }, "FI2"},
		"an edge too few":                {func(c *couple) { c.f.Edges-- }, "FI2"},
		"a member that says otherwise":   {func(c *couple) { c.a.Member.Name = "z" }, "FI2"},
		"a member that is not listed":    {func(c *couple) { delete(c.graph.Members, "b") }, "FI2"},
		"a member that is gone":          {func(c *couple) { delete(c.snap.Records, c.b.ID.UUID) }, "FI2"},
		"an upstream that is not listed": {func(c *couple) { c.graph.Upstreams = nil }, "FI2"},
		"a revision that never rose":     {func(c *couple) { c.f.Revision = 0 }, "FI2"},
		"a cycle": {func(c *couple) {
			c.graph.Edges = append(c.graph.Edges, core.Edge{From: c.edge.To, To: c.edge.From, State: core.EdgePending})
		}, "FI1"},
		"an end that its edge missed":     {func(c *couple) { c.a.Status = core.Succeeded }, "FI3"},
		"an edge counted twice":           {func(c *couple) { c.b.Member.Join.Satisfied++ }, "FI3"},
		"an edge satisfied by a failure":  {func(c *couple) { c.ends(core.Failed, core.Permanent); c.edge.State = core.EdgeSatisfied }, "FI3"},
		"an edge of a run that never was": {func(c *couple) { c.ends(core.Succeeded, core.Completed); c.edge.End.Run = 1 }, "FI3"},
		"a join satisfied by nothing":     {func(c *couple) { c.b.Member.Join.State = core.JoinHeld }, "FI3"},
		"a wait for what has come":        {func(c *couple) { c.ends(core.Succeeded, core.Completed) }, "FI8"},
		"skipped although it could run":   {func(c *couple) { c.b.Status = core.Skipped }, "FI8"},
		"started before its join":         {func(c *couple) { c.b.RunStartedAt = now }, "FI14"},
		"ready before its join":           {func(c *couple) { c.b.Status, c.b.Dependency = core.Ready, core.ReasonNone }, "FI14"},
		"an end that was not counted":     {func(c *couple) { c.ends(core.Succeeded, core.Completed); c.f.Ends.Completed-- }, "FI10"},
		"a failed flow is whole":          {func(c *couple) { c.ends(core.Failed, core.Permanent); c.skips(core.FlowFailed) }, ""},
		"a flow that does not end":        {func(c *couple) { c.ends(core.Failed, core.Permanent); c.skips(core.FlowOpen) }, "FI7"},
		"a failure that was overlooked":   {func(c *couple) { c.ends(core.Failed, core.Permanent); c.skips(core.FlowCompleted) }, "FI7"},
		"a failure that is none": {func(c *couple) {
			c.ends(core.Failed, core.Permanent)
			c.skips(core.FlowFailed)
			c.a.Member.MayFail = true
		}, "FI7"},
		"an end before the last member's": {func(c *couple) { c.f.State, c.f.EndedAt = core.FlowCompleted, now }, "FI7"},
		"somebody left by cancel_all":     {func(c *couple) { c.f.State, c.f.Cancel = core.FlowCancelling, &core.FlowCancel{Policy: core.CancelAll} }, "FI9"},
		"somebody left by cancel_pending": {func(c *couple) {
			c.f.State, c.f.Cancel = core.FlowCancelling, &core.FlowCancel{Policy: core.CancelPending}
		}, "F49"},
		"a starter ended by cancel_pending": {func(c *couple) {
			c.ends(core.Cancelled, core.FlowCancelled)
			c.a.RunStartedAt = now
			c.f.State, c.f.Cancel = core.FlowCancelling, &core.FlowCancel{Policy: core.CancelPending}
		}, "FI9"},
		"a parent that waits for an end": {func(c *couple) { c.waits(); c.b.Status = core.Failed }, "FI12"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := newCouple(t)
			c.damage(pair)
			found := pair.snap.Broken()
			says := func(text string) bool {
				return strings.Contains(text, c.want+":") || strings.Contains(text, c.want+",")
			}
			if c.want == "" {
				found = slices.DeleteFunc(found, func(text string) bool { return !strings.Contains(text, "FI") })
			}
			if c.want == "" && len(found) > 0 || c.want != "" && !slices.ContainsFunc(found, says) {
				t.Errorf("found %q, want %s", found, c.want)
			}
		})
	}
}

func TestF49_a_node_whose_sub_flow_has_begun_may_outlive_cancel_pending(t *testing.T) {
	t.Parallel()
	c := newCouple(t)
	c.f.State, c.f.Cancel = core.FlowCancelling, &core.FlowCancel{Policy: core.CancelPending}
	for _, x := range []*core.Execution{c.a, c.b} {
		x.Member.Subflow, x.Children = true, &core.Children{}
	}
	for _, text := range c.snap.Broken() {
		if strings.Contains(text, "F49") {
			t.Error(text)
		}
	}
}

func TestFI2_a_flow_of_a_store_whose_member_is_missing_is_found(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), sqlite.Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	tx, _, err := s.Begin(t.Context(), store.Want{})
	if err == nil {
		const flows store.DocKind = 29
		id := base.UUID{0: 5}
		data := store.EncodeFlow(&core.Flow{ID: base.IDOf(id), State: core.FlowOpen, Nodes: 1, Revision: 1, Open: 1})
		err = tx.Commit(t.Context(), &store.Changes{NewDocs: []store.Doc{{DocRef: store.DocRef{Kind: flows, Key: id.String()}, Data: data}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := invariants.Audit(t.Context(), s)
	if err != nil || !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, "FI2: 1 nodes") }) {
		t.Errorf("found %q, %v", found, err)
	}
}
