package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB2_create_is_idempotent_by_name_and_by_id(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		made := w.create(tokens("team", 100))
		again := must(w.e.CreateBudget(w.ctx(), operator, "default", tokens("team", 100), engine.AdminAction{}))(t)
		same(t, "outcome", again.Outcome, "already_exists")
		same(t, "id", again.Budget.ID, made.ID)
		byID := tokens("team", 100)
		byID.ID = made.ID
		same(t, "by id", must(w.e.CreateBudget(w.ctx(), operator, "default", byID, engine.AdminAction{}))(t).Outcome, "already_exists")
		_, err := w.e.CreateBudget(w.ctx(), operator, "default", tokens("team", 99), engine.AdminAction{})
		refused(t, err, base.CodeBudgetAlreadyExists)
		other := tokens("other", 5)
		other.ID = made.ID
		_, err = w.e.CreateBudget(w.ctx(), operator, "default", other, engine.AdminAction{})
		refused(t, err, base.CodeBudgetAlreadyExists)
		elsewhere := must(w.e.CreateBudget(w.ctx(), operator, "elsewhere", tokens("team", 7), engine.AdminAction{}))(t)
		if elsewhere.Outcome != "created" || elsewhere.Budget.ID == made.ID {
			t.Fatalf("names are those of a namespace: %+v", elsewhere)
		}
		_, err = w.e.Budget(w.ctx(), engine.Caller{Principal: "x", Actor: "client", Namespaces: []string{"elsewhere"}}, ofName(made.ID.String()))
		refused(t, err, base.CodeBudgetNotFound)
	})
}

func TestB2_a_create_refers_to_what_exists(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		missing := base.UUID{1}.String()
		for _, c := range []struct {
			d    core.BudgetDefinition
			code base.Code
		}{
			{tokens("a", 1, covering(core.ScopeExecution, missing)), base.CodeExecutionNotFound},
			{tokens("a", 1, covering(core.ScopeFlow, missing)), base.CodeFlowNotFound},
			{tokens("a", 1, below("missing")), base.CodeBudgetNotFound},
			{tokens("a", 0), base.CodeInvalidBudget},
			{tokens("a", 1, onHard("shout")), base.CodeInvalidBudget},
		} {
			_, err := w.e.CreateBudget(w.ctx(), operator, "default", c.d, engine.AdminAction{})
			refused(t, err, c.code)
		}
	})
}

func TestB4_an_update_keeps_what_is_in_use(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		made := w.create(tokens("team", 100))
		must(w.charge("team", 40))(t)
		lower := func(to int64) core.BudgetUpdate {
			return core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{"tokens": {Hard: core.LimitChange{Set: true, Value: &to}}}}
		}
		_, err := w.e.UpdateBudget(w.ctx(), operator, ofName("team"), lower(39), engine.AdminAction{})
		refused(t, err, base.CodeLimitBelowUsage)
		_, err = w.e.UpdateBudget(w.ctx(), operator, ofName("team"), lower(40), engine.AdminAction{Revision: ptr(made.Revision + 1)})
		refused(t, err, base.CodeStaleVersion)
		now := must(w.e.UpdateBudget(w.ctx(), operator, ofName("team"), lower(40), engine.AdminAction{Revision: &made.Revision}))(t)
		same(t, "exhausted", now.Exhausted, []string{"tokens"})
		w.create(tokens("taken", 1))
		name := "taken"
		_, err = w.e.UpdateBudget(w.ctx(), operator, ofName("team"), core.BudgetUpdate{Name: &name}, engine.AdminAction{})
		refused(t, err, base.CodeBudgetAlreadyExists)
		name = "renamed"
		must(w.e.UpdateBudget(w.ctx(), operator, ofName("team"), core.BudgetUpdate{Name: &name}, engine.AdminAction{}))(t)
		same(t, "found by its new name", w.budget("renamed").ID, made.ID)
		_, err = w.e.Budget(w.ctx(), client, ofName("team"))
		refused(t, err, base.CodeBudgetNotFound)
		w.submit(costing(0, "renamed"))
		_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budget_ids":["team"]}`)})
		refused(t, err, base.CodeInvalidPolicy)
	})
}

func TestB5_a_closed_budget_admits_no_work_and_still_books(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		task := w.started(costing(10, "team"))
		must(w.e.CloseBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(t)
		_, err := w.charge("team", 1)
		refused(t, err, base.CodeBudgetClosed)
		same(t, "booked", w.report(task, 4).Outcome, core.UsageOK)
		waiting := w.submit(costing(10, "team"))
		w.nothing()
		w.is(waiting, core.Blocked, core.WaitingForBudget)
		must(w.e.ReopenBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(t)
		w.complete(w.claim())
		w.complete(task)
		same(t, "numbers", w.numbers("team"), [3]int64{4, 0, 0})
	})
}

func TestB5_a_budget_in_use_is_not_deleted(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("above", 100))
		w.create(tokens("team", 100, below("above")))
		task := w.started(costing(10, "team"))
		for _, name := range []string{"above", "team"} {
			refused(t, w.e.DeleteBudget(w.ctx(), operator, ofName(name), engine.AdminAction{}), base.CodeBudgetInUse)
		}
		w.complete(task)
		how := engine.AdminAction{RequestKey: "once"}
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), how))
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), how))
		other := engine.AdminAction{RequestKey: "once", Reason: "another"}
		refused(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), other), base.CodeIdempotencyConflict)
		refused(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{RequestKey: "twice"}), base.CodeBudgetNotFound)
		refused(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}), base.CodeBudgetNotFound)
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("above"), engine.AdminAction{}))
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budget_ids":["team"]}`)})
		refused(t, err, base.CodeInvalidPolicy)
		w.create(tokens("team", 1))
	})
}

func TestB3_a_policy_makes_budgets_for_its_execution(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("above", 100))
		task := w.started(policy(`{"estimate":{"tokens":5},"budgets":[{"name":"mine","parent":"above","dimensions":{"tokens":{"hard":20}}},{"dimensions":{"calls":{"hard":3}}}]}`))
		mine := w.budget("mine")
		same(t, "scope", mine.Scope, core.BudgetScope{Type: core.ScopeExecution, Value: given(task).UUID.String()})
		same(t, "reserved", []int64{mine.Numbers["tokens"].Reserved, w.budget("above").Numbers["tokens"].Reserved}, []int64{5, 5})
		same(t, "of the execution", len(must(w.e.ApplicableBudgets(w.ctx(), client, given(task)))(t).Budgets), 3)
		same(t, "within", w.report(task, 20).Outcome, core.UsageOK)
		same(t, "beyond", w.report(task, 1).Outcome, core.UsageHardBreach)
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[{"name":"mine","dimensions":{"tokens":{"hard":20}}}]}`)})
		refused(t, err, base.CodeBudgetAlreadyExists)
		_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[{"parent":"missing","dimensions":{"tokens":{"hard":20}}}]}`)})
		refused(t, err, base.CodeInvalidPolicy)
		_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[{"dimensions":{"tokens":{"hard":2,"soft":3}}}]}`)})
		refused(t, err, base.CodeInvalidPolicy)
		w.complete(task)
		same(t, "the other execution has none", w.started(core.Submission{}).Execution.Budgets, nil)
	})
}

func TestB6_who_names_the_budget_of_another_execution_is_under_those_above_it_too(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("above", 100))
		task := w.started(policy(`{"budgets":[{"name":"mine","parent":"above","dimensions":{"tokens":{"hard":20}}}]}`))
		reserved := func() [2]int64 {
			return [2]int64{w.budget("mine").Numbers["tokens"].Reserved, w.budget("above").Numbers["tokens"].Reserved}
		}
		byName := w.started(costing(5, "mine"))
		same(t, "by name", reserved(), [2]int64{5, 5})
		byID := w.started(costing(5, w.budget("mine").ID.String()))
		same(t, "by id", reserved(), [2]int64{10, 10})
		for _, each := range []engine.Task{task, byName, byID} {
			w.complete(each)
		}
		same(t, "released", reserved(), [2]int64{})
	})
}

func TestL88_a_submission_in_a_transaction_of_the_caller_makes_no_budgets(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		_, err := w.e.SubmitTx(w.ctx(), client, nil, core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[{"dimensions":{"tokens":{"hard":2}}}]}`)})
		refused(t, err, base.CodeInvalidPolicy)
	})
}

func TestB42_definitions_are_told_by_events_and_the_audit_log(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		name := "crew"
		must(w.e.UpdateBudget(w.ctx(), operator, ofName("team"), core.BudgetUpdate{Name: &name}, engine.AdminAction{Reason: "a better name"}))(t)
		must(w.e.CloseBudget(w.ctx(), operator, ofName("crew"), engine.AdminAction{}))(t)
		must(w.e.ReopenBudget(w.ctx(), operator, ofName("crew"), engine.AdminAction{}))(t)
		must(w.e.ResetBudget(w.ctx(), operator, ofName("crew"), engine.AdminAction{}))(t)
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("crew"), engine.AdminAction{}))
		var kinds []string
		for _, ev := range w.events(engine.EventFilter{Kinds: []string{"budget."}}) {
			kinds = append(kinds, ev.Kind)
		}
		same(t, "events", kinds, []string{"budget.created", "budget.updated", "budget.closed", "budget.reopened", "budget.reset", "budget.deleted"})
		same(t, "audit", w.deeds("default"), []string{
			"default create_budget budget", "default update_budget budget", "default close_budget budget", "default reopen_budget budget", "default reset_budget budget", "default delete_budget budget",
		})
	})
}
