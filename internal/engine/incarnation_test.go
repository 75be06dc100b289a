package engine_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// unaware is an engine that learns of another incarnation by its own transactions alone.
var unaware = engine.Config{PollInterval: time.Hour}

func TestI3_R2_R4_after_a_failover_that_lost_a_claim_its_worker_is_refused_and_the_live_one_is_not(t *testing.T) {
	t.Parallel()
	onFallible(t, unaware, func(t *testing.T, w *fallible) {
		id := w.submit(core.Submission{})
		w.mark()
		stale := w.claim()
		w.fall()
		second := w.other()
		r := ask()
		r.InstanceID = "second"
		answer, err := insist(t, func() (engine.ClaimAnswer, error) { return second.Claim(w.ctx(), client, r) })
		ok(t, err)
		live := answer.Tasks[0]
		same(t, "claimed anew, as often as before", [2]any{given(live), fence(live).Epoch}, [2]any{id, fence(stale).Epoch})
		complete := func(task engine.Task) error {
			_, err := insist(t, func() (core.CompleteAnswer, error) { return w.e.Complete(w.ctx(), client, id, fence(task), nil) })
			return err
		}
		refused(t, complete(stale), base.CodeStaleLease)
		same(t, "lease", w.is(id, core.Running, core.ReasonNone).Lease.ID, live.Execution.Lease.ID)
		ok(t, complete(live))
		w.is(id, core.Succeeded, core.Completed)
	})
}

func TestR3_after_a_failover_numbers_of_classes_are_read_anew_and_claims_wait_on(t *testing.T) {
	t.Parallel()
	onFallible(t, unaware, func(t *testing.T, w *fallible) {
		kind := func(name string) core.Submission {
			return core.Submission{Namespace: "default", Lane: "default", Kind: name}
		}
		submitted := func(name string) base.GivenID {
			answer, err := insist(t, func() (engine.SubmitAnswer, error) { return w.e.Submit(w.ctx(), client, kind(name)) })
			ok(t, err)
			return answer.ID.Given()
		}
		w.submit(kind("before"))
		w.claimKind("before")
		w.mark()
		r := ask()
		r.Kinds = []string{"late", "lost"}
		waiting := w.claiming(r)
		w.waiters(1)
		w.submit(kind("gone"))
		w.submit(kind("gone_too"))
		w.claimKind("gone")
		w.fall()
		for _, name := range []string{"anew", "gone", "gone_too", "anew"} { // numbers that were given to others before
			id := submitted(name)
			task := w.claimKind(name)
			same(t, "kind", [2]any{given(task), task.Execution.Class.Kind}, [2]any{id, name})
			w.complete(task)
		}
		late := submitted("late")
		same(t, "the claim that waited", given((<-waiting).Tasks[0]), late)
	})
}

func TestR3_timers_that_were_taken_before_a_failover_are_not_removed_after_it(t *testing.T) {
	t.Parallel()
	onFallible(t, engine.Config{}, func(t *testing.T, w *fallible) {
		var act atomic.Pointer[func()]
		w.cfg.Probe = beforeSweep(func() {
			if do := act.Swap(nil); do != nil {
				(*do)()
			}
		})
		w.restart()
		delayed := func() base.GivenID {
			answer, err := insist(t, func() (engine.SubmitAnswer, error) {
				return w.e.Submit(w.ctx(), client, core.Submission{Namespace: "default", Lane: "default", Kind: "mail", DelayUntil: w.now().Add(base.Hour)})
			})
			ok(t, err)
			return answer.ID.Given()
		}
		w.mark()
		delayed() // its timer has the number that the next one gets after the failover
		var anew base.GivenID
		done := make(chan struct{})
		do := func() {
			defer close(done)
			w.fall()
			anew = delayed()
		}
		act.Store(&do)
		w.pass(base.Hour)
		<-done
		w.pass(base.Hour)
		// The process may still hide the timer of the number that it took, which is due again after sweepHide at the latest.
		w.turning(base.Second, "ready", func() bool { return w.get(anew).Status == core.Ready })
	})
}

// beforeSweep acts before the timers that were handled are removed.
type beforeSweep func()

// BeforeCommit acts.
func (b beforeSweep) BeforeCommit(commands []string) error {
	if slices.Equal(commands, []string{"sweep"}) {
		b()
	}
	return nil
}

// AfterCommit does nothing.
func (beforeSweep) AfterCommit([]string) error { return nil }

func TestR5_E32_a_failover_that_lost_commits_is_told_of_until_somebody_acknowledges_it(t *testing.T) {
	t.Parallel()
	onFallible(t, engine.Config{}, func(t *testing.T, w *fallible) {
		kept := w.submit(core.Submission{})
		cursor := w.cursor()
		w.mark()
		w.submit(core.Submission{})
		beyond := w.cursor()
		before := w.e.Info().LogID
		waits := make(chan error, 1)
		go func() {
			_, err := insist(t, func() (engine.EventPage, error) {
				return w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: beyond, Wait: 30 * time.Second})
			})
			waits <- err
		}()
		second := w.other()
		w.fall()
		for _, e := range []*engine.Engine{w.e, second} {
			eventually(t, "another identity of the log", func() bool { return e.Info().LogID != before })
		}
		refused(t, <-waits, base.CodeInvalidCursor)
		for _, after := range []string{cursor, beyond} {
			_, err := insist(t, func() (engine.EventPage, error) {
				return w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: after})
			})
			refused(t, err, base.CodeInvalidCursor)
		}
		eventually(t, "told in the audit log", func() bool { return len(w.losses()) > 0 })
		says(t, w.e, lenient(), "rollbacks", engine.CheckFail, "came back without commits")
		same(t, "identities agree", w.e.Info().LogID, second.Info().LogID)
		row := w.losses()
		same(t, "told once", len(row), 1)
		same(t, "told by", [3]any{row[0].Namespace, row[0].Entity, row[0].Principal}, [3]any{keyring.Everywhere, "store", "engine"})
		for _, part := range []string{"from", "to", "incarnation"} {
			if !strings.Contains(string(row[0].After), part) {
				t.Errorf("%s does not say %s", row[0].After, part)
			}
		}
		same(t, "events", len(w.story(kept)), 1)
		lost := must(w.e.AcknowledgeRollbacks(w.ctx(), admin, engine.AdminAction{Reason: "seen"}))(t)
		same(t, "acknowledged", [2]any{len(lost), lost[0].From > lost[0].To}, [2]any{1, true})
		says(t, w.e, lenient(), "rollbacks", engine.CheckOK, "")
		same(t, "nothing is left", len(must(w.e.AcknowledgeRollbacks(w.ctx(), admin, engine.AdminAction{}))(t)), 0)
		same(t, "told", len(w.told(admin, core.AuditFilter{Action: "acknowledge_rollbacks"})), 1)
		w.submit(core.Submission{})
		same(t, "listed", len(w.walk(engine.ListRequest{}, func(int) {})), 2)
	})
}

// losses are the rows of the audit log about lost commits.
func (w *world) losses() []core.AuditRow {
	return w.told(admin, core.AuditFilter{Action: "store.rolled_back"})
}

// logRead reads what other processes have committed, and returns where the log is now known to end.
func (w *world) logRead(e *engine.Engine) int64 {
	e.Log.CatchUp(w.ctx())
	end, _ := e.Log.Position()
	return end
}

// cursor is the end of the log.
func (w *world) cursor() string {
	w.t.Helper()
	return must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{}))(w.t).Next
}

func TestR5_a_failover_that_lost_nothing_is_not_told_of(t *testing.T) {
	t.Parallel()
	onFallible(t, engine.Config{}, func(t *testing.T, w *fallible) {
		task := w.started(core.Submission{})
		cursor, before := w.cursor(), w.e.Info().LogID
		w.mark()
		w.fall()
		_, err := insist(t, func() (core.CompleteAnswer, error) {
			return w.e.Complete(w.ctx(), client, given(task), fence(task), nil)
		})
		ok(t, err)
		eventually(t, "looked into", func() bool { return w.e.LossChecked() })
		same(t, "identity of the log", w.e.Info().LogID, before)
		page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: cursor}))(t)
		same(t, "events behind the cursor", [2]any{len(page.Events), page.Events[0].Kind}, [2]any{1, "execution.completed"})
		says(t, w.e, lenient(), "rollbacks", engine.CheckOK, "")
		same(t, "told", len(w.losses()), 0)
	})
}

// A round of the follower that has read commits which were then lost would move the projection past their positions, where other commits
// come to stand: no list would ever show what those tell of.
func TestR2_L131_lists_show_what_is_committed_after_a_failover_in_the_middle_of_a_round(t *testing.T) {
	t.Parallel()
	var falls atomic.Pointer[func()]
	cfg := unaware
	cfg.Trap = func(place, _ string) {
		if fall := falls.Load(); place == "project" && fall != nil && falls.CompareAndSwap(fall, nil) {
			(*fall)()
		}
	}
	onFallible(t, cfg, func(t *testing.T, w *fallible) {
		w.submit(core.Submission{})
		same(t, "listed", len(w.walk(engine.ListRequest{}, nil)), 1)
		w.mark()
		w.submit(core.Submission{})
		fell := make(chan struct{})
		fall := func() {
			defer close(fell)
			w.fall()
		}
		falls.Store(&fall)
		_, err := insist(t, func() (engine.Page, error) { return w.e.List(w.ctx(), client, engine.ListRequest{}) })
		ok(t, err)
		<-fell
		_, err = insist(t, func() (engine.SubmitAnswer, error) {
			return w.e.Submit(w.ctx(), client, core.Submission{Namespace: "default", Lane: "default", Kind: "work"})
		})
		ok(t, err)
		same(t, "listed", len(w.walk(engine.ListRequest{}, nil)), 2)
	})
}

// The newest commit that a process knows may be one that it has read from the log that came back: an older one tells of the loss.
func TestR5_a_loss_is_found_behind_commits_that_were_read_since(t *testing.T) {
	t.Parallel()
	onFallible(t, unaware, func(t *testing.T, w *fallible) {
		w.submit(core.Submission{})
		w.mark()
		w.submit(core.Submission{})
		w.fall()
		second := w.other()
		for range 2 {
			_, err := insist(t, func() (engine.SubmitAnswer, error) {
				return second.Submit(w.ctx(), client, core.Submission{Namespace: "default", Lane: "default", Kind: "work"})
			})
			ok(t, err)
		}
		eventually(t, "read on", func() bool { return w.logRead(w.e) >= w.logRead(second) })
		_, err := insist(t, func() (engine.SubmitAnswer, error) {
			return w.e.Submit(w.ctx(), client, core.Submission{Namespace: "default", Lane: "default", Kind: "work"})
		})
		ok(t, err)
		eventually(t, "told", func() bool { return len(w.losses()) == 1 })
	})
}
