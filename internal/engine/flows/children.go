package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Spawn creates those children of a running worker that do not exist yet, and waits for them in the same transaction if requested (F38, F39, F43).
// Codes: those of a submit of a flow, of the fence and of WaitForChildren, name_taken, nesting_limit_exceeded, flow_already_terminal.
func (e *Graphs) Spawn(ctx context.Context, c txn.Caller, r SpawnRequest) (SpawnAnswer, error) {
	if err := r.Fence.Validate(); err != nil {
		return SpawnAnswer{}, err
	}
	s := core.FlowSpawn{Defaults: r.Defaults, Children: r.Children, Edges: r.Edges, OnParentEnd: r.OnParentEnd}
	if err := s.CheckShape(e.Cfg.Limits); err != nil {
		return SpawnAnswer{}, err
	}
	wait, err := newChildrenWait(c, r.ID, r.Fence, r.Wait)
	if err != nil {
		return SpawnAnswer{}, core.AtPlace(err, "wait")
	}
	for range extendTries {
		cmd, err := e.planSpawn(ctx, c, r, s, wait)
		if err != nil {
			return SpawnAnswer{}, err
		}
		if err := e.runGrowth(ctx, cmd, len(cmd.nodes)); err != nil {
			return SpawnAnswer{}, err
		}
		if !cmd.outdated {
			return e.spawned(ctx, cmd)
		}
	}
	return SpawnAnswer{}, graphBusy()
}

func graphBusy() error {
	return base.Errorf(base.CodeOverloaded, "others change the graph all the time").WithRetryAfter(100)
}

// runGrowth runs a small command together with those of others, and a large one alone.
func (e *Graphs) runGrowth(ctx context.Context, cmd txn.Command, size int) error {
	if size <= smallFlow {
		return e.Do(ctx, cmd)
	}
	return e.DoAlone(ctx, cmd)
}

// spawn is the command of Spawn: an extension of the children flow by the holder of the parent's lease.
type spawn struct {
	extension
	id          base.GivenID
	fence       core.Fence
	policy      string          // what the parent's end does to the children; "": not set
	of          *core.Execution // the parent, as it was when the spawn was planned
	first       bool            // there is no children flow yet
	above       core.FlowParent
	wait        *childrenWait // nil: it does not wait
	created     int
	asked       store.DocRef // record of a call that is repeatable by its key (W4)
	fingerprint string
	before      *core.RecordedChildrenWait // not nil: the call was answered before, with this
}

// planSpawn reads the parent and its children and checks the request against them.
func (e *Graphs) planSpawn(ctx context.Context, c txn.Caller, r SpawnRequest, s core.FlowSpawn, wait *childrenWait) (*spawn, error) {
	_, parent, err := e.ReadOne(ctx, c, r.ID, store.Want{Executions: []base.UUID{r.ID.UUID}})
	if err != nil {
		return nil, e.FromElsewhere(&r.Fence, err)
	}
	if err := c.WorksIn(parent.Class.Lane); err != nil {
		return nil, err
	}
	if wait == nil { // otherwise the call may repeat one that has ended the lease
		if _, err := parent.CheckKeep(nil, r.Fence); err != nil {
			return nil, e.FromElsewhere(&r.Fence, err)
		}
	}
	cmd := &spawn{id: r.ID, fence: r.Fence, policy: r.OnParentEnd, of: parent}
	if c.RequestKey != "" {
		cmd.asked = txn.RequestRef(c, cmd.Name(), parent.ID.UUID.String(), c.RequestKey)
		cmd.asked.Owner = txn.Owner(parent.ID.UUID)
		cmd.fingerprint = txn.Fingerprint(r.Children, r.Edges, r.OnParentEnd)
	}
	cmd.e, cmd.kept, cmd.old = e, map[string]base.ID{}, map[base.UUID]bool{}
	if err := cmd.findFlow(ctx, s.OnParentEnd); err != nil {
		return nil, err
	}
	if err := core.CheckNesting(cmd.seen.Depth, "children", s.Children); err != nil {
		return nil, err
	}
	known, prints, err := e.childNames(ctx, cmd.seen.ID, namesIn(&s))
	if err != nil {
		return nil, err
	}
	if err := cmd.planChildren(ctx, c, &s, known, prints); err != nil {
		return nil, err
	}
	edges, err := s.CheckGraph(known.find)
	if err != nil {
		return nil, err
	}
	if err := cmd.newEdges(ctx, known, edges); err != nil {
		return nil, err
	}
	if wait != nil {
		planned := *wait
		cmd.wait = &planned
		if err := cmd.planWait(ctx); err != nil {
			return nil, err
		}
	}
	cmd.wary = len(cmd.old) > 0 || cmd.wait != nil && cmd.wait.missing != nil
	return cmd, cmd.classify(ctx, store.Want{})
}

// findFlow finds the children flow of the parent's run, or what it is to be created from (F38, F45).
func (s *spawn) findFlow(ctx context.Context, onParentEnd string) (err error) {
	x := s.of
	if s.first = x.Children == nil; !s.first {
		s.seen, err = s.e.ReadFlow(ctx, txn.EngineCaller, x.Children.FlowID.Given())
		if err == nil {
			s.flow, s.root = s.seen.ID, s.seen.Root
		}
		return err
	}
	s.flow = base.ID{N: x.ID.N, UUID: s.e.Mint()}
	s.above = core.FlowParent{Execution: x.ID, Run: x.RunIndex()}
	if x.Member != nil {
		outer, err := s.e.ReadFlow(ctx, txn.EngineCaller, x.FlowID.Given())
		if err != nil {
			return err
		}
		if s.above.Root, s.above.Depth = outer.Root, outer.Depth+1; s.above.Depth > core.MaxFlowDepth {
			return base.Errorf(base.CodeNestingLimitExceeded, "flows are nested at most %d deep", core.MaxFlowDepth).With("limit", core.MaxFlowDepth)
		}
	}
	made := core.FlowSubmission{Namespace: x.Class.Namespace, Kind: core.KindChildren, Creator: x.Creator, CreatorKey: x.CreatorKey, Trace: x.Trace}
	s.seen = core.NewFlow(&core.Effects{}, &made, s.flow, s.above)
	s.seen.OnParentEnd, s.root = onParentEnd, s.seen.Root
	return nil
}

// namesIn lists what a spawn calls children by.
func namesIn(s *core.FlowSpawn) (names []string) {
	for i := range s.Children {
		names = append(names, s.Children[i].Name)
		names = append(names, s.Children[i].After...)
	}
	for i := range s.Edges {
		names = append(names, s.Edges[i].From, s.Edges[i].To)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// childNames finds children by name or id, and the fingerprints of their definitions.
func (e *Graphs) childNames(ctx context.Context, flow base.ID, names []string) (known *memberNames, prints map[string][]byte, err error) {
	known, prints = &memberNames{ids: map[string]base.ID{}, names: map[base.UUID]string{}}, map[string][]byte{}
	var want store.Want
	for _, name := range names {
		want.Docs = append(want.Docs, memberRef(flow.UUID, name))
		if id, err := base.ParseID(name); err == nil {
			want.Executions = append(want.Executions, id.UUID)
		}
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	for ref, doc := range loaded.Docs {
		m, err := readMember(&doc)
		if err != nil {
			return nil, nil, err
		}
		known.ids[ref.Key], known.names[m.id.UUID], prints[ref.Key] = m.id, ref.Key, doc.Data
	}
	for id, x := range loaded.Executions {
		if x.Member != nil && x.FlowID == flow {
			known.ids[x.Member.Name], known.names[id] = x.ID, x.Member.Name
		}
	}
	return known, prints, nil
}

// planChildren plans the children whose names are new; one that exists must be the same (F39).
func (s *spawn) planChildren(ctx context.Context, c txn.Caller, r *core.FlowSpawn, known *memberNames, prints map[string][]byte) error {
	s.list, s.parent = "children", s.of.ID
	var fresh []core.FlowNode
	for i := range r.Children {
		node := &r.Children[i]
		id, there := known.ids[node.Name]
		if !there {
			fresh, s.number = append(fresh, *node), append(s.number, i)
			continue
		}
		asked := node.Submission(s.seen.Namespace, s.seen.Creator, &r.Defaults)
		err := asked.Normalize(work.AnySize)
		if err == nil && !sameFingerprint(prints[node.Name], core.NodeFingerprint(&asked, node)) {
			err = base.Errorf(base.CodeNameTaken, "another child is called %q", node.Name).WithField("name").With("execution_id", id.String())
		}
		if err != nil {
			return core.AtPlace(err, s.listed(i))
		}
		s.kept[node.Name] = id
	}
	if err := s.e.newGraphDelta(ctx, workerOf(c, s.of), &s.graphDelta, &r.Defaults, fresh, s.seen.Namespace, s.seen.Submitter(), s.of.Trace); err != nil {
		return err
	}
	for i := range s.nodes {
		s.nodes[i].fingerprint = core.NodeFingerprint(&s.nodes[i].cmd.S, s.nodes[i].node)
	}
	return s.checkSubflows(ctx, workerOf(c, s.of), fresh, func(there func(string) bool, check core.NodeCheck) error {
		return r.CheckNodes(s.seen.Namespace, s.seen.Creator, there, check)
	})
}

// workerOf is the caller as the actor of what the holder of a lease makes.
func workerOf(c txn.Caller, x *core.Execution) txn.Caller {
	fx := core.Effects{Actor: core.Actor{ID: c.Principal}}
	c.AsWorker(x, &fx)
	c.Actor, c.Principal = fx.Actor.Type, fx.Actor.ID
	return c
}
