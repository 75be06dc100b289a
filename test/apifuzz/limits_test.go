package apifuzz

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Budgets and quotas have room for all that is drawn: work must flow, whatever is made and closed on the way.
var (
	budgetNames = []string{"team", "team", "spare-1", "spare-2", "spare-3", "spare-4", "spare-5", "spare-6"}
	quotaNames  = []string{"q", "spare-1", "spare-2"} // beside k, which counts by key
	scopes      = []raw{
		`{"type":"none"}`, `{"type":"none"}`, `{"type":"namespace"}`, `{"type":"lane","value":"rare"}`, `{"type":"lane","value":"default"}`, `{"type":"tag","value":"team=red"}`,
	}
	dimensions = []raw{
		`{"tokens":{"hard":1000000000}}`, `{"tokens":{"hard":2000000000,"soft":3,"default_reserve":1},"calls":{}}`, `{"tokens":{"soft":10},"wall_ms":{"hard":9000000000}}`,
	}
	resets = []raw{
		`{"type":"none"}`, `{"type":"interval","every_ms":60000}`, `{"type":"interval","every_ms":3600000,"anchor_at":"2026-01-01T00:00:00Z"}`,
		`{"type":"calendar","unit":"month","timezone":"Europe/Berlin"}`, `{"type":"calendar","unit":"hour"}`,
	}
	approvals = []raw{`{}`, `{"timeout_ms":60000,"timeout_behavior":"cancel"}`, `{"default_raise":{"tokens":5}}`}
	usages    = []raw{`{"tokens":1}`, `{"tokens":4}`, `{"tokens":2,"calls":1}`, `{"tokens":10000000000}`}
)

// limitPolicies attach executions.
var limitPolicies = []raw{
	`{"quotas":[{"quota":"q"}]}`, `{"quotas":[{"quota":"q"},{"quota":"k","key":"a"}],"slots_while_waiting":"hold"}`, `{"budget_ids":["team"],"estimate":{"tokens":7}}`,
	`{"budgets":[{"dimensions":{"tokens":{"hard":1000000}}}],"quotas":[{"quota":"k","key":"b"}]}`,
}

// ofLimits draws a field that has to do with budgets, quotas and usage.
func (d *drawer) ofLimits(o *operation, name string) (value, bool) {
	among := func(all []raw) (value, bool) { return pick(d.Rand, all), true }
	switch name {
	case "scope":
		return among(scopes)
	case "dimensions":
		return among(dimensions)
	case "reset":
		return among(resets)
	case "approval":
		return among(approvals)
	case "usage":
		return among(usages)
	case "estimate":
		return raw(`{"tokens":3}`), true
	case "budget_ids", "parent":
		return "team", true
	case "budget_id":
		return d.uuid(), true
	case "budgets":
		return raw(`{"dimensions":{"tokens":{"hard":1000000}},"on_hard":"fail"}`), true
	case "quotas", "default_quotas":
		return pick(d.Rand, []raw{`{"quota":"q"}`, `{"quota":"k","key":"a"}`}), true
	case "rate_limit", "concurrency_limit":
		return raw(strconv.Itoa(10_000 + d.IntN(1000))), true
	case "window_ms":
		return raw(strconv.Itoa(1000 + d.IntN(10_000))), true
	case "per_key":
		return raw("false"), true
	case "on_hard":
		return pick(d.Rand, []string{"block_new", "fail", "suspend_for_approval", "cancel_running"}), true
	case "on_lease_loss":
		return pick(d.Rand, []string{"release", "forfeit"}), true
	case "remove_dimensions":
		return "calls", true
	case "dedup_key":
		return "dedup-" + strconv.Itoa(d.IntN(50)), true
	case "name":
		if o.id == wire.CreateBudget.ID || o.id == wire.UpdateBudget.ID {
			return pick(d.Rand, budgetNames[2:]), true
		}
	}
	return nil, false
}

// limitName draws the name of a budget or quota in a path.
func (d *drawer) limitName(o *operation) string {
	switch {
	case strings.HasPrefix(o.path, "/v1/quotas"):
		return pick(d.Rand, quotaNames)
	case o.id == wire.DeleteBudget.ID: // others have that one above them
		return pick(d.Rand, budgetNames[2:])
	default:
		return d.mem.some(d.Rand, "budget_id", budgetNames...)
	}
}

// limitQuery draws a query parameter about budgets; nil: it is drawn as others are.
func (d *drawer) limitQuery(o *operation, name string, about subject) []pair {
	switch {
	case name == "scope":
		return []pair{{name, pick(d.Rand, []string{"namespace", "lane", "lane%3Arare", "tag%3Ateam%3Dred", "none"})}}
	case name == "execution" || name == "execution_id" && o.id == wire.ListBudgetSpend.ID:
		return []pair{{name, about.id}}
	case name == "epoch", name == "attempt":
		return []pair{{name, strconv.Itoa(d.IntN(2))}}
	case name == "force" && o.id == wire.DeleteQuota.ID:
		return []pair{{name, strconv.FormatBool(d.IntN(2) == 0)}}
	default:
		return nil
	}
}

// mostBudgets bounds the budgets that cover work which does not name them: each claim looks at all of them.
const mostBudgets = 12

// tendLimits makes the quotas and the budget that executions name, and opens what is closed or used up.
func (f *fuzzer) tendLimits() {
	f.do(wire.PutQuota.Operation, "q", `{"concurrency_limit":10000,"rate_limit":100000}`)
	f.do(wire.PutQuota.Operation, "k", `{"concurrency_limit":10000,"per_key":true}`)
	f.do(wire.CreateBudget.Operation, "", `{"name":"team","dimensions":{"tokens":{"hard":1000000000,"default_reserve":1}}}`)
	f.do(wire.PutQuota.Operation, "spare-1", `{}`) // those that are not used can be deleted
	f.do(wire.CreateBudget.Operation, "", `{"name":"spare-1","dimensions":{"tokens":{}}}`)
	ctx, budgets := f.t.Context(), f.w.Budgets()
	var covering []*api.BudgetStatus
	for b, err := range budgets.List(ctx) {
		if err != nil {
			f.t.Fatal(err)
		}
		if b.State == "closed" {
			_, err = budgets.Reopen(ctx, b.ID)
		}
		if len(b.Exhausted) > 0 && err == nil {
			_, err = budgets.Reset(ctx, b.ID)
		}
		if err != nil {
			f.t.Errorf("seed %d: %s is not opened: %v", f.seed, b.Name, err)
		}
		if slices.Contains([]string{"namespace", "lane", "tag"}, b.Scope.Type) {
			covering = append(covering, b)
		}
	}
	for _, b := range covering[min(mostBudgets, len(covering)):] {
		_ = budgets.Delete(ctx, b.ID) // some have others below them
	}
}
