package dashboards

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestU218_the_dashboard_has_its_rows_and_every_panel_a_place(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.Title != "FlowFabric" || d.UID != "flowfabric" || d.SchemaVersion < 36 {
		t.Errorf("%q %q, schema %d", d.Title, d.UID, d.SchemaVersion)
	}
	var rows []string
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q has the id %d, which is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
		} else if p.Datasource.Type != "prometheus" {
			t.Errorf("panel %q reads from %q", p.Title, p.Datasource.Type)
		}
		if p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W < 1 || p.GridPos.H < 1 {
			t.Errorf("panel %q is at %+v", p.Title, p.GridPos)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q lie over each other", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if want := []string{"Overview", "Lanes", "Workers", "Waits and approvals", "Budgets and quotas", "Flows", "Store and commits", "HTTP", "Errors"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

func TestU218_every_alert_says_when_how_bad_and_what_to_do(t *testing.T) {
	t.Parallel()
	about := map[string]bool{
		"ff_oldest_ready_seconds": false, "ff_leases_lapsed_total": false, "ff_token_refused_total": false, "ff_quarantined": false, "ff_timer_lateness_seconds": false, "ff_commit_queue_depth": false,
		"ff_webhooks_pending": false, "ff_budget_ratio": false, "ff_budget_breaches_total": false, "ff_executions": false,
	}
	for _, r := range shippedRules(t) {
		if _, err := time.ParseDuration(r.lasts); err != nil || r.summary == "" || r.description == "" || r.severity != "warning" && r.severity != "critical" {
			t.Errorf("%+v", r)
		}
		for name := range about {
			about[name] = about[name] || strings.Contains(r.expr, name)
		}
	}
	for name, told := range about {
		if !told {
			t.Errorf("no alert is about %s", name)
		}
	}
}

func TestU199_dashboard_and_alerts_name_metrics_of_the_table_alone(t *testing.T) {
	t.Parallel()
	all := allQueries(t)
	if len(all) < 60 {
		t.Fatalf("only %d queries were read", len(all))
	}
	for _, q := range all {
		for _, wrong := range named(q) {
			t.Error(wrong)
		}
	}
}

func TestU199_wrong_names_and_labels_are_found(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, legend, want string }{
		{`sum by (lane) (rate(ff_submitted_total{lane=~"$lane"}[5m]))`, "{{lane}}", ""},
		{`sum(rate(ff_submitted_total[5m])) by (lane) > 0`, "{{lane}}", ""},
		{`histogram_quantile(0.99, sum by (le, lane) (rate(ff_start_latency_seconds_bucket[5m])))`, "{{lane}}", ""},
		{`rate(ff_submited_total[5m])`, "", "ff_submited_total is no metric"},
		{`ff_start_latency_seconds`, "", "ff_start_latency_seconds is no metric"},
		{`sum(ff_workers) / sum(ff_worker_slot)`, "", "ff_worker_slot is no metric"},
		{`sum by (kind) (ff_executions)`, "", "has no label kind"},
		{`sum(ff_executions) by (kind)`, "", "has no label kind"},
		{`sum(ff_workers) + sum(ff_executions) by (lane, kind)`, "", "ff_executions has no label kind"},
		{`ff_executions{state="ready"}`, "", "has no label state"},
		{`ff_workers{status="alive"}`, "", `is never = "alive"`},
		{`sum by (lane) (ff_executions)`, "{{status}}", "does not group by it"},
		{`sum(ff_executions`, "", "a bracket is open"},
		{`sum(ff_executions))`, "", "a bracket too many"},
		{`ff_executions ~ 3`, "", "cannot be read"},
		{`vector(1)`, "", "reads nothing"},
	} {
		got := named(query{"here", c.expr, c.legend})
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: found %q, want %q", c.expr, got, c.want)
		}
	}
	if _, err := readRules("groups:\n  - name: x\n    rules:\n      - alert: a\n        exprr: b\n"); err == nil {
		t.Error("a rule with a wrong entry was read")
	}
}

func TestU218_queries_without_data_are_found(t *testing.T) {
	t.Parallel()
	before := []series{{"ff_submitted_total", map[string]string{"lane": "a"}, 3}, {"ff_executions", map[string]string{"status": "ready"}, 0}}
	after := append(slices.Clone(before), series{"ff_ended_total", map[string]string{"status": "failed"}, 1})
	for expr, want := range map[string]string{
		`rate(ff_submitted_total[5m])`:                             "did not move",
		`rate(ff_ended_total{status="failed"}[5m])`:                "",
		`rate(ff_ended_total{status=~"failed|expired"}[5m])`:       "",
		`rate(ff_ended_total{status!="failed"}[5m])`:               "there is no series",
		`rate(ff_ended_total{status!~"fail.*"}[5m])`:               "there is no series",
		`ff_executions{status="ready"}`:                            "",
		`ff_executions{status="running"}`:                          "there is no series",
		`sum(ff_executions) / sum by (lane) (ff_submitted_total)`:  "did not move",
		`histogram_quantile(0.5, rate(ff_run_seconds_bucket[5m]))`: "there is no series",
	} {
		got := withoutData(query{place: "here", expr: expr}, before, after)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: found %q, want %q", expr, got, want)
		}
	}
}

func TestU218_every_panel_and_rule_has_data_once_a_story_is_told(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	before := h.scrape(t)
	h.tell(t)
	queries := allQueries(t)
	for ctx := h.ctx; ; {
		after, wrong := h.scrape(t), []string(nil)
		for _, q := range queries {
			wrong = append(wrong, withoutData(q, before, after)...)
		}
		if len(wrong) == 0 {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond): // gauges are kept for some seconds
		case <-ctx.Done():
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}
