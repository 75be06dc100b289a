package bench

import (
	"context"
	"slices"
	"testing"
)

// small is enough to see that figures come out and executions add up.
func small(t *testing.T) Env {
	return Env{Postgres: cluster.AdminURL(t, cluster.Database(t)), Dir: t.TempDir(), share: 200}
}

func TestFlowFabric_is_measured_over_HTTP_as_in_process(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context, Env) (*Sample, error){"postgres": ffHTTP, "sqlite": ffHTTPSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFigures(t, run, "drain", "cycle.64", "cycle.512")
		})
	}
}

func TestFlowFabric_is_measured_with_quotas_and_budgets(t *testing.T) {
	t.Parallel()
	var want []string
	for _, part := range ffAdmissionParts() {
		want = append(want, part.name)
	}
	for name, run := range map[string]func(context.Context, Env) (*Sample, error){"postgres": ffAdmission, "sqlite": ffAdmissionSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFigures(t, run, want...)
		})
	}
}

func TestFlowFabric_is_measured_with_an_old_snapshot_and_with_many_that_wait(t *testing.T) {
	t.Parallel()
	t.Run("snapshot", func(t *testing.T) {
		t.Parallel()
		checkFigures(t, ffSnapshot, "claim.before.p50", "claim.before.p99", "claim.during.p50", "claim.during.p99")
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		checkFigures(t, ffMemory, "waiting.few", "heap.few", "rss.few", "waiting.many", "heap.many", "rss.many")
	})
}

func checkFigures(t *testing.T, run func(context.Context, Env) (*Sample, error), want ...string) {
	t.Helper()
	sample, err := run(t.Context(), small(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range sample.Values {
		names = append(names, v.Name)
		if v.Value <= 0 {
			t.Errorf("%s is %v", v.Name, v.Value)
		}
	}
	if !slices.Equal(names, want) || len(sample.Failures) > 0 {
		t.Errorf("measured %v, want %v; failures %v", names, want, sample.Failures)
	}
}
