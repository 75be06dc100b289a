package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Several processes on one database, with more work than they claim: what one of them usesCached of its queues must not outlast the poll
// (S6, S9, SI11, SI16, S68). Hints are lost unless a test says otherwise, and the clock decides when an engine polls.

// process is an engine beside the world's.
type process struct {
	w     *world
	e     *engine.Engine
	store *counted
}

// deafProcesses closes the world's engine and opens others that hear no hints of each other. The first is the world's then.
func (w *world) deafProcesses(n int) []*process {
	w.t.Helper()
	closeEngine(w.t, w.e)
	all := make([]*process, n)
	for i := range all {
		s := w.store
		if i > 0 {
			s = w.openStore()
		}
		p := &process{w: w, store: &counted{Store: deaf{s}}}
		p.e = w.openEngine(p.store)
		all[i] = p
	}
	w.e = all[0].e
	return all
}

// polled turns the clock until each of the processes has polled and acted on what it saw: the next poll begins only then.
func (w *world) polled(all ...*process) {
	w.t.Helper()
	for range 2 {
		before := make([]uint64, len(all))
		for i, p := range all {
			before[i] = p.e.Polls()
		}
		w.turn(1000)
		for i, p := range all {
			eventually(w.t, "a poll", func() bool { return p.e.Polls() > before[i] })
		}
	}
}

// inLine submits executions that stand in the queue one behind the other.
func (w *world) inLine(n int, s core.Submission) []base.GivenID {
	w.t.Helper()
	ids := make([]base.GivenID, n)
	for i := range ids {
		w.turn(1)
		ids[i] = w.submit(s)
	}
	return ids
}

// next claims one execution at the process. wait is how long the claim would wait if there were none.
func (p *process) next(wait time.Duration) base.GivenID {
	p.w.t.Helper()
	r := ask()
	r.Wait = wait
	tasks := must(p.e.Claim(p.w.ctx(), client, r))(p.w.t).Tasks
	if len(tasks) != 1 {
		p.w.t.Fatalf("the claim found %d", len(tasks))
	}
	return given(tasks[0])
}

// follow checks that the process gets these next, one by one.
func (p *process) follow(what string, ids ...base.GivenID) {
	p.w.t.Helper()
	for i, id := range ids {
		if got := p.next(0); got != id {
			p.w.t.Fatalf("%s: claim %d got %v, want %v", what, i, got, id)
		}
	}
}

// patiently runs a test with claims that wait and with claims that do not.
func patiently(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world, wait time.Duration)) {
	t.Helper()
	for name, wait := range map[string]time.Duration{"claims wait": patience, "claims do not wait": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, cfg, func(t *testing.T, w *world) { f(t, w, wait) })
		})
	}
}

func TestS6_SI16_better_work_of_another_process_comes_next_after_a_poll_though_its_hint_is_lost(t *testing.T) {
	t.Parallel()
	patiently(t, engine.Config{Clock: turned}, func(t *testing.T, w *world, wait time.Duration) {
		all := w.deafProcesses(2)
		b := all[1]
		backlog := w.inLine(12, core.Submission{})
		for _, id := range backlog[:2] {
			same(t, "in order", b.next(wait), id)
		}
		urgent := w.submit(core.Submission{Priority: 900})
		w.polled(all...)
		same(t, "after the poll", b.next(wait), urgent)
		b.follow("behind it", backlog[2:]...)
	})
}

func TestS6_SI16_better_work_in_a_queue_believed_to_be_empty_comes_next_though_no_claim_ever_waits(t *testing.T) {
	t.Parallel()
	patiently(t, engine.Config{Clock: turned}, func(t *testing.T, w *world, wait time.Duration) {
		all := w.deafProcesses(2)
		b := all[1]
		rare := w.submit(core.Submission{Kind: "rare", Priority: 900})
		backlog := w.inLine(8, core.Submission{})
		b.follow("the queue of its kind is empty then", rare, backlog[0], backlog[1])
		urgent := w.submit(core.Submission{Kind: "rare", Priority: 900})
		same(t, "a claim gets what this process knows of, or better", slices.Contains([]base.GivenID{urgent, backlog[2]}, b.next(wait)), true)
		again := w.submit(core.Submission{Kind: "rare", Priority: 901})
		w.polled(all...)
		same(t, "after the poll", b.next(wait), again)
	})
}

func TestS6_S68_after_seconds_without_a_claim_the_next_one_gets_the_best_at_once(t *testing.T) {
	t.Parallel()
	patiently(t, engine.Config{Clock: turned}, func(t *testing.T, w *world, wait time.Duration) {
		all := w.deafProcesses(2)
		b := all[1]
		backlog := w.inLine(6, core.Submission{})
		b.follow("in order", backlog[:2]...)
		w.polled(all...)
		w.polled(all...)
		urgent := w.submit(core.Submission{Priority: 900})
		same(t, "the first claim", b.next(wait), urgent)
		b.follow("behind it", backlog[2:]...)
	})
}

func TestS6_SI16_better_work_in_one_of_hundreds_of_queues_comes_next_after_a_poll(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		all := w.deafProcesses(2)
		b := all[1]
		const kinds = 300 // more than a look asks
		many := make([]core.Submission, 2*kinds)
		for i := range many {
			many[i] = core.Submission{Kind: fmt.Sprint("k", i%kinds), Priority: 5*kinds - 4*(i%kinds) - 2*(i/kinds)}
		}
		ids := make([]base.GivenID, len(many))
		for i, item := range must(w.e.SubmitMany(w.ctx(), client, many, false))(t) {
			ok(t, item.Err)
			ids[i] = item.ID.Given()
		}
		b.follow("in order", ids[0], ids[kinds], ids[1])
		urgent := w.submit(core.Submission{Kind: fmt.Sprint("k", kinds-1), Priority: 6 * kinds})
		w.polled(all...)
		b.follow("after the poll", urgent, ids[kinds+1], ids[2])
	})
}

// reconnecting is a store whose sender loses all hints but whose listener hears them, and counts those that were acted on.
type reconnecting struct {
	store.Store
	after atomic.Int64 // of interruptions
}

func (h *reconnecting) Notify(context.Context, store.Hint) error { return nil }

func (h *reconnecting) Listen(ctx context.Context, hear func(store.Hint)) error {
	return h.Store.Listen(ctx, func(hint store.Hint) {
		hear(hint)
		if hint.AllLanes {
			h.after.Add(1)
		}
	})
}

func TestS6_S69_a_process_that_lost_its_connection_for_hints_looks_at_all_lanes_again_without_a_poll(t *testing.T) {
	t.Parallel()
	patiently(t, unpolled, func(t *testing.T, w *world, wait time.Duration) {
		closeEngine(t, w.e)
		w.e = w.openEngine(deaf{w.store})
		hints := &reconnecting{Store: w.openStore()}
		b := &process{w: w, e: w.openEngine(hints)}
		backlog := w.inLine(8, core.Submission{})
		b.follow("in order", backlog[:2]...)
		conn := must(pgx.Connect(w.ctx(), w.url))(t)
		defer func() { _ = conn.Close(w.ctx()) }()
		const listener = "from pg_stat_activity where datname = current_database() and query like 'listen %'"
		eventually(t, "it listens", func() bool {
			var n int
			ok(t, conn.QueryRow(w.ctx(), "select count(*) "+listener).Scan(&n))
			return n == 1
		})
		urgent := w.submit(core.Submission{Priority: 900})
		must(conn.Exec(w.ctx(), "select pg_terminate_backend(pid) "+listener))(t)
		eventually(t, "it hears again", func() bool { return hints.after.Load() > 0 })
		same(t, "after the interruption", b.next(wait), urgent)
		b.follow("behind it", backlog[2:]...)
	})
}

// holding is a transaction of another process that holds rows, and how it ends without taking them.
type holding struct {
	w    *world
	tx   store.Tx
	conn *pgx.Conn
}

// elsewhere begins one.
func (w *world) elsewhere(want store.Want) *holding {
	w.t.Helper()
	tx, _ := w.beginOn(w.openStore(), want)
	return &holding{w: w, tx: tx, conn: must(pgx.Connect(w.ctx(), w.url))(w.t)}
}

// the first n rows of the queue of kind k.
func (w *world) firstRows(n int) store.Want {
	w.t.Helper()
	for _, class := range must(w.store.Dictionary(w.ctx()))(w.t).Classes {
		if class.Kind == "k" {
			return store.Want{Pick: []store.Pick{{Class: class.ID, Floor: math.MinInt64, Limit: n}}}
		}
	}
	w.t.Fatal("no such class")
	return store.Want{}
}

// ends are the ways in which such a transaction ends.
var ends = map[string]func(h *holding){
	"rolled back": func(h *holding) { h.tx.Rollback(h.w.ctx()) },
	"its process dies": func(h *holding) {
		must(h.conn.Exec(h.w.ctx(), "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"))(h.w.t)
		h.tx.Rollback(h.w.ctx())
	},
}

func (h *holding) end(f func(*holding)) {
	f(h)
	_ = h.conn.Close(h.w.ctx())
}

func TestS9_SI11_rows_of_another_process_that_dies_in_its_pick_come_next_without_poll_or_hint(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, unpolled, func(t *testing.T, w *world, wait time.Duration) {
				b := &process{w: w, e: w.e}
				backlog := w.inLine(24, core.Submission{})
				h := w.elsewhere(w.firstRows(10))
				for _, id := range backlog[10:13] {
					same(t, "those that are free", b.next(wait), id)
				}
				h.end(end)
				for i, id := range backlog[:10] { // though work goes on coming in
					w.turn(1)
					w.submit(core.Submission{})
					if got := b.next(wait); got != id {
						t.Fatalf("claim %d got %v, want %v", i, got, id)
					}
				}
				b.follow("then those behind", backlog[13:]...)
			})
		})
	}
}

func TestS9_rows_in_the_midst_that_another_process_lets_go_come_in_their_place(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, unpolled, func(t *testing.T, w *world) {
				b := &process{w: w, e: w.e}
				backlog := w.inLine(12, core.Submission{})
				h := w.elsewhere(store.Want{Executions: []base.UUID{backlog[3].UUID, backlog[4].UUID}})
				r := ask()
				r.Max = 6
				got := w.take(r)
				for i, task := range got {
					same(t, "those that are free", given(task), slices.Concat(backlog[:3], backlog[5:])[i])
				}
				h.end(end)
				b.follow("in their place", slices.Concat(backlog[3:5], backlog[len(got)+2:])...)
			})
		})
	}
}

func TestS9_rows_behind_those_whose_executions_another_process_holds_are_found_without_a_poll(t *testing.T) {
	t.Parallel()
	patiently(t, unpolled, func(t *testing.T, w *world, wait time.Duration) {
		b := &process{w: w, e: w.e}
		backlog := w.inLine(12, core.Submission{})
		var held []base.UUID
		for _, id := range backlog[:7] {
			held = append(held, id.UUID)
		}
		h := w.elsewhere(store.Want{Executions: held})
		for _, id := range backlog[7:10] { // each claim asks for fewer rows than are held
			same(t, "those behind", b.next(wait), id)
		}
		h.end(ends["rolled back"])
		b.follow("the oldest first", slices.Concat(backlog[:7], backlog[10:])...)
	})
}

// A claim that asks several queues together for the best rows sees none but those, and others may hold all of them (simulated history 1245).
func TestS9_rows_behind_the_best_of_several_queues_are_found_while_another_process_holds_those(t *testing.T) {
	t.Parallel()
	patiently(t, unpolled, func(t *testing.T, w *world, wait time.Duration) {
		b := &process{w: w, e: w.e}
		var held []base.UUID
		var backlog []base.GivenID
		for i := range 9 {
			id := w.inLine(1, core.Submission{Kind: fmt.Sprint("kind-", i%3)})[0]
			if i < 4 {
				held = append(held, id.UUID)
			}
			backlog = append(backlog, id)
		}
		h := w.elsewhere(store.Want{Executions: held})
		for _, id := range backlog[4:7] {
			same(t, "those behind", b.next(wait), id)
		}
		h.end(ends["rolled back"])
		b.follow("the oldest first", slices.Concat(backlog[:4], backlog[7:])...)
	})
}

func TestS9_S68_rows_of_another_process_that_dies_while_it_holds_a_whole_queue_are_found_by_the_poll(t *testing.T) {
	t.Parallel()
	patiently(t, engine.Config{Clock: turned}, func(t *testing.T, w *world, wait time.Duration) {
		all := w.deafProcesses(1)
		b := all[0]
		held := w.inLine(3, core.Submission{})
		backlog := w.inLine(6, core.Submission{Kind: "other"})
		h := w.elsewhere(w.firstRows(9))
		for _, id := range backlog[:2] {
			same(t, "those that are free", b.next(wait), id)
		}
		h.end(ends["rolled back"])
		w.polled(b)
		for _, id := range slices.Concat(held, backlog[2:]) {
			same(t, "the oldest first", b.next(wait), id)
		}
	})
}

func TestSI16_a_claim_that_does_not_wait_finds_better_work_below_what_it_has_seen_before_it_answers_nothing(t *testing.T) {
	t.Parallel()
	onShared(t, unpolled, func(t *testing.T, w *world) {
		all := w.deafProcesses(2)
		b := all[1]
		backlog := w.inLine(3, core.Submission{})
		b.follow("in order", backlog[:2]...)
		urgent := w.submit(core.Submission{Priority: 900})
		first, second := b.next(0), b.next(0)
		same(t, "both", []bool{first == urgent || second == urgent, first == backlog[2] || second == backlog[2]}, []bool{true, true})
		same(t, "nothing is left", len(must(b.e.Claim(w.ctx(), client, ask()))(t).Tasks), 0)
	})
}

// polling is a store that remembers of how many queues the last poll asked.
type polling struct {
	*counted
	queues atomic.Int64 // of the last safety poll
}

func (a *polling) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	if safetyPoll(ask) {
		a.queues.Store(int64(len(ask.Queues)))
	}
	return a.counted.Poll(ctx, ask)
}

func TestS71_the_poll_asks_only_of_queues_that_claims_have_looked_at_since_the_last_one(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		a := &polling{counted: &counted{Store: w.store}}
		w.e = w.openCounted(a, a.counted)
		for i := range 20 {
			w.submit(core.Submission{Kind: fmt.Sprint("k", i%10)})
		}
		r := ask()
		r.Max = 5
		same(t, "claimed", len(w.take(r)), 5)
		w.second(a.counted)
		if n := a.queues.Load(); n < 1 || n > 10 {
			t.Errorf("it asked of %d queues", n)
		}
		w.second(a.counted)
		same(t, "without a claim since", a.queues.Load(), 0)
		queries := a.counted.queries.Load()
		for range 10 {
			w.second(a.counted)
			same(t, "while none comes", a.queues.Load(), 0)
		}
		if n := a.counted.queries.Load() - queries; n > 12 {
			t.Errorf("%d queries in ten seconds", n)
		}
	})
}

func TestS63_an_execution_that_was_mended_is_served_in_its_place_though_its_queue_is_never_empty(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		p := &process{w: w, store: &counted{Store: w.store}}
		p.e = w.openEngine(p.store)
		w.e = p.e
		broken := w.submit(core.Submission{Priority: 5})
		mend := w.spoil(broken)
		backlog := w.inLine(8, core.Submission{})
		p.follow("the next that can be read", backlog[:3]...)
		mend()
		w.polled(p)
		p.follow("after the poll", broken, backlog[3])
	})
}

// line is what the oracle of the walk knows of an execution in the queue.
type line struct {
	id       base.GivenID
	at       base.Time // a moment for each
	priority int
	epoch    int // polls before it was filed
	by       int // the process that filed it
}

// before reports whether it stands before another one (S6).
func (l line) before(other line) bool {
	return l.priority > other.priority || l.priority == other.priority && l.at < other.at
}

// A walk of submits, changes of priority and claims over three processes, one call at a time, with all hints lost: no claim passes over
// work that stood better when its process last polled, or that this process filed itself; and an empty answer means that there is none.
func TestS6_SI16_claims_of_several_processes_without_hints_follow_the_order_as_of_the_last_poll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) { walkOrder(t, w, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func walkOrder(t *testing.T, w *world, rng *rand.Rand) {
	all := w.deafProcesses(3)
	var queued []line
	epoch := 0
	for step := range 250 {
		p := rng.IntN(len(all))
		switch n := rng.IntN(20); {
		case n == 0:
			w.polled(all...)
			epoch++
		case n < 10 || len(queued) < 10:
			w.turn(1)
			s := core.Submission{Kind: fmt.Sprint("k", rng.IntN(3)), Priority: rng.IntN(4)}
			id := must(all[p].e.Submit(w.ctx(), client, s))(t).ID.Given()
			queued = append(queued, line{id, w.now(), s.Priority, epoch, p})
		case n == 10:
			i := rng.IntN(len(queued))
			must(all[p].e.SetPriority(w.ctx(), operator, queued[i].id, 5, engine.Operator{}))(t)
			queued[i].priority, queued[i].epoch, queued[i].by = 5, epoch, p
		default:
			queued = claimInOrder(t, w, all, p, step, epoch, queued)
		}
	}
}

// claimInOrder claims at one of the processes and checks what it gets.
func claimInOrder(t *testing.T, w *world, all []*process, p, step, epoch int, queued []line) []line {
	t.Helper()
	got := all[p].next(0)
	at := slices.IndexFunc(queued, func(l line) bool { return l.id == got })
	if at < 0 {
		t.Fatalf("step %d: process %d got %v, which is not queued", step, p, got)
	}
	for _, better := range queued {
		if better.before(queued[at]) && (better.epoch < epoch || better.by == p) {
			t.Fatalf("step %d: process %d got %+v before %+v", step, p, queued[at], better)
		}
	}
	return slices.Delete(queued, at, at+1)
}
