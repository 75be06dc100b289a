package flowfabric_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// budgetCauses are those of U208.
var budgetCauses = []cause{
	{
		name: "work that uses its budget",
		do: func(t *testing.T, w *metered) {
			h := hand{w.world, t}
			w.budget(t, api.Budget{Name: "red", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 40, Hard: 100}}})
			failing := tokens("blue", 10)
			failing.OnHard = api.FailReporter
			w.budget(t, failing)
			w.submit(t, 1, flowfabric.SubmitOptions{BudgetIDs: []string{"red"}, Estimate: map[string]int64{"tokens": 80}})
			task := w.one(t, "default")
			for _, n := range []int64{30, 20, 60} { // the last is refused
				h.does(api.WorkItem{Op: api.OpUsage, ID: task.ID, Lease: task.Lease, Usage: used(n)})
			}
			w.submit(t, 1, flowfabric.SubmitOptions{BudgetIDs: []string{"blue"}})
			doomed := w.one(t, "default")
			w.turn(2 * time.Second)
			h.does(api.WorkItem{Op: api.OpUsage, ID: doomed.ID, Lease: doomed.Lease, Usage: used(11)})
		},
		moves: map[string]float64{
			`ff_usage_total{dimension="tokens"}`: 50, `ff_usage_total{dimension="wall_ms"}`: 2000,
			`ff_budget_breaches_total{action="none",dimension="tokens",limit="soft"}`:   1,
			`ff_budget_breaches_total{action="none",dimension="tokens",limit="hard"}`:   1,
			`ff_budget_breaches_total{action="failed",dimension="tokens",limit="hard"}`: 1,
			`ff_budget_ratio{budget="red",dimension="tokens"}`:                          0.5, `ff_budget_reserved{budget="red",dimension="tokens"}`: 30,
			`ff_budget_ratio{budget="blue",dimension="tokens"}`: 0, `ff_budget_reserved{budget="blue",dimension="tokens"}`: 0,
		},
	},
	{
		name: "a breach that asks, and an answer",
		do: func(t *testing.T, w *metered) {
			h := hand{w.world, t}
			asking := tokens("red", 10)
			asking.OnHard = api.SuspendForApproval
			w.budget(t, asking)
			id := w.submit(t, 1, flowfabric.SubmitOptions{BudgetIDs: []string{"red"}})[0]
			task := w.one(t, "default")
			h.does(api.WorkItem{Op: api.OpUsage, ID: id, Lease: task.Lease, Usage: used(11)})
			must[api.SignalReceipt](t)(w.Operate().Approve(inTime(t), id, ops.Approve{
				Name: "budget_approved", Payload: flowfabric.JSON(map[string]any{"raise": map[string]int64{"tokens": 90}}),
			}))
		},
		moves: map[string]float64{
			`ff_budget_breaches_total{action="suspended",dimension="tokens",limit="hard"}`: 1, `ff_suspensions_total{reason="paused_by_budget"}`: 1,
			`ff_approvals_total{decision="budget_approved"}`: 1, `ff_resumes_total{cause="budget_approved"}`: 1, `ff_events_total{kind="budget.raised"}`: 1,
		},
	},
	{
		name: "a breach that cancels all that runs",
		do: func(t *testing.T, w *metered) {
			h := hand{w.world, t}
			strict := tokens("red", 10)
			strict.OnHard = api.CancelRunning
			w.budget(t, strict)
			w.submit(t, 2, flowfabric.SubmitOptions{BudgetIDs: []string{"red"}})
			both := w.claim(t, "default", 2)
			h.does(api.WorkItem{Op: api.OpUsage, ID: both[0].ID, Lease: both[0].Lease, Usage: used(11)})
		},
		moves: map[string]float64{
			`ff_budget_breaches_total{action="cancelled",dimension="tokens",limit="hard"}`: 1, `ff_ended_total{lane="default",status="cancelled"}`: 2,
		},
	},
	{
		name: "a budget that begins anew, and a charge that is forgotten",
		do: func(t *testing.T, w *metered) {
			hourly := tokens("red", 100)
			hourly.Reset = api.BudgetReset{Every: time.Hour}
			w.budget(t, hourly)
			must[api.UsageReceipt](t)(w.Budgets().Charge(inTime(t), "red", api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"tokens": 25}, DedupKey: "k"}}))
			before := w.scrape(t)
			w.turn(time.Hour)
			w.moved(t, before, map[string]float64{`ff_timers_fired_total{kind="budget"}`: 1, `ff_events_total{kind="budget.reset"}`: 1, `ff_budget_ratio{budget="red",dimension="tokens"}`: -0.25})
			w.turn(8 * 24 * time.Hour)
		},
		moves: map[string]float64{`ff_timers_fired_total{kind="charge"}`: 1, `ff_purged_total{what="charge"}`: 1},
	},
}

// admissionCauses are those of U204 that budgets and quotas are for.
var admissionCauses = []cause{
	{
		name: "work that finds no room",
		do: func(t *testing.T, w *metered) {
			w.budget(t, tokens("red", 10))
			for id, settings := range map[string]api.QuotaSettings{"often": {RateLimit: 1, Window: time.Minute}, "wide": {ConcurrencyLimit: 1}} {
				must[*api.Quota](t)(w.Quotas().Put(inTime(t), id, settings))
			}
			w.submit(t, 2, flowfabric.SubmitOptions{Lane: "budget", BudgetIDs: []string{"red"}, Estimate: map[string]int64{"tokens": 6}})
			w.submit(t, 2, flowfabric.SubmitOptions{Lane: "rate", Quotas: []api.QuotaUse{{Quota: "often"}}})
			w.submit(t, 2, flowfabric.SubmitOptions{Lane: "slots", Quotas: []api.QuotaUse{{Quota: "wide"}}})
			for _, lane := range []string{"budget", "rate", "slots"} {
				if got := len(w.claim(t, lane, 2)); got != 1 {
					t.Fatalf("%d tasks of lane %s, want 1", got, lane)
				}
			}
		},
		moves: map[string]float64{
			`ff_admission_refused_total{cause="budget"}`: 1, `ff_admission_refused_total{cause="rate"}`: 1, `ff_admission_refused_total{cause="concurrency"}`: 1,
			`ff_admission_refused_total{cause="lane_cap"}`: 0, `ff_events_total{kind="execution.blocked"}`: 3,
			`ff_executions{lane="budget",status="blocked"}`: 1, `ff_executions{lane="rate",status="blocked"}`: 1, `ff_executions{lane="slots",status="blocked"}`: 1,
		},
	},
	{
		name: "a rate that has room again",
		do: func(t *testing.T, w *metered) {
			must[*api.Quota](t)(w.Quotas().Put(inTime(t), "often", api.QuotaSettings{RateLimit: 1, Window: time.Minute}))
			w.submit(t, 2, flowfabric.SubmitOptions{Quotas: []api.QuotaUse{{Quota: "often"}}})
			w.do(t, w.claim(t, "default", 2)[0], api.WorkItem{Op: api.OpComplete}, "")
			before := w.scrape(t)
			w.turn(time.Minute)
			w.moved(t, before, map[string]float64{`ff_timers_fired_total{kind="rate"}`: 1})
			w.one(t, "default")
		},
		moves: map[string]float64{`ff_started_total{attempt_type="initial",lane="default"}`: 2, `ff_admission_refused_total{cause="rate"}`: 1},
	},
	{
		name: "limits that are taken away",
		do: func(t *testing.T, w *metered) {
			must[*api.Quota](t)(w.Quotas().Put(inTime(t), "wide", api.QuotaSettings{ConcurrencyLimit: 1}))
			w.submit(t, 2, flowfabric.SubmitOptions{Quotas: []api.QuotaUse{{Quota: "wide"}}})
			w.claim(t, "default", 2)
			if err := w.Quotas().Delete(inTime(t), "wide", ops.DeleteQuotaOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{`ff_followup_seconds_count{kind="free_quota"}`: 1, `ff_followups_pending{kind="free_quota"}`: 0, `ff_executions{lane="default",status="blocked"}`: 0},
	},
	{
		name: "a grant that is not used",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{})
			grants := must[[]api.Grant](t)(w.Work().Grant(inTime(t), api.GrantRequest{
				WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}, GrantTTL: 5 * time.Second,
			}))
			if len(grants) != 1 {
				t.Fatalf("%d grants, want 1", len(grants))
			}
			before := w.scrape(t)
			w.turn(6 * time.Second)
			w.moved(t, before, map[string]float64{`ff_timers_fired_total{kind="execution"}`: 1, `ff_executions{lane="default",status="ready"}`: 1})
		},
		moves: map[string]float64{`ff_started_total{attempt_type="initial",lane="default"}`: 0, `ff_executions{lane="default",status="ready"}`: 1},
	},
}
