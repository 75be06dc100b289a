package scenario

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU256_chain_runs_every_flow_alone_and_many_at_a_time(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		cfg.N, cfg.InFlight = 12, 4
		report := run(t, "chain", cfg, "setup", "run", "flow", "next_start", "crowd_setup", "crowd_run", "crowd_flow", "crowd_next_start")
		latency := report.Samples[0].LatencyMS
		if alone, crowd, gaps := latency["flow"].N, latency["crowd_flow"].N, latency["crowd_next_start"].N; alone != 5 || crowd != 12 || gaps != 12*9 {
			t.Errorf("%d flows alone, %d in flight with %d starts after another were measured, want 5, 12 and 108 without the warm-up", alone, crowd, gaps)
		}
	})
}

func TestU258_losers_are_cancelled_by_the_join_and_their_handlers_know(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "losers", cfg, "n10.event", "n10.context", "n40.event", "n40.context")
		if got := report.Samples[0].LatencyMS["n40.event"].N; got != 2 {
			t.Errorf("%d rounds were measured, want 2 without the warm-up", got)
		}
	})
}

func TestF28_fan_in_compares_members_of_one_join_with_executions_of_no_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "fan-in", cfg, "complete", "plain_complete", "join_start")
		if s := report.Samples[0]; s.Counts["plain_per_s"] <= 0 || s.Counts["of_plain"] <= 0 || s.LatencyMS["join_start"].N != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestScenarios_of_flows_refuse_sizes_that_cannot_be(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][]Config{
		"chain": {{N: -1}, {InFlight: -1}}, "losers": {{N: 1}, {N: -1}, {N: 5000}}, "fan-in": {{N: -1}, {N: 5000}},
	} {
		for _, cfg := range sizes {
			cfg.Store = "sqlite:" + t.TempDir()
			if _, err := Run(t.Context(), named(t, name), cfg); err == nil {
				t.Errorf("%s took n %d, in flight %d", name, cfg.N, cfg.InFlight)
			}
		}
	}
}

// forgetful is a client whose flows have a last node that no worker runs.
type forgetful struct{ transport.Transport }

// Do puts the last node of a flow into a lane without workers.
func (f forgetful) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if flow, ok := request.(*wire.SubmitFlowRequest); ok {
		flow.Body.Nodes[len(flow.Body.Nodes)-1].Lane = "missing"
	}
	return f.Transport.Do(ctx, op, request, answer, how)
}

func TestU252_a_flow_that_does_not_end_makes_a_sample_invalid(t *testing.T) {
	t.Parallel()
	cfg := Config{Store: "sqlite:" + t.TempDir(), Quick: true, N: 1, Stall: time.Second}.withDefaults(named(t, "chain"))
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
	conn.Transport = forgetful{conn.Transport}
	at.client.Client = flowfabric.NewClient(conn)
	report, sample := &Report{}, newSample()
	if err := (&chainPlan{N: 1, Nodes: 3, InFlight: 1, Alone: 1, Workers: 2}).take(t.Context(), &trial{cfg: cfg, number: 1, place: at, sample: sample, report: report}); err != nil {
		t.Fatal(err)
	}
	report.Samples = []*Sample{sample}
	report.summarize()
	for _, want := range []string{"sample 1: flows_completed is 0, want 3", "sample 1: lost is 3, want 0"} {
		if report.Valid || !slices.Contains(report.Failed(), want) {
			t.Errorf("valid=%v %v, want %q", report.Valid, report.Failed(), want)
		}
	}
}
