package engine_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func worker2() engine.TargetedRequest { return engine.TargetedRequest{WorkerID: "w", InstanceID: "w2"} }

func TestSC8_targeted_claims_in_every_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		terminal := map[string]base.Code{"resumed": base.CodeNotAResumedExecution, "reclaim": base.CodeExecutionNotActive, "operator": base.CodeExecutionNotActive}
		want := map[core.Status]map[string]base.Code{
			core.Ready:     {"resumed": base.CodeNotAResumedExecution, "reclaim": base.CodeExecutionNotReclaimable},
			core.Delayed:   {"resumed": base.CodeNotAResumedExecution, "reclaim": base.CodeExecutionNotReclaimable, "operator": base.CodeExecutionNotEligible},
			core.Blocked:   {"resumed": base.CodeNotAResumedExecution, "reclaim": base.CodeExecutionNotReclaimable, "operator": base.CodeExecutionNotEligible},
			core.Running:   {"resumed": base.CodeNotAResumedExecution, "reclaim": base.CodeLeaseConflict, "operator": base.CodeLeaseConflict},
			core.Succeeded: terminal, core.Failed: terminal, core.Cancelled: terminal, core.Expired: terminal,
		}
		made := w.inEveryStatus()
		for status, codes := range want {
			id := made[status]
			for name, code := range codes {
				w.untouched(id, func() error {
					var err error
					switch name {
					case "resumed":
						_, err = w.e.ClaimResumed(w.ctx(), client, id, worker2())
					case "reclaim":
						_, err = w.e.Reclaim(w.ctx(), client, id, worker2())
					case "operator":
						_, err = w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true})
					}
					return err
				}, code)
			}
		}
		task := must(w.e.OperatorClaim(w.ctx(), operator, made[core.Ready], engine.TargetedRequest{}))(t)
		same(t, "operator", [2]string{task.Execution.Lease.WorkerID, task.Execution.Lease.InstanceID}, [2]string{"operator", "operator"})
		w.complete(task)
		_, err := w.e.Reclaim(w.ctx(), client, base.GivenID{UUID: base.UUID{1}}, worker2())
		refused(t, err, base.CodeExecutionNotFound)
	})
}

func TestL114_S34_SC8_a_resumed_and_a_lapsed_execution_are_taken_by_name(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		w.release(task)
		resumed := must(w.e.ClaimResumed(w.ctx(), client, id, worker2()))(t)
		same(t, "resumed", [3]any{resumed.How, resumed.ResumedFrom, resumed.Execution.LeaseEpoch}, [3]any{"resumed", core.InterruptedReleased, int64(2)})
		w.delay(resumed, w.now()+1000)
		w.untouched(id, func() error { _, err := w.e.ClaimResumed(w.ctx(), client, id, worker2()); return err }, base.CodeNotAResumedExecution)
		w.turn(1000) // settling makes it ready
		must(w.e.ClaimResumed(w.ctx(), client, id, worker2()))(t)
		w.turn(30_000)
		reclaimed := must(w.e.Reclaim(w.ctx(), client, id, worker2()))(t)
		same(t, "reclaimed", [2]any{reclaimed.How, reclaimed.Execution.Attempt.Index}, [2]any{"reclaimed", 1})
		w.complete(reclaimed)
		w.nothing()
	})
}

func TestL75_S14_targeted_claims_test_lane_state_capabilities_and_cap_in_that_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := ask()
		r.Capabilities = []string{"gpu", "x"}
		w.submit(policy(`{"routing_requirements":{"required_capabilities":["x","gpu"]}}`))
		task := w.claimAs(r)
		id := given(task)
		w.release(task)
		w.lane("default", core.LaneSettings{State: core.LanePaused, MaxConcurrent: 1})
		resume := func(t engine.TargetedRequest) func() error {
			return func() error { _, err := w.e.ClaimResumed(w.ctx(), client, id, t); return err }
		}
		wrong := worker2()
		wrong.Lane = "elsewhere"
		w.untouched(id, resume(wrong), base.CodeLaneMismatch)
		w.untouched(id, resume(worker2()), base.CodeLaneNotClaimable)
		w.lane("default", core.LaneSettings{MaxConcurrent: 1})
		refusal := w.untouched(id, resume(worker2()), base.CodeCapabilityMismatch)
		same(t, "missing", refusal.Details["missing"], any([]string{"gpu", "x"}))
		w.started(core.Submission{})
		able := worker2()
		able.Capabilities = []string{"gpu", "x", "y"}
		refusal = w.untouched(id, resume(able), base.CodeAdmissionRefused)
		same(t, "key", refusal.Details["key"], any("lane:default"))
		w.untouched(id, func() error {
			_, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{})
			return err
		}, base.CodeAdmissionRefused)
		forced := must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true}))(t)
		events := w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"lease.acquired"}})
		same(t, "force is recorded", data(t, events[len(events)-1])["forced"], any(true))
		w.complete(forced)
	})
}

func TestS14_S35_an_operators_claim_asks_for_no_capabilities_and_force_never_skips_the_gate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"routing_requirements":{"required_capabilities":["never"]}}`))
		w.lane("default", core.LaneSettings{State: core.LaneDisabled})
		w.untouched(id, func() error {
			_, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{})
			return err
		}, base.CodeLaneNotClaimable)
		w.hold(id)
		w.untouched(id, func() error {
			_, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true})
			return err
		}, base.CodeExecutionNotEligible)
		w.releaseHold(id)
		task := must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true, TTL: 5000}))(t)
		same(t, "capabilities are not tested", task.Execution.Lease.TTL, 5000)
		w.complete(task)
	})
}

func TestL88_an_operator_claims_what_a_users_own_transaction_has_just_committed(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		own := w.beginOwn()
		answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k"}))(t)
		if w.url != "" { // SQLite has one writer
			_, err := w.e.OperatorClaim(w.ctx(), operator, answer.ID.Given(), engine.TargetedRequest{})
			refused(t, err, base.CodeExecutionNotFound)
		}
		ok(t, own.commit())
		w.complete(must(w.e.OperatorClaim(w.ctx(), operator, answer.ID.Given(), engine.TargetedRequest{}))(t))
	})
}

func TestS35_a_forced_claim_takes_its_place_though_the_cap_is_set_while_it_looks(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		w.store = deaf{w.store} // it does not hear of the cap before it sees the lane
		b, other := w.interpose(), w.another()
		b.afterBegin.set(func(want store.Want) bool { return len(want.Executions) == 1 && want.Executions[0] == id.UUID }, func() {
			must(other.PutLane(w.ctx(), operator, "default", core.LaneSettings{MaxConcurrent: 1}, engine.Operator{}))(t)
		})
		task := must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true}))(t)
		same(t, "its place", task.Execution.Holds, []string{"lane:default"})
		w.capped("default", 1)
		waits := w.submit(core.Submission{})
		w.nothing()
		w.complete(task)
		same(t, "the place is free again", given(w.claim()), waits)
	})
}
