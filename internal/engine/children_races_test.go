package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// stepping is a store that lets a test act at one step of what an engine does there: when rows were read, when a transaction has begun, when
// it has its locks, before it commits.
type stepping struct {
	store.Store
	mu    sync.Mutex
	armed bool
	left  int // steps until it acts
	act   func()

	locking func() // a transaction is about to wait for a flow
}

// at acts at a step from now on; it tells afterwards whether so many steps came.
func (s *stepping) at(step int, act func()) (came func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.left, s.act = true, step, act
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() { s.armed = false }()
		return !s.armed
	}
}

func (s *stepping) step() {
	s.mu.Lock()
	due := s.armed && s.left == 0
	if due {
		s.armed = false
	}
	s.left--
	s.mu.Unlock()
	if due {
		s.act()
	}
}

func (s *stepping) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := s.Store.Read(ctx, want)
	if len(want.Executions)+len(want.Docs) > 0 {
		s.step()
	}
	return loaded, err
}

func (s *stepping) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := s.Store.Begin(ctx, want)
	if err == nil {
		s.step()
		tx = &steppingTx{tx, s}
	}
	return tx, loaded, err
}

type steppingTx struct {
	store.Tx
	s *stepping
}

func (t *steppingTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if want.LockDocs && t.s.locking != nil {
		t.s.locking()
	}
	loaded, err := t.Tx.Load(ctx, want)
	t.s.step()
	return loaded, err
}

func (t *steppingTx) Commit(ctx context.Context, ch *store.Changes) error {
	t.s.step()
	return t.Tx.Commit(ctx, ch)
}

// rivals are two engines on one database: one does something step by step, the other comes between. On SQLite, where there is one
// process, they are the same, and what comes between waits for its turn.
func (w *world) rivals() (stepped *stepping, one, other *engine.Engine) {
	w.t.Helper()
	if w.path != "" {
		closeEngine(w.t, w.e)
		stepped = &stepping{Store: w.store}
		w.e = w.openEngine(stepped)
		return stepped, w.e, w.e
	}
	stepped = &stepping{Store: w.openStore()}
	return stepped, w.openEngine(stepped), w.e
}

// aside runs act at a step of the engine under test, and lets that go on when act is done or waits for a flow.
func aside(w *world, waits *stepping, act func() error) (run func(), done <-chan error) {
	result, blocked := make(chan error, 1), make(chan struct{})
	if waits != nil {
		waits.locking = sync.OnceFunc(func() { close(blocked) })
	}
	return func() {
		ended := make(chan struct{})
		go func() {
			result <- act()
			close(ended)
		}()
		if w.path != "" || waits == nil {
			return // it cannot come further before its turn
		}
		select {
		case <-ended:
		case <-blocked:
		}
	}, result
}

// maxSteps is more than any of these commands takes.
const maxSteps = 40

func TestF42_FI12_a_child_that_ends_at_any_step_of_the_wait_is_counted_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var ender *stepping
		if w.path == "" { // the one that ends children is watched too
			closeEngine(t, w.e)
			ender = &stepping{Store: w.store}
			w.e = w.openEngine(ender)
		}
		stepped, one, other := w.rivals()
		for step := range maxSteps {
			task := w.parent()
			w.spawn(task, "a", "b")
			w.end("a")
			child := w.claimKind("b")
			run, done := aside(w, ender, func() error {
				return second(other.Complete(w.ctx(), client, given(child), fence(child), nil))
			})
			came := stepped.at(step, run)
			got, err := one.WaitForChildren(w.ctx(), client, waitOf(task))
			ok(t, err)
			reached := came()
			if !reached {
				run()
			}
			ok(t, <-done)
			w.passes(fmt.Sprintf("step %d", step), task, got)
			if !reached {
				return
			}
		}
		t.Fatal("the wait takes more steps")
	})
}

func TestF42_FI12_a_wait_that_begins_at_any_step_of_a_childs_end_is_decided_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var waiter *stepping
		if w.path == "" {
			closeEngine(t, w.e)
			waiter = &stepping{Store: w.store}
			w.e = w.openEngine(waiter)
		}
		stepped, one, other := w.rivals()
		for step := range maxSteps {
			task := w.parent()
			w.spawn(task, "a")
			child := w.claimKind("a")
			var got engine.ChildrenWaitAnswer
			run, done := aside(w, waiter, func() (err error) {
				got, err = other.WaitForChildren(w.ctx(), client, waitOf(task))
				return err
			})
			came := stepped.at(step, run)
			ok(t, second(one.Complete(w.ctx(), client, given(child), fence(child), nil)))
			reached := came()
			if !reached {
				run()
			}
			ok(t, <-done)
			w.passes(fmt.Sprintf("step %d", step), task, got)
			if !reached {
				return
			}
		}
		t.Fatal("the end takes more steps")
	})
}

// passes follows a parent whose children have all ended to its end: it waited or not, and goes on once.
func (w *world) passes(what string, task engine.Task, got engine.ChildrenWaitAnswer) {
	w.t.Helper()
	if got.Waiting {
		back := w.claimKind("parent")
		same(w.t, what+": who", back.Execution.ID, task.Execution.ID)
		same(w.t, what+": cause", back.ChildrenCause, core.CauseChildren)
		for _, child := range back.Children {
			same(w.t, what+": outcome", child.Outcome, core.Succeeded)
		}
		wait := w.get(given(task)).Children.Wait.Join
		same(w.t, what+": counted", [2]int{wait.Satisfied, wait.N}, [2]int{len(back.Children), len(back.Children)})
		task = back
	} else {
		same(w.t, what+": state", got.State, core.WaitSatisfied)
	}
	w.complete(task)
	same(w.t, what+": ready once", w.count(given(task), "execution.ready"), map[bool]int{true: 1, false: 0}[got.Waiting])
}

func TestF42_many_children_that_end_at_once_wake_their_parent_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		task := w.parent()
		const n = 50
		r := spawnOf(task)
		for i := range n {
			r.Children = append(r.Children, core.FlowNode{Name: fmt.Sprintf("c%d", i), Kind: "child"})
		}
		w.spawnAll(r)
		claims := ask()
		claims.Kinds, claims.Max = []string{"child"}, n
		var children []engine.Task
		for len(children) < n {
			children = append(children, w.take(claims)...)
		}
		var wg sync.WaitGroup
		for i, child := range children {
			wg.Go(func() {
				if i == n/2 {
					must(engines[0].WaitForChildren(w.ctx(), client, waitOf(task)))(t)
				}
				must(engines[i%2].Complete(w.ctx(), client, given(child), fence(child), nil))(t)
			})
		}
		wg.Wait()
		back := w.claimKind("parent")
		same(t, "children", len(back.Children), n)
		same(t, "waited", w.count(given(task), "execution.waiting_children"), 1)
		same(t, "ready once", w.count(given(task), "execution.ready"), 1)
		same(t, "counted", w.get(given(task)).Children.Wait.Join.Satisfied, n)
	})
}

func TestFI13_spawns_at_once_yield_one_execution_for_each_name(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		task := w.parent()
		answers := make([]engine.SpawnAnswer, 12)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				answers[i] = must(engines[i%2].Spawn(w.ctx(), client, spawnOf(task, "a", "b", fmt.Sprintf("own%d", i))))(t)
			})
		}
		wg.Wait()
		created := 0
		for i := range answers {
			created += answers[i].Created
			same(t, "a", answers[i].Children["a"], answers[0].Children["a"])
			same(t, "b", answers[i].Children["b"], answers[0].Children["b"])
		}
		same(t, "created", created, 2+len(answers))
		f := w.childrenFlow(given(task))
		same(t, "members", f.Nodes, 2+len(answers))
		same(t, "revision (F17)", f.Revision, int64(len(answers)))
	})
}

func TestF28_FI12_a_parent_that_another_transaction_holds_is_told_afterwards(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		stepped, one, other := w.rivals()
		for step := range 3 { // begun, locked, about to commit
			task := w.parent()
			w.spawn(task, "a")
			w.parked(task)
			child := w.claimKind("a")
			came := stepped.at(step, func() {
				must(other.Complete(w.ctx(), client, given(child), fence(child), nil))(t)
			})
			must(one.SetPriority(w.ctx(), operator, given(task), step+1, engine.Operator{}))(t)
			same(t, "it was held", came(), true)
			back := w.claimKind("parent")
			same(t, "cause", back.ChildrenCause, core.CauseChildren)
			w.complete(back)
		}
	})
}

func TestL34_FI13_whatever_became_of_a_call_the_same_call_again_gets_one_answer(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		onStores(t, func(t *testing.T, w *world) {
			for _, name := range []string{"spawn", "wait_for_children"} {
				lost := &breaks{name: name, written: written}
				w.cfg.Probe = lost
				w.restart()
				task := w.parent()
				c := client
				c.RequestKey = "k"
				call := func() (any, error) { return w.e.Spawn(w.ctx(), c, spawnOf(task, "a", "b")) }
				if name == "wait_for_children" {
					w.spawn(task, "a")
					call = func() (any, error) { return w.e.WaitForChildren(w.ctx(), c, waitOf(task)) }
				}
				lost.armed.Store(true)
				same(t, "unknown", base.CodeOf(second(call())) == base.CodeTimeout, written)
				same(t, "something was lost", lost.armed.Load(), false)
				told := len(w.events(engine.EventFilter{}))
				first := must(call())(t)
				if spawned, ok := first.(engine.SpawnAnswer); ok {
					same(t, "created", spawned.Created, 2)
				}
				same(t, "what was written was told", len(w.events(engine.EventFilter{})) == told, written)
				same(t, "the same answer", must(call())(t), first)
				w.cancel(given(task))
				w.followed() // its children end behind it, and are told of
			}
		})
	}
}
