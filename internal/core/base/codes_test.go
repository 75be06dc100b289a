package base

import (
	"errors"
	"fmt"
	"testing"
)

func TestL142_every_row_of_the_table_has_its_class_status_and_retryable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class     string
		http      int
		retryable bool
		codes     []Code
	}{
		{"invalid", 400, false, []Code{"invalid_argument", "invalid_id", "invalid_policy", "invalid_capabilities", "invalid_tag_key", "invalid_cursor", "invalid_filter", "partial_fence", "fence_required", "invalid_handle", "grant_malformed", "lane_mismatch"}},
		{"invalid", 400, false, []Code{"invalid_kid", "reserved_name", "waitpoint_ambiguous", "principal_required"}},
		{"invalid", 400, false, []Code{"invalid_flow", "self_referencing_edge", "partition_mismatch", "replay_too_large", "invalid_schedule", "backfill_too_large"}},
		{"invalid", 400, false, []Code{"invalid_budget", "amount_out_of_range", "invalid_frame", "invalid_secret"}},
		{"invalid", 400, false, []Code{"invalid_json", "unknown_field", "missing_field", "namespace_required"}},
		{"invalid", 405, false, []Code{"method_not_allowed"}},
		{"invalid", 415, false, []Code{"unsupported_media_type"}},
		{"invalid", 422, false, []Code{"invalid_decision"}},
		{"invalid", 413, false, []Code{"payload_too_large", "batch_too_large", "frame_too_large", "summary_too_large"}},
		{"invalid", 0, false, []Code{"master_key_required", "master_key_mismatch"}},
		{"unauthenticated", 401, false, []Code{"missing_credentials", "invalid_token"}},
		{"forbidden", 403, false, []Code{"role_required", "namespace_forbidden", "origin_forbidden"}},
		{"not_found", 404, false, []Code{"execution_not_found", "worker_not_registered", "grant_unknown", "route_not_found"}},
		{"conflict", 409, false, []Code{"idempotency_conflict", "id_conflict", "instance_id_taken", "schedule_already_exists", "unique_conflict", "collect_conflict", "store_locked"}},
		{"conflict", 409, true, []Code{"idempotency_in_progress"}},
		{"conflict", 412, false, []Code{"precondition_failed"}},
		{"state", 409, false, []Code{"execution_not_active", "execution_not_terminal", "not_a_resumed_execution", "namespace_not_empty"}},
		{"state", 409, true, []Code{"execution_not_eligible", "lease_conflict", "grant_outstanding", "lane_not_accepting", "lane_not_claimable"}},
		{"fenced", 409, false, []Code{"stale_lease", "lease_expired", "lease_revoked"}},
		{"grant", 410, false, []Code{"grant_expired"}},
		{"grant", 401, false, []Code{"grant_unknown_kid"}},
		{"grant", 403, false, []Code{"grant_signature_mismatch"}},
		{"gone", 410, false, []Code{"waitpoint_expired", "waitpoint_closed", "link_expired", "link_revoked", "cursor_too_old"}},
		{"admission", 429, true, []Code{"admission_refused"}},
		{"limited", 429, true, []Code{"rate_limited"}},
		{"limited", 429, false, []Code{"signal_limit_exceeded", "waitpoint_limit_exceeded", "step_limit_exceeded", "schedule_limit_exceeded", "namespace_limit_exceeded"}},
		{"unavailable", 503, true, []Code{"overloaded", "store_unavailable", "store_full", "shutting_down", "starting"}},
		{"unavailable", 503, false, []Code{"signing_key_missing"}},
		{"unavailable", 504, true, []Code{"timeout"}},
		{"internal", 500, false, []Code{"corruption", "internal"}},
		{"not_implemented", 501, false, []Code{"not_implemented"}},
	} {
		for _, code := range row.codes {
			info, known := Codes()[code]
			if want := (CodeInfo{Class: row.class, HTTP: row.http, Retryable: row.retryable}); !known || info != want || code.Info() != want {
				t.Errorf("%s: %+v (known %v), want %+v", code, info, known, want)
			}
		}
	}
}

// The numbers were counted in the specification, row by row.
func TestL142_each_class_has_as_many_codes_as_the_table(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, info := range Codes() {
		got[fmt.Sprint(info.Class, " ", info.HTTP, " ", info.Retryable)]++
	}
	want := map[string]int{
		"invalid 400 false":         49, // with two of schedules
		"invalid 405 false":         1,
		"invalid 415 false":         1,
		"invalid 422 false":         1,
		"invalid 413 false":         4,
		"invalid 0 false":           2,
		"unauthenticated 401 false": 6,
		"forbidden 403 false":       3,
		"not_found 404 false":       22,
		"conflict 409 false":        28,
		"conflict 409 true":         2, // with upgrade_pending
		"conflict 412 false":        1,
		"state 409 false":           29, // with last_admin_key
		"state 409 true":            5,
		"fenced 409 false":          3,
		"grant 410 false":           1,
		"grant 401 false":           1,
		"grant 403 false":           1,
		"gone 410 false":            5,
		"admission 429 true":        1,
		"limited 429 true":          1,
		"limited 429 false":         5, // with namespace_limit_exceeded
		"unavailable 503 true":      5, // with store_full of R69
		"unavailable 503 false":     1,
		"unavailable 504 true":      1,
		"internal 500 false":        2,
		"not_implemented 501 false": 1,
	}
	for row, n := range want {
		if got[row] != n {
			t.Errorf("%s: %d codes, want %d", row, got[row], n)
		}
		delete(got, row)
	}
	if len(got) > 0 {
		t.Errorf("rows that the specification does not have: %v", got)
	}
}

func TestL142_a_code_that_is_not_in_the_table_counts_as_internal(t *testing.T) {
	t.Parallel()
	if Code("no_such_code").Info() != CodeInternal.Info() {
		t.Error("an unknown code has a meaning of its own")
	}
	if CodeOf(errors.New("plain")) != CodeInternal || CodeOf(nil) != "" {
		t.Error("CodeOf misjudges errors without a code")
	}
	wrapped := fmt.Errorf("outer: %w", Errorf(CodeLaneNotFound, "no lane"))
	if CodeOf(wrapped) != CodeLaneNotFound || !errors.Is(wrapped, &Error{Code: CodeLaneNotFound}) || errors.Is(wrapped, &Error{Code: CodeInternal}) {
		t.Error("a wrapped error is not found by its code")
	}
}
