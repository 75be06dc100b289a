package core

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// breached is an execution that asked for 120 of 100 tokens, of which it had used 40.
func breached(t tester, definition string) (*bank, base.UUID, *story, UsageOutcome) {
	t.Helper()
	k := openBank(t)
	id := k.open(definition)
	s := k.running(`{"retry_policy":{"max_retries":5},"estimate":{"tokens":50}}`, id)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 40)))
	return k, id, s, must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 120)))
}

func TestB27_block_new_leaves_the_work_alone(t *testing.T) {
	t.Parallel()
	k, id, s, o := breached(t, oneHundred)
	if o.Outcome != UsageHardBreach || o.Action != ActionNone || s.x.Status != Running {
		t.Errorf("%+v", o)
	}
	b := k.budget(id)
	if b.Breaches != 1 || *b.LastBreach != (BudgetBreach{At: k.now, Dimension: "tokens", ExecutionID: s.x.ID}) {
		t.Errorf("%+v", b.LastBreach)
	}
	data := k.lastTold("budget.hard_breach")
	if data["used"] != 40.0 || data["reserved"] != 10.0 || data["hard"] != 100.0 || data["attempted"] != 120.0 || data["action"] != "none" {
		t.Errorf("%v", data)
	}
	k.want(id, "tokens", 40, 10, 0)
}

func TestB27_L152_fail_ends_the_reporter_without_a_retry(t *testing.T) {
	t.Parallel()
	k, id, s, o := breached(t, `{"name":"b","on_hard":"fail","dimensions":{"tokens":{"hard":100}}}`)
	if o.Action != ActionFailed {
		t.Errorf("%+v", o)
	}
	s.want(Failed, BudgetExceeded, NextNone)
	if record := s.history[1]; record.End != EndBudgetExceeded || s.x.Failure.Category != "budget_exceeded" || s.x.Attempt.State != EndedFailure {
		t.Errorf("%+v, %+v", record, s.x.Failure)
	}
	k.want(id, "tokens", 40, 0, 0)
	_, err := k.report(s, Fence{LeaseID: s.history[1].LeaseID, Epoch: 1, AttemptID: s.x.Attempt.ID}, amounts("tokens", 1))
	wantCode(t, err, base.CodeExecutionNotActive)
}

func TestB27_L152_cancel_running_ends_the_reporter_and_asks_for_the_others(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","on_hard":"cancel_running","dimensions":{"tokens":{"hard":100}}}`)
	s, other, free := k.running(`{}`, id), k.running(`{}`, id), k.running(`{}`)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 101)))
	if o.Action != ActionCancelled || !slices.Equal(k.cancels, []CancelRunning{{Budget: id}}) {
		t.Fatalf("%+v, cancels %v", o, k.cancels)
	}
	s.want(Cancelled, BudgetExceeded, NextNone)
	if *s.x.Cancellation != (Cancellation{Source: "budget", By: "engine", Reason: "budget_exceeded"}) {
		t.Errorf("%+v", s.x.Cancellation)
	}
	for _, run := range []*story{other, free} {
		k.on(run, func() {
			_ = run.do(func(fx *Effects) error {
				if run.x.CancelForBudget(fx, id) != (run == other) {
					t.Error("who holds a lease charged to the budget is cancelled, no other execution")
				}
				return nil
			})
		})
	}
	other.want(Cancelled, BudgetExceeded, NextNone)
	free.want(Running, ReasonNone, NextNone)
}

func TestB28_a_charge_without_execution_has_no_execution_to_act_on(t *testing.T) {
	t.Parallel()
	for _, onHard := range []string{OnHardFail, OnHardSuspendForApproval, OnHardCancelRunning} {
		k := openBank(t)
		id := k.open(`{"name":"b","on_hard":"` + onHard + `","dimensions":{"tokens":{"hard":100}}}`)
		o := must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 101)}, nil))
		if o.Outcome != UsageHardBreach || o.Action != ActionNone || (len(k.cancels) == 1) != (onHard == OnHardCancelRunning) {
			t.Errorf("%s: %+v", onHard, o)
		}
		s := k.running(`{}`, id)
		o = must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 101)}, s))
		if o.Action == ActionNone || s.x.Status == Running {
			t.Errorf("%s: a charge for an execution acts on it: %+v", onHard, o)
		}
	}
}

func TestB28_a_late_report_acts_on_no_execution(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","on_hard":"fail","dimensions":{"tokens":{"hard":100}}}`)
	s := k.running(`{}`, id)
	f := s.fence()
	k.pass(25 * base.Hour)
	o := must[UsageOutcome](t)(k.report(s, f, amounts("tokens", 130), spent))
	if o.Outcome != UsageHardBreach || o.Overrun != 30 || o.Action != ActionNone || s.x.Status != Ready {
		t.Errorf("%+v, %s", o, s.x.Status)
	}
}

const asking = `{"name":"b","on_hard":"suspend_for_approval","dimensions":{"tokens":{"hard":100},"calls":{"hard":3}},
	"approval":{"timeout_ms":60000,"default_raise":{"tokens":25}},"reset":{"type":"interval","every_ms":86400000}}`

func TestB29_suspend_for_approval_asks_at_a_waitpoint_without_a_token(t *testing.T) {
	t.Parallel()
	k, id, s, o := breached(t, asking)
	if o.Action != ActionSuspended {
		t.Errorf("%+v", o)
	}
	s.want(Suspended, WaitingForBudget, NextResume)
	w := s.d.Waitpoints[0]
	if w.Key != "budget" || w.TokenKid != "" || w.TokenFingerprint != "" || w.ExpiresAt != k.now.Add(base.Minute) ||
		!slices.Equal(w.RequiredNames, []string{"budget_approved", "budget_denied"}) {
		t.Errorf("%+v", w)
	}
	if asked, ok := s.x.AskedBudget(&s.d); asked != id || !ok {
		t.Errorf("asks %s", asked)
	}
	if p := s.d.Suspensions[0]; p.ReasonCode != "paused_by_budget" || p.Behavior != BehaviorFail || s.history[1].End != EndBudgetExceeded {
		t.Errorf("%+v", p)
	}
	data := k.lastTold("budget.approval_requested")
	if data["waitpoint_id"] != w.ID.String() || data["dimension"] != "tokens" || data["used"] != 40.0 || data["attempted"] != 120.0 {
		t.Errorf("%v", data)
	}
	k.want(id, "tokens", 40, 0, 0)
	token := must[SignalAnswer](t)
	k.on(s, func() {
		if a := token(s.signal(w.ID, "budget_approved", from("somebody", "x"))); a.Effect == condition.EffectSatisfied {
			t.Error("a token is not enough")
		}
	})
}

func TestB30_an_approval_raises_by_what_is_said_else_by_the_default(t *testing.T) {
	t.Parallel()
	for payload, raised := range map[string]int64{`{"raise":{"tokens":70}}`: 70, `{"note":"ok"}`: 25, `not json`: 25} {
		k, id, s, _ := breached(t, asking)
		suspension := s.x.Waits.Suspension.ID
		attempt := s.x.Attempt.ID
		k.on(s, func() {
			must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ann", Name: "budget_approved", Payload: &Payload{Data: []byte(payload)}}))
		})
		s.wantCause(suspension, CauseBudgetApproved)
		s.wantClosed(s.d.Waitpoints[0].ID, ClosedResumed)
		s.want(Ready, WaitingForWorker, NextResume)
		b := k.budget(id)
		if *b.View("tokens").EffectiveHard != 100+raised || *b.Dimensions["tokens"].Hard != 100 || !slices.Contains(k.freed, id) {
			t.Errorf("%s: %+v", payload, b.Dimensions["tokens"])
		}
		data := k.lastTold("budget.raised")
		if data["raise"] != float64(raised) || data["by"] != "ann" || data["until"] != b.NextResetAt.String() {
			t.Errorf("%v", data)
		}
		if refusal := k.claim(s, id); refusal != nil || s.x.Attempt.ID != attempt {
			t.Fatalf("%+v", refusal)
		}
		k.now = b.NextResetAt
		if err := k.do(func(*Effects) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := *k.budget(id).View("tokens").EffectiveHard; got != 100 {
			t.Errorf("the raise lasts beyond the reset: %d", got)
		}
	}
}

func TestB30_a_raise_that_cannot_be_is_no_signal(t *testing.T) {
	t.Parallel()
	k, id, s, _ := breached(t, asking)
	for _, payload := range []string{
		`{"raise":{"tokens":0}}`, `{"raise":{"tokens":-5}}`, `{"raise":{"tokens":1.5}}`, `{"raise":{"pages":1}}`, `{"raise":7}`, `{"raise":{}}`,
		`{"raise":{"tokens":9007199254740992}}`,
	} {
		k.on(s, func() {
			_, err := s.approve(ApproveCommand{Principal: "ann", Name: "budget_approved", Payload: &Payload{Data: []byte(payload)}})
			if e := wantCode(t, err, base.CodeInvalidSignal); !strings.HasPrefix(e.Field, "payload") {
				t.Errorf("%s: %v", payload, e)
			}
		})
	}
	k.on(s, func() {
		_, err := s.signal(s.d.Waitpoints[0].ID, "budget_approved", func(c *SignalCommand) { c.Payload.Data = []byte(`{"raise":{"tokens":5}}`) })
		wantCode(t, err, base.CodeInvalidSignal)
	})
	s.want(Suspended, WaitingForBudget, NextResume)
	if *k.budget(id).View("tokens").EffectiveHard != 100 {
		t.Error("raised all the same")
	}
}

func TestB29_B31_a_link_approves_or_denies(t *testing.T) {
	t.Parallel()
	for decision, denied := range map[string]bool{"approve": false, "reject": true} {
		k, id, s, _ := breached(t, asking)
		suspension, waitpoint := s.x.Waits.Suspension.ID, s.d.Waitpoints[0].ID
		k.on(s, func() {
			link := must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: waitpoint, Approver: "bob"}))
			must[DecideAnswer](t)(s.decide(link.ID, decision, ""))
		})
		if !denied {
			s.wantCause(suspension, CauseBudgetApproved)
			if got := *k.budget(id).View("tokens").EffectiveHard; got != 125 {
				t.Errorf("raised to %d", got)
			}
			continue
		}
		s.want(Failed, BudgetExceeded, NextNone)
		s.wantCause(suspension, CauseBudgetDenied)
		s.wantClosed(waitpoint, ClosedDenied)
		if end := s.d.SuspensionEnds[0]; end.By != "bob" || end.CloserSignalID.IsZero() || s.x.Attempt.State != EndedFailure {
			t.Errorf("%+v", end)
		}
	}
}

func TestB29_an_approval_that_is_not_given_times_out(t *testing.T) {
	t.Parallel()
	k, _, s, _ := breached(t, asking)
	k.pass(base.Minute)
	s.want(Failed, SuspensionTimeout, NextNone)
}

func TestB27_B17_time_that_is_used_up_acts_without_a_report(t *testing.T) {
	t.Parallel()
	for onHard, status := range map[string]Status{
		OnHardBlockNew: Running, OnHardFail: Failed, OnHardSuspendForApproval: Suspended, OnHardCancelRunning: Cancelled,
	} {
		k := openBank(t)
		id := k.open(`{"name":"b","on_hard":"` + onHard + `","dimensions":{"wall_ms":{"hard":1000}}}`)
		s := k.running(`{}`, id)
		k.pass(1500)
		if s.x.Status != status || k.budget(id).Breaches != 1 {
			t.Errorf("%s: %s after %d breaches", onHard, s.x.Status, k.budget(id).Breaches)
		}
		if status != Running {
			k.want(id, WallMS, 1000, 0, 0)
		}
	}
}

func TestB32_each_upward_crossing_is_told_once(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(oneHundred)
	s := k.running(`{}`, id)
	for _, n := range []int64{50, 1, 5} {
		must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", n)))
	}
	if b := k.budget(id); b.SoftBreaches != 1 || k.lastTold("budget.soft_breach")["used"] != 51.0 {
		t.Fatalf("%d crossings", b.SoftBreaches)
	}
	k.release(id, s.x.ID)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 60)))
	if b := k.budget(id); b.SoftBreaches != 2 {
		t.Errorf("%d crossings", b.SoftBreaches)
	}
}
