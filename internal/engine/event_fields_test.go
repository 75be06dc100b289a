package engine_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// exitFields are the fields of every exit event (E27).
const exitFields = " lease_epoch lease.lease_id lease.worker_id lease.worker_instance_id lease.held_ms usage?"

// mayExit are those of an event that ends a lease only if there is one.
const mayExit = " lease_epoch? lease.lease_id? lease.worker_id? lease.worker_instance_id? lease.held_ms? usage? late?"

// waitpointFields are those of a waitpoint that has a token.
const waitpointFields = "waitpoint_id waitpoint_key token_kid token_fingerprint"

// budgetChange are the fields of a change of a budget.
const budgetChange = "budget_id name"

// eventFields are the fields of the data of each kind of event (E28, E29). A question mark means that a field is absent where it does not apply. Fields of
// an object that always has the same fields stand behind its name and a dot.
var eventFields = map[string]string{
	"execution.submitted":         "status reason priority delay_until? deadline_at? name? parent_id? input.size input.content_type",
	"execution.ready":             "cause",
	"execution.delayed":           "reason delay_until",
	"execution.blocked":           "reason blocked_on? blocking_detail?",
	"grant.issued":                "worker_id worker_instance_id expires_at",
	"grant.ended":                 "cause",
	"lease.acquired":              "lease_epoch lease_id worker_id expires_at attempt_id attempt_index attempt_type how forced?",
	"lease.released":              "by delay_until? reason? late?" + exitFields,
	"lease.expired":               "reclaim_count cause?" + exitFields,
	"lease.revoked":               "by reason hand_to?" + exitFields,
	"attempt.ended":               "state class? category? message? retry_count retry_at?" + mayExit,
	"execution.suspended":         "suspension_id reason_code timeout_at? timeout_behavior waitpoints late?" + exitFields,
	"execution.waiting_children":  "policy k children timeout_at? late?" + exitFields,
	"execution.resumed":           "suspension_id cause closer_signal_id? delay_until? by?",
	"execution.completed":         completedFields + mayExit,
	"execution.replayed":          "from_status replay_count reopened cascade reason",
	"execution.suspend_satisfied": "suspension_id signals",
	"execution.escalated":         "suspension_id timeout_at",
	"execution.cancel_requested":  "reason",
	"execution.held":              "reason",
	"execution.hold_released":     "reason?",
	"execution.priority_changed":  "old new",
	"execution.tagged":            "keys",
	"execution.retained":          "until? reason?",
	"execution.retain_ended":      "until? reason?",
	"execution.deleted":           "reason?",
	"waitpoint.created":           waitpointFields + " expires_at?",
	"waitpoint.closed":            "waitpoint_id waitpoint_key close_reason",
	"waitpoint.token_read":        "waitpoint_id token_kid",
	"waitpoint.token_reissued":    "waitpoint_id token_kid",
	"signal.accepted": "signal_id waitpoint_id? waitpoint_key? name category source_type source_identity source_verified effect matched" +
		" payload.size payload.content_type",
	"approval_link.created":     "link_id waitpoint_id approver expires_at",
	"approval_link.decided":     "link_id waitpoint_id approver decision",
	"approval_link.revoked":     "link_id waitpoint_id approver",
	"key.seeded":                "kid",
	"key.rotated":               "kid previous_kid verify_until",
	"key.revoked":               "kid",
	"key.purged":                "kid verify_until",
	"flow.created":              graphFields,
	"flow.extended":             graphFields,
	"flow.sealed":               graphFields,
	"flow.cancel_requested":     "policy reason? members",
	"flow.completed":            endedFields,
	"flow.failed":               endedFields,
	"flow.cancelled":            endedFields,
	"flow.reopened":             "member cascade",
	"flow.deleted":              "members reason?",
	"budget.created":            budgetChange,
	"budget.updated":            budgetChange + " changed",
	"budget.closed":             budgetChange,
	"budget.reopened":           budgetChange,
	"budget.deleted":            budgetChange,
	"budget.soft_breach":        "budget_id dimension used reserved soft",
	"budget.hard_breach":        "budget_id dimension used reserved hard attempted overrun? action",
	"budget.approval_requested": "budget_id dimension waitpoint_id used hard attempted",
	"budget.raised":             "budget_id dimension raise by until?",
	"budget.reset":              "budget_id epoch used next_reset_at? cause",
	"worker.registered":         "worker_id worker_instance_id lanes capabilities",
	"worker.draining":           "worker_id worker_instance_id on",
	"worker.dead":               "worker_id worker_instance_id reason detail? last_seen",
	"lane.changed":              "lane old new reason?",
	"quota.changed":             "quota old? new?",
	"bulk.started":              jobFields,
	"bulk.finished":             jobFields,
	"sweep.quarantined":         "row error failures next_try_at?",
}

const (
	graphFields = "kind graph_revision nodes_added edges_added"
	endedFields = "counts.completed counts.failed counts.cancelled counts.expired counts.skipped failures"
	jobFields   = "job_id action filter total done refused failed"

	completedFields = "outcome status reason failure.class? failure.category? failure.message? cancellation.source? cancellation.by? cancellation.reason? edges?" +
		" result.size? result.content_type? totals.attempts totals.retries totals.reclaims totals.usage?"
)

// fixedObjects are fields that are objects with the same fields each time.
var fixedObjects = []string{"input", "lease", "failure", "cancellation", "result", "totals", "payload", "counts"}

// flatFields are the names of the fields of an event's data, as eventFields writes them.
func flatFields(t *testing.T, ev engine.LoggedEvent) (names []string) {
	t.Helper()
	for name, value := range data(t, ev) {
		inner, isObject := value.(map[string]any)
		if !isObject || !slices.Contains(fixedObjects, name) {
			names = append(names, name)
			continue
		}
		for within := range inner {
			names = append(names, name+"."+within)
		}
	}
	slices.Sort(names)
	return names
}

// fieldsAreStated fails for each event that lacks a field, or has one that its kind does not have, and returns what the events had, by kind.
func fieldsAreStated(t *testing.T, events []engine.LoggedEvent) map[string]map[string]bool {
	t.Helper()
	seen := map[string]map[string]bool{}
	for _, ev := range events {
		stated, known := eventFields[ev.Kind]
		if !known {
			t.Errorf("%s is not a kind of this table", ev.Kind)
			continue
		}
		if seen[ev.Kind] == nil {
			seen[ev.Kind] = map[string]bool{}
		}
		has := flatFields(t, ev)
		for _, name := range has {
			seen[ev.Kind][name] = true
			if !slices.Contains(strings.Fields(strings.ReplaceAll(stated, "?", "")), name) {
				t.Errorf("%s has %s, which its kind does not have: %s", ev.Kind, name, ev.Data.JSON())
			}
		}
		for name := range strings.FieldsSeq(stated) {
			if !strings.HasSuffix(name, "?") && !slices.Contains(has, name) {
				t.Errorf("%s lacks %s: %s", ev.Kind, name, ev.Data.JSON())
			}
		}
	}
	return seen
}

func TestE28_E29_each_kind_of_event_is_written_with_exactly_the_stated_fields(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		w.everyEvent()
		seen := fieldsAreStated(t, w.events(engine.EventFilter{}))
		for _, kind := range slices.Sorted(maps.Keys(eventFields)) {
			for name := range strings.FieldsSeq(strings.ReplaceAll(eventFields[kind], "?", "")) {
				if !seen[kind][name] {
					t.Errorf("no %s with %s was written: the test proves nothing about it", kind, name)
				}
			}
		}
	})
}

func TestE27_an_exit_event_has_the_usage_of_its_own_lease(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		task := w.spending(core.Submission{})
		id := given(task)
		s := w.suspend(task, goAtA, func(c *core.SuspendCommand) { c.Usage = map[string]int64{"tokens": 4} })
		w.restart() // what an earlier lease used is stored
		w.signalled(s, "go")
		task = w.claim()
		w.report(task, 5)
		w.turn(30_000)
		w.becomes(id, core.Ready)
		w.restart()
		must(w.e.CompleteWith(w.ctx(), client, id, core.Completion{Fence: fence(task), Usage: map[string]int64{"calls": 1}}))(t)
		usage := map[string]any{}
		for _, ev := range w.events(engine.EventFilter{ExecutionID: &id}) {
			if fields := data(t, ev); fields["lease"] != nil {
				usage[ev.Kind] = []any{fields["usage"], fields["late"]}
			}
		}
		same(t, "usage", usage, map[string]any{
			"execution.suspended": []any{map[string]any{"tokens": 7.0}, nil},
			"lease.expired":       []any{map[string]any{"tokens": 5.0}, nil},
			"execution.completed": []any{map[string]any{"tokens": 5.0, "calls": 1.0}, true},
		})
	})
}

// The page of events is generated from the code that writes them, so that a kind that is missing here is found.
func TestE28_E29_the_table_of_fields_has_every_kind_that_the_code_writes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	ok(t, err)
	written := []string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_]+)` \\|").FindAllSubmatch(page, -1) {
		if kind := string(row[1]); !strings.HasPrefix(kind, "webhook.") { // of the room of webhooks
			written = append(written, kind)
		}
	}
	same(t, "kinds", slices.Sorted(maps.Keys(eventFields)), slices.Sorted(slices.Values(written)))
}
