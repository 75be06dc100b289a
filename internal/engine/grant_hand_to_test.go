package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// toSecond hands what is revoked to instance w2 of worker w.
func toSecond(capabilities ...string) engine.RevokeRequest {
	return engine.RevokeRequest{Handoff: &engine.Handoff{WorkerID: "w", InstanceID: "w2", Capabilities: capabilities}}
}

var otherClaimer = engine.GrantClaim{WorkerID: "w", InstanceID: "w2"}

func TestL113_LC18_a_revoked_execution_is_handed_to_a_worker_in_the_same_step(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.capped("default", 1)
		old := w.started(core.Submission{})
		id := given(old)
		op := engine.Operator{Reason: "stuck", RequestKey: "once"}
		answer := must(w.e.Revoke(w.ctx(), operator, id, toSecond(), op))(t)
		same(t, "answer", [2]any{answer.Outcome, answer.Refused == nil}, [2]any{"revoked", true})
		x := w.is(id, core.Granted, core.WaitingForWorker)
		same(t, "it has the one place of the lane", x.Holds, []string{"lane:default"})
		again := must(w.e.Revoke(w.ctx(), operator, id, toSecond(), op))(t)
		same(t, "repeated under its key", grantKeys([]engine.Grant{*again.Grant}), grantKeys([]engine.Grant{*answer.Grant}))
		again = must(w.e.Revoke(w.ctx(), operator, id, toSecond(), engine.Operator{}))(t)
		same(t, "repeated without", [2]any{again.Outcome, again.Cause}, [2]any{"already_satisfied", "already_revoked"})
		same(t, "the same grant", grantKeys([]engine.Grant{*again.Grant}), grantKeys([]engine.Grant{*answer.Grant}))
		_, err := w.e.Complete(w.ctx(), client, id, fence(old), nil)
		refused(t, err, base.CodeLeaseRevoked)
		task := must(w.e.ClaimGrant(w.ctx(), client, answer.Grant.Key, otherClaimer))(t)
		same(t, "how", [2]any{task.How, task.Execution.Attempt.Index}, [2]any{"reclaimed", 1})
		again = must(w.e.Revoke(w.ctx(), operator, id, toSecond(), op))(t)
		same(t, "the grant is over", [2]any{again.Outcome, again.Grant == nil}, [2]any{"revoked", true})
		w.complete(task)
		same(t, "story", w.story(id), []string{
			"execution.submitted", "lease.acquired", "lease.revoked", "grant.issued", "attempt.ended", "lease.acquired", "execution.completed",
		})
	})
}

func TestL113_what_cannot_be_handed_over_is_revoked_all_the_same_and_the_answer_says_why(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		revoked := func(s core.Submission, r engine.RevokeRequest, prepare func()) (engine.Revoked, base.GivenID) {
			claims := ask()
			claims.Capabilities = []string{"gpu"}
			w.submit(s)
			task := w.claimAs(claims)
			prepare()
			answer := must(w.e.Revoke(w.ctx(), operator, given(task), r, engine.Operator{}))(t)
			same(t, "outcome", [2]any{answer.Outcome, answer.Grant == nil}, [2]any{"revoked", true})
			return answer, given(task)
		}
		nothing := func() {}
		answer, id := revoked(policy(`{"routing_requirements":{"required_capabilities":["gpu"]}}`), toSecond(), nothing)
		same(t, "capabilities", [2]any{answer.Refused.Code, answer.Refused.Details["missing"]}, [2]any{base.CodeCapabilityMismatch, []string{"gpu"}})
		w.is(id, core.Ready, core.WaitingForWorker)
		w.cancel(id)
		held := toSecond()
		held.Hold = true
		answer, id = revoked(core.Submission{}, held, nothing)
		same(t, "hold", answer.Refused.Code, base.CodeExecutionNotEligible)
		w.is(id, core.Blocked, core.PausedByOperator)
		answer, id = revoked(core.Submission{}, toSecond(), func() { w.lane("default", core.LaneSettings{State: core.LanePaused}) })
		same(t, "lane", answer.Refused.Code, base.CodeLaneNotClaimable)
		w.lane("default", core.LaneSettings{})
		w.cancel(id)
		answer, id = revoked(core.Submission{}, toSecond(), func() { must(w.e.RevokeSigningKey(w.ctx(), operator, "a", true, engine.AdminAction{}))(t) })
		same(t, "no key", answer.Refused.Code, base.CodeSigningKeyMissing)
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestL113_whom_to_hand_to_is_checked_before_anything_is_revoked(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id := given(w.started(core.Submission{}))
		for field, to := range map[string]engine.Handoff{
			"hand_to.worker_id":          {InstanceID: "w2"},
			"hand_to.worker_instance_id": {WorkerID: "w"},
			"hand_to.grant_ttl_ms":       {WorkerID: "w", InstanceID: "w2", GrantTTL: 60_001},
		} {
			refusal := w.untouched(id, func() error {
				_, err := w.e.Revoke(w.ctx(), operator, id, engine.RevokeRequest{Handoff: &to}, engine.Operator{})
				return err
			}, base.CodeInvalidArgument)
			same(t, "field", refusal.Field, field)
		}
	})
}
