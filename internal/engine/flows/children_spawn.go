package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

func (s *spawn) Flows(*txn.Tx) []base.UUID {
	if s.first {
		return nil
	}
	return []base.UUID{s.flow.UUID}
}

func (s *spawn) Name() string { return "spawn" }

// Carried is the lease under which the command is sent; nil: none.
func (s *spawn) Carried() *core.Fence { return &s.fence }

func (s *spawn) Want(w *store.Want, careful bool) {
	s.extension.Want(w, careful)
	w.Executions = append(w.Executions, s.id.UUID)
	if s.asked.Key != "" {
		w.Docs = append(w.Docs, s.asked)
	}
	if s.wait != nil {
		s.wait.wantRequest(w)
	}
}

func (s *spawn) More(u *txn.Tx, w *store.Want) {
	if s.wait != nil {
		s.wait.More(u, w)
	}
}

func (s *spawn) Graph(ctx context.Context, u *txn.Tx) error {
	var want store.Want
	for i := range s.edges {
		edge := &s.edges[i]
		if !edge.ID.IsZero() {
			want.Docs = append(want.Docs, edgeIDRef(s.flow.UUID, edge.ID))
		}
		if to := s.refs[edge.To].ID.UUID; s.old[to] {
			want.Docs = append(want.Docs, upstreamsRef(to))
		}
	}
	if err := lockFlows(ctx, u, nil, nil, want); err != nil || s.wait == nil {
		return err
	}
	return s.wait.Graph(ctx, u)
}

func (s *spawn) Decide(u *txn.Tx) error {
	s.outdated, s.created, s.before, s.answer = false, 0, nil, FlowAnswer{}
	ent, err := u.Find(s.caller, s.id)
	if err != nil {
		return err
	}
	u.Settle(ent)
	if s.wait != nil && s.wait.repeats(u, ent) {
		defer func() { s.before = s.wait.first }()
		return s.wait.judge(u, ent, 0)
	}
	if again, err := s.answeredBefore(u); err != nil || again && s.wait == nil {
		return err
	}
	if _, err := ent.Exec.CheckKeep(nil, s.fence); err != nil {
		return err
	}
	f, err := s.flowNow(u, ent.Exec)
	if err != nil || s.outdated {
		return err
	}
	if err := s.check(u); err != nil || u.Redo != nil {
		return err
	}
	if err := s.checkEdges(u); err != nil {
		return err
	}
	if s.wait != nil && s.wait.missing != nil {
		return core.AtPlace(s.wait.missing, "wait")
	}
	if s.wait != nil {
		if _, _, err := s.wait.asked(u, ent); err != nil {
			return err
		}
	}
	if s.lacksClasses(u) {
		return nil
	}
	s.grow(u, ent, f)
	if s.before == nil {
		u.RecordRequest(s.asked, s.fingerprint, core.RecordedChildrenWait{FlowID: s.flow, Spawned: s.created})
	}
	if s.wait == nil {
		return nil
	}
	return s.wait.judge(u, ent, s.created)
}

// answeredBefore recognises a repeated call by its request key. What it waits for is evaluated again: that ends the lease at most once.
func (s *spawn) answeredBefore(u *txn.Tx) (bool, error) {
	var first core.RecordedChildrenWait
	again, err := u.Repeated(s.caller, s.asked, s.fingerprint, &first)
	if again && err == nil {
		s.before = &first
	}
	return again, err
}

// flowNow is the children flow as it is under its lock. The spawn is outdated if it was planned on another.
func (s *spawn) flowNow(u *txn.Tx, x *core.Execution) (*core.Flow, error) {
	if s.first {
		s.outdated = x.Children != nil || x.RunIndex() != s.above.Run
		return s.seen, nil
	}
	f := flow(u, s.flow.UUID)
	if s.outdated = x.Children == nil || x.Children.FlowID != s.flow || f == nil || f.Revision != s.seen.Revision; s.outdated {
		return nil, nil
	}
	if len(s.nodes)+len(s.edges) > 0 {
		return f, f.NotOpen()
	}
	return f, nil
}

// grow creates what is new. The first spawn of a run creates the children flow (F38).
func (s *spawn) grow(u *txn.Tx, ent *txn.Row, f *core.Flow) {
	if s.first && len(s.nodes) == 0 {
		return
	}
	if s.first {
		fx := u.Effects(s.caller)
		f = s.newFlow(fx)
		f.Budgets = ent.Exec.Budgets // for members that others add to it (B6)
		createFlow(u, f)
		f.Created(fx, 0, 0)
		u.Keep(fx)
		ent.Exec.StartChildren(u.Now, f.ID)
		u.Touch(ent)
	}
	if s.policy != "" && s.policy != f.OnParentEnd { // the last word counts
		f.OnParentEnd = s.policy
		touchFlow(u, f)
	}
	budgets := core.JoinBudgets(f.Budgets, ent.Exec.Budgets) // as they are under the lock; the flow may have some of its own (B6)
	for i := range s.nodes {
		s.nodes[i].cmd.S.Budgets = budgets
	}
	s.extension.write(u, f)
	s.created = len(s.nodes)
}

// newFlow is the children flow, made of what was planned: each try of the transaction has its own.
func (s *spawn) newFlow(fx *core.Effects) *core.Flow {
	made := core.FlowSubmission{Namespace: s.seen.Namespace, Kind: s.seen.Kind, Creator: s.seen.Creator, CreatorKey: s.seen.CreatorKey, Trace: s.seen.Trace}
	f := core.NewFlow(fx, &made, s.flow, s.above)
	f.OnParentEnd = s.seen.OnParentEnd
	return f
}

// spawned is the answer to a spawn that has committed.
func (e *Graphs) spawned(ctx context.Context, cmd *spawn) (SpawnAnswer, error) {
	answer := SpawnAnswer{Children: cmd.answer.Members, Created: cmd.created}
	if cmd.wait != nil {
		answer.Wait = &cmd.wait.answer
	}
	if cmd.before == nil {
		return answer, nil
	}
	// A repeat: the run, and with it the plan, may be another one now.
	var names []string
	for name := range cmd.kept {
		names = append(names, name)
	}
	for i := range cmd.nodes {
		names = append(names, cmd.nodes[i].node.Name)
	}
	known, _, err := e.childNames(ctx, cmd.before.FlowID, names)
	if err != nil {
		return SpawnAnswer{}, err
	}
	answer.Children, answer.Created = known.ids, cmd.before.Spawned
	return answer, nil
}
