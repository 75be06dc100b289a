package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// together runs a test whose commands may share one transaction, in their order.
func together(t *testing.T, f func(t *testing.T, w *world, batch func(commands ...func()))) {
	t.Helper()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		f(t, w, func(commands ...func()) { w.batched(b, commands...) })
	})
}

func TestF11_F13_FI2_of_two_flows_of_one_id_in_one_transaction_the_second_is_known_or_refused(t *testing.T) {
	t.Parallel()
	submit := (*engine.Engine).SubmitFlow
	create := (*engine.Engine).CreateFlow
	other := chain("b", "c")
	keyed, otherKeyed := chain("a"), chain("b")
	keyed.IdempotencyKey, otherKeyed.IdempotencyKey = "once", "once"
	for name, c := range map[string]struct {
		call          func(*engine.Engine, context.Context, engine.Caller, core.FlowSubmission) (engine.FlowAnswer, error)
		first, second core.FlowSubmission
		named         bool
		code          base.Code
	}{
		"another empty flow":         {create, core.FlowSubmission{Kind: "one"}, core.FlowSubmission{Kind: "two"}, true, base.CodeFlowAlreadyExists},
		"the same empty flow":        {create, core.FlowSubmission{Kind: "one"}, core.FlowSubmission{Kind: "one"}, true, ""},
		"another graph":              {submit, chain("a"), other, true, base.CodeFlowAlreadyExists},
		"the same graph":             {submit, chain("a"), chain("a"), true, ""},
		"the same graph under a key": {submit, keyed, keyed, false, ""},
		"another graph under a key":  {submit, keyed, otherKeyed, false, base.CodeIdempotencyConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			together(t, func(t *testing.T, w *world, batch func(commands ...func())) {
				one, two := c.first, c.second
				if id := (base.ID{UUID: drawUUID()}).Given(); c.named {
					one.ID, two.ID = &id, &id
				}
				var first, second engine.FlowAnswer
				var err error
				batch(
					func() { first = must(c.call(w.e, w.ctx(), client, one))(t) },
					func() { second, err = c.call(w.e, w.ctx(), client, two) },
				)
				if c.code != "" {
					refused(t, err, c.code)
				} else {
					ok(t, err)
					same(t, "flow", []any{second.Flow.ID, second.Created, second.Members}, []any{first.Flow.ID, false, first.Members})
				}
				w.consistent(first)
				same(t, "flows", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 1)
			})
		})
	}
}

func TestF11_L117_a_repeated_submit_of_a_flow_is_known_beside_a_command_on_one_of_its_members(t *testing.T) {
	t.Parallel()
	together(t, func(t *testing.T, w *world, batch func(commands ...func())) {
		s := chain("a", "b")
		s.IdempotencyKey = "once"
		id := base.GivenID{UUID: drawUUID()}
		s.Nodes[0].ID = &id
		flow := w.submitFlow(s)
		var again engine.FlowAnswer
		var err error
		batch(
			func() { must(w.e.Hold(w.ctx(), operator, id, engine.Operator{}))(t) },
			func() { again, err = w.e.SubmitFlow(w.ctx(), client, s) },
		)
		ok(t, err)
		same(t, "flow", []any{again.Flow.ID, again.Created}, []any{flow.Flow.ID, false})
		s.IdempotencyKey = "other"
		_, err = w.e.SubmitFlow(w.ctx(), client, s)
		same(t, "field", refused(t, err, base.CodeIDConflict).Field, "nodes[0].execution_id")
	})
}

func TestF12_B3_budgets_of_one_name_or_id_in_one_request_refuse_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := func(name string) []byte {
			return fmt.Appendf(nil, `{"budgets":[{"name":%q,"dimensions":{"tokens":{"hard":20}}}]}`, name)
		}
		byID := func(name string) []byte {
			return fmt.Appendf(nil, `{"budgets":[{"budget_id":"01890a5d-ac96-774b-bcce-b302099a8057","name":%q,"dimensions":{"tokens":{"hard":20}}}]}`, name)
		}
		for what, c := range map[string]struct {
			first, second []byte
			flow          string
			field         string
		}{
			"one name":                   {own("mine"), own("mine"), "", "nodes[1].budgets[0].name"},
			"one id":                     {byID("one"), byID("two"), "", "nodes[1].budgets[0].budget_id"},
			"the name of a flow's own":   {own("mine"), own("other"), `[{"name":"other","dimensions":{"tokens":{"hard":20}}}]`, "budgets[0].name"},
			"one name within one policy": {own("mine"), []byte(`{"budgets":[{"name":"a","dimensions":{"tokens":{"hard":1}}},{"name":"a","dimensions":{"tokens":{"hard":1}}}]}`), "", "nodes[1].budgets[1].name"},
		} {
			_, err := w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "f", Budgets: []byte(c.flow), Nodes: []core.FlowNode{
				{Name: "a", Kind: "work", PolicyJSON: c.first}, {Name: "b", Kind: "work", PolicyJSON: c.second},
			}})
			same(t, what, refused(t, err, base.CodeBudgetAlreadyExists).Field, c.field)
		}
		flow := w.emptyFlow()
		w.extendErr(flow, core.FlowExtension{Nodes: []core.FlowNode{{Name: "a", Kind: "work", PolicyJSON: own("mine")}, {Name: "b", Kind: "work", PolicyJSON: own("mine")}}}, base.CodeBudgetAlreadyExists)
		_, err := w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k", PolicyJSON: own("mine")}, {Kind: "k", PolicyJSON: own("mine")}}, true)
		refused(t, err, base.CodeBudgetAlreadyExists)
		w.nothing()
	})
}

func TestB3_of_two_submits_in_one_transaction_that_make_a_budget_of_one_name_the_second_is_refused(t *testing.T) {
	t.Parallel()
	together(t, func(t *testing.T, w *world, batch func(commands ...func())) {
		s := policy(`{"budgets":[{"name":"mine","dimensions":{"tokens":{"hard":20}}}]}`)
		s.Kind = "k"
		errs := make([]error, 2)
		submit := func(i int) func() {
			return func() { _, errs[i] = w.e.Submit(w.ctx(), client, s) }
		}
		batch(submit(0), submit(1))
		ok(t, errs[0])
		refused(t, errs[1], base.CodeBudgetAlreadyExists)
	})
}
