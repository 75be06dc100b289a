package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A limit per user has as many keys as there are users, each a class with a queue of its own. These tests count work instead of timing it:
// it must not depend on how many keys there are.

const (
	someKeys = 400 // more than are simply all asked
	manyKeys = 12_000
)

// asking is a store that counts the queues which are asked for rows and the rows that transactions get, and remembers the longest poll.
type asking struct {
	store.Store
	queues, polled, rows atomic.Int64
}

func (a *asking) count(want store.Want) { a.queues.Add(int64(len(want.Pick) + len(want.Blocks))) }

func (a *asking) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	a.count(want)
	tx, loaded, err := a.Store.Begin(ctx, want)
	if err == nil {
		a.rows.Add(int64(len(loaded.Picked)))
	}
	return askingTx{tx, a}, loaded, err
}

func (a *asking) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	a.count(want)
	return a.Store.Read(ctx, want)
}

func (a *asking) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	a.polled.Store(max(a.polled.Load(), int64(len(ask.Queues))))
	return a.Store.Poll(ctx, ask)
}

type askingTx struct {
	store.Tx
	a *asking
}

func (t askingTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	t.a.count(want)
	return t.Tx.Load(ctx, want)
}

// countingQueues opens the world's engine on a store that counts.
func (w *world) countingQueues() *asking {
	w.t.Helper()
	w.unaudited = true
	closeEngine(w.t, w.e)
	a := &asking{Store: w.store}
	w.store = a
	w.e = w.openEngine(a)
	return a
}

// keyed are the ways to have many keys.
var keyed = map[string]struct {
	set func(w *world)
	of  func(key string) core.Submission
}{
	"fairness": {
		func(w *world) { w.lane("default", core.LaneSettings{Fairness: "key"}) },
		fairKey,
	},
	"quota": {
		func(w *world) { w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1, PerKey: true}) },
		func(key string) core.Submission { return attached(core.QuotaUse{Quota: "q", Key: key}) },
	},
}

// submitEach submits one execution of each key from..to-1.
func (w *world) submitEach(of func(key string) core.Submission, from, to int) {
	w.t.Helper()
	for some := from; some < to; some += 1000 {
		var all []core.Submission
		for i := some; i < min(some+1000, to); i++ {
			s := of(fmt.Sprintf("user%06d", i))
			s.Kind = cmp.Or(s.Kind, "k")
			all = append(all, s)
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(w.t) {
			ok(w.t, item.Err)
		}
	}
}

// takeWaiting claims exactly n executions, by calls that wait.
func (w *world) takeWaiting(n, most int) (tasks []engine.Task) {
	w.t.Helper()
	for len(tasks) < n {
		r := ask()
		r.Max, r.Wait = min(most, n-len(tasks)), patience
		some := w.take(r)
		if len(some) == 0 {
			w.t.Fatalf("%d of %d came", len(tasks), n)
		}
		tasks = append(tasks, some...)
	}
	return tasks
}

func TestS18_a_pick_asks_no_more_queues_when_there_are_more_keys(t *testing.T) {
	t.Parallel()
	for name, way := range keyed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
				way.set(w)
				a := w.countingQueues()
				asked := func(keys, from int) int64 {
					w.submitEach(way.of, from, keys)
					w.takeWaiting(100, 10) // what is new to the picker is looked at once
					before := a.queues.Load()
					w.takeWaiting(100, 10)
					return a.queues.Load() - before
				}
				few := asked(someKeys, 0)
				if many := asked(scaled(manyKeys), someKeys); many > 2*few || !underRaceDetector && many > 10*100 { // the detector's few keys are simply all asked
					t.Fatalf("%d queues were asked for ten calls of ten with %d keys, %d with %d", many, scaled(manyKeys), few, someKeys)
				}
			})
		})
	}
}

// All keys of the quota are in one turn, of which nothing may be given while the heads of some of its queues are not known.
func TestS18_a_claim_after_a_start_locks_no_rows_that_it_cannot_give(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		way := keyed["quota"]
		way.set(w)
		w.submitEach(way.of, 0, scaled(manyKeys))
		a := w.countingQueues() // nothing is known of any queue now
		w.takeWaiting(100, 100)
		if rows := a.rows.Load(); rows > 2*100 {
			t.Errorf("%d rows were locked to give 100", rows)
		}
	})
}

func TestS71_a_poll_asks_for_a_bounded_number_of_queues_however_many_keys_are_known(t *testing.T) {
	t.Parallel()
	for name, way := range keyed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, engine.Config{}, func(t *testing.T, w *world) {
				way.set(w)
				a := w.countingQueues()
				w.submitEach(way.of, 0, 5000)
				w.takeWaiting(5000, 1000)
				most := map[string]int64{"fairness": 256, "quota": 3 * 256}[name] // with a quota three queues for each key
				if w.url != "" {
					most *= 16
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				r := ask()
				r.Wait = time.Minute
				wg.Go(func() { _, _ = w.e.Claim(ctx, client, r) })
				eventually(t, "it waits", func() bool { return w.e.WaitingClaims() == 1 })
				eventually(t, "a poll asks", func() bool { return a.polled.Load() > 0 })
				if n := a.polled.Load(); n > most {
					t.Fatalf("%d queues in one poll, want at most %d", n, most)
				}
			})
		})
	}
}

func TestS24_thousands_of_keys_take_turns_by_weight_and_name_exactly(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const keys, rows, heavy = 2500, 3, "user000007"
		w.lane("default", core.LaneSettings{Fairness: "key", FairnessWeights: map[string]int{heavy: 3}})
		for range rows {
			w.submitEach(fairKey, 0, keys)
		}
		random := rand.New(rand.NewPCG(24, 0))
		var got []string
		for len(got) < keys+200 {
			for _, task := range w.takeWaiting(1+random.IntN(400), 400) {
				got = append(got, task.Execution.Class.FairnessKey)
			}
		}
		picks := make([]int, keys)
		for i, key := range got { // to the smallest v, ties by the key's text
			best, least := -1, 0.0
			for at := range picks {
				v := float64(picks[at])
				if at == 7 {
					v /= 3
				}
				if picks[at] < rows && (best < 0 || v < least) {
					best, least = at, v
				}
			}
			same(t, fmt.Sprintf("pick %d", i), key, fmt.Sprintf("user%06d", best))
			picks[best]++
		}
	})
}

func TestS25_calls_of_different_filters_share_the_turns_of_thousands_of_keys(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const keys = 1500
		w.lane("default", core.LaneSettings{Fairness: "key"})
		kind := func(kind string) func(string) core.Submission {
			return func(key string) core.Submission { s := fairKey(key); s.Kind = kind; return s }
		}
		w.submitEach(kind("a"), 0, keys)
		w.submitEach(kind("b"), 0, keys)
		served := map[string]int{}
		for i := range 2 * keys / 100 {
			r := ask()
			r.Max, r.Wait, r.Kinds = 100, patience, [][]string{{"a"}, {"b"}, {"a", "b"}}[i%3]
			for _, task := range w.take(r) {
				served[task.Execution.Class.FairnessKey]++
			}
			if len(served) < keys {
				continue
			}
			for key, n := range served {
				if n > 2 {
					t.Fatalf("%s was served %d times of its two", key, n)
				}
			}
		}
		same(t, "keys served", len(served), keys)
	})
}

func TestSI3_rows_of_thousands_of_queues_come_in_the_order_of_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 50, PerKey: true})
		random := rand.New(rand.NewPCG(6, 3))
		rank := map[base.GivenID]int{}
		for round := range 3 {
			some := make([]core.Submission, 1000)
			for i := range some {
				some[i] = attached(core.QuotaUse{Quota: "q", Key: fmt.Sprint(random.IntN(2000))})
				some[i].Kind, some[i].Priority = "k", random.IntN(5)
			}
			for i, item := range must(w.e.SubmitMany(w.ctx(), client, some, false))(t) {
				ok(t, item.Err)
				rank[item.ID.Given()] = some[i].Priority*10 - round // those of one call are of one moment
			}
			w.turn(1)
		}
		for left, last := len(rank), 1<<30; left > 0; {
			n := min(1+random.IntN(300), left)
			for _, task := range w.takeWaiting(n, n) {
				if rank[given(task)] > last {
					t.Fatalf("rank %d came behind %d", rank[given(task)], last)
				}
				last = rank[given(task)]
			}
			left -= n
		}
	})
}

func TestS46_of_thousands_of_blocked_keys_those_with_room_are_asked_alone(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		const keys = 2000
		keyed["quota"].set(w)
		a := w.countingQueues()
		w.submitEach(keyed["quota"].of, 0, keys)
		running := w.takeWaiting(keys, 1000)
		w.submitEach(keyed["quota"].of, 0, keys)
		for last := int64(-1); a.queues.Load() != last; { // until all are known to have no room
			last = a.queues.Load()
			r := ask()
			r.Max, r.Wait = 1000, 50*time.Millisecond
			if tasks := w.take(r); len(tasks) > 0 {
				t.Fatalf("%d started beside the first of their keys", len(tasks))
			}
		}
		before := a.queues.Load()
		for i := range 5 {
			w.complete(running[i])
			same(t, "key", w.takeWaiting(1, 10)[0].Execution.Policy.Quotas[0].Key, running[i].Execution.Policy.Quotas[0].Key)
		}
		if n := a.queues.Load() - before; n > 500 {
			t.Fatalf("%d queues were asked to start five", n)
		}
	})
}

func TestS5_a_place_that_comes_free_leads_to_no_look_at_thousands_of_queues(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		a := w.countingQueues()
		w.lane("default", core.LaneSettings{Fairness: "key", MaxConcurrent: 10})
		w.submitEach(fairKey, 0, 2000)
		running := w.takeWaiting(10, 10)
		before := a.queues.Load()
		for i := range 5 {
			w.complete(running[i])
			w.takeWaiting(1, 1)
		}
		if n := a.queues.Load() - before; n > 1000 {
			t.Fatalf("%d queues were asked to start five", n)
		}
	})
}

func TestS24_what_was_kept_for_keys_is_given_back_when_their_work_is_done(t *testing.T) {
	t.Parallel()
	for name, way := range keyed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				const keys = 2000
				way.set(w)
				w.submitEach(way.of, 0, keys)
				if kept := w.e.KeptForKeys(); kept.Queues < keys {
					t.Fatalf("%+v while all wait", kept)
				}
				for _, task := range w.takeWaiting(keys, 1000) {
					w.complete(task)
				}
				w.nothing()
				kept := w.e.KeptForKeys()
				if kept.Candidates > 0 || kept.Full > 0 || kept.News > 3*keys {
					t.Fatalf("%+v is left", kept)
				}
			})
		})
	}
}

func TestL141_queues_of_classes_that_are_gone_are_forgotten(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		const keys = 300
		keyed["fairness"].set(w)
		w.submitEach(fairKey, 0, keys)
		for _, task := range w.takeWaiting(keys, 1000) {
			w.complete(task)
			ok(t, w.e.Delete(w.ctx(), operator, given(task), engine.Operator{}))
		}
		w.pass(aMinute)
		eventually(t, "the classes are retired", func() bool { _, retired := w.classes(); return len(retired) == keys })
		w.pass(aRound)
		eventually(t, "the classes are gone", func() bool { all, _ := w.classes(); return len(all) == 0 })
		w.submit(fairKey("another"))
		w.takeWaiting(1, 1)
		eventually(t, "so are their queues", func() bool { return w.e.KeptForKeys().Queues <= 1 })
	})
}

// apart runs a test on every store, one after the other and beside no other test.
func apart(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), path: filepath.Join(t.TempDir(), "engine.db"), unaudited: true}
		w.begin(f)
	})
	if !underRaceDetector {
		t.Run("postgres", func(t *testing.T) {
			w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), url: cluster.Database(t), unaudited: true}
			w.begin(f)
		})
	}
}

// least measures several times and returns the smallest result: what the engine does in the background only adds to it.
func least[N float64 | uint64](times int, measure func() N) N {
	smallest := measure()
	for range times - 1 {
		smallest = min(smallest, measure())
	}
	return smallest
}

// Not parallel: allocations are the process's.
func TestS18_a_claim_allocates_no_more_when_there_are_more_keys(t *testing.T) {
	for _, name := range []string{"fairness", "quota"} {
		apart(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
			keyed[name].set(w)
			claims := func() float64 {
				w.takeWaiting(200, 50) // what is new to the picker is looked at once
				eventually(t, "what was submitted is searchable", func() bool {
					seen := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t)
					return seen.Projected >= seen.LogEnd
				})
				return least(5, func() float64 { return testing.AllocsPerRun(1, func() { w.takeWaiting(10, 10) }) })
			}
			w.submitEach(keyed[name].of, 0, 2*someKeys)
			few := claims()
			w.submitEach(keyed[name].of, 2*someKeys, scaled(manyKeys))
			if many := claims(); many > 2*few {
				t.Fatalf("%s: %.0f allocations for a call of ten with %d keys, %.0f with %d", name, many, scaled(manyKeys), few, 2*someKeys)
			}
		})
	}
}

// Not parallel: allocations are the process's.
func TestS1_a_new_key_allocates_no_more_beside_many(t *testing.T) {
	apart(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		keyed["fairness"].set(w)
		next := 0
		bytes := func() uint64 {
			submit := func() { w.submit(fairKey(fmt.Sprint("new", next))); next++ }
			submit()
			return least(5, func() uint64 {
				must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t) // the search rows are up to date
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				testing.AllocsPerRun(2, submit)
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			})
		}
		w.submitEach(fairKey, 0, someKeys)
		few := bytes()
		w.submitEach(fairKey, someKeys, scaled(manyKeys))
		if many := bytes(); many > 2*few+1<<20 {
			t.Fatalf("%d bytes for three new keys beside %d, %d beside %d", many, scaled(manyKeys), few, someKeys)
		}
	})
}
