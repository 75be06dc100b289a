package flowfabric_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

func TestU199_every_metric_moves_by_what_causes_it(t *testing.T) {
	t.Parallel()
	for _, group := range [][]cause{commandCauses, executionCauses, claimCauses, leaseCauses, waitCauses, budgetCauses, admissionCauses, flowCauses, followupCauses, eventCauses, webhookCauses, fleetCauses, upkeepCauses, storeCauses} {
		for _, c := range group {
			c.check(t)
		}
	}
}

// movedElsewhere are metrics of an engine whose causes have tests of their own.
var movedElsewhere = []string{
	"ff_store_query_seconds", "ff_store_bytes", // below
	"ff_quarantined", "ff_panics_total", "ff_clock_skew_seconds", // of the engine: nothing outside can cause them
}

func TestU199_every_metric_of_an_engine_has_a_cause(t *testing.T) {
	t.Parallel()
	moved := map[string]bool{}
	for _, group := range [][]cause{commandCauses, executionCauses, claimCauses, leaseCauses, waitCauses, budgetCauses, admissionCauses, flowCauses, followupCauses, eventCauses, webhookCauses, fleetCauses, upkeepCauses, storeCauses} {
		for _, c := range group {
			for sample := range c.moves {
				name, _, _ := strings.Cut(sample, "{")
				moved[name] = true
			}
			for sample := range c.on["sqlite"] {
				name, _, _ := strings.Cut(sample, "{")
				moved[name] = true
			}
		}
	}
	for _, m := range metrics.All() {
		counted := moved[m.Name] || m.Type == metrics.TypeHistogram && moved[m.Name+"_count"]
		if m.Place == metrics.Engine && !counted && !slices.Contains(movedElsewhere, m.Name) {
			t.Errorf("nothing moves %s", m.Name)
		}
	}
}

func TestU199_an_engine_shows_the_metrics_of_the_table_and_no_others(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openMetered(t, name, address(t))
			if err := metrics.Compare(metrics.Engine, w.Connection().Metrics); err != nil {
				t.Error(err)
			}
		})
	}
}

// An alert on increase() misses the first event of a series that begins with it.
func TestU199_counters_are_there_with_zero_before_their_first_event(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			samples := openMetered(t, name, address(t)).scrape(t)
			for _, sample := range []string{
				`ff_submitted_total{lane="default",namespace="default"}`, `ff_started_total{attempt_type="reclaim",lane="default"}`,
				`ff_ended_total{lane="default",status="failed"}`, `ff_retries_total{category="transient",lane="default"}`,
				`ff_leases_lapsed_total{lane="default"}`, `ff_reclaims_total{lane="default"}`, `ff_leases_revoked_total`,
				`ff_fenced_total{command="complete"}`, `ff_approvals_total{decision="rejected"}`, `ff_admission_refused_total{cause="budget"}`,
				`ff_token_refused_total{cause="mismatch"}`, `ff_panics_total{place="command"}`, `ff_purged_total{what="execution"}`,
			} {
				if value, there := samples[sample]; !there || value != 0 {
					t.Errorf("%s: %v, there: %t", sample, value, there)
				}
			}
			known := 0
			for _, m := range metrics.All() {
				if m.Type != metrics.TypeCounter || m.Place != metrics.Engine || slices.ContainsFunc(m.Labels, func(l metrics.Label) bool { return l.Values == nil }) {
					continue
				}
				known++
				if !slices.ContainsFunc(slices.Collect(maps.Keys(samples)), func(sample string) bool { return sample == m.Name || strings.HasPrefix(sample, m.Name+"{") }) {
					t.Errorf("%s has no sample although its labels are known", m.Name)
				}
			}
			if known < 10 {
				t.Errorf("only %d counters were looked at", known)
			}
		})
	}
}

func TestU199_labels_are_bounded(t *testing.T) {
	t.Parallel()
	w := openMetered(t, "sqlite", stores["sqlite"](t))
	all := make([]flowfabric.Submission, metrics.MaxValues+19) // the lane default has its series from the start
	for i := range all {
		all[i] = echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Lane: "lane-" + string(rune('a'+i/26)) + string(rune('a'+i%26))})
	}
	for _, result := range must[[]flowfabric.SubmitResult](t)(w.SubmitMany(inTime(t), all)) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	lanes := 0
	samples := w.scrape(t)
	for sample := range samples {
		if strings.HasPrefix(sample, "ff_submitted_total{") {
			lanes++
		}
	}
	if other := samples[`ff_submitted_total{lane="_other",namespace="default"}`]; lanes != metrics.MaxValues+1 || other != 20 || samples[`ff_leases_lapsed_total{lane="default"}`] != 0 {
		t.Errorf("%d lanes are shown and %v executions are of others", lanes, other)
	}
}

// commandCauses are those of U201.
var commandCauses = []cause{
	{
		name: "commands that are done",
		do:   func(t *testing.T, w *metered) { w.submit(t, 3, flowfabric.SubmitOptions{}) },
		moves: map[string]float64{
			`ff_commands_total{command="submit",outcome="done"}`: 3, `ff_command_seconds_count{command="submit"}`: 3,
			`ff_commit_seconds_count`: 3, `ff_commit_batch_size_count`: 3, `ff_commit_batch_size_sum`: 3,
		},
	},
	{
		name: "a command that is refused",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			if err := w.Operate().Delete(inTime(t), id); flowfabric.CodeOf(err) != "execution_not_terminal" {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{`ff_commands_total{command="delete",outcome="refused"}`: 1, `ff_commands_total{command="delete",outcome="done"}`: 0},
	},
	{
		name: "a command whose answer was lost",
		do: func(t *testing.T, w *metered) {
			w.gate.lose = errors.New("the connection broke")
			w.beside(t, func(ctx context.Context) { _, _ = w.Submit(ctx, echo.Submission(flowfabric.Text("x"))) })
		},
		moves: map[string]float64{`ff_commands_total{command="submit",outcome="unknown"}`: 1},
	},
	{
		name: "commands that wait for a transaction",
		do: func(t *testing.T, w *metered) {
			w.gate.shut()
			w.beside(t, func(ctx context.Context) { _, _ = w.Submit(ctx, echo.Submission(flowfabric.Text("1"))) })
			receive(t, w.gate.inside)
			for range 2 {
				w.beside(t, func(ctx context.Context) { _, _ = w.Submit(ctx, echo.Submission(flowfabric.Text("2"))) })
			}
		},
		moves: map[string]float64{`ff_commit_queue_depth`: 2},
	},
}

// executionCauses are those of U202 and U203.
var executionCauses = []cause{
	{
		name: "work from its submission to its end",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 2, flowfabric.SubmitOptions{Lane: "a"})
			w.turn(2 * time.Second)
			claimed := w.one(t, "a")
			w.turn(5 * time.Second)
			w.do(t, claimed, api.WorkItem{Op: api.OpComplete}, "")
		},
		moves: map[string]float64{
			`ff_submitted_total{lane="a",namespace="default"}`: 2, `ff_started_total{attempt_type="initial",lane="a"}`: 1,
			`ff_ended_total{lane="a",status="succeeded"}`: 1, `ff_executions{lane="a",status="ready"}`: 1, `ff_executions{lane="a",status="succeeded"}`: 1,
			`ff_start_latency_seconds_count{lane="a"}`: 1, `ff_start_latency_seconds_sum{lane="a"}`: 2,
			`ff_run_seconds_count{kind="echo",lane="a"}`: 1, `ff_run_seconds_sum{kind="echo",lane="a"}`: 5,
			`ff_total_seconds_count{lane="a",status="succeeded"}`: 1, `ff_total_seconds_sum{lane="a",status="succeeded"}`: 7,
		},
	},
	{
		name: "a submission that is there already",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 2, flowfabric.SubmitOptions{IdempotencyKey: "k"})
		},
		moves: map[string]float64{`ff_submitted_total{lane="default",namespace="default"}`: 1, `ff_events_total{kind="execution.submitted"}`: 1},
	},
	{
		name: "an attempt that fails and is tried again",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2}}})
			now := time.Duration(0)
			w.do(t, w.one(t, "default"), api.WorkItem{Op: api.OpFail, Category: "rate_limited", Message: "later", RetryAfter: &now}, "")
			w.do(t, w.one(t, "default"), api.WorkItem{Op: api.OpFail, Class: "permanent", Message: "never"}, "")
		},
		moves: map[string]float64{
			`ff_retries_total{category="rate_limited",lane="default"}`: 1, `ff_started_total{attempt_type="retry",lane="default"}`: 1,
			`ff_ended_total{lane="default",status="failed"}`: 1, `ff_run_seconds_count{kind="echo",lane="default"}`: 2,
		},
	},
	{
		name: "work that waits",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{})
			w.turn(10*time.Second - gaugesKept) // the next look adds them
			before := w.scrape(t)[`ff_oldest_ready_seconds{lane="default"}`]
			if before != 10 {
				t.Errorf("ready for %v s, want 10", before)
			}
			w.claim(t, "default", 1)
		},
		moves: map[string]float64{`ff_oldest_ready_seconds{lane="default"}`: 0, `ff_executions{lane="default",status="ready"}`: 0, `ff_executions{lane="default",status="running"}`: 1},
	},
}

// claimCauses are those of U204.
var claimCauses = []cause{
	{
		name: "claims with and without work",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 3, flowfabric.SubmitOptions{})
			w.claim(t, "default", 2)
			w.claim(t, "elsewhere", 2)
			if _, err := w.Work().Claim(inTime(t), api.ClaimRequest{WorkerID: "w", InstanceID: "w-1"}); flowfabric.CodeOf(err) != "invalid_argument" {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{
			`ff_claims_total{outcome="work"}`: 1, `ff_claims_total{outcome="empty"}`: 1, `ff_claims_total{outcome="error"}`: 1,
			`ff_claim_batch_size_count`: 1, `ff_claim_batch_size_sum`: 2,
		},
	},
	{
		name: "claims that wait, and a commit that wakes one",
		do: func(t *testing.T, w *metered) {
			before := w.scrape(t)
			for _, lane := range []string{"a", "b"} {
				r := api.ClaimRequest{WorkerID: "w", InstanceID: "w-" + lane, Lanes: []string{lane}, Wait: time.Minute}
				w.beside(t, func(ctx context.Context) { _, _ = w.Work().Claim(ctx, r) })
			}
			w.moved(t, before, map[string]float64{`ff_claim_waiters`: 2})
			w.submit(t, 1, flowfabric.SubmitOptions{Lane: "a"})
		},
		moves: map[string]float64{`ff_claim_waiters`: 1, `ff_wakeups_total{source="channel"}`: 1, `ff_claims_total{outcome="work"}`: 1},
	},
	{
		name: "a lane at its cap",
		do: func(t *testing.T, w *metered) {
			must[*api.Lane](t)(w.Lanes().Put(inTime(t), "narrow", api.LaneSettings{MaxConcurrent: 1}))
			w.moved(t, map[string]float64{}, map[string]float64{`ff_followups_pending{kind="count_lane"}`: 0, `ff_followup_seconds_count{kind="count_lane"}`: 1})
			w.submit(t, 2, flowfabric.SubmitOptions{Lane: "narrow"})
			if got := len(w.claim(t, "narrow", 2)); got != 1 {
				t.Fatalf("%d tasks, want 1", got)
			}
		},
		moves: map[string]float64{`ff_admission_refused_total{cause="lane_cap"}`: 1},
	},
}

// leaseCauses are those of U205.
var leaseCauses = []cause{
	{
		name: "a lease that is renewed, lapses and is taken over",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{})
			before := w.scrape(t)
			lost := w.one(t, "default")
			w.do(t, lost, api.WorkItem{Op: api.OpRenew}, "")
			w.turn(10 * time.Minute)
			w.moved(t, before, map[string]float64{`ff_leases_lapsed_total{lane="default"}`: 1})
			w.claim(t, "default", 1)
			w.do(t, lost, api.WorkItem{Op: api.OpRenew}, "stale_lease")
			w.do(t, lost, api.WorkItem{Op: api.OpComplete}, "stale_lease")
		},
		moves: map[string]float64{
			`ff_lease_renewals_total{outcome="done"}`: 1, `ff_lease_renewals_total{outcome="refused"}`: 1, `ff_leases_lapsed_total{lane="default"}`: 1,
			`ff_reclaims_total{lane="default"}`: 1, `ff_started_total{attempt_type="reclaim",lane="default"}`: 1,
			`ff_fenced_total{command="renew"}`: 1, `ff_fenced_total{command="complete"}`: 1,
		},
	},
	{
		name: "a lease that is revoked",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			w.claim(t, "default", 1)
			must[api.Revocation](t)(w.Operate().Revoke(inTime(t), id))
		},
		moves: map[string]float64{`ff_leases_revoked_total`: 1, `ff_audit_rows_total{action="revoke"}`: 1, `ff_leases_lapsed_total{lane="default"}`: 0},
	},
}

// followupCauses are those of U207 and the bulk jobs of U212.
var followupCauses = []cause{
	{
		name: "a bulk job",
		do: func(t *testing.T, w *metered) {
			ids := w.submit(t, 3, flowfabric.SubmitOptions{})
			w.do(t, w.one(t, "default"), api.WorkItem{Op: api.OpComplete}, "")
			job := must[*api.BulkJob](t)(w.Operate().Bulk(inTime(t), ops.BulkRequest{Action: api.BulkCancel, IDs: ids}))
			must[*api.BulkJob](t)(w.Operate().WaitBulk(inTime(t), job.ID))
		},
		moves: map[string]float64{
			`ff_bulk_items_total{action="cancel",outcome="done"}`: 2, `ff_bulk_items_total{action="cancel",outcome="refused"}`: 1,
			`ff_followup_seconds_count{kind="bulk"}`: 1, `ff_followups_pending{kind="bulk"}`: 0,
		},
	},
	{
		name: "a bulk job that takes its time",
		do: func(t *testing.T, w *metered) {
			ids := w.submit(t, 50, flowfabric.SubmitOptions{})
			must[*api.BulkJob](t)(w.Operate().Bulk(inTime(t), ops.BulkRequest{Action: api.BulkCancel, IDs: ids, RatePerSecond: 1}))
		},
		moves: map[string]float64{`ff_followups_pending{kind="bulk"}`: 1},
	},
}

// eventCauses are those of U210.
var eventCauses = []cause{
	{
		name: "events and those who follow them",
		do: func(t *testing.T, w *metered) {
			w.beside(t, func(ctx context.Context) {
				for range w.Events().Follow(ctx) {
				}
			})
			w.submit(t, 4, flowfabric.SubmitOptions{})
		},
		moves: map[string]float64{`ff_events_total{kind="execution.submitted"}`: 4, `ff_event_delay_seconds_count`: 4, `ff_event_readers`: 1},
	},
	{ // U209
		name: "frames and those who follow them",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{Lane: "talk"})[0]
			w.beside(t, func(ctx context.Context) {
				for range w.Streams().Follow(ctx, id) {
				}
			})
			task := w.one(t, "talk")
			w.do(t, task, api.WorkItem{Op: api.OpFrames, Frames: []api.NewFrame{
				{Payload: flowfabric.Text("abc")}, {Mode: api.ModeSummary, Payload: flowfabric.JSON(false)}, // refused, and counted nowhere
			}}, "invalid_patch")
			w.do(t, task, api.WorkItem{Op: api.OpFrames, Frames: []api.NewFrame{
				{Payload: flowfabric.Text("abc")}, {Payload: flowfabric.Text("de")}, {Mode: api.ModeBestEffort, Payload: flowfabric.Text("f")},
			}}, "")
		},
		moves: map[string]float64{`ff_frames_total{mode="durable"}`: 2, `ff_frames_total{mode="best_effort"}`: 1, `ff_frame_bytes_total`: 6, `ff_stream_readers`: 1},
	},
}

// fleetCauses are those of U211 that a server knows.
var fleetCauses = []cause{
	{
		name: "workers and what they hold",
		do: func(t *testing.T, w *metered) {
			for _, id := range []string{"w-1", "w-2", "w-3"} {
				must[api.RegisterResult](t)(w.Work().Register(inTime(t), api.Registration{
					WorkerID: "w", InstanceID: id, Lanes: []string{"default"}, MaxConcurrent: 5, LivenessTTL: time.Hour,
				}))
			}
			w.submit(t, 1, flowfabric.SubmitOptions{})
			w.claim(t, "default", 1)
			if err := w.Workers().Drain(inTime(t), ops.WorkerTarget{InstanceID: "w-2"}); err != nil {
				t.Fatal(err)
			}
			if err := w.Workers().MarkDead(inTime(t), "w-3", ops.DeadOptions{Reason: "gone"}); err != nil {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{
			`ff_workers{status="live"}`: 1, `ff_workers{status="draining"}`: 1, `ff_workers{status="dead"}`: 1,
			`ff_worker_slots{state="busy"}`: 1, `ff_worker_slots{state="free"}`: 4,
		},
	},
}

// upkeepCauses are those of U212 and the audit log of U214.
var upkeepCauses = []cause{
	{
		name: "a delay that ends",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{Delay: 5 * time.Second})
			w.turn(6 * time.Second)
		},
		moves: map[string]float64{
			`ff_timers_fired_total{kind="execution"}`: 1, `ff_timer_lateness_seconds_count`: 1, `ff_events_total{kind="execution.ready"}`: 1,
		},
	},
	{
		name: "an execution that is deleted",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			must[*flowfabric.Execution](t)(w.Cancel(inTime(t), id, "enough"))
			if err := w.Operate().Delete(inTime(t), id); err != nil {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{
			`ff_purged_total{what="execution"}`: 1, `ff_audit_rows_total{action="delete"}`: 1, `ff_audit_rows_total{action="cancel"}`: 1,
			`ff_ended_total{lane="default",status="cancelled"}`: 1,
		},
	},
	{
		name: "an idempotency key whose window ends",
		do: func(t *testing.T, w *metered) {
			w.submit(t, 1, flowfabric.SubmitOptions{IdempotencyKey: "k"})
			w.turn(49 * time.Hour)
		},
		moves: map[string]float64{`ff_purged_total{what="idempotency_key"}`: 1, `ff_timers_fired_total{kind="idempotency_key"}`: 1},
	},
}

// storeCauses are those of U213.
var storeCauses = []cause{
	{
		name: "statements",
		do:   func(t *testing.T, w *metered) { w.submit(t, 3, flowfabric.SubmitOptions{}) },
		on: map[string]map[string]float64{
			"sqlite":   {`ff_store_queries_total{statement="insert execution"}`: 3},
			"postgres": {`ff_store_queries_total{statement="insert_executions"}`: 3, `ff_store_query_seconds_count{statement="insert_executions"}`: 3},
		},
	},
	{
		name: "an id that is there already",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			w.submit(t, 1, flowfabric.SubmitOptions{ID: id})
		},
		moves: map[string]float64{`ff_store_errors_total{class="conflict"}`: 1},
	},
	{
		name: "a transaction that holds a connection",
		do: func(t *testing.T, w *metered) {
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			for range w.Executions().List(t.Context()) { // what gauges wait for is there before the store has its one writer
			}
			w.gate.shut()
			w.beside(t, func(ctx context.Context) { _, _ = w.Cancel(ctx, id, "enough") })
			receive(t, w.gate.inside)
		},
		moves: map[string]float64{`ff_store_pool{state="busy"}`: 1, `ff_store_pool{state="max"}`: 0},
	},
	{
		name: "work that only a look at the store tells of",
		do: func(t *testing.T, w *metered) {
			submit, commit, _ := ownTx(t, w.world)
			must[*flowfabric.Execution](t)(submit(echo.Submission(flowfabric.Text("x"))))
			if err := commit(); err != nil {
				t.Fatal(err)
			}
		},
		moves: map[string]float64{`ff_submitted_total{lane="default",namespace="default"}`: 1},
		// Nothing is expected of ff_wakeups_total: Postgres notifies with the commit of the user's transaction, the engine of a SQLite file looks for
		// that commit, and either may come before the poll or after it.
	},
}

func TestU213_statements_are_timed(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openMetered(t, name, address(t))
			w.submit(t, 130, flowfabric.SubmitOptions{})
			samples, timed := w.scrape(t), 0
			for sample, runs := range samples {
				statement, found := strings.CutPrefix(sample, "ff_store_queries_total")
				if !found {
					continue
				}
				timed++
				want := runs
				if name == "sqlite" { // one of 64
					want = float64((int(runs) + 63) / 64)
				}
				if got := samples["ff_store_query_seconds_count"+statement]; got != want {
					t.Errorf("%s ran %v times and was timed %v times, want %v", statement, runs, got, want)
				}
			}
			if timed < 5 {
				t.Errorf("%d statements", timed)
			}
		})
	}
}

func TestU213_the_store_grows(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		if name == "postgres" { // a database that was used before has room in its tables, and does not grow
			address = func(t testing.TB) string { return cluster.Database(t) }
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openMetered(t, name, address(t))
			const bytes = 1 << 20
			before := w.scrape(t)["ff_store_bytes"]
			noise := make([]byte, bytes) // that no database can make small
			seed := uint32(1)
			for i := range noise {
				seed = seed*1664525 + 1013904223
				noise[i] = byte(seed >> 24)
			}
			must[flowfabric.SubmitResult](t)(w.Submit(inTime(t), echo.Submission(flowfabric.Bytes(noise, "application/octet-stream"))))
			if after := w.scrape(t)["ff_store_bytes"]; before <= 0 || after < before+bytes {
				t.Errorf("%v bytes, then %v with %d more in it", before, after, bytes)
			}
		})
	}
}

func TestU213_hints_of_another_process_are_counted(t *testing.T) {
	t.Parallel()
	url := stores["postgres"](t)
	here := &metered{world: openWorld(t, url, engine.Hooks{}), clock: clock.NewManual(time.Time{}), gate: &gate{}}
	there := openWorld(t, url, engine.Hooks{})
	waiting := make(chan api.ClaimAnswer, 1)
	here.beside(t, func(ctx context.Context) {
		answer, _ := here.Work().Claim(ctx, api.ClaimRequest{WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}, Wait: time.Minute})
		waiting <- answer
	})
	awaitClaims(t, here.world, 1)
	must[flowfabric.SubmitResult](t)(there.Submit(inTime(t), echo.Submission(flowfabric.Text("x"))))
	if tasks := receive(t, waiting).Tasks; len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	samples := scrape(t, here.Client)
	if heard := samples[`ff_wakeups_total{source="notify"}`] + samples[`ff_wakeups_total{source="poll"}`]; heard < 1 {
		t.Errorf("%v", heard)
	}
}

func TestU138_the_metrics_of_an_engine_elsewhere_are_those_of_its_server(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	answer := httptest.NewRecorder()
	w.overHTTP(t).Client.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != 404 {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// notMetrics are words of the code that look like metrics.
var notMetrics = []string{"ff_session", "ff_search", "ff_http", "ff_api", "ff_key"}

func TestU199_no_code_names_a_metric_but_the_table(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`"ff_[a-z_]+(_total|_seconds|_size|_bytes|_depth|_waiters|_readers|_pending|_pool|_info|_slots|_tasks)?"`)
	for _, dir := range []string{".", "internal/engine", "internal/server", "internal/store", "internal/store/sqlite", "internal/store/postgres"} {
		files := must[[]os.DirEntry](t)(os.ReadDir(dir))
		for _, file := range files {
			if file.IsDir() || !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
				continue
			}
			text := must[[]byte](t)(os.ReadFile(dir + "/" + file.Name()))
			for _, word := range named.FindAllString(string(text), -1) {
				if !slices.Contains(notMetrics, strings.Trim(word, `"`)) {
					t.Errorf("%s/%s names %s", dir, file.Name(), word)
				}
			}
		}
	}
}
