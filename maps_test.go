package flowfabric_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// place is a capability that people look for, and the operations that give it here. Later names the feature that will, by a word of the ids
// that its operations will have.
type place struct {
	capability string
	here       []string
	later      string
}

// primitives is the map of U266.
var primitives = []place{
	{capability: "create_execution", here: []string{"submit_execution", "submit_executions", "put_lane"}},
	{capability: "describe_execution", here: []string{"get_execution", "get_execution_state"}},
	{capability: "list_executions", here: []string{"list_executions", "count_executions", "export_executions"}},
	{capability: "cancel", here: []string{"cancel_execution"}},
	{capability: "claim_for_worker", here: []string{"claim_work"}},
	{capability: "verify_grant", here: []string{"verify_grant"}},
	{capability: "admit_budget", here: []string{"claim_work", "list_execution_budgets"}},
	{capability: "suspend, waitpoint bindings, resume conditions, create_waitpoint", here: []string{"suspend_execution", "create_waitpoint"}},
	{capability: "deliver_signal, deliver_approval_signal, observe_signals", here: []string{"send_signal", "approve_execution", "get_suspension"}},
	{capability: "claim_resumed_execution", here: []string{"claim_resumed", "claim_work"}},
	{capability: "list_pending_waitpoints, read_waitpoint_token, list_suspended", here: []string{
		"list_execution_waitpoints", "read_waitpoint_token", "list_suspended",
	}},
	{capability: "seed and rotate signing keys", here: []string{"seed_signing_key", "rotate_signing_key"}},
	{capability: "lease event outbox", here: []string{"list_events", "list_execution_events"}},
}

// services is the map of U267.
var services = []place{
	{capability: "create; get info; get state only; list ids", here: []string{"submit_execution", "get_execution", "get_execution_state", "list_executions"}},
	{capability: "result as bytes", here: []string{"get_execution_result"}},
	{capability: "pending waitpoints; waitpoint token; signal with token", here: []string{
		"list_execution_waitpoints", "read_waitpoint_token", "send_execution_signal",
	}},
	{capability: "cancel with source; priority; replay", here: []string{"cancel_execution", "set_priority", "replay_execution"}},
	{capability: "revoke lease; reclaim", here: []string{"revoke_lease", "reclaim_execution", "claim_execution"}},
	{capability: "worker asks for a grant", here: []string{"grant_work", "claim_grant", "return_grant"}},
	{capability: "an attempt's stream and its summary", here: []string{"append_frames", "read_stream", "follow_streams", "get_summary"}},
	{capability: "create flow; add member; stage edge; apply edge; edge-group policy", here: []string{"submit_flow", "extend_flow", "seal_flow", "set_join", "get_join"}},
	{capability: "cancel flow with policy, waiting or not; partial result", here: []string{"cancel_flow"}},
	{capability: "describe flow, edges, list flows; flow tags", here: []string{
		"get_flow", "get_graph", "list_flows", "list_flow_members", "list_flow_edges", "get_flow_edge", "get_flow_usage", "list_flow_events", "patch_flow_tags", "put_flow_tags",
	}},
	{capability: "execution tags", here: []string{"patch_tags"}},
	{capability: "create, read, report, reset budget; spend and release per execution", here: []string{
		"create_budget", "get_budget", "list_budgets", "update_budget", "close_budget", "reopen_budget", "delete_budget", "reset_budget", "report_usage",
		"charge_budget", "release_budget", "list_budget_spend", "list_budget_epochs", "get_usage",
	}},
	{capability: "create quota; read limits; release admission", here: []string{"put_quota", "get_quota", "list_quotas", "delete_quota"}},
	{capability: "signing secrets", here: []string{"seed_signing_key", "rotate_signing_key", "list_signing_keys"}},
	{capability: "register worker, heartbeat, mark dead, list; expired leases", here: []string{
		"register_worker", "heartbeat_worker", "mark_worker_dead", "list_workers", "get_worker", "list_worker_leases", "list_executions",
	}},
	{capability: "wait for children by a worker", here: []string{"spawn_children", "wait_for_children", "list_children", "read_input"}},
	{capability: "claim, renew, progress, complete, fail, delay by a worker", here: []string{
		"claim_work", "renew_lease", "report_progress", "complete_execution", "fail_execution", "delay_execution", "release_execution", "put_step", "send_work",
	}},
	{capability: "completion, lease, operator feeds with cursors and filters", here: []string{"list_events"}},
	{capability: "block and unblock by operator; lane states", here: []string{
		"hold_execution", "release_hold", "pause_lane", "resume_lane", "drain_lane", "disable_lane",
	}},
	{capability: "capabilities of the store; health; metrics", here: []string{"get_info", "get_health", "get_readiness", "get_metrics"}},
}

// The test holds the maps against the table of operations. That every operation of the table is served, called from Go and
// reached by a command is shown where these are (U2).
func TestU266_U267_every_capability_of_such_engines_has_its_place(t *testing.T) {
	t.Parallel()
	known := map[string]*wire.Operation{}
	for _, op := range wire.Operations() {
		known[op.ID] = op
	}
	for _, p := range append(primitives, services...) {
		if (len(p.here) == 0) == (p.later == "") {
			t.Errorf("%s is neither here nor in a later feature, or both", p.capability)
		}
		for id := range known {
			if p.later != "" && strings.Contains(id, p.later) {
				t.Errorf("%s has come with %s: it is here now", p.capability, id)
			}
		}
		for _, id := range p.here {
			op, found := known[id]
			if !found || op.Method == "" || op.Path == "" {
				t.Errorf("%s: there is no operation %s", p.capability, id)
			} else if op.Go == "" && op.NoGo == "" || op.Command == "" && op.NoCommand == "" {
				t.Errorf("%s: %s has no Go call or no command, and no reason", p.capability, id)
			}
		}
	}
}
