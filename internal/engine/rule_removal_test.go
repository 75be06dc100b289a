package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// tallied is a store that lets a test act after a count came and before the engine sees it.
type tallied struct {
	store.Store
	counts atomic.Int64
	at     int64 // acts at the count of this number
	act    func()
}

func (c *tallied) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	n, err := c.Store.Count(ctx, q, limit)
	if c.at != 0 && c.counts.Add(1) == c.at {
		c.act()
	}
	return n, err
}

// counting opens the world's engine on a store that acts at a count.
func (w *world) counting() *tallied {
	w.t.Helper()
	closeEngine(w.t, w.e)
	c := &tallied{Store: w.store}
	w.e = w.openEngine(c)
	return c
}

// removable is a rule that work may name: a quota, a budget that the registry names, one of an execution.
type removable struct {
	make   func(w *world)
	work   core.Submission
	remove func(w *world) error
	inUse  base.Code
	key    func(w *world) string
}

func rulesToRemove() map[string]removable {
	budget := func(scope func(w *world) core.BudgetScope) removable {
		return removable{
			make: func(w *world) {
				d := tokens("b", 100)
				d.Scope = scope(w)
				w.create(d)
			},
			work:   costing(1, "b"),
			remove: func(w *world) error { return w.e.DeleteBudget(w.ctx(), operator, ofName("b"), engine.AdminAction{}) },
			inUse:  base.CodeBudgetInUse,
			key:    func(w *world) string { return core.BudgetKey(w.budget("b").ID) },
		}
	}
	return map[string]removable{
		"quota": {
			make:   func(w *world) { w.quota("q", core.QuotaSettings{ConcurrencyLimit: 5}) },
			work:   attached(use("q")),
			remove: func(w *world) error { return w.deleteQuota("q", false) },
			inUse:  base.CodeQuotaInUse,
			key:    func(*world) string { return "quota:q" },
		},
		"budget": budget(func(*world) core.BudgetScope { return core.BudgetScope{Type: core.ScopeNone} }),
		"budget of an execution": budget(func(w *world) core.BudgetScope {
			task := w.started(core.Submission{})
			w.complete(task)
			return core.BudgetScope{Type: core.ScopeExecution, Value: given(task).UUID.String()}
		}),
	}
}

// onRules runs a test for each kind of rule. Its class is known, and no execution names it.
func onRules(t *testing.T, f func(t *testing.T, w *world, c *tallied, r removable)) {
	t.Helper()
	for name, r := range rulesToRemove() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				c := w.counting()
				r.make(w)
				w.complete(w.started(r.work))
				f(t, w, c, r)
			})
		})
	}
}

func TestS38_B5_work_that_comes_while_it_is_counted_who_names_a_rule_keeps_it(t *testing.T) {
	t.Parallel()
	onRules(t, func(t *testing.T, w *world, c *tallied, r removable) {
		var id base.GivenID
		c.at, c.act = 1, func() { id = w.submit(r.work) }
		refused(t, r.remove(w), r.inUse)
		task := w.claim()
		same(t, "it runs", given(task), id)
		w.complete(task)
		w.complete(w.started(r.work)) // and others may name it again
		ok(t, r.remove(w))
	})
}

func TestS38_B5_no_submit_names_a_rule_that_is_about_to_go(t *testing.T) {
	t.Parallel()
	onRules(t, func(t *testing.T, w *world, c *tallied, r removable) {
		s := r.work
		s.Kind = "k"
		var err error
		c.at, c.act = 2, func() { _, err = w.e.Submit(w.ctx(), client, s) }
		ok(t, r.remove(w))
		refused(t, err, base.CodeOverloaded)
		_, err = w.e.Submit(w.ctx(), client, s)
		refused(t, err, base.CodeInvalidPolicy)
	})
}

func TestS38_B5_a_crash_between_mark_and_removal_heals(t *testing.T) {
	t.Parallel()
	onRules(t, func(t *testing.T, w *world, _ *tallied, r removable) {
		must(w.e.MarkRemoval(w.ctx(), r.key(w)))(t)
		s := r.work
		s.Kind = "k"
		_, err := w.e.Submit(w.ctx(), client, s)
		refused(t, err, base.CodeOverloaded)
		w.pass(60_000)
		eventually(t, "it may be named again", func() bool {
			_, err := w.e.Submit(w.ctx(), client, s)
			return err == nil
		})
	})
}

func TestS38_B5_another_call_goes_on_with_what_one_has_left_behind_and_the_first_removes_nothing(t *testing.T) {
	t.Parallel()
	onRules(t, func(t *testing.T, w *world, c *tallied, r removable) {
		must(w.e.MarkRemoval(w.ctx(), r.key(w)))(t)
		c.at, c.act = 2, func() { must(w.e.MarkRemoval(w.ctx(), r.key(w)))(t) }
		refused(t, r.remove(w), base.CodeOverloaded)
		ok(t, r.remove(w))
	})
}

func TestS38_U13_a_repeat_that_comes_while_a_quota_is_deleted_is_answered_like_the_first(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		c := w.counting()
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 5})
		w.complete(w.started(attached(use("q"))))
		remove := func() error {
			return w.e.DeleteQuota(w.ctx(), operator, "q", false, engine.AdminAction{RequestKey: "once"})
		}
		other := errors.New("not asked")
		c.at, c.act = 1, func() { other = remove() } // while the first looks who needs it
		ok(t, remove())
		ok(t, other)
		same(t, "rows of the deletion", len(w.told(operator, core.AuditFilter{Action: "delete_quota"})), 1)
		refused(t, w.deleteQuota("q", false), base.CodeQuotaNotFound)
	})
}

func TestU101_a_quota_that_is_about_to_go_is_given_to_no_submit(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 5})
		must(w.e.MarkRemoval(w.ctx(), "quota:q"))(t)
		_, err := w.e.PutNamespace(w.ctx(), operator, "default", core.NamespaceSettings{DefaultQuotas: []core.QuotaUse{use("q")}}, engine.AdminAction{})
		refused(t, err, base.CodeOverloaded)
	})
}

func TestS38_S47_members_of_a_flow_go_on_when_the_quota_that_kept_them_is_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 1})
		w.started(attached(use("mail")))
		s := chain("a")
		s.Nodes[0].PolicyJSON = []byte(`{"quotas":[{"quota":"mail"}]}`)
		flow := w.submitFlow(s)
		w.nothing()
		w.is(flow.Members["a"].Given(), core.Blocked, core.WaitingForQuota)
		ok(t, w.deleteQuota("mail", true))
		w.becomes(flow.Members["a"].Given(), core.Ready)
		w.run(flow, "a")
	})
}
