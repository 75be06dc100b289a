package engine_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
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

func TestL85_the_same_work_submitted_beside_the_transaction_is_adopted_as_a_duplicate(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{}, func(t *testing.T, w *world) {
		given := core.GivenID{UUID: core.UUID{0: 9, 15: 1}}
		s := core.Submission{Kind: "k", ID: &given, Input: core.Payload{Data: []byte("in")}, PolicyJSON: []byte(`{"dedup_window_ms":60000}`)}
		keyed := s
		keyed.IdempotencyKey = "key"
		w.aside(keyed, s)
		ok(t, w.e.Nudge(w.ctx(), client))
		same(t, "one execution", w.story(given)[0], "execution.submitted")
		same(t, "told once", w.count(given, "execution.submitted"), 1)
		same(t, "nothing is refused", len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})), 0)
		again := keyed
		again.ID = nil
		same(t, "the key names it", must(w.e.Submit(w.ctx(), client, again))(t).ID, given.ID())
		w.pass(3 * core.Minute)
		eventually(t, "the key goes when its window is over", func() bool { return !w.hasKey("key") })
	})
}

func TestL85_other_work_that_has_the_id_when_a_transaction_is_adopted_refuses_it_and_people_are_told(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{}, func(t *testing.T, w *world) {
		var lines logText
		w.cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		w.restart()
		given := core.GivenID{UUID: core.UUID{0: 9, 15: 1}}
		mine := core.Submission{Kind: "k", ID: &given, IdempotencyKey: "key", Input: core.Payload{Data: []byte("secret")}}
		w.aside(mine, core.Submission{Kind: "other", ID: &given})
		ok(t, w.e.Nudge(w.ctx(), client))
		same(t, "what was filed first stays", w.get(given).Class.Kind, "other")
		told := must(w.e.ReadEvents(w.ctx(), engine.Caller{Actor: "client", Namespaces: []string{"default"}}, engine.EventsRequest{
			After: "start", Filter: engine.EventFilter{Kinds: []string{"sweep.quarantined"}},
		}))(t).Events
		same(t, "events in the namespace of the submission", len(told), 1)
		same(t, "what it tells", data(t, told[0]), map[string]any{"row": given.UUID.String(), "error": "id_conflict", "failures": 1.0})
		eventually(t, "a line in the log", func() bool { return strings.Contains(lines.String(), "code=id_conflict") })
		line := lines.String()
		if !strings.Contains(line, given.UUID.String()) || !strings.Contains(line, "principal=me") || strings.Contains(line, "secret") {
			t.Error(line)
		}
		mine.ID = nil
		again := must(w.e.Submit(w.ctx(), client, mine))(t)
		same(t, "its key is free for the work to be submitted again", again.Outcome, "created")
		same(t, "the inbox", len(must(w.store.Read(w.ctx(), store.Want{Inbox: 10}))(t).Inbox), 0)
	})
}

func TestL88_a_submission_that_cannot_be_read_is_told_in_the_event_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := w.beginOwn()
		submitter, able := w.store.(store.TxSubmitter)
		same(t, "able", able, true)
		id := core.ID{UUID: core.UUID{0: 9, 15: 1}, N: 3}
		must(submitter.SubmitTx(w.ctx(), own.tx, nil, store.InboxRow{ID: id, Body: []byte("{")}))(t)
		ok(t, own.commit())
		eventually(t, "sweep.quarantined", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})) == 1 })
		event := data(t, w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})[0])
		same(t, "what it tells", [2]any{event["row"], event["error"]}, [2]any{id.UUID.String(), "corruption"})
	})
}

// aside leaves a submission in a transaction and submits another with the same id beside it: while the transaction is open, or, where
// a transaction is alone, before anybody has adopted it.
func (w *world) aside(inside, beside core.Submission) {
	w.t.Helper()
	closeEngine(w.t, w.e)
	poll, timers := w.cfg.PollInterval, w.cfg.NoTimers
	w.cfg.NoTimers = true // adopts nothing unasked
	w.e = w.openEngine(w.store)
	own := w.beginOwn()
	same(w.t, "inside", must(w.e.SubmitTx(w.ctx(), client, own.tx, inside))(w.t).Outcome, "created")
	if w.url == "" {
		ok(w.t, own.commit())
	}
	same(w.t, "beside", must(w.e.Submit(w.ctx(), client, beside))(w.t).Outcome, "created")
	if w.url != "" {
		ok(w.t, own.commit())
	}
	w.cfg.PollInterval, w.cfg.NoTimers = poll, timers
	w.restart()
}

func (w *world) hasKey(text string) bool {
	w.t.Helper()
	key := store.Key{Space: store.ExecutionKeys, Namespace: "default", Text: text}
	return len(must(w.store.Read(w.ctx(), store.Want{Keys: []store.Key{key}}))(w.t).Keys) > 0
}

// logText is what an engine has logged.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
