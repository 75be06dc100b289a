package flowfabric_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// tokens is a budget of so many tokens under a name.
func tokens(name string, hard int64) api.Budget {
	return api.Budget{Name: name, Dimensions: map[string]api.BudgetLimits{"tokens": {Hard: hard}}}
}

// budget makes a budget.
func (w *world) budget(t testing.TB, b api.Budget) *api.CreatedBudget {
	t.Helper()
	return must[*api.CreatedBudget](t)(w.Budgets().Create(inTime(t), b))
}

// refusedWith wants an error of this code.
func refusedWith(t testing.TB, code string) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if flowfabric.CodeOf(err) != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
}

// hasField reports whether the error names this argument, as a path or as a JSON pointer.
func hasField(err error, field string) bool {
	var refusal *flowfabric.Error
	return errors.As(err, &refusal) && (refusal.Field == field || refusal.Field == "/"+strings.ReplaceAll(field, ".", "/"))
}

func TestU95_a_budget_is_made_once_however_often_it_is_repeated(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		above := w.budget(t, tokens("above", 5000))
		given := api.Budget{
			Name: "team-red", Scope: api.BudgetScope{Type: "tag", Value: "team=red"}, Parent: "above",
			Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 800, Hard: 1200, DefaultReserve: 100}, "pages": {}},
			Reset:      api.BudgetReset{Unit: "month", Timezone: "Europe/Berlin"}, OnHard: api.SuspendForApproval,
			OnLeaseLoss: api.ForfeitReserved,
			Approval:    api.BudgetApproval{Timeout: time.Hour, OnTimeout: flowfabric.CancelOnTimeout, DefaultRaise: map[string]int64{"tokens": 500}},
		}
		made := w.budget(t, given)
		if made.Outcome != api.BudgetCreated || made.Namespace != "default" || made.State != "active" || made.Parent != above.ID || made.NextResetAt.IsZero() || made.CreatedAt.IsZero() {
			t.Errorf("%+v", made)
		}
		all := int64(1200)
		dimensions := map[string]api.BudgetDimension{
			"tokens": {Hard: all, Soft: 800, DefaultReserve: 100, EffectiveHard: all, Available: &all}, "pages": {},
		}
		if !reflect.DeepEqual(made.Dimensions, dimensions) {
			t.Errorf("%+v", made.Dimensions)
		}
		if made.Reset.Unit != "month" || made.Reset.Timezone != "Europe/Berlin" || made.OnHard != given.OnHard || made.OnLeaseLoss != given.OnLeaseLoss ||
			made.Approval.Timeout != time.Hour || made.Approval.OnTimeout != flowfabric.CancelOnTimeout || made.Approval.DefaultRaise["tokens"] != 500 {
			t.Errorf("%+v", made)
		}
		if again := w.budget(t, given); again.Outcome != api.BudgetExists || again.ID != made.ID {
			t.Errorf("%+v", again)
		}
		given.OnHard = api.BlockNew
		refusedWith(t, "budget_already_exists")(w.Budgets().Create(ctx, given))
		for field, wrong := range map[string]api.Budget{
			"name":                   {Dimensions: map[string]api.BudgetLimits{"tokens": {}}},
			"dimensions":             {Name: "a"},
			"dimensions.tokens.soft": {Name: "a", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 2, Hard: 1}}},
			"on_hard":                {Name: "a", Dimensions: map[string]api.BudgetLimits{"tokens": {}}, OnHard: "explode"},
			"reset":                  {Name: "a", Dimensions: map[string]api.BudgetLimits{"tokens": {}}, Reset: api.BudgetReset{Every: time.Hour, Unit: "day"}},
		} {
			_, err := w.Budgets().Create(ctx, wrong)
			if flowfabric.CodeOf(err) != "invalid_budget" || !hasField(err, field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		refusedWith(t, "budget_not_found")(w.Budgets().Create(ctx, api.Budget{Name: "b", Parent: "missing", Dimensions: given.Dimensions}))
	})
}

func TestU7_a_budget_goes_by_its_id_and_by_its_name(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		made := w.budget(t, api.Budget{ID: "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50", Name: "of a/b c", Dimensions: map[string]api.BudgetLimits{"tokens": {Hard: 10}}})
		for _, called := range []string{made.ID, made.Name} {
			if found := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, called)); found.ID != made.ID || found.Name != made.Name {
				t.Errorf("%s: %+v", called, found)
			}
		}
		refusedWith(t, "budget_not_found")(w.Budgets().Get(ctx, "missing"))
		refusedWith(t, "budget_not_found")(w.Budgets().Get(ctx, "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a51"))
	})
}

func TestU22_a_limit_of_0_in_a_policy_refuses_its_item_and_no_other(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var refused flowfabric.Submission
		if err := json.Unmarshal([]byte(`{"kind":"k","policy":{"budgets":[{"dimensions":{"tokens":{"hard":0}}}]}}`), &refused); err != nil {
			t.Fatal(err)
		}
		changed := refused
		policy := *refused.Policy
		changed.Policy, policy.MaxReplays = &policy, 3 // the text that it was read from does not hold any more
		answers := must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, []flowfabric.Submission{{Kind: "k"}, refused, changed, {Kind: "k"}}))
		var codes []string
		for _, answer := range answers {
			codes = append(codes, flowfabric.CodeOf(answer.Err))
		}
		if !slices.Equal(codes, []string{"", "invalid_policy", "invalid_policy", ""}) {
			t.Errorf("%+v", answers)
		}
	})
}

func TestU17_a_change_of_a_budget_that_was_changed_meanwhile_is_stale(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		made := w.budget(t, tokens("b", 10))
		twenty := int64(20)
		changed := must[*api.BudgetStatus](t)(w.Budgets().Update(ctx, "b", api.BudgetUpdate{
			Dimensions: map[string]api.LimitChange{"tokens": {Hard: &twenty}},
		}, ops.AdminAction{Revision: &made.Revision}))
		if changed.Revision != made.Revision+1 || *changed.Dimensions["tokens"].Available != 20 {
			t.Errorf("%+v", changed)
		}
		old := ops.AdminAction{Revision: &made.Revision}
		refusedWith(t, "stale_version")(w.Budgets().Update(ctx, "b", api.BudgetUpdate{}, old))
		refusedWith(t, "stale_version")(w.Budgets().Close(ctx, "b", old))
		refusedWith(t, "stale_version")(w.Budgets().Reopen(ctx, "b", old))
		refusedWith(t, "stale_version")(w.Budgets().Reset(ctx, "b", old))
		refusedWith(t, "stale_version")(nil, w.Budgets().Delete(ctx, "b", old))
	})
}

func TestU97_only_what_is_given_changes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.budget(t, api.Budget{Name: "b", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 5, Hard: 10, DefaultReserve: 1}, "pages": {Hard: 3}}})
		update := func(u api.BudgetUpdate) *api.BudgetStatus {
			return must[*api.BudgetStatus](t)(w.Budgets().Update(ctx, "b", u))
		}
		name, fail, zero, eight := "c", api.FailReporter, int64(0), int64(8)
		got := update(api.BudgetUpdate{
			OnHard: &fail, RemoveDimensions: []string{"pages"}, Reset: &api.BudgetReset{Every: time.Hour},
			Dimensions: map[string]api.LimitChange{"tokens": {Hard: &eight, Remove: []string{"soft"}}, "calls": {}},
		})
		want := map[string]api.BudgetDimension{
			"tokens": {Hard: eight, DefaultReserve: 1, EffectiveHard: eight, Available: &eight}, "calls": {},
		}
		if !reflect.DeepEqual(got.Dimensions, want) || got.OnHard != fail || got.Reset.Every != time.Hour || got.NextResetAt.IsZero() {
			t.Errorf("%+v", got)
		}
		refusedWith(t, "invalid_budget")(w.Budgets().Update(ctx, "b", api.BudgetUpdate{Dimensions: map[string]api.LimitChange{"tokens": {Hard: &zero}}}))
		refusedWith(t, "invalid_budget")(w.Budgets().Update(ctx, "b", api.BudgetUpdate{Dimensions: map[string]api.LimitChange{"tokens": {Remove: []string{"all"}}}}))
		if got = update(api.BudgetUpdate{Name: &name, Reset: &api.BudgetReset{}}); got.Name != "c" || !got.NextResetAt.IsZero() || got.OnHard != fail {
			t.Errorf("%+v", got)
		}
		refusedWith(t, "budget_not_found")(w.Budgets().Get(ctx, "b"))
		must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "c", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"tokens": 6}}}))
		five := int64(5)
		refusedWith(t, "limit_below_usage")(w.Budgets().Update(ctx, "c", api.BudgetUpdate{Dimensions: map[string]api.LimitChange{"tokens": {Hard: &five}}}))
		if err := w.Budgets().Delete(ctx, "c"); err != nil {
			t.Error(err)
		}
		refusedWith(t, "budget_not_found")(nil, w.Budgets().Delete(ctx, "c"))
	})
}

func TestU96_lists_of_budgets_are_filtered_and_walked_in_pages(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		mail := tokens("mail", 10)
		mail.Scope = api.BudgetScope{Type: "lane", Value: "mail"}
		for _, b := range []api.Budget{tokens("a", 10), tokens("b", 10), mail} {
			w.budget(t, b)
		}
		must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "a", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"tokens": 10}}}))
		must[*api.BudgetStatus](t)(w.Budgets().Close(ctx, "b"))
		yes, no := true, false
		for name, c := range map[string]struct {
			query ops.BudgetQuery
			want  []string
		}{
			"all": {ops.BudgetQuery{}, []string{"a", "b", "mail"}}, "in pages": {ops.BudgetQuery{PageOptions: flowfabric.PageOptions{Limit: 1}}, []string{"a", "b", "mail"}},
			"of a type": {ops.BudgetQuery{Scope: "lane"}, []string{"mail"}}, "of a value": {ops.BudgetQuery{Scope: "lane:mail"}, []string{"mail"}},
			"of another value": {ops.BudgetQuery{Scope: "lane:other"}, nil}, "exhausted": {ops.BudgetQuery{Exhausted: &yes}, []string{"a"}},
			"not exhausted": {ops.BudgetQuery{Exhausted: &no}, []string{"b", "mail"}}, "closed": {ops.BudgetQuery{State: "closed"}, []string{"b"}},
		} {
			var got []string
			for b, err := range w.Budgets().List(ctx, c.query) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b.Name)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		refusedWith(t, "invalid_cursor")(w.Budgets().Page(ctx, ops.BudgetQuery{PageOptions: flowfabric.PageOptions{Cursor: "x"}}))
	})
}

func TestU98_a_charge_books_refuses_and_is_given_back(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		b := w.budget(t, api.Budget{Name: "b", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 50, Hard: 100}}})
		charge := func(c api.Charge) api.UsageReceipt {
			t.Helper()
			return must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "b", c))
		}
		of := func(n int64) flowfabric.Usage { return flowfabric.Usage{Amounts: map[string]int64{"tokens": n}} }
		if r := charge(api.Charge{Usage: of(40)}); r.Outcome != api.UsageOK || !r.Applied || r.Action != api.ActionNone || r.Remaining[b.ID]["tokens"] != 60 {
			t.Errorf("%+v", r)
		}
		if r := charge(api.Charge{Usage: of(70)}); r.Outcome != api.UsageHardBreach || r.Applied || r.Budget != b.ID || r.Dimension != "tokens" || r.Used != 40 || r.Attempted != 70 || r.Hard != 100 || len(r.All) != 1 {
			t.Errorf("%+v", r)
		}
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k"})).ID
		once := api.Charge{Usage: of(20), ExecutionID: id}
		once.DedupKey = "k"
		if r := charge(once); r.Outcome != api.UsageSoftBreach || r.Soft != 50 || r.Used != 60 || r.Repeated() {
			t.Errorf("%+v", r)
		}
		if r := charge(once); r.Outcome != api.UsageApplied || !r.Repeated() || r.First().Outcome != api.UsageSoftBreach || !r.Applied {
			t.Errorf("%+v", r)
		}
		once.Amounts = map[string]int64{"tokens": 21}
		refusedWith(t, "idempotency_conflict")(w.Budgets().Charge(ctx, "b", once))
		refusedWith(t, "unknown_dimension")(w.Budgets().Charge(ctx, "b", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"pages": 1}}}))
		refusedWith(t, "reserved_dimension")(w.Budgets().Charge(ctx, "b", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{flowfabric.WallMillis: 1}}}))
		refusedWith(t, "invalid_usage")(w.Budgets().Charge(ctx, "b", api.Charge{}))
		refusedWith(t, "budget_not_found")(w.Budgets().Charge(ctx, "missing", api.Charge{Usage: of(1)}))
		spent := of(60)
		spent.AlreadySpent = true
		if r := charge(api.Charge{Usage: spent}); r.Outcome != api.UsageHardBreach || !r.Applied || r.Overrun != 20 {
			t.Errorf("%+v", r)
		}
		rows := must[[]api.BudgetSpend](t)(all(w.Budgets().Spend(ctx, "b")))
		if len(rows) != 1 || rows[0].ExecutionID != id || rows[0].Used["tokens"] != 20 || rows[0].Total != 20 {
			t.Errorf("%+v", rows)
		}
		if usage := must[api.ExecutionUsage](t)(w.Executions().Usage(ctx, id)); usage.Amounts["tokens"] != 20 || usage.ExecutionID != id {
			t.Errorf("%+v", usage)
		}
		for _, want := range []int64{20, 0} { // a second time there is nothing
			if released := must[map[string]int64](t)(w.Budgets().Refund(ctx, "b", id)); released["tokens"] != want {
				t.Errorf("%v, want %d", released, want)
			}
		}
		now := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, "b"))
		if now.Dimensions["tokens"].Used != 80 || now.Dimensions["tokens"].Overrun != 20 || now.Breaches != 2 || now.SoftBreaches != 1 || now.LastBreach == nil {
			t.Errorf("%+v", now)
		}
		must[*api.BudgetStatus](t)(w.Budgets().Close(ctx, "b"))
		refusedWith(t, "budget_closed")(w.Budgets().Charge(ctx, "b", api.Charge{Usage: of(1)}))
	})
}

func TestU97_a_reset_begins_an_epoch_and_keeps_the_last_one(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		made := w.budget(t, tokens("b", 100))
		must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "b", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"tokens": 30}}}))
		now := must[*api.BudgetStatus](t)(w.Budgets().Reset(ctx, "b"))
		if now.Epoch != made.Epoch+1 || now.Dimensions["tokens"].Used != 0 || now.Revision != made.Revision {
			t.Errorf("%+v", now)
		}
		epochs := must[[]api.BudgetEpoch](t)(all(w.Budgets().Epochs(ctx, "b")))
		if len(epochs) != 1 || epochs[0].Epoch != made.Epoch || epochs[0].Dimensions["tokens"].Used != 30 || epochs[0].EndedAt.IsZero() {
			t.Errorf("%+v", epochs)
		}
		refusedWith(t, "budget_not_found")(w.Budgets().EpochsPage(ctx, "missing"))
		refusedWith(t, "budget_not_found")(w.Budgets().SpendPage(ctx, "missing"))
	})
}
