package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// claimer is the worker for whom the grants of these tests are.
var claimer = engine.GrantClaim{WorkerID: "w", InstanceID: "w1"}

// grants asks for grants.
func (w *world) grants(r engine.ClaimRequest) []engine.Grant {
	w.t.Helper()
	return must(w.e.Grant(w.ctx(), client, r))(w.t)
}

// granted submits and is given a grant of it.
func (w *world) granted(s core.Submission) engine.Grant {
	w.t.Helper()
	id := w.submit(s)
	g := w.grantAs(ask())
	if g.ID != id.ID() {
		w.t.Fatalf("granted %s, want %s", g.ID, id.ID())
	}
	return g
}

// grantAs waits until the request finds exactly one.
func (w *world) grantAs(r engine.ClaimRequest) engine.Grant {
	w.t.Helper()
	r.Wait = 20 * time.Second
	grants := w.grants(r)
	if len(grants) != 1 {
		w.t.Fatalf("the call found %d", len(grants))
	}
	return grants[0]
}

// claimGrant claims a grant for the worker that it is for.
func (w *world) claimGrant(g engine.Grant) engine.Task {
	w.t.Helper()
	return must(w.e.ClaimGrant(w.ctx(), client, g.Key, claimer))(w.t)
}

func (w *world) verify(g engine.Grant) error { return w.e.VerifyGrant(w.ctx(), client, g.Key) }

func TestS27_L43_L45_work_is_promised_and_then_claimed(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{Input: core.Payload{Data: []byte("in")}})
		id := g.ID.Given()
		x := w.is(id, core.Granted, core.WaitingForWorker)
		same(t, "public", w.public(id), "waiting")
		same(t, "until", [2]base.Time{g.ExpiresAt, x.Grant.ExpiresAt}, [2]base.Time{w.now().Add(5000), w.now().Add(5000)})
		sum := sha256.Sum256([]byte(g.Key.Reveal()))
		same(t, "S29: the hash is stored", x.Grant.Hash, sum[:])
		if want := "pg:" + g.ID.Full() + ":"; !strings.HasPrefix(g.Key.Reveal(), want) || g.ID.Tag() != strings.TrimSuffix(g.ID.Full(), ":"+g.ID.UUID.String()) {
			t.Fatalf("S28: the key %s does not begin with %s", g.Key.Reveal(), want)
		}
		w.nothing() // no other instance may have it
		ok(t, w.verify(g))
		task := w.claimGrant(g)
		same(t, "task", [3]any{task.How, string(task.Execution.Input.Data), task.Execution.LeaseEpoch}, [3]any{"fresh", "in", int64(1)})
		w.is(id, core.Running, core.ReasonNone)
		w.complete(task)
		same(t, "story", w.story(id), []string{"execution.submitted", "grant.issued", "lease.acquired", "execution.completed"})
		issued := w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"grant.issued"}})[0]
		same(t, "its worker hears of it", [3]any{issued.InstanceID, data(t, issued)["worker_id"], data(t, issued)["worker_instance_id"]}, [3]any{"w1", any("w"), any("w1")})
	})
}

func TestS27_no_candidate_is_an_empty_list(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		same(t, "grants", len(w.grants(ask())), 0)
		w.submit(policy(`{"routing_requirements":{"required_capabilities":["gpu"]}}`))
		same(t, "of what it cannot do", len(w.grants(ask())), 0)
	})
}

func TestS27_a_call_that_waits_is_woken_and_never_handed_work_without_a_signature(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.nothing()
		r := ask()
		r.Wait, r.Max = patience, 2
		got := make(chan []engine.Grant, 1)
		go func() { got <- must(w.e.Grant(w.ctx(), client, r))(t) }()
		eventually(t, "a call waits", func() bool { return w.e.WaitingClaims() == 1 })
		id := w.submit(core.Submission{})
		grants := <-got
		same(t, "granted", []base.ID{grants[0].ID}, []base.ID{id.ID()})
		w.complete(w.claimGrant(grants[0]))
	})
}

func TestS27_the_arguments_of_a_grant(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		for _, ttl := range []base.Millis{-1, 60_001} {
			r := ask()
			r.GrantTTL = ttl
			_, err := w.e.Grant(w.ctx(), client, r)
			same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "grant_ttl_ms")
			one := worker2()
			one.GrantTTL = ttl
			_, err = w.e.GrantOne(w.ctx(), client, id, one)
			same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "grant_ttl_ms")
		}
		_, err := w.e.ClaimGrant(w.ctx(), client, keyring.GrantKey{}, engine.GrantClaim{WorkerID: "w"})
		same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "worker_instance_id")
		_, err = w.e.ClaimGrant(w.ctx(), client, keyring.GrantKey{}, engine.GrantClaim{WorkerID: "w", InstanceID: "w1", TTL: 1})
		same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "lease_ttl_ms")
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestS29_SC7_without_a_signing_key_nothing_is_looked_for(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		must(w.revokeKey("a", true))(t)
		r := ask()
		r.Wait = patience
		_, err := w.e.Grant(w.ctx(), client, r) // there is no work either: it does not wait for it
		refused(t, err, base.CodeSigningKeyMissing)
		_, err = w.e.GrantOne(w.ctx(), client, base.GivenID{UUID: base.UUID{1}}, worker2())
		refused(t, err, base.CodeSigningKeyMissing)
		id := w.submit(core.Submission{})
		w.untouched(id, func() error { _, err := w.e.Grant(w.ctx(), client, ask()); return err }, base.CodeSigningKeyMissing)
		w.untouched(id, func() error { _, err := w.e.GrantOne(w.ctx(), client, id, worker2()); return err }, base.CodeSigningKeyMissing)
		workers, _, err := w.e.Workers(w.ctx(), client, engine.WorkerQuery{State: "all"})
		ok(t, err)
		same(t, "no instance was registered", len(workers), 0)
		w.complete(w.claim()) // direct claims need no key
		must(w.rotateKey("b", 2, 0))(t)
		w.claimGrant(w.granted(core.Submission{}))
	})
}

func TestS30_SC7_every_refusal_of_a_key(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		id, text := g.ID.Given(), g.Key.Reveal()
		for name, c := range map[string]struct {
			text string
			code base.Code
		}{
			"nothing":             {"", base.CodeGrantMalformed},
			"junk":                {"pg:junk", base.CodeGrantMalformed},
			"another kid":         {strings.Replace(text, ":a:", ":b:", 1), base.CodeGrantUnknownKid},
			"another execution":   {strings.Replace(text, g.ID.UUID.String(), base.UUID{7}.String(), 1), base.CodeGrantUnknown},
			"another partition":   {strings.Replace(text, g.ID.Tag(), base.ID{N: g.ID.N + 1}.Tag(), 1), base.CodeGrantUnknown},
			"another signature":   {text[:len(text)-64] + strings.Repeat("0", 64), base.CodeGrantSignatureMismatch},
			"without a partition": {strings.Replace(text, g.ID.Tag()+":", "", 1), base.CodeGrantMalformed},
		} {
			t.Run(name, func(t *testing.T) {
				key := keyring.GrantKeyOf(c.text)
				w.untouched(id, func() error { return w.e.VerifyGrant(w.ctx(), client, key) }, c.code)
				w.untouched(id, func() error { return w.e.ReturnGrant(w.ctx(), client, key) }, c.code)
				w.untouched(id, func() error { _, err := w.e.ClaimGrant(w.ctx(), client, key, claimer); return err }, c.code)
			})
		}
		w.untouched(id, func() error { return w.e.VerifyGrant(w.ctx(), stranger, g.Key) }, base.CodeGrantUnknown)
		w.untouched(id, func() error { return w.verify(g) }, "")
		w.turn(5000)
		refused(t, w.verify(g), base.CodeGrantExpired)
	})
}

// SI6 over every byte of the key, in the way that a thief has: over the engine.
func TestSI6_no_byte_of_a_key_can_be_changed(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		text := []byte(g.Key.Reveal())
		var wg sync.WaitGroup
		for at := range text {
			changed := bytes.Clone(text)
			changed[at] ^= 1
			wg.Go(func() {
				if _, err := w.e.ClaimGrant(w.ctx(), client, keyring.GrantKeyOf(string(changed)), claimer); err == nil {
					t.Errorf("%s passes", changed)
				}
			})
		}
		wg.Wait()
		for _, other := range []engine.GrantClaim{{WorkerID: "v", InstanceID: "w1"}, {WorkerID: "w", InstanceID: "w2"}, {WorkerID: "w1", InstanceID: "w"}} {
			_, err := w.e.ClaimGrant(w.ctx(), client, g.Key, other)
			refused(t, err, base.CodeGrantSignatureMismatch)
		}
		w.claimGrant(g) // none of it has used it up (S32)
	})
}

func TestS31_SI5_of_64_claims_of_one_grant_one_acquires(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		var mu sync.Mutex
		leases := map[base.UUID]int{}
		refusals := map[base.Code]int{}
		var wg sync.WaitGroup
		for i := range 64 {
			by := claimer
			if i%2 == 1 {
				by.InstanceID = "thief"
			}
			wg.Go(func() {
				task, err := w.e.ClaimGrant(w.ctx(), client, g.Key, by)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refusals[base.CodeOf(err)]++
				} else {
					leases[task.Execution.Lease.ID]++
				}
			})
		}
		wg.Wait()
		same(t, "leases", [2]int{len(leases), sum(leases)}, [2]int{1, 32})
		same(t, "the others", refusals[base.CodeGrantSignatureMismatch]+refusals[base.CodeGrantUnknown], 32)
		x := w.get(g.ID.Given())
		same(t, "acquisitions", [2]any{x.LeaseEpoch, w.count(g.ID.Given(), "lease.acquired")}, [2]any{int64(1), 1})
	})
}

func sum(counts map[base.UUID]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

func TestS31_LC15_the_same_claim_again_gets_the_same_lease_even_after_the_grant_would_be_over(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		task := w.claimGrant(g)
		w.turn(6000)
		again := w.claimGrant(g)
		same(t, "lease", leasesOf([]engine.Task{again}), leasesOf([]engine.Task{task}))
		other := claimer
		other.InstanceID = "w2"
		_, err := w.e.ClaimGrant(w.ctx(), client, g.Key, other)
		refused(t, err, base.CodeGrantExpired)
		w.complete(task)
		_, err = w.e.ClaimGrant(w.ctx(), client, g.Key, claimer)
		refused(t, err, base.CodeGrantExpired)
	})
}

func TestS31_a_lane_that_was_paused_meanwhile_does_not_matter(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		w.lane("default", core.LaneSettings{State: core.LaneDisabled})
		second := w.submitTo("default2")
		w.lane("default2", core.LaneSettings{State: core.LanePaused})
		r := ask()
		r.Lanes = []string{"default", "default2"}
		same(t, "SI12: a lane that is not open promises nothing", len(w.grants(r)), 0)
		w.untouched(second, func() error { _, err := w.e.GrantOne(w.ctx(), client, second, worker2()); return err }, base.CodeLaneNotClaimable)
		w.complete(w.claimGrant(g))
	})
}

// submitTo submits into a lane.
func (w *world) submitTo(lane string) base.GivenID {
	w.t.Helper()
	return w.submit(core.Submission{Lane: lane})
}

func TestL117_a_repeated_grant_gives_the_same_keys_and_picks_nothing_new(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.submitMany(5, core.Submission{})
		r := ask()
		r.Max, r.RequestKey = 2, "r1"
		first := w.grants(r)
		same(t, "grants", len(first), 2)
		same(t, "repeated", grantKeys(w.grants(r)), grantKeys(first))
		claims := ask()
		claims.RequestKey = "r1"
		same(t, "a claim with the same key is another call", len(w.take(claims)), 1)
		w.claimGrant(first[0])
		same(t, "what is still out", grantKeys(w.grants(r)), grantKeys(first[1:]))
		w.restart()
		same(t, "after a restart", grantKeys(w.grants(r)), grantKeys(first[1:]))
		must(w.e.RotateSigningKey(w.ctx(), operator, engine.Rotation{Kid: "b"}, engine.AdminAction{}))(t)
		same(t, "under a key that verifies only", grantKeys(w.grants(r)), grantKeys(first[1:]))
		ok(t, w.e.ReturnGrant(w.ctx(), client, first[1].Key))
		fresh := w.grants(r)
		same(t, "only when none is out, a new pick", [2]any{len(fresh), strings.Contains(fresh[0].Key.Reveal(), ":b:")}, [2]any{2, true})
		one := worker2()
		one.RequestKey = "r2"
		id := w.submit(core.Submission{})
		once := must(w.e.GrantOne(w.ctx(), client, id, one))(t)
		same(t, "of one id", grantKeys([]engine.Grant{must(w.e.GrantOne(w.ctx(), client, id, one))(t)}), grantKeys([]engine.Grant{once}))
		one.RequestKey = "r3"
		_, err := w.e.GrantOne(w.ctx(), client, id, one)
		refused(t, err, base.CodeGrantOutstanding)
	})
}

// grantKeys shows keys, sorted as they came.
func grantKeys(grants []engine.Grant) (keys []string) {
	for _, g := range grants {
		keys = append(keys, g.Key.Reveal())
	}
	return keys
}

func TestL117_the_record_of_a_grant_goes_when_none_of_it_is_out(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		r := ask()
		r.RequestKey = "r1"
		g := w.grantAs(r)
		ref := store.DocRef{Kind: 3, Key: "w1\x01r1\x01"}
		recorded := func() bool {
			loaded := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{ref}}))(t)
			_, there := loaded.Docs[ref]
			return there
		}
		same(t, "recorded", recorded(), true)
		w.complete(w.claimGrant(g))
		w.pass(base.Day)
		eventually(t, "the record is gone", func() bool { return !recorded() })
	})
}

func TestL44_a_grant_of_one_id_in_every_status(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		made := w.inEveryStatus()
		for status, code := range map[core.Status]base.Code{
			core.Delayed: base.CodeExecutionNotEligible, core.Blocked: base.CodeExecutionNotEligible, core.Running: base.CodeLeaseConflict,
			core.Succeeded: base.CodeExecutionNotActive, core.Failed: base.CodeExecutionNotActive, core.Cancelled: base.CodeExecutionNotActive,
			core.Expired: base.CodeExecutionNotActive,
		} {
			id := made[status]
			w.untouched(id, func() error { _, err := w.e.GrantOne(w.ctx(), client, id, worker2()); return err }, code)
		}
		id := made[core.Ready]
		g := must(w.e.GrantOne(w.ctx(), client, id, worker2()))(t)
		w.untouched(id, func() error { _, err := w.e.GrantOne(w.ctx(), client, id, worker2()); return err }, base.CodeGrantOutstanding)
		w.untouched(id, func() error {
			_, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true})
			return err
		}, base.CodeGrantOutstanding)
		asleep, _ := w.asleep(operatorOnly)
		w.untouched(asleep, func() error { _, err := w.e.GrantOne(w.ctx(), client, asleep, worker2()); return err }, base.CodeExecutionNotEligible)
		_, err := w.e.GrantOne(w.ctx(), client, base.GivenID{UUID: base.UUID{1}}, worker2())
		refused(t, err, base.CodeExecutionNotFound)
		task := must(w.e.ClaimGrant(w.ctx(), client, g.Key, engine.GrantClaim{WorkerID: "w", InstanceID: "w2"}))(t)
		w.complete(task)
	})
}

func TestS14_L75_a_grant_of_one_id_tests_lane_state_capabilities_and_cap_in_that_order(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"routing_requirements":{"required_capabilities":["x","gpu"]}}`))
		w.lane("default", core.LaneSettings{State: core.LanePaused, MaxConcurrent: 1})
		grant := func(r engine.TargetedRequest) func() error {
			return func() error { _, err := w.e.GrantOne(w.ctx(), client, id, r); return err }
		}
		wrong := worker2()
		wrong.Lane = "elsewhere"
		w.untouched(id, grant(wrong), base.CodeLaneMismatch)
		w.untouched(id, grant(worker2()), base.CodeLaneNotClaimable)
		w.capped("default", 1)
		refusal := w.untouched(id, grant(worker2()), base.CodeCapabilityMismatch)
		same(t, "missing", refusal.Details["missing"], any([]string{"gpu", "x"}))
		running := w.started(core.Submission{})
		able := worker2()
		able.Capabilities = []string{"gpu", "x"}
		w.untouched(id, grant(able), base.CodeAdmissionRefused)
		w.complete(running)
		g := must(w.e.GrantOne(w.ctx(), client, id, able))(t)
		waits := w.submit(core.Submission{})
		w.nothing() // S5: who is granted has a place
		ok(t, w.e.ReturnGrant(w.ctx(), client, g.Key))
		same(t, "the place is free again", given(w.claim()), waits)
	})
}

func TestSC8_resumed_and_reclaimed_work_comes_by_a_grant_too(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		w.release(task)
		g := w.grantAs(ask())
		same(t, "public", w.public(id), "resumable")
		resumed := w.claimGrant(g)
		same(t, "resumed", [3]any{resumed.How, resumed.ResumedFrom, resumed.Execution.Attempt.ID}, [3]any{"resumed", core.InterruptedReleased, task.Execution.Attempt.ID})
		w.turn(30_000)
		g = must(w.e.GrantOne(w.ctx(), client, id, worker2()))(t)
		reclaimed := must(w.e.ClaimGrant(w.ctx(), client, g.Key, engine.GrantClaim{WorkerID: "w", InstanceID: "w2"}))(t)
		same(t, "reclaimed", [2]any{reclaimed.How, reclaimed.Execution.Attempt.Index}, [2]any{"reclaimed", 1})

		answer := w.suspend(reclaimed, goAtA)
		w.signalled(answer, "go")
		g = must(w.e.GrantOne(w.ctx(), client, id, worker2()))(t)
		woken := must(w.e.ClaimGrant(w.ctx(), client, g.Key, engine.GrantClaim{WorkerID: "w", InstanceID: "w2"}))(t)
		if woken.Resumed == nil || len(woken.Resumed.Signals) != 1 {
			t.Fatalf("W80: the worker is not told what came: %+v", woken.Resumed)
		}
		w.complete(woken)
	})
}

func TestS32_L105_SC5_a_grant_that_expires_frees_the_row_and_its_place_and_wakes_who_waits(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.capped("default", 1)
		g := w.granted(core.Submission{})
		x := w.get(g.ID.Given())
		same(t, "S5: a grant has its place", x.Holds, []string{"lane:default"})
		got := make(chan engine.Task, 1)
		go func() { got <- w.claim() }()
		eventually(t, "a claim waits", func() bool { return w.e.WaitingClaims() == 1 })
		w.pass(5000)
		task := <-got
		same(t, "claimed", task.Execution.ID, g.ID)
		same(t, "queued_at stays", task.Execution.QueuedAt, x.QueuedAt)
		ended := w.events(engine.EventFilter{Kinds: []string{"grant.ended"}})
		same(t, "cause", data(t, ended[0])["cause"], any("expired"))
		w.complete(task)
	})
}

func TestS32_SC7_after_cancel_hold_deadline_and_late_completion_the_grant_is_void(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		for name, void := range map[string]func(id base.GivenID, late engine.Task){
			"cancel":   func(id base.GivenID, _ engine.Task) { w.cancel(id) },
			"hold":     func(id base.GivenID, _ engine.Task) { w.hold(id) },
			"deadline": func(base.GivenID, engine.Task) { w.turn(4000) },
			"late completion": func(_ base.GivenID, late engine.Task) {
				same(t, "late", w.complete(late).Late, true)
			},
			"return": nil,
		} {
			lane := strings.ReplaceAll(name, " ", "-")
			w.capped(lane, 1)
			r := ask()
			r.Lanes = []string{lane}
			id := w.submit(core.Submission{Lane: lane, DeadlineAt: w.now().Add(33_000)})
			late := w.claimAs(r)
			w.turn(30_000)
			g := w.grantAs(r)
			if void == nil {
				ok(t, w.e.ReturnGrant(w.ctx(), client, g.Key))
			} else {
				void(id, late)
			}
			refused(t, w.verify(g), base.CodeGrantUnknown)
			_, err := w.e.ClaimGrant(w.ctx(), client, g.Key, claimer)
			refused(t, err, base.CodeGrantUnknown)
			x := w.get(id)
			same(t, name, [2]any{x.Grant == nil, len(x.Holds)}, [2]any{true, 0})
			if !x.Status.Terminal() {
				w.cancel(id)
			}
			w.submit(core.Submission{Lane: lane})
			w.complete(w.claimAs(r)) // the place is free
		}
	})
}

func TestS33_a_returned_grant_is_returned_once_and_a_repeat_is_known_by_its_key(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		g := w.granted(core.Submission{})
		keyed := client
		keyed.RequestKey = "back"
		ok(t, w.e.ReturnGrant(w.ctx(), keyed, g.Key))
		id := g.ID.Given()
		w.is(id, core.Ready, core.WaitingForWorker)
		w.untouched(id, func() error { return w.e.ReturnGrant(w.ctx(), keyed, g.Key) }, "")
		w.untouched(id, func() error { return w.e.ReturnGrant(w.ctx(), client, g.Key) }, base.CodeGrantUnknown)
		ended := w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"grant.ended"}})
		same(t, "cause", data(t, ended[0])["cause"], any("returned"))
	})
}

func TestS52_a_dead_instance_claims_no_grant_and_may_return_it(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		g := w.granted(core.Submission{})
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		id := g.ID.Given()
		w.untouched(id, func() error { _, err := w.e.ClaimGrant(w.ctx(), client, g.Key, claimer); return err }, base.CodeWorkerNotRegistered)
		_, err := w.e.Grant(w.ctx(), client, ask())
		refused(t, err, base.CodeWorkerNotRegistered)
		ok(t, w.e.ReturnGrant(w.ctx(), client, g.Key))
	})
}

func TestS22_a_caller_that_has_gone_is_granted_nothing(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		r := ask()
		r.Wait = patience
		ctx, leave := context.WithCancel(w.ctx())
		done := make(chan error, 1)
		go func() {
			_, err := w.e.Grant(ctx, client, r)
			done <- err
		}()
		eventually(t, "a call waits", func() bool {
			if len(done) > 0 {
				t.Fatal(<-done)
			}
			return w.e.WaitingClaims() == 1
		})
		leave()
		refused(t, <-done, base.CodeTimeout)
		id := w.submit(core.Submission{})
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}
