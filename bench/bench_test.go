package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/bench/measure"
	"github.com/flowfabric/flowfabric/internal/pgtest"
)

var cluster = pgtest.New(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// tiny is enough to see that figures come out and rows add up.
var tiny = RawConfig{Rows: 400, Batches: []int{50, 200}}

func TestRawPostgres_completes_every_row_and_leaves_nothing_behind(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	sample, err := RawPostgres(t.Context(), url, tiny)
	if err != nil {
		t.Fatal(err)
	}
	checkRaw(t, sample)
	if sample.Settings["fsync"] != "on" {
		t.Errorf("settings are %v, want fsync on", sample.Settings)
	}
	conn, err := connectPostgres(t.Context(), url, "public", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.conn.Close(context.WithoutCancel(t.Context())) }()
	var left int
	if err := conn.conn.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'ffbench%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

func TestRawSQLite_completes_every_row(t *testing.T) {
	t.Parallel()
	sample, err := RawSQLite(t.Context(), t.TempDir(), tiny)
	if err != nil {
		t.Fatal(err)
	}
	checkRaw(t, sample)
}

func checkRaw(t *testing.T, sample *Sample) {
	t.Helper()
	var names []string
	for _, v := range sample.Values {
		names = append(names, v.Name)
		if v.Value <= 0 {
			t.Errorf("%s is %v", v.Name, v.Value)
		}
	}
	if want := []string{"cycle.50", "insert.50", "drain.50", "cycle.200", "insert.200", "drain.200"}; !slices.Equal(names, want) {
		t.Errorf("measured %v, want %v", names, want)
	}
	if len(sample.Failures) > 0 {
		t.Error(sample.Failures)
	}
}

func TestRun_takes_turns_and_reports_medians(t *testing.T) {
	t.Parallel()
	var order []string
	scenario := func(name string, values ...float64) Scenario {
		return Scenario{Name: name, Run: func(context.Context, Env) (*Sample, error) {
			order = append(order, name)
			v := values[0]
			values = values[1:]
			return &Sample{Values: []Value{{Name: "x", Value: v, Unit: "1/s"}}}, nil
		}}
	}
	report := Run(t.Context(), []Scenario{scenario("a", 3, 1, 2), scenario("b", 5, 5, 50)}, Env{}, 3, func(string) {})
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("took turns in order %v, want %v", order, want)
	}
	got := report.Scenarios[0].Summary[0]
	if want := (Summary{Name: "x", Unit: "1/s", Spread: measure.Spread{Median: 2, Min: 1, Max: 3, N: 3}}); got != want || !report.Valid {
		t.Errorf("summary is %+v valid=%v, want %+v", got, report.Valid, want)
	}
}

func TestRun_is_not_valid_when_a_scenario_fails_or_does_not_add_up(t *testing.T) {
	t.Parallel()
	broken := Scenario{Name: "broken", Run: func(context.Context, Env) (*Sample, error) { return nil, errors.New("no store") }}
	wrong := Scenario{Name: "wrong", Run: func(context.Context, Env) (*Sample, error) {
		s := &Sample{}
		s.Fail("%d rows are lost", 3)
		return s, nil
	}}
	for _, s := range []Scenario{broken, wrong} {
		report := Run(t.Context(), []Scenario{s}, Env{}, 2, func(string) {})
		var table strings.Builder
		if err := report.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		if report.Valid || !strings.Contains(table.String(), s.Name) {
			t.Errorf("%s: valid=%v, table %q", s.Name, report.Valid, table.String())
		}
	}
}

func TestReport_compares_what_was_measured(t *testing.T) {
	t.Parallel()
	r := &Report{}
	for name, value := range map[string]Value{"river": {Name: "drain.tuned", Value: 20}, "raw-postgres": {Name: "drain.500", Value: 80}} {
		r.Scenarios = append(r.Scenarios, &ScenarioReport{Name: name, Samples: []*Sample{{Values: []Value{value}}}})
	}
	r.finish()
	if len(r.Ratios) != 1 || r.Ratios[0].Ratio != 0.25 {
		t.Errorf("ratios are %+v, want one of 0.25", r.Ratios)
	}
	var text strings.Builder
	if err := r.WriteJSON(&text); err != nil || !json.Valid([]byte(text.String())) {
		t.Errorf("the report is no JSON: %v", err)
	}
}

func TestComparisons_name_scenarios_that_exist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range Scenarios() {
		if names[s.Name] || s.About == "" || s.Run == nil {
			t.Errorf("scenario %q is there twice or lacks something", s.Name)
		}
		names[s.Name] = true
	}
	for _, c := range Comparisons() {
		for _, side := range []string{c.Of, c.To} {
			if scenario, _, _ := strings.Cut(side, "/"); !names[scenario] {
				t.Errorf("%s names no scenario", side)
			}
		}
	}
}

func TestPeer_reads_figures_and_failures(t *testing.T) {
	t.Parallel()
	sample, err := peer(exec.Command("printf", `{"name":"a","value":2.5,"unit":"ms"}\n{"failure":"one job is lost"}\n`))
	if err != nil {
		t.Fatal(err)
	}
	if len(sample.Values) != 1 || sample.Values[0] != (Value{Name: "a", Value: 2.5, Unit: "ms"}) || !slices.Equal(sample.Failures, []string{"one job is lost"}) {
		t.Errorf("got %+v", sample)
	}
	if _, err := peer(exec.Command("printf", "nonsense\n")); err == nil {
		t.Error("nonsense was taken for figures")
	}
	if _, err := peer(exec.Command("false")); err == nil {
		t.Error("a program that failed was taken for a sample")
	}
}
