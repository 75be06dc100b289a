package engine_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // as the user's own program would have it

	"github.com/flowfabric/flowfabric/internal/core"
)

// ownTx is a transaction of the user's own program on the store's database.
type ownTx struct {
	tx       any
	commit   func() error
	rollback func() error
}

// begin opens a transaction of the user's own.
func (w *world) beginOwn() ownTx {
	w.t.Helper()
	if w.path != "" {
		db, err := sql.Open("sqlite", w.path)
		ok(w.t, err)
		w.t.Cleanup(func() { _ = db.Close() })
		tx, err := db.BeginTx(w.t.Context(), nil)
		ok(w.t, err)
		w.t.Cleanup(func() { _ = tx.Rollback() })
		return ownTx{tx, tx.Commit, tx.Rollback}
	}
	conn, err := pgx.Connect(w.t.Context(), w.url)
	ok(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(w.t.Context())
	ok(w.t, err)
	return ownTx{tx, func() error { return tx.Commit(w.t.Context()) }, func() error { return tx.Rollback(w.t.Context()) }}
}

func TestL88_a_submission_in_the_users_transaction_exists_iff_that_commits(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		lost := w.beginOwn()
		answer := must(w.e.SubmitTx(w.ctx(), client, lost.tx, core.Submission{Kind: "k", IdempotencyKey: "a"}))(t)
		same(t, "answer", answer.Outcome, "created")
		ok(t, lost.rollback())
		_, err := w.e.Describe(w.ctx(), client, answer.ID.Given())
		refused(t, err, core.CodeExecutionNotFound)

		own := w.beginOwn()
		s := core.Submission{Kind: "k", IdempotencyKey: "a", Priority: 9, Tags: core.Tags{"x": "y"}, Input: core.Payload{Data: []byte{0, 1}}, PolicyJSON: []byte(`{"max_reclaim_count":3}`)}
		answer = must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		w.unseenUntil(own, answer.ID.Given())
		x := w.get(answer.ID.Given()) // the first read files it
		same(t, "record", [5]any{x.Status, x.Priority, x.Tags["x"], x.Policy.MaxReclaims, x.Creator}, [5]any{core.Ready, 9, "y", 3, "me"})
		same(t, "input", string(must(w.e.Input(w.ctx(), client, answer.ID.Given()))(t).Data), "\x00\x01")
		same(t, "event", w.story(answer.ID.Given()), []string{"execution.submitted"})
		same(t, "its key counts", must(w.e.Submit(w.ctx(), client, s))(t).ID, answer.ID)
		w.complete(w.claim())
	})
}

// unseenUntil commits, and fails the test if the execution could be seen before.
func (w *world) unseenUntil(own ownTx, id core.GivenID) {
	w.t.Helper()
	if w.url != "" { // a second SQLite writer would have to wait
		_, err := w.e.Describe(w.ctx(), client, id)
		refused(w.t, err, core.CodeExecutionNotFound)
	}
	ok(w.t, own.commit())
}

func TestU137_an_engine_finds_the_submission_by_a_command_a_nudge_or_the_poll(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		submit := func(lane string) core.GivenID {
			own := w.beginOwn()
			answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", Lane: lane}))(t)
			ok(t, own.commit())
			return answer.ID.Given()
		}
		w.cancel(submit("command"))
		nudged := submit("nudge")
		ok(t, w.e.Nudge(w.ctx(), client, "nudge"))
		r := ask()
		r.Lanes = []string{"nudge"}
		same(t, "nudge", given(w.take(r)[0]), nudged)
		r.Lanes = []string{"poll"}
		answer := w.waiting(w.e, r)
		polled := submit("poll")
		same(t, "poll", given((<-answer).Tasks[0]), polled)
	})
}

func TestL88_the_checks_of_a_submit_hold_and_a_refusal_leaves_the_transaction_usable(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first := w.submit(core.Submission{IdempotencyKey: "taken", Input: core.Payload{Data: []byte("a")}})
		w.lane("closed", core.LaneSettings{State: core.LaneDraining})
		own := w.beginOwn()
		for name, c := range map[string]struct {
			s    core.Submission
			code core.Code
		}{
			"kind":       {core.Submission{}, core.CodeInvalidArgument},
			"policy":     {core.Submission{Kind: "k", PolicyJSON: []byte(`{"x":1}`)}, core.CodeInvalidPolicy},
			"budgets":    {core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[]}`)}, core.CodeInvalidPolicy},
			"deadline":   {core.Submission{Kind: "k", DeadlineAt: w.now()}, core.CodeInvalidArgument},
			"lane":       {core.Submission{Kind: "k", Lane: "closed"}, core.CodeLaneNotAccepting},
			"key":        {core.Submission{Kind: "k", IdempotencyKey: "taken"}, core.CodeIdempotencyConflict},
			"id":         {core.Submission{Kind: "other", ID: &first}, core.CodeIDConflict},
			"nonsense":   {core.Submission{Kind: "k", Lane: "a b"}, core.CodeInvalidArgument},
			"wrong kind": {core.Submission{Kind: "a b"}, core.CodeInvalidArgument},
		} {
			if _, err := w.e.SubmitTx(w.ctx(), client, own.tx, c.s); core.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
		duplicate := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", IdempotencyKey: "taken", Input: core.Payload{Data: []byte("a")}}))(t)
		same(t, "duplicate by key", [2]any{duplicate.Outcome, duplicate.ID}, [2]any{"duplicate", first.ID()})
		sameID := core.Submission{Kind: "k", ID: &first, Input: core.Payload{Data: []byte("a")}}
		duplicate, err := w.e.SubmitTx(w.ctx(), client, own.tx, sameID)
		if err != nil || duplicate.Outcome != "duplicate" {
			t.Errorf("duplicate by id (L85): %v, %v", duplicate, err)
		}
		answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k"}))(t)
		ok(t, own.commit())
		w.is(answer.ID.Given(), core.Ready, core.WaitingForWorker)
	})
}

func TestL84_a_key_whose_window_is_over_is_free_for_a_transactional_submit_too(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":1000}`)}
		first := w.submit(s)
		w.turn(1000)
		own := w.beginOwn()
		answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		ok(t, own.commit())
		same(t, "outcome", answer.Outcome, "created")
		if answer.ID == first.ID() {
			t.Fatal("the same execution")
		}
		w.is(answer.ID.Given(), core.Ready, core.WaitingForWorker)
	})
}

func TestU137_a_transaction_on_another_database_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.SubmitTx(w.ctx(), client, "no transaction", core.Submission{Kind: "k"})
		if code := core.CodeOf(err); code != core.CodeWrongDatabase && code != core.CodeInvalidArgument {
			t.Fatal(err)
		}
		if w.url == "" {
			return
		}
		config, err := pgx.ParseConfig(w.url)
		ok(t, err)
		config.Database = "postgres" // every server has it, and it was never a store's
		conn, err := pgx.ConnectConfig(t.Context(), config)
		ok(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		tx, err := conn.Begin(t.Context())
		ok(t, err)
		_, err = w.e.SubmitTx(w.ctx(), client, tx, core.Submission{Kind: "k"})
		refused(t, err, core.CodeWrongDatabase)
	})
}
