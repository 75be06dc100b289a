package engine_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// leaving starts a parent with a budget of its own, lets it spawn children that stay when it ends, and ends it.
func (w *world) leaving(budget string, children ...string) (parent base.GivenID, spawned map[string]base.ID) {
	w.t.Helper()
	w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(`{"budgets":[` + budget + `]}`)})
	task := w.claimKind("parent")
	r := spawnOf(task, children...)
	r.OnParentEnd = core.Detach
	spawned = w.spawnAll(r).Children
	w.complete(task)
	return given(task), spawned
}

func (w *world) deleteBudget(name string) {
	w.t.Helper()
	ok(w.t, w.e.DeleteBudget(w.ctx(), operator, ofName(name), engine.AdminAction{}))
}

const mine = `{"name":"mine","dimensions":{"tokens":{"hard":10}}}`

func TestB33_BI8_children_go_on_when_the_budget_of_their_parent_is_deleted(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		_, children := w.leaving(mine, "blocked", "queued")
		must(w.charge("mine", 10))(t)
		r := ask()
		r.Kinds = []string{"blocked"}
		same(t, "no room", len(w.take(r)), 0)
		w.is(children["blocked"].Given(), core.Blocked, core.WaitingForBudget)
		w.deleteBudget("mine")
		w.becomes(children["blocked"].Given(), core.Ready)
		for _, id := range children {
			eventually(t, "it has it no more", func() bool { return len(w.get(id.Given()).Budgets) == 0 })
		}
		for _, kind := range []string{"blocked", "queued"} {
			w.complete(w.claimKind(kind))
		}
	})
}

func TestB33_SI10_children_of_an_earlier_run_go_on_when_the_budget_of_their_parent_is_deleted(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		parent, children := w.leaving(mine, "a")
		w.replay(parent)
		w.complete(w.claimKind("parent"))
		w.deleteBudget("mine")
		eventually(t, "none is left to be freed", func() bool {
			docs := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: docTask}}}))(t).Scanned[0]
			return !slices.ContainsFunc(docs, func(doc store.Doc) bool { return bytes.Contains(doc.Body, []byte("free_budget")) })
		})
		task := w.claimKind("a") // which was not known: it was queued, and is reached by no graph
		same(t, "claimed", task.Execution.ID, children["a"])
		same(t, "charged to", len(task.Execution.ChargedTo()), 0)
	})
}

func TestB33_B34_who_waits_for_a_budget_above_one_that_is_deleted_goes_on(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("outer", 10))
		own := `{"name":"mine","parent":"outer","dimensions":{"tokens":{"hard":100}}}`
		parent, children := w.leaving(own, "a")
		must(w.charge("outer", 10))(t)
		r := ask()
		r.Kinds = []string{"a"}
		same(t, "no room", len(w.take(r)), 0)
		same(t, "blocked on", w.get(children["a"].Given()).BlockedOn, core.BudgetKey(w.budget("outer").ID))
		w.replay(parent)
		w.cancel(parent)
		w.deleteBudget("mine")
		w.becomes(children["a"].Given(), core.Ready)
		w.complete(w.claimKind("a"))
	})
}

func TestB3_B6_a_budget_that_cannot_be_read_is_not_taken_away_from_those_it_reaches(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		w.unaudited = true
		flow := w.submitFlow(chain("a"))
		made := w.create(tokens("shared", 10, covering(core.ScopeFlow, flow.Flow.ID.String())))
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 21, Key: made.ID.String()}, Body: []byte(`{"id":7}`)}}})
		refused(t, w.e.Graphs.Spread(w.ctx(), flow.Flow.ID.UUID, made.ID), base.CodeCorruption)
		same(t, "reaches", len(w.member(flow, "a").Budgets), 1)
		w.nothing()
		same(t, "blocked on", w.member(flow, "a").BlockedOn, core.BudgetKey(made.ID))
	})
}

// freed reports that no execution is about to be freed from a budget.
func (w *world) freed() bool {
	docs := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: docTask}}}))(w.t).Scanned[0]
	return !slices.ContainsFunc(docs, func(doc store.Doc) bool { return bytes.Contains(doc.Body, []byte("free_budget")) })
}

func TestB5_B33_work_goes_on_that_is_queued_after_the_history_of_its_deleted_budget_is_gone(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		parent, children := w.leaving(mine, "a")
		gone := store.DocRef{Kind: 37, Key: w.budget("mine").ID.String()}
		w.replay(parent)
		w.complete(w.claimKind("parent"))
		w.deleteBudget("mine")
		eventually(t, "none is left to be freed", w.freed)
		w.turn(91 * base.Day)
		eventually(t, "the history is gone", func() bool {
			_, there := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{gone}}))(t).Docs[gone]
			return !there
		})
		w.create(tokens("another", 1)) // which has nothing to do with it
		task := w.claimKind("a")
		same(t, "claimed", task.Execution.ID, children["a"])
		same(t, "charged to", len(task.Execution.ChargedTo()), 0)
	})
}

func TestB3_work_waits_for_a_budget_whose_record_is_lost_however_long_that_is_ago(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.unaudited = true
		_, children := w.leaving(mine, "a")
		id := w.budget("mine").ID
		w.tamper(store.Changes{DropDocs: []store.DocRef{{Kind: 21, Key: id.String()}}})
		w.turn(91 * base.Day)
		w.nothing()
		eventually(t, "it was looked at", w.freed)
		w.nothing()
		w.is(children["a"].Given(), core.Blocked, core.WaitingForBudget)
	})
}
