package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// toldFields is what each event of a wait tells, in the story of this test.
var toldFields = map[string]string{
	"execution.suspended":         "suspension_id reason_code timeout_at timeout_behavior waitpoints",
	"execution.suspend_satisfied": "suspension_id signals",
	"execution.resumed":           "suspension_id cause closer_signal_id",
	"execution.escalated":         "suspension_id timeout_at",
	"waitpoint.created":           "waitpoint_id waitpoint_key expires_at token_kid token_fingerprint",
	"waitpoint.closed":            "waitpoint_id waitpoint_key close_reason",
	"waitpoint.token_read":        "waitpoint_id token_kid",
	"waitpoint.token_reissued":    "waitpoint_id token_kid",
	"signal.accepted":             "signal_id waitpoint_id waitpoint_key name category source_type source_identity source_verified effect matched payload",
	"approval_link.created":       "link_id waitpoint_id approver expires_at",
	"approval_link.decided":       "link_id waitpoint_id approver decision",
	"approval_link.revoked":       "link_id waitpoint_id approver",
}

func TestW86_waits_are_told_with_all_their_fields_and_what_changes_nothing_is_not_told(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		early := w.pending(task, "a")
		twice := func(c *core.SignalCommand) { c.IdempotencyKey = "once" }
		must(w.signal(early.ID, early.Token, "go", twice))(t)
		same(t, "again", must(w.signal(early.ID, early.Token, "go", twice))(t).Duplicate, true)
		_, err := w.signal(early.ID, spoilt(early.Token), "go")
		refused(t, err, base.CodeInvalidToken)
		passed := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, goAtA, adopting(early.ID))))(t)
		same(t, "passed", passed.Satisfied, true)

		s := w.suspend(task, goAtA, timingOut(1000, core.BehaviorEscalate))
		at := s.Waitpoints[0].ID
		must(w.e.ReadToken(w.ctx(), operator, id, at))(t)
		token := must(w.e.ReissueToken(w.ctx(), operator, at, engine.Operator{}))(t).Token
		ann, bob := w.link(at, "ann"), w.link(at, "bob")
		must(w.decideLink(ann, "approve"))(t)
		must(w.decideLink(ann, "reject"))(t) // it is decided
		ok(t, w.e.RevokeLink(w.ctx(), operator, bob.ID, nil, engine.Operator{}))
		w.pass(1000)
		eventually(t, "it is escalated", func() bool { return w.count(id, "execution.escalated") == 1 })
		must(w.signal(at, token, "go"))(t)

		told := []string{}
		for _, event := range w.events(engine.EventFilter{ExecutionID: &id}) {
			want, wait := toldFields[event.Kind]
			if !wait {
				continue
			}
			told = append(told, event.Kind)
			fields := data(t, event)
			for name := range strings.FieldsSeq(want) {
				if _, there := fields[name]; !there {
					t.Errorf("%s lacks %s: %v", event.Kind, name, fields)
				}
			}
			if event.Kind == "signal.accepted" {
				p, _ := fields["payload"].(map[string]any)
				if p["size"] == nil || p["content_type"] == nil || len(p) != 2 {
					t.Errorf("the payload of a signal is shown as %v", p)
				}
			}
		}
		slices.Sort(told)
		same(t, "everything, each time it happened", told, []string{
			"approval_link.created", "approval_link.created", "approval_link.decided", "approval_link.revoked",
			"execution.escalated", "execution.resumed", "execution.suspend_satisfied", "execution.suspended",
			"signal.accepted", "signal.accepted", "signal.accepted",
			"waitpoint.closed", "waitpoint.closed", "waitpoint.created", "waitpoint.created", "waitpoint.token_read", "waitpoint.token_reissued",
		})
		same(t, "no revocation, no completion", []int{w.count(id, "lease.revoked"), w.count(id, "execution.completed")}, []int{0, 0})
	})
}

// Nobody calls: the sweep alone acts, and not a millisecond before its time.
func TestWI18_a_timeout_is_acted_on_by_the_sweep_alone_and_never_early(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		// The sweep looks in steps of 50 ms: the other one is due at a step, and this one a millisecond after it.
		step := base.Millis(1000) + (50-base.Millis(w.now())%50)%50
		id, s := w.asleep(atA, timingOut(step+1, core.BehaviorFail))
		other, o := w.asleep(atA, timingOut(step, core.BehaviorFail))
		w.turnTo(s.TimeoutAt - 1)
		eventually(t, "the sweep has been here", func() bool { return w.count(other, "execution.completed") == 1 })
		same(t, "a millisecond early", w.count(id, "execution.completed"), 0)
		w.pass(1)
		eventually(t, "the sweep acts", func() bool { return w.count(id, "execution.completed") == 1 })
		for _, x := range []struct {
			id base.GivenID
			s  engine.SuspendAnswer
		}{{id, s}, {other, o}} {
			if ended := w.get(x.id).CompletedAt; ended < x.s.TimeoutAt || ended > x.s.TimeoutAt+base.Time(base.Second) {
				t.Errorf("ended at %d, due at %d", ended, x.s.TimeoutAt)
			}
		}
	})
}

func TestW54_a_suspension_has_one_cause_whatever_comes_after(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		for cause, end := range map[core.SuspensionCause]func(id base.GivenID, s engine.SuspendAnswer){
			core.CauseSignal: func(_ base.GivenID, s engine.SuspendAnswer) { w.signalled(s, "go") },
			core.CauseOperator: func(id base.GivenID, _ engine.SuspendAnswer) {
				_, _, err := w.resume(id, core.ResumeCommand{})
				ok(t, err)
			},
			core.CauseCancelled: func(id base.GivenID, _ engine.SuspendAnswer) { w.cancel(id) },
			core.CauseTimeout: func(id base.GivenID, s engine.SuspendAnswer) {
				w.turnTo(s.TimeoutAt)
				w.pass(0)
				w.becomes(id, core.Failed)
			},
		} {
			id, s := w.asleep(goAtA, timingOut(1000, core.BehaviorFail))
			end(id, s)
			_, err := w.signal(s.Waitpoints[0].ID, s.Tokens[0], "go", func(c *core.SignalCommand) { c.SignalID = base.UUID{9} })
			refused(t, err, base.CodeWaitpointClosed)
			if _, _, err := w.resume(id, core.ResumeCommand{}); err == nil {
				t.Errorf("%s: it was resumed a second time", cause)
			}
			if !w.get(id).Status.Terminal() {
				w.cancel(id)
			}
			same(t, "the cause stays", w.observed(id).Cause, cause)
		}
	})
}
