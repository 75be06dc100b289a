package metrics_test

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/pagetest"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// later are the metrics of features that are not built, with the feature.
var later = map[string]string{}

// beside are the metrics that the specification does not list by name, with the rule that asks for them.
var beside = map[string]string{"ff_panics_total": "S63"}

// specified are the rows of the specification: rule, metrics, and their types with labels.
var specified = []struct{ rule, names, types string }{
	{"U200", "ff_http_requests_total; ff_http_request_seconds; ff_http_in_flight; ff_http_rejected_total", "counter route, method, code; histogram route, method; gauge group; counter reason"},
	{"U201", "ff_commands_total; ff_command_seconds; ff_commit_seconds; ff_commit_batch_size; ff_commit_queue_depth", "counter command, outcome; histogram command; histogram; histogram; gauge"},
	{"U202", "ff_submitted_total; ff_started_total; ff_ended_total; ff_retries_total; ff_executions; ff_oldest_ready_seconds", "counter namespace, lane; counter lane, attempt_type; counter lane, status; counter lane, category; gauge lane, status; gauge lane"},
	{"U203", "ff_start_latency_seconds; ff_run_seconds; ff_total_seconds", "histogram lane; histogram lane, kind; histogram lane, status"},
	{"U204", "ff_claims_total; ff_claim_batch_size; ff_claim_waiters; ff_admission_refused_total", "counter outcome; histogram; gauge; counter cause"},
	{"U205", "ff_lease_renewals_total; ff_leases_lapsed_total; ff_leases_revoked_total; ff_reclaims_total; ff_fenced_total", "counter outcome; counter lane; counter; counter lane; counter command"},
	{"U206", "ff_suspensions_total; ff_resumes_total; ff_resume_latency_seconds; ff_signals_total; ff_waitpoints_open; ff_token_refused_total; ff_approvals_total", "counter reason; counter cause; histogram; counter effect; gauge; counter cause; counter decision"},
	{"U207", "ff_flows_total; ff_joins_total; ff_followups_pending; ff_followup_seconds", "counter state; counter policy, result; gauge kind; histogram kind"},
	{"U208", "ff_usage_total; ff_budget_breaches_total; ff_budget_ratio; ff_budget_reserved", "counter dimension; counter dimension, limit, action; gauge budget, dimension; gauge budget, dimension"},
	{"U209", "ff_frames_total; ff_frame_bytes_total; ff_stream_readers", "counter mode; counter; gauge"},
	{"U210", "ff_events_total; ff_event_readers; ff_event_delay_seconds; ff_webhook_deliveries_total; ff_webhooks_pending", "counter kind; gauge; histogram; counter outcome; gauge"},
	{"U211", "ff_workers; ff_worker_slots; ff_worker_tasks; ff_worker_handler_seconds; ff_worker_lease_lost_total; ff_worker_transport_errors_total", "gauge status; gauge state; gauge kind; histogram kind, outcome; counter cause; counter"},
	{"U212", "ff_timers_fired_total; ff_timer_lateness_seconds; ff_quarantined; ff_purged_total; ff_bulk_items_total", "counter kind; histogram; gauge; counter what; counter action, outcome"},
	{"U213", "ff_store_queries_total; ff_store_query_seconds; ff_store_errors_total; ff_store_pool; ff_store_bytes; ff_wakeups_total; ff_clock_skew_seconds", "counter statement; histogram statement; counter class; gauge state; gauge; counter source; gauge"},
	{"U214", "ff_auth_failures_total; ff_audit_rows_total; ff_build_info", "counter reason; counter action; gauge version, commit, go, store, schema"},
}

func TestU199_the_table_is_that_of_the_specification(t *testing.T) {
	t.Parallel()
	table := map[string]metrics.Metric{}
	for _, m := range metrics.All() {
		if _, twice := table[m.Name]; twice {
			t.Errorf("%s stands there twice", m.Name)
		}
		table[m.Name] = m
	}
	for _, row := range specified {
		types := strings.Split(row.types, "; ")
		for i, name := range strings.Split(row.names, "; ") {
			m, built := table[name]
			delete(table, name)
			if reason := later[name]; !built || reason != "" {
				if built || reason == "" {
					t.Errorf("%s: in the table: %v, to come with %q", name, built, reason)
				}
				continue
			}
			if got := strings.TrimSpace(string(m.Type) + " " + strings.Join(m.LabelNames(), ", ")); got != types[i] || m.Rule != row.rule {
				t.Errorf("%s is %s %q, want %s %q", name, m.Rule, got, row.rule, types[i])
			}
		}
	}
	for name := range table {
		if beside[name] == "" {
			t.Errorf("%s is not in the specification", name)
		}
	}
}

func TestEveryMetricIsWellFormed(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^ff_[a-z]+(_[a-z]+)*$`)
	for _, m := range metrics.All() {
		if !name.MatchString(m.Name) || !strings.HasSuffix(m.Help, ".") || m.Place == "" {
			t.Errorf("%+v", m)
		}
		if counts := strings.HasSuffix(m.Name, "_total"); counts != (m.Type == metrics.TypeCounter) {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if (m.Type == metrics.TypeHistogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s has the buckets %v", m.Name, m.Buckets)
		}
	}
}

func TestU199_the_page_is_the_table(t *testing.T) {
	t.Parallel()
	pagetest.Same(t, "../../docs/metrics.md", metrics.Page(), *update)
}

func TestU199_labels_that_users_invent_are_bounded(t *testing.T) {
	t.Parallel()
	var b metrics.Bounded
	for i := range metrics.MaxValues {
		if value := string(rune('a'+i%26)) + string(rune('a'+i/26)); b.Value(value) != value {
			t.Fatalf("%s is cut", value)
		}
	}
	if b.Value("aa") != "aa" || b.Value("more") != metrics.Other {
		t.Error("the first hundred stay, and no others come")
	}
}
