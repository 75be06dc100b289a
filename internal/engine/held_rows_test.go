package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// holdRow runs a statement that locks something in a session that has nothing to do with an engine, and holds it until it is released.
func (w *world) holdRow(sql string, values ...any) (release func()) {
	w.t.Helper()
	conn := must(pgx.Connect(w.t.Context(), w.url))(w.t)
	tx := must(conn.Begin(w.t.Context()))(w.t)
	must(tx.Exec(w.t.Context(), sql, values...))(w.t)
	release = sync.OnceFunc(func() {
		_ = tx.Rollback(context.WithoutCancel(w.t.Context()))
		_ = conn.Close(context.WithoutCancel(w.t.Context()))
	})
	w.t.Cleanup(release)
	return release
}

// lockWaits counts the sessions of the database that wait for a lock now.
func (w *world) lockWaits() (n int) {
	w.t.Helper()
	conn := must(pgx.Connect(w.t.Context(), w.url))(w.t)
	defer func() { _ = conn.Close(w.t.Context()) }()
	const query = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
	ok(w.t, conn.QueryRow(w.t.Context(), query).Scan(&n))
	return n
}

// heldThing is something that many commands need, and that others can hold.
type heldThing struct {
	sql    string
	values []any
	call   func(e *engine.Engine, i int) error // the i-th command that needs it
}

// holdable makes things that n commands each need.
var holdable = map[string]func(w *world, n int) heldThing{
	"a flow": func(w *world, n int) heldThing {
		flow, tasks := w.claimedMembers(n)
		return heldThing{
			"select from doc where owner = '' and kind = 29 and key = convert_to($1, 'utf8') for update",
			[]any{flow.Flow.ID.UUID.String()},
			func(e *engine.Engine, i int) error { return succeeds(e, w, tasks[i]) },
		}
	},
	"many flows": func(w *world, n int) heldThing {
		var tasks []engine.Task
		for range n {
			_, one := w.claimedMembers(1)
			tasks = append(tasks, one...)
		}
		return heldThing{"select from doc where owner = '' and kind = 29 for update", nil, func(e *engine.Engine, i int) error { return succeeds(e, w, tasks[i]) }}
	},
	"a budget": func(w *world, n int) heldThing {
		w.create(tokens("team", 1_000_000))
		tasks := w.claimedMany(n, costing(1, "team"))
		return heldThing{"select from doc where owner = '' and kind = 21 for update", nil, func(e *engine.Engine, i int) error { return succeeds(e, w, tasks[i]) }}
	},
	"a quota key": func(w *world, n int) heldThing {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1000})
		tasks := w.claimedMany(n, attached(use("q")))
		return heldThing{"select from counter for update", nil, func(e *engine.Engine, i int) error { return succeeds(e, w, tasks[i]) }}
	},
	"a lane": func(w *world, _ int) heldThing {
		w.lane("held", core.LaneSettings{})
		return heldThing{"select from lane where name = 'held' for update", nil, func(e *engine.Engine, i int) error {
			_, err := e.SetLaneState(w.ctx(), operator, "held", []core.LaneState{core.LaneActive, core.LanePaused}[i%2], engine.Operator{})
			return err
		}}
	},
	"an execution": func(w *world, _ int) heldThing {
		task := w.started(core.Submission{})
		return heldThing{"select from exec where id = $1 for update", []any{[16]byte(given(task).UUID)}, func(e *engine.Engine, _ int) error {
			items, err := e.Renew(w.ctx(), client, []engine.LeaseRef{{ID: given(task), Fence: fence(task)}})
			if err != nil {
				return err
			}
			return items[0].Err
		}}
	},
	"an audit chain": func(w *world, n int) heldThing {
		tasks := w.claimedMany(n+1, core.Submission{})
		cancel := func(e *engine.Engine, i int) error {
			_, err := e.Cancel(w.ctx(), operator, given(tasks[i]), nil, "", engine.Operator{})
			return err
		}
		ok(w.t, cancel(w.e, n))
		return heldThing{"select from doc where owner = '' and kind = 10 for update", nil, cancel}
	},
	"an idempotency key": func(w *world, _ int) heldThing {
		return heldThing{
			"insert into idem (space, namespace, key, fingerprint, id, n, expires_at) values (1, 'default', 'k', '', gen_random_uuid(), 0, 0)", nil,
			func(e *engine.Engine, _ int) error {
				_, err := e.Submit(w.ctx(), client, core.Submission{Kind: "keyed", IdempotencyKey: "k"})
				return err
			},
		}
	},
	"the rules": func(w *world, _ int) heldThing {
		return heldThing{"select from installation for update", nil, func(e *engine.Engine, i int) error {
			_, err := e.PutQuota(w.ctx(), operator, fmt.Sprintf("q%d", i), core.QuotaSettings{ConcurrencyLimit: 1}, engine.AdminAction{})
			return err
		}}
	},
}

// claimedMembers starts a flow of n members that all run.
func (w *world) claimedMembers(n int) (engine.FlowAnswer, []engine.Task) {
	w.t.Helper()
	var nodes []core.FlowNode
	for i := range n {
		nodes = append(nodes, core.FlowNode{Name: fmt.Sprintf("m%03d", i), Kind: "member"})
	}
	return w.submitFlow(core.FlowSubmission{Kind: "held", Nodes: nodes}), w.takeKind("member", n)
}

// claimedMany starts n executions that are alike.
func (w *world) claimedMany(n int, s core.Submission) []engine.Task {
	w.t.Helper()
	s.Kind = "many"
	for range n {
		w.submit(s)
	}
	return w.takeKind("many", n)
}

// insisting repeats a call that is answered that it may be repeated.
func insisting(call func() error) error {
	for {
		err := call()
		switch base.CodeOf(err) {
		case base.CodeStoreUnavailable, base.CodeIdempotencyInProgress, base.CodeOverloaded:
		default:
			return err
		}
	}
}

// unrelated does what has nothing to do with anything that is held.
func (w *world) unrelated(e *engine.Engine, round int) {
	w.t.Helper()
	kind := fmt.Sprintf("free-%p", e)
	must(e.Submit(w.ctx(), client, core.Submission{Kind: kind, IdempotencyKey: fmt.Sprintf("%p-%d", e, round)}))(w.t)
	r := ask()
	r.Kinds, r.Wait, r.InstanceID = []string{kind}, patience, fmt.Sprintf("free-%p", e)
	ok(w.t, succeeds(e, w, must(e.Claim(w.ctx(), client, r))(w.t).Tasks[0]))
}

func TestS66_S73_what_is_held_for_long_delays_no_call_that_does_not_need_it(t *testing.T) {
	t.Parallel()
	const commands, rounds = 64, 20
	// One waits for the row, and beside it at most a batch that meets the row anew: submits that have waited for a second are answered, and these
	// callers repeat them.
	const most = 2
	for name, prepare := range holdable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{}, func(t *testing.T, w *world) {
				held := prepare(w, commands)
				w.unrelated(w.e, -1)
				release := w.holdRow(held.sql, held.values...)
				answers := make(chan error, commands)
				for i := range commands {
					go func() { answers <- insisting(func() error { return held.call(w.e, i) }) }()
				}
				eventually(t, "all are set apart", func() bool { return w.e.Held.Depth() == commands })
				for round := range rounds {
					w.unrelated(w.e, round)
					if waiting := w.lockWaits(); waiting > most {
						t.Fatalf("%d connections wait for what is held", waiting)
					}
					same(t, "answered while it is held", len(answers), 0)
				}
				release()
				for range commands {
					ok(t, <-answers)
				}
				eventually(t, "nothing is set apart any more", func() bool { return w.e.Held.Depth() == 0 })
			})
		})
	}
}

func TestS73_two_processes_and_all_their_commands_outlast_what_is_held(t *testing.T) {
	t.Parallel()
	const commands = 48
	for name, prepare := range holdable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{}, func(t *testing.T, w *world) {
				engines := []*engine.Engine{w.e, w.another()}
				held := prepare(w, commands)
				for _, e := range engines {
					w.unrelated(e, -1)
				}
				release := w.holdRow(held.sql, held.values...)
				answers := make(chan error, commands)
				for i := range commands {
					go func() { answers <- insisting(func() error { return held.call(engines[i%2], i) }) }()
				}
				eventually(t, "all are set apart", func() bool { return engines[0].Held.Depth()+engines[1].Held.Depth() == commands })
				for _, e := range engines {
					w.unrelated(e, 0)
				}
				release()
				for range commands {
					ok(t, <-answers)
				}
			})
		})
	}
}

func TestS73_commands_that_wait_for_one_row_are_done_in_the_order_in_which_they_came(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		const members = 64
		flow, tasks := w.claimedMembers(members)
		slices.Reverse(tasks)
		var endings []engine.Ending
		var want []base.ID
		for _, task := range tasks {
			endings = append(endings, engine.Ending{ID: given(task), Completion: core.Completion{Fence: fence(task)}})
			want = append(want, task.Execution.ID)
		}
		release := w.holdRow("select from doc where owner = '' and kind = 29 for update")
		done := make(chan []engine.CompleteItem)
		complete := func(some []engine.Ending) { done <- w.e.CompleteMany(w.ctx(), client, some) }
		go complete(endings[:members/2])
		eventually(t, "the first are set apart", func() bool { return w.e.Held.Depth() == members/2 })
		go complete(endings[members/2:])
		eventually(t, "all are set apart", func() bool { return w.e.Held.Depth() == members })
		release()
		for _, item := range append(<-done, <-done...) {
			ok(t, item.Err)
		}
		w.flowBecomes(flow, core.FlowCompleted)
		var got []base.ID
		for _, commit := range must(w.store.Log(w.ctx(), 0, 10_000))(t) {
			for _, ev := range commit.Events {
				if ev.Kind == "execution.completed" {
					got = append(got, ev.ExecutionID)
				}
			}
		}
		same(t, "in order", got, want)
	})
}

func TestS72_no_more_commands_than_there_is_room_for_wait_for_what_is_held(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{QueueLimit: 32}, func(t *testing.T, w *world) {
		const room, members = 8, 12
		_, tasks := w.claimedMembers(members)
		release := w.holdRow("select from doc where owner = '' and kind = 29 for update")
		answers := make(chan error, members)
		for _, task := range tasks {
			go func() { answers <- succeeds(w.e, w, task) }()
		}
		for range members - room {
			refusal := refused(t, <-answers, base.CodeOverloaded)
			same(t, "it says when to try again", refusal.RetryAfterMS > 0, true)
		}
		same(t, "the others wait", w.e.Held.Depth(), room)
		w.unrelated(w.e, 0)
		release()
		for range room {
			ok(t, <-answers)
		}
	})
}

func TestS73_claims_of_a_lane_that_is_held_keep_no_others_waiting(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.submit(core.Submission{Lane: "held"})
		w.unrelated(w.e, -1)
		release := w.holdRow("select from lane where name = 'held' for update")
		r := ask()
		r.Lanes, r.InstanceID = []string{"held"}, "w2"
		claimed := w.claiming(r)
		for round := range 20 {
			w.unrelated(w.e, round)
			same(t, "claimed while the lane is held", len(claimed), 0)
		}
		release()
		same(t, "claimed once it is free", len((<-claimed).Tasks), 1)
	})
}

func TestL82_L88_a_submit_that_waits_for_a_users_transaction_is_its_duplicate_once_that_commits(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		own := w.beginOwn()
		s := core.Submission{Kind: "k", IdempotencyKey: "once"}
		first := must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(t)
		const repeats = 8
		answers := make(chan engine.SubmitAnswer, repeats)
		for range repeats {
			go func() {
				var answer engine.SubmitAnswer
				if err := insisting(func() (err error) { answer, err = w.e.Submit(w.ctx(), client, s); return err }); err != nil {
					t.Error(err)
				}
				answers <- answer
			}()
		}
		eventually(t, "all are set apart", func() bool { return w.e.Held.Depth() == repeats })
		ok(t, own.commit())
		for range repeats { // the waiter itself files what was submitted
			answer := <-answers
			same(t, "answer", [2]any{answer.Outcome, answer.ID}, [2]any{"duplicate", first.ID})
		}
	})
}

func TestS73_a_lease_of_a_member_is_renewed_while_its_flow_is_held(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		_, tasks := w.claimedMembers(2)
		release := w.holdRow("select from doc where owner = '' and kind = 29 for update")
		answer := make(chan error, 1)
		go func() { answer <- insisting(func() error { return succeeds(w.e, w, tasks[0]) }) }()
		eventually(t, "it is set apart", func() bool { return w.e.Held.Depth() == 1 })
		items := must(w.e.Renew(w.ctx(), client, []engine.LeaseRef{{ID: given(tasks[1]), Fence: fence(tasks[1])}, {ID: given(tasks[0]), Fence: fence(tasks[0])}}))(t)
		for _, item := range items {
			ok(t, item.Err)
		}
		same(t, "the end still waits", len(answer), 0)
		release()
		ok(t, <-answer)
	})
}

func TestS73_a_batch_waits_as_one_for_a_store_that_somebody_else_has(t *testing.T) {
	t.Parallel()
	onAlone(t, engine.Config{}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		h := &contended{Store: w.store}
		w.e = w.openEngine(h)
		tasks := w.claimedMany(16, core.Submission{})
		var endings []engine.Ending
		for _, task := range tasks {
			endings = append(endings, engine.Ending{ID: given(task), Completion: core.Completion{Fence: fence(task)}})
		}
		h.on.Store(true)
		for _, item := range w.e.CompleteMany(w.ctx(), client, endings) {
			ok(t, item.Err)
		}
		same(t, "tries of all sixteen", h.tries.Load(), int64(4))
		h.on.Store(false)
	})
}
