package engine_test

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// submitOwn submits in a transaction of the user's own and commits it.
func (w *world) submitOwn(s core.Submission) engine.TxAnswer {
	w.t.Helper()
	own := w.beginOwn()
	answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(w.t)
	ok(w.t, own.commit())
	return answer
}

func TestL18_a_duplicate_in_a_transaction_is_answered_with_the_state_after_due_timers(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		delayed := w.submit(core.Submission{IdempotencyKey: "delayed", DelayUntil: w.now() + 1000})
		w.submit(core.Submission{IdempotencyKey: "late", DeadlineAt: w.now() + 1000})
		running := w.started(core.Submission{Lane: "l", IdempotencyKey: "lapsed", PolicyJSON: []byte(`{"max_reclaim_count":0}`)})
		w.submitOwn(core.Submission{Kind: "k", IdempotencyKey: "not filed", DeadlineAt: w.now() + 1000})
		w.turn(running.Execution.Lease.TTL)
		own := w.beginOwn()
		for key, c := range map[string]struct {
			s    core.Submission
			want string
		}{
			"delayed":   {core.Submission{}, "waiting"},
			"late":      {core.Submission{}, "expired"},
			"lapsed":    {core.Submission{Lane: "l", PolicyJSON: []byte(`{"max_reclaim_count":0}`)}, "failed"},
			"not filed": {core.Submission{}, "expired"},
		} {
			c.s.Kind, c.s.IdempotencyKey = "k", key
			answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, c.s))(t)
			shown, _ := core.Derive(answer.View.Execution, answer.View.Lane)
			same(t, key, [3]string{answer.Outcome, answer.PublicState, shown}, [3]string{"duplicate", c.want, c.want})
		}
		ok(t, own.rollback())
		same(t, "nothing is written for that (L88)", w.get(delayed).Status, core.Delayed)
	})
}

func TestL84_a_transactional_duplicate_of_what_is_gone_shows_the_priority_that_was_asked_for(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", Priority: 7}
		id := w.submit(s)
		w.complete(w.claim())
		ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		plain := must(w.e.Submit(w.ctx(), client, s))(t)
		same(t, "as for a submit", must(w.e.SubmitTx(w.ctx(), client, w.beginOwn().tx, s))(t).SubmitAnswer, plain)
		same(t, "the answer", [3]any{plain.Outcome, plain.ID, plain.Priority}, [3]any{"duplicate", id.ID(), 7})
	})
}

func TestL88_a_submit_with_the_key_of_a_committed_transaction_files_its_work_first(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		submits := map[string]func(s core.Submission) engine.SubmitAnswer{
			"alone": func(s core.Submission) engine.SubmitAnswer { return must(w.e.Submit(w.ctx(), client, s))(t) },
		}
		for name, atomic := range map[string]bool{"in bulk": false, "atomic": true} {
			submits[name] = func(s core.Submission) engine.SubmitAnswer {
				items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k"}, s}, atomic))(t)
				ok(t, items[1].Err)
				same(t, "the other item", items[0].Outcome, "created")
				return items[1].SubmitAnswer
			}
		}
		for name, submit := range submits {
			s := core.Submission{Kind: "k", Lane: name[:2], IdempotencyKey: name, Priority: 3, DelayUntil: w.now() + 1000}
			first := w.submitOwn(s)
			s.Priority = 0
			same(t, name, submit(s), engine.SubmitAnswer{Outcome: "duplicate", ID: first.ID, PublicState: "delayed", Priority: 3})
		}
	})
}

func TestL82_L85_an_id_that_a_committed_transaction_has_taken_is_taken(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		given := base.GivenID{UUID: base.UUID{0: 9, 15: 1}}
		s := core.Submission{Kind: "k", ID: &given, Input: core.Payload{Data: []byte("in")}, Priority: 3}
		w.submitOwn(s)
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "other", ID: &given})
		refused(t, err, base.CodeIDConflict)
		same(t, "what is there", [2]any{w.get(given).Class.Kind, w.count(given, "execution.submitted")}, [2]any{"k", 1})

		given.UUID[15]++
		s.ID = &given
		w.submitOwn(s)
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "other", ID: &given}, {Kind: "k"}, s}, false))(t)
		refused(t, items[0].Err, base.CodeIDConflict)
		same(t, "a sibling", items[1].Outcome, "created")
		same(t, "the same work", items[2].SubmitAnswer, engine.SubmitAnswer{Outcome: "duplicate", ID: given.ID(), PublicState: "waiting", Priority: 3})
	})
}

func TestL82_a_submit_whose_id_an_open_transaction_has_waits_and_its_siblings_do_not(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		given := base.GivenID{UUID: base.UUID{0: 9, 15: 1}}
		s := core.Submission{Kind: "k", ID: &given}
		own := w.beginOwn()
		must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		if w.url == "" { // where one transaction writes at a time, the others wait for all of it
			ok(t, own.commit())
		} else {
			items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "other", ID: &given}, {Kind: "k"}}, false))(t)
			refused(t, items[0].Err, base.CodeIdempotencyInProgress)
			same(t, "a sibling", items[1].Outcome, "created")
			waiting := make(chan error, 1)
			go func() {
				for { // the wait is bounded by the host's clock, and the commit may be late: what is in progress is asked for again, as clients do
					_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "other", ID: &given})
					if base.CodeOf(err) != base.CodeIdempotencyInProgress {
						waiting <- err
						return
					}
				}
			}()
			ok(t, own.commit())
			refused(t, <-waiting, base.CodeIDConflict)
		}
		same(t, "the same work", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		same(t, "what is there", [2]any{w.get(given).Class.Kind, w.count(given, "execution.submitted")}, [2]any{"k", 1})

		given.UUID[15]++
		own = w.beginOwn()
		must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		ok(t, own.rollback())
		same(t, "free again", must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "other", ID: &given}))(t).Outcome, "created")
	})
}

func TestL88_what_another_process_has_filed_is_not_filed_again(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		given := base.GivenID{UUID: base.UUID{0: 9, 15: 1}}
		w.submitOwn(core.Submission{Kind: "k", ID: &given, IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":60000}`)})
		var filing sync.WaitGroup
		for range 4 {
			filing.Go(func() { ok(t, w.e.Nudge(w.ctx(), client)) })
			if w.url != "" {
				other := w.openEngine(w.store)
				filing.Go(func() { ok(t, other.Nudge(w.ctx(), client)) })
				t.Cleanup(func() { closeEngine(t, other) })
			}
		}
		filing.Wait()
		told := 0
		for _, commit := range must(w.store.Log(w.ctx(), 0, 1000))(t) {
			told += len(commit.Events)
		}
		same(t, "events", told, 1)
		same(t, "the inbox", len(must(w.store.Read(w.ctx(), store.Want{Inbox: 10}))(t).Inbox), 0)
	})
}

func TestL84_the_key_of_a_transactional_submit_goes_when_its_window_is_over(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{}, func(t *testing.T, w *world) {
		w.submitOwn(core.Submission{Kind: "k", IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":60000}`)})
		ok(t, w.e.Nudge(w.ctx(), client))
		same(t, "its key", w.hasKey("key"), true)
		w.pass(3 * base.Minute)
		eventually(t, "no key", func() bool { return !w.hasKey("key") })
	})
}

func TestL88_a_submission_that_cannot_be_read_is_told_in_the_event_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := w.beginOwn()
		submitter, able := w.store.(store.TxSubmitter)
		same(t, "able", able, true)
		id := base.ID{UUID: base.UUID{0: 9, 15: 1}, N: 3}
		must(submitter.SubmitTx(w.ctx(), own.tx, nil, store.InboxRow{ID: id, Body: []byte("{")}))(t)
		ok(t, own.commit())
		eventually(t, "sweep.quarantined", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})) == 1 })
		event := data(t, w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})[0])
		same(t, "what it tells", [2]any{event["row"], event["error"]}, [2]any{id.UUID.String(), "corruption"})
	})
}

func (w *world) hasKey(text string) bool {
	w.t.Helper()
	key := store.Key{Space: store.ExecutionKeys, Namespace: "default", Text: text}
	return len(must(w.store.Read(w.ctx(), store.Want{Keys: []store.Key{key}}))(w.t).Keys) > 0
}
