package engine_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // as the user's own program would have it

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ownTx is a transaction of the user's own program on the store's database.
type ownTx struct {
	tx       any
	commit   func() error
	rollback func() error
}

// beginSQL opens a transaction of the user's own by database/sql.
func (w *world) beginSQL() *sql.Tx {
	w.t.Helper()
	driver, source := "sqlite", w.path
	if w.path == "" {
		driver, source = "pgx", w.url
	}
	return beginAt(w.t, driver, source)
}

func beginAt(t *testing.T, driver, source string) *sql.Tx {
	t.Helper()
	db, err := sql.Open(driver, source)
	ok(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// beginOwn opens a transaction of the user's own, by the library that people use with the database.
func (w *world) beginOwn() ownTx {
	w.t.Helper()
	if w.path != "" {
		tx := w.beginSQL()
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
		refused(t, err, base.CodeExecutionNotFound)

		own := w.beginOwn()
		s := core.Submission{Kind: "k", IdempotencyKey: "a", Priority: 9, Tags: base.Tags{"x": "y"}, Input: core.Payload{Data: []byte{0, 1}}, PolicyJSON: []byte(`{"max_reclaim_count":3}`)}
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
func (w *world) unseenUntil(own ownTx, id base.GivenID) {
	w.t.Helper()
	if w.url != "" { // a second SQLite writer would have to wait
		_, err := w.e.Describe(w.ctx(), client, id)
		refused(w.t, err, base.CodeExecutionNotFound)
	}
	ok(w.t, own.commit())
}

func TestU137_an_engine_finds_the_submission_by_a_command_a_nudge_or_the_poll(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		submit := func(lane string) base.GivenID {
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

func TestL88_a_committed_submission_is_found_at_once_by_every_process(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Millisecond}, func(t *testing.T, w *world) {
		for n := range 60 {
			tx := w.beginSQL()
			answer := must(w.e.SubmitTx(w.ctx(), client, tx, core.Submission{Kind: "k"}))(t)
			ok(t, tx.Commit())
			if n%2 == 0 {
				w.is(answer.ID.Given(), core.Ready, core.WaitingForWorker)
			} else {
				w.cancel(answer.ID.Given())
			}
		}
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
			code base.Code
		}{
			"kind":       {core.Submission{}, base.CodeInvalidArgument},
			"policy":     {core.Submission{Kind: "k", PolicyJSON: []byte(`{"x":1}`)}, base.CodeInvalidPolicy},
			"budgets":    {core.Submission{Kind: "k", PolicyJSON: []byte(`{"budgets":[{"dimensions":{"tokens":{"hard":1}}}]}`)}, base.CodeInvalidPolicy},
			"deadline":   {core.Submission{Kind: "k", DeadlineAt: w.now()}, base.CodeInvalidArgument},
			"lane":       {core.Submission{Kind: "k", Lane: "closed"}, base.CodeLaneNotAccepting},
			"key":        {core.Submission{Kind: "k", IdempotencyKey: "taken"}, base.CodeIdempotencyConflict},
			"id":         {core.Submission{Kind: "other", ID: &first}, base.CodeIDConflict},
			"nonsense":   {core.Submission{Kind: "k", Lane: "a b"}, base.CodeInvalidArgument},
			"wrong kind": {core.Submission{Kind: "a b"}, base.CodeInvalidArgument},
		} {
			if _, err := w.e.SubmitTx(w.ctx(), client, own.tx, c.s); base.CodeOf(err) != c.code {
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
		if code := base.CodeOf(err); code != base.CodeWrongDatabase && code != base.CodeInvalidArgument {
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
		refused(t, err, base.CodeWrongDatabase)
	})
}

func TestU137_a_transaction_of_database_sql_submits_on_every_store(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		lost := w.beginSQL()
		answer := must(w.e.SubmitTx(w.ctx(), client, lost, core.Submission{Kind: "k"}))(t)
		ok(t, lost.Rollback())
		_, err := w.e.Describe(w.ctx(), client, answer.ID.Given())
		refused(t, err, base.CodeExecutionNotFound)

		w.submit(core.Submission{IdempotencyKey: "taken"})
		own := w.beginSQL()
		_, err = w.e.SubmitTx(w.ctx(), client, own, core.Submission{Kind: "other", IdempotencyKey: "taken"})
		refused(t, err, base.CodeIdempotencyConflict)
		answer = must(w.e.SubmitTx(w.ctx(), client, own, core.Submission{Kind: "k", Input: core.Payload{Data: []byte{0, 255}}}))(t)
		ok(t, own.Commit())
		w.is(answer.ID.Given(), core.Ready, core.WaitingForWorker)
		same(t, "input", must(w.e.Input(w.ctx(), client, answer.ID.Given()))(t).Data, []byte{0, 255})
	})
}

func TestU137_a_transaction_of_database_sql_on_another_database_is_refused_and_goes_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		driver, source := "sqlite", w.path+".other"
		if w.path == "" {
			config, err := pgx.ParseConfig(w.url)
			ok(t, err)
			config.Database = "postgres" // every server has it, and it was never a store's
			driver, source = "pgx", stdlib.RegisterConnConfig(config)
			t.Cleanup(func() { stdlib.UnregisterConnConfig(source) })
		}
		elsewhere := beginAt(t, driver, source)
		_, err := w.e.SubmitTx(w.ctx(), client, elsewhere, core.Submission{Kind: "k"})
		refused(t, err, base.CodeWrongDatabase)
		_, err = elsewhere.ExecContext(t.Context(), "select 1")
		ok(t, err)
	})
}

func TestL80_a_transactional_submit_looks_at_the_key_then_the_id_then_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		byKey := w.submit(core.Submission{Lane: "l", IdempotencyKey: "taken"})
		byID := w.submit(core.Submission{Lane: "l"})
		w.lane("l", core.LaneSettings{State: core.LaneDraining})
		own := w.beginOwn()
		for name, c := range map[string]struct {
			s    core.Submission
			want any
		}{
			"key and id": {core.Submission{Kind: "k", Lane: "l", IdempotencyKey: "taken", ID: &byID}, byKey.ID()},
			"id":         {core.Submission{Kind: "k", Lane: "l", ID: &byID}, byID.ID()},
			"other key":  {core.Submission{Kind: "k", Lane: "l", IdempotencyKey: "free", ID: &byID}, byID.ID()},
			"conflict":   {core.Submission{Kind: "other", Lane: "l", IdempotencyKey: "taken", ID: &byID}, base.CodeIdempotencyConflict},
			"id of else": {core.Submission{Kind: "other", Lane: "l", ID: &byID}, base.CodeIDConflict},
			"neither":    {core.Submission{Kind: "k", Lane: "l", IdempotencyKey: "free"}, base.CodeLaneNotAccepting},
		} {
			answer, err := w.e.SubmitTx(w.ctx(), client, own.tx, c.s)
			var got any = answer.ID
			if err != nil {
				got = base.CodeOf(err)
			}
			same(t, name, got, c.want)
			if err == nil {
				same(t, name, answer.Outcome, "duplicate")
			}
		}
		ok(t, own.commit())
		same(t, "keys", len(must(w.store.Read(w.ctx(), store.Want{Keys: []store.Key{{Space: store.ExecutionKeys, Namespace: "default", Text: "free"}}}))(t).Keys), 0)
	})
}

func TestU137_a_duplicate_is_answered_with_the_execution_as_it_is(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", Priority: 3, Tags: base.Tags{"a": "b"}, Input: core.Payload{Data: []byte("in")}}
		repeat := core.Submission{Kind: "k", IdempotencyKey: "key", Input: core.Payload{Data: []byte("in")}}
		check := func(what string, own ownTx, state string) {
			t.Helper()
			answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, repeat))(t)
			x := answer.View.Execution
			same(t, what, [6]any{answer.Outcome, answer.PublicState, answer.Priority, x.ID, x.Tags["a"], string(x.Input.Data)},
				[6]any{"duplicate", state, 3, answer.ID, "b", "in"})
		}
		own := w.beginOwn()
		first := must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		same(t, "created", [2]any{first.View.Execution.Status, first.View.Execution.CreatedAt}, [2]any{core.Ready, w.now()})
		check("in the same transaction", own, "waiting")
		given := first.ID.Given()
		again := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", ID: &given, Input: repeat.Input}))(t)
		same(t, "the same id in the same transaction (L85)", [2]any{again.Outcome, again.ID}, [2]any{"duplicate", first.ID})
		ok(t, own.commit())
		other := w.beginOwn()
		check("committed", other, "waiting")
		ok(t, other.rollback())
		w.complete(w.claim())
		other = w.beginOwn()
		check("completed", other, "completed")
	})
}

func TestL84_a_key_that_outlives_its_execution_answers_its_id(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key"}
		first := w.submit(s)
		w.complete(w.claim())
		ok(t, w.e.Delete(w.ctx(), operator, first, engine.Operator{}))
		answer := must(w.e.SubmitTx(w.ctx(), client, w.beginOwn().tx, s))(t)
		same(t, "answer", [3]any{answer.Outcome, answer.ID, answer.View.Execution == nil}, [3]any{"duplicate", first.ID(), true})
	})
}

func TestU25_a_store_that_takes_no_part_in_other_transactions_says_so(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := w.beginSQL()
		e := w.openEngine(deaf{w.store}) // which hides everything beyond the contract
		_, err := e.SubmitTx(w.ctx(), client, own, core.Submission{Kind: "k"})
		refused(t, err, base.CodeNotImplemented)
	})
}

// mute is a store whose hints are lost while it is.
type mute struct {
	store.Store
	on   atomic.Bool
	lost atomic.Int64
}

func (m *mute) Notify(ctx context.Context, hint store.Hint) error {
	if m.on.Load() {
		m.lost.Add(1)
		return nil
	}
	return m.Store.Notify(ctx, hint)
}

func TestS68_S69_a_nudge_for_a_lane_reaches_the_claims_of_other_processes(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		w.claim() // the class is known
		hints := &mute{Store: w.openStore()}
		other := w.openEngine(hints)
		answer := w.waiting(w.e, ask())
		hints.on.Store(true)
		id := must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t).ID.Given()
		eventually(t, "its hints are sent", func() bool { return hints.lost.Load() > 0 })
		hints.on.Store(false)
		ok(t, other.Nudge(w.ctx(), client, "default"))
		same(t, "claimed", given(w.only(answer)), id)
	})
}
