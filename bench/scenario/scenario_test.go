package scenario

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var (
	cluster = pgtest.New(nil)
	update  = flag.Bool("update", false, "write the shape of a report")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// onStores runs a test on each store, with the configuration of a quick run.
func onStores(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, Config{Store: "sqlite:" + t.TempDir(), Quick: true})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Config{Store: cluster.Database(t), Quick: true})
	})
}

func named(t *testing.T, name string) Scenario {
	t.Helper()
	i := slices.IndexFunc(All(), func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return All()[i]
}

// run wants a valid report with these latencies.
func run(t *testing.T, name string, cfg Config, latencies ...string) *Report {
	t.Helper()
	report, err := Run(t.Context(), named(t, name), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Valid {
		t.Fatalf("%s is not valid: %v, notes %v", name, report.Failed(), report.Notes)
	}
	for _, s := range report.Samples {
		if s.ThroughputPerS <= 0 && name != "idle" {
			t.Errorf("throughput is %v", s.ThroughputPerS)
		}
		for _, l := range latencies {
			if s.LatencyMS[l].N == 0 {
				t.Errorf("there is no latency %s: %v", l, s.LatencyMS)
			}
		}
	}
	return report
}

func TestU253_cycle_brings_everything_to_its_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		cfg.Samples = 2
		report := run(t, "cycle", cfg, "submit", "start", "complete")
		if got := report.Samples[1].LatencyMS["start"].N; got != 200 {
			t.Errorf("%d starts were measured, want 200 without the warm-up", got)
		}
	})
}

func TestU253_cycle_works_off_a_backlog_that_was_submitted_in_batches(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		cfg.Drain, cfg.Batch, cfg.N = true, 64, 300
		run(t, "cycle", cfg, "submit", "start", "complete")
	})
}

func TestU253_cycle_runs_with_a_budget_and_a_quota_for_each_and_gives_everything_back(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		cfg.Admission = true
		report := run(t, "cycle", cfg, "submit", "start", "complete")
		var names []string
		for _, c := range report.Samples[0].Checks {
			names = append(names, c.Name)
		}
		for _, want := range []string{"succeeded", "budget_reserved", "budget_holds", "quota_slots", "blocked"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not looked at: %v", want, names)
			}
		}
	})
}

func TestU255_steady_counts_from_the_scheduled_instant(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		cfg.Rate, cfg.Duration, cfg.Work = 100, time.Second, 5*time.Millisecond
		report := run(t, "steady", cfg, "submit", "start")
		if _, told := report.Samples[0].Counts["deadline_misses"]; !told {
			t.Errorf("deadline misses are not counted: %v", report.Samples[0].Counts)
		}
	})
}

func TestU255_steady_finds_its_rate_by_a_cycle(t *testing.T) {
	t.Parallel()
	cfg := Config{Store: "sqlite:" + t.TempDir(), Quick: true, Duration: 200 * time.Millisecond}
	if rate := run(t, "steady", cfg).Params["rate"].(float64); rate <= 0 {
		t.Errorf("the rate is %v", rate)
	}
}

func TestU257_routing_finds_capable_workers_in_all_variants(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "routing", cfg, "happy.start", "partial.start", "scarce.start")
		for _, v := range []string{"happy", "partial", "scarce"} {
			if got := report.Samples[0].Counts[v+".routed"]; got != 1 {
				t.Errorf("%s: %v are routed, want all", v, got)
			}
		}
	})
}

func TestU260_idle_looks_at_a_store_with_nothing_to_do(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "idle", cfg)
		_, told := report.Samples[0].Counts["store_queries_per_s"]
		if postgres := report.Store.Kind == "postgres"; told != postgres {
			t.Errorf("queries are told: %v on %s", told, report.Store.Kind)
		}
	})
}

func TestE35_events_reads_those_of_single_executions(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		run(t, "events", cfg, "short_log", "long_log")
	})
}

func TestE17_streams_are_followed_poured_and_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "streams", cfg, "append_to_reader", "read_beside_few", "read_beside_many")
		if report.Samples[0].Counts["read_per_s"] == 0 {
			t.Error("nothing was read")
		}
	})
}

func TestE43_webhooks_are_delivered_alone_and_beside_receivers_that_do_not_answer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "webhooks", cfg, "submit_to_receiver", "beside_dead")
		if report.Samples[0].Counts["beside_dead_per_s"] == 0 {
			t.Error("nothing was delivered")
		}
	})
}

// lossy is a client that says yes to a submit and forgets it.
type lossy struct {
	transport.Transport
	calls atomic.Int64
}

// Do does an operation, unless it is the thirtieth submit.
func (l *lossy) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if result, submits := answer.(*flowfabric.SubmitResult); submits && l.calls.Add(1) == 30 {
		*result = flowfabric.SubmitResult{ID: "01890000-0000-7000-8000-000000000000"}
		return nil
	}
	return l.Transport.Do(ctx, op, request, answer, how)
}

func TestU252_a_lost_execution_makes_a_sample_invalid(t *testing.T) {
	t.Parallel()
	cfg := Config{Store: "sqlite:" + t.TempDir(), Quick: true, Stall: 2 * time.Second}.withDefaults(named(t, "cycle"))
	at, err := openPlace(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := at.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	conn := at.client.Connection()
	conn.Transport = &lossy{Transport: conn.Transport}
	at.client.Client = flowfabric.NewClient(conn)
	report := &Report{}
	sample := newSample()
	p, _ := planCycle(cfg)
	if err := p.take(t.Context(), &trial{cfg: cfg, number: 1, place: at, sample: sample, report: report}); err != nil {
		t.Fatal(err)
	}
	report.Samples = []*Sample{sample}
	report.summarize()
	if report.Valid || !slices.ContainsFunc(report.Failed(), func(what string) bool { return strings.HasPrefix(what, "sample 1: lost is ") }) {
		t.Errorf("valid=%v %v", report.Valid, report.Failed())
	}
}

func TestU252_a_sample_that_was_not_checked_is_not_valid(t *testing.T) {
	t.Parallel()
	r := &Report{Samples: []*Sample{newSample()}}
	r.summarize()
	if r.Valid || len(r.Failed()) != 1 {
		t.Error(r.Failed())
	}
}

func TestScenarios_that_cannot_be_run_say_why(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), named(t, "recovery"), Config{Store: "sqlite:", Quick: true, Via: "embedded"}); err == nil {
		t.Error("recovery ran without processes")
	}
	for _, cfg := range []Config{{Variants: []string{"sad"}}, {Workers: 3}} {
		if _, err := Run(t.Context(), named(t, "routing"), cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestU251_nothing_is_left_of_the_stores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, "cycle", Config{Store: "sqlite:" + dir + "/mine.db", Quick: true, N: 20})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// shape is a report with types in the place of values.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = shape(value)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shape(v[0])}
	case string:
		return "text"
	case float64:
		return 0
	case bool:
		return true
	default:
		return nil
	}
}

func TestU261_the_shape_of_a_report_is_kept(t *testing.T) {
	t.Parallel()
	report := run(t, "cycle", Config{Store: "sqlite:" + t.TempDir(), Quick: true, N: 20})
	var out strings.Builder
	if err := Write(&out, []*Report{report}); err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal([]byte(out.String()), &document); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(shape(document), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/report.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
	again, err := Read(strings.NewReader(out.String() + out.String()))
	if err != nil || len(again) != 2 || again[1].Summary.ThroughputPerS != report.Summary.ThroughputPerS {
		t.Errorf("read back %v, %v", again, err)
	}
	for _, bad := range []string{"", "{}", "nonsense", `{"schema_version": 99, "scenario": "cycle"}`} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was taken for a report", bad)
		}
	}
}

func TestU254_resume_lets_every_execution_go_on_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "resume", cfg, "suspend_to_running", "suspend_to_completed", "signal_to_running", "crowd_signal_to_running")
		if got := report.Samples[0].LatencyMS["signal_to_running"].N; got != 20 {
			t.Errorf("%d rounds were measured, want 20 without the warm-up", got)
		}
	})
}
