package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
)

// How flows lie in the store. The numbers are stored, so that they never change.
const (
	flowDocs   store.DocKind = 29
	memberDocs store.DocKind = 31
	edgeDocs   store.DocKind = 32
)

// read reads rows of a store.
func (m *loom) read(s *subject, want store.Want) *store.Loaded {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	loaded, err := s.store.Read(ctx, want)
	if err != nil {
		m.t.Fatalf("%s: read: %v", s.name, err)
	}
	return loaded
}

// find learns the ids of flows that the engine made by itself: sub-flows and those of children. Their nodes and parents know them.
func (m *loom) find() {
	for _, n := range slices.Clone(m.w.nets) {
		for _, s := range m.subjects {
			if !n.ids[s.name].IsZero() || !slices.Contains(m.w.nets, n) {
				continue
			}
			if parent := n.parent.ids[s.name]; !parent.IsZero() {
				if x := m.read(s, store.Want{Executions: []base.UUID{parent.UUID}}).Executions[parent.UUID]; x != nil && x.Children != nil {
					m.learn(s, n, x.Children.FlowID)
					continue
				}
			}
			if n.spawned || !final(n.parent.status) || n.left() > 0 {
				m.t.Fatalf("F46, F38: %s has made no flow below %s", s.name, n.parent.label())
			}
			m.w.forget(n)
		}
	}
}

// forget takes a flow out of the account that not every engine has made: its node had begun and ended within one command, and which piece
// of follow-up work comes first is not fixed.
func (w *fabric) forget(n *net) {
	n.parent.below = nil
	w.nets = slices.DeleteFunc(w.nets, func(other *net) bool { return other == n })
	w.knots = slices.DeleteFunc(w.knots, func(k *knot) bool { return k.net == n })
}

// learn notes the ids of a flow and of its members.
func (m *loom) learn(s *subject, n *net, id base.ID) {
	n.ids[s.name] = id
	members := map[string]base.ID{}
	for _, doc := range m.read(s, store.Want{Scans: []store.Scan{{Kind: memberDocs, Owner: id.UUID.String()}}}).Scanned[0] {
		var id base.ID
		if err := json.Unmarshal(doc.Body, &id); err != nil {
			m.t.Fatal(err)
		}
		members[doc.Key] = id
	}
	n.took(s, members)
}

// check compares everything that every store holds with the account.
func (m *loom) check() {
	m.compare()
	if len(m.w.nets) == 0 {
		return
	}
	s, n := m.subjects[m.d.under("store", len(m.subjects))], pickOne(m.d, "flow", m.w.nets...)
	if n.ids[s.name].IsZero() {
		return
	}
	m.checkView(s, n)
	if len(n.knots) > 0 {
		m.checkJoin(s, n, pickOne(m.d, "member", n.knots...))
	}
}

// compare compares the rows and events of every store with the account.
func (m *loom) compare() {
	want := m.lines()
	for _, s := range m.subjects {
		if diff := cmp.Diff(want, m.stored(s)); diff != "" {
			m.t.Fatalf("after command %d (-account +%s):\n%s", m.number, s.name, diff)
		}
		m.checkEvents(s)
		m.checkSteps(s)
	}
}

// lines writes the account down: a line for each execution, flow and edge.
func (m *loom) lines() map[string]string {
	all := map[string]string{}
	for _, k := range m.w.knots {
		line := fmt.Sprintf("%s %s run %d epoch %d started %v held %v", k.status, k.why, k.run, k.epoch, k.started, k.held)
		if k.net != nil {
			met, lost, open := k.tally()
			line += fmt.Sprintf(" join %s %d+%d of %d", k.join, met, lost, met+lost+open)
		}
		if k.wait != nil && k.wait.cause == "" {
			line += fmt.Sprintf(" waits for %d until %s", len(k.wait.children), k.wait.timeoutAt)
		}
		all[k.label()] = line
	}
	for _, n := range m.w.nets {
		line := fmt.Sprintf("%s sealed %v revision %d, %d nodes, %d edges, %d open", n.state, n.sealed, n.revision, len(n.knots), len(n.threads), n.left())
		if n.cancel != nil {
			line += " " + n.cancel.policy
		}
		all["flow "+n.label] = line
		for _, t := range n.threads {
			state := pending
			if t.outcome != "" {
				state = map[bool]string{true: satisfied, false: impossible}[meets(t.kind, t.outcome)]
			}
			all[fmt.Sprintf("edge %s -> %s", t.from.label(), t.to.label())] = fmt.Sprintf("%s %s %s by %s run %d at %s", t.kind, t.pass, state, t.outcome, t.run, t.at)
		}
	}
	return all
}

// stored writes down the same of a store.
func (m *loom) stored(s *subject) map[string]string {
	var want store.Want
	for _, k := range m.w.knots {
		id := k.ids[s.name].UUID
		want.Executions = append(want.Executions, id)
		want.Owned = append(want.Owned, store.Owned{Kind: edgeDocs, Owner: id.String()})
	}
	for _, n := range m.w.nets {
		want.Docs = append(want.Docs, store.DocRef{Kind: flowDocs, Key: n.ids[s.name].UUID.String()})
	}
	loaded := m.read(s, want)
	all := map[string]string{}
	for i, k := range m.w.knots {
		x := loaded.Executions[want.Executions[i]]
		if x == nil {
			all[k.label()] = "not there"
			continue
		}
		all[k.label()] = m.storedKnot(k, x)
		m.storedEdges(all, s, k.net, loaded.Owned[want.Owned[i]])
	}
	for i, n := range m.w.nets {
		doc, ok := loaded.Docs[want.Docs[i]]
		var f core.Flow
		if !ok || store.DecodeFlow(doc.Data, &f) != nil {
			all["flow "+n.label] = "not there"
			continue
		}
		line := fmt.Sprintf("%s sealed %v revision %d, %d nodes, %d edges, %d open", f.State, f.Sealed, f.Revision, f.Nodes, f.Edges, f.Open)
		if f.Cancel != nil {
			line += " " + string(f.Cancel.Policy)
		}
		all["flow "+n.label] = line
	}
	return all
}

func (m *loom) storedKnot(k *knot, x *core.Execution) string {
	why := ""
	if k.why != "" || x.Status == core.Blocked || x.Status == core.Skipped {
		why = x.Reason.String()
	}
	if k.why == byEither && (why == bySatisfied || why == byImpossible) {
		why = byEither
	}
	line := fmt.Sprintf("%s %s run %d epoch %d started %v held %v", x.Status, why, x.RunIndex(), x.LeaseEpoch, x.RunStartedAt != 0, x.Held != nil)
	if j := joinIn(x); k.net != nil {
		line += fmt.Sprintf(" join %s %d+%d of %d", j.State, j.Satisfied, j.Impossible, j.N)
	}
	if c := x.Children; c != nil && c.Wait != nil && c.Wait.Cause == "" && x.Status == core.Blocked {
		line += fmt.Sprintf(" waits for %d until %s", c.Wait.Join.N, c.Wait.TimeoutAt)
	}
	return line
}

func joinIn(x *core.Execution) core.Join {
	if x.Member == nil {
		return core.Join{}
	}
	return x.Member.Join
}

func (m *loom) storedEdges(all map[string]string, s *subject, n *net, docs []store.Doc) {
	for _, doc := range docs {
		var e core.Edge
		if err := store.DecodeEdge(doc.Data, &e); err != nil {
			m.t.Fatal(err)
		}
		if e.Wait != 0 {
			continue
		}
		outcome, run := "", 0
		if e.End != nil {
			outcome, run = e.End.Status.String(), e.End.Run
		}
		name := func(ref core.NodeRef) string {
			if k := n.named(ref.Name); k != nil && k.ids[s.name] == ref.ID {
				return k.label()
			}
			return ref.ID.String()
		}
		all[fmt.Sprintf("edge %s -> %s", name(e.From), name(e.To))] = fmt.Sprintf("%s %s %s by %s run %d at %s", e.Kind, e.Pass, e.State, outcome, run, e.Resolved)
	}
}

// publics counts the members by public state (F59).
func (n *net) publics() map[string]int {
	counts := map[string]int{}
	for _, state := range []string{
		"waiting", "resumable", "delayed", "rate_limited", "waiting_children", "active", "suspended", "completed", "failed", "cancelled", "expired", "skipped",
	} {
		counts[state] = 0
	}
	for _, k := range n.knots {
		public := map[string]string{working: "active", succeeded: "completed", blocked: "waiting_children", ready: "waiting", granted: "waiting"}[k.status]
		switch {
		case (k.status == ready || k.status == granted) && k.resumes:
			public = "resumable"
		case k.why == byHold:
			public = "waiting"
		case public == "":
			public = k.status
		}
		counts[public]++
	}
	return counts
}

// phase is F6.
func (n *net) phase() string {
	has := func(statuses ...string) bool {
		return slices.ContainsFunc(n.knots, func(k *knot) bool { return slices.Contains(statuses, k.status) })
	}
	switch {
	case n.isOver():
		return ""
	case has(working, granted):
		return "running"
	case has(ready, delayed):
		return "waiting"
	case has(suspends):
		return "suspended"
	case has(blocked):
		return "blocked"
	default:
		return "idle"
	}
}

// checkView compares what readers are shown of a flow (F6, F59).
func (m *loom) checkView(s *subject, n *net) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	view, err := s.e.Flow(ctx, reader, n.ids[s.name].Given())
	if err != nil {
		m.t.Fatalf("%s: get_flow %s: %v", s.name, n.label, err)
	}
	m.same(s, "F6: phase of "+n.label, n.phase(), view.Phase)
	m.same(s, "FI10: counts of "+n.label, n.publics(), view.Counts)
	joins := map[string]int{}
	for _, k := range n.knots {
		if k.join != "" {
			joins[k.join]++
		}
	}
	m.same(s, "F59: joins of "+n.label, joins, view.Joins)
}

// checkJoin compares what readers are shown of the join of a member (F60).
func (m *loom) checkJoin(s *subject, n *net, k *knot) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	join, err := s.e.Join(ctx, reader, n.ids[s.name].Given(), k.name)
	if err != nil {
		m.t.Fatalf("%s: get_join of %s: %v", s.name, k.label(), err)
	}
	var want, got []string
	for _, t := range k.inbound() {
		if t.outcome == "" {
			want = append(want, t.from.name)
		}
	}
	for _, ref := range join.Waiting {
		got = append(got, ref.Name)
	}
	slices.Sort(want)
	m.same(s, "F60: who "+k.label()+" waits for", want, got)
}

// checkWhole lets the engine recount, and holds the store to the invariants (FI2, FI3, FI7..FI10, FI12, FI14).
func (m *loom) checkWhole(s *subject) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, err := s.e.Integrity(ctx)
	if err != nil || len(report.Differences) > 0 {
		m.t.Fatalf("%s: integrity: %+v, %v", s.name, report.Differences, err)
	}
	found, err := invariants.Audit(ctx, s.store)
	if err != nil || len(found) > 0 {
		m.t.Fatalf("%s: audit: %v\n%s", s.name, err, strings.Join(found, "\n"))
	}
}

// flowEvents are the kinds of the events that a store has told of flows.
type flowEvents struct {
	cursor string
	kinds  map[base.UUID][]string
}

// checkEvents compares the events of flows (F63).
func (m *loom) checkEvents(s *subject) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	told := m.told[s.name]
	for end := false; !end; {
		page, err := s.e.ReadEvents(ctx, reader, engine.EventsRequest{After: told.cursor, Limit: 1000})
		if err != nil {
			m.t.Fatalf("%s: read events: %v", s.name, err)
		}
		told.cursor, end = page.Next, page.AtEnd
		for i := range page.Events {
			if ev := &page.Events[i]; strings.HasPrefix(ev.Kind, "flow.") {
				told.kinds[ev.FlowID.UUID] = append(told.kinds[ev.FlowID.UUID], ev.Kind)
			}
		}
	}
	for _, n := range m.w.nets {
		if id := n.ids[s.name]; !id.IsZero() {
			m.same(s, "F63: events of "+n.label, n.told, told.kinds[id.UUID])
		}
	}
}
