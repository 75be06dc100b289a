package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// traps makes the engine panic where a test has set one.
type traps struct {
	mu   sync.Mutex
	set  map[string]string // place, and what the row must contain
	hits int
}

func (t *traps) trap(place, row string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text, found := t.set[place]; found && strings.Contains(row, text) {
		t.hits++
		panic("a trap in " + place)
	}
}

// at sets a trap for rows whose name contains the text; "": for all.
func (t *traps) at(place, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set = map[string]string{place: text}
}

// clear takes all traps away, and returns how often the engine has panicked since.
func (t *traps) clear() (hits int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hits, t.hits, t.set = t.hits, 0, nil
	return hits
}

func (t *traps) hit() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hits
}

// onTraps runs a test on every store, with an engine that panics where the test says.
func onTraps(t *testing.T, f func(t *testing.T, w *world, traps *traps)) {
	t.Helper()
	with := func(t *testing.T, w *world) {
		set := &traps{}
		w.cfg.Trap = set.trap
		w.restart()
		f(t, w, set)
		set.clear()
	}
	onStores(t, with)
}

// asides are the rows of which events tell that they were set aside.
func (w *world) asides() (rows []string) {
	w.t.Helper()
	for _, event := range w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}}) {
		rows = append(rows, fmt.Sprint(data(w.t, event)["row"]))
	}
	return rows
}

// setAside waits until an event tells that a row was set aside.
func (w *world) setAside(row string) {
	w.t.Helper()
	eventually(w.t, row+" is set aside", func() bool { return slices.Contains(w.asides(), row) })
}

func TestS63_claims_pass_over_an_execution_that_makes_them_panic(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"pick", "claim", "gather"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			onTraps(t, func(t *testing.T, w *world, traps *traps) {
				bad := w.submit(core.Submission{Priority: 5})
				good := w.submitMany(3, core.Submission{})
				traps.at(place, bad.UUID.String())
				var got []base.GivenID
				for range good {
					got = append(got, given(w.claim()))
				}
				slices.SortFunc(good, func(a, b base.GivenID) int { return strings.Compare(a.UUID.String(), b.UUID.String()) })
				slices.SortFunc(got, func(a, b base.GivenID) int { return strings.Compare(a.UUID.String(), b.UUID.String()) })
				same(t, "the others are served", got, good)
				w.nothing()
				w.setAside(bad.UUID.String())
				same(t, "set aside", gauge(t, w.e, metrics.Quarantined) >= 1, true)
				waiting := w.waiting(w.e, ask())
				traps.clear()
				same(t, "it is tried again when its pause is over", given(w.only(waiting)), bad)
			})
		})
	}
}

func TestS63_a_claim_that_panics_with_every_row_fails_alone_and_takes_no_row_with_it(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		ids := w.submitMany(5, core.Submission{})
		traps.at("claim", "")
		_, err := w.e.Claim(w.ctx(), client, ask())
		refused(t, err, base.CodeInternal)
		traps.clear()
		for range ids {
			w.claim()
		}
	})
}

func TestS63_a_command_that_panics_fails_alone_wherever_it_does(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"apply", "gather"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			onTraps(t, func(t *testing.T, w *world, traps *traps) {
				b := w.interpose()
				ids := w.submitMany(4, core.Submission{})
				traps.at(place, ids[1].UUID.String())
				errs := make([]error, len(ids))
				var commands []func()
				for i, id := range ids {
					commands = append(commands, func() { _, errs[i] = w.e.Hold(w.ctx(), operator, id, engine.Operator{}) })
				}
				w.batched(b, commands...)
				for i, id := range ids {
					if i == 1 {
						refused(t, errs[i], base.CodeInternal)
						if strings.Contains(errs[i].Error(), "trap") {
							t.Errorf("the caller sees the panic: %v", errs[i])
						}
						continue
					}
					ok(t, errs[i])
					same(t, "held", w.get(id).Held != nil, true)
				}
				if traps.clear() == 0 {
					t.Fatal("nothing panicked")
				}
				w.hold(ids[1])
			})
		})
	}
}

func TestS63_a_timer_that_panics_is_set_aside_for_longer_each_time_and_the_others_act(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"settle", "gather"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			onTraps(t, func(t *testing.T, w *world, traps *traps) {
				ids := w.submitMany(20, core.Submission{DelayMS: ptr(int64(1000))})
				bad := ids[7]
				traps.at(place, bad.UUID.String())
				w.turn(1000)
				w.onlyStatus("k", core.Ready, 19)
				w.setAside(bad.UUID.String())
				w.turn(1100)
				eventually(t, "another try", func() bool { return len(w.asides()) == 2 })
				last := w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})[1]
				same(t, "failures", data(t, last)["failures"], any(2.0))
				traps.clear()
				w.turn(2100)
				w.becomes(bad, core.Ready)
			})
		})
	}
}

func TestS63_a_timer_of_any_kind_that_panics_is_set_aside_and_the_others_of_its_kind_act(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		for _, instance := range []string{"one", "two", "three"} {
			w.register(core.Registration{WorkerID: "w", InstanceID: instance, Lanes: []string{"default"}, MaxConcurrent: 1})
		}
		traps.at("timer:worker", "two")
		w.turn(10 * base.Minute)
		dead := func() (instances []string) {
			for _, event := range w.events(engine.EventFilter{Kinds: []string{"worker.dead"}}) {
				instances = append(instances, event.InstanceID)
			}
			slices.Sort(instances)
			return instances
		}
		eventually(t, "the others lapse", func() bool { return len(dead()) >= 2 })
		same(t, "the others", dead(), []string{"one", "three"})
		w.setAside("worker:two")
		traps.clear()
		w.turning(100, "it is tried again", func() bool { return len(dead()) == 3 })
	})
}

func TestS63_F28_the_end_of_a_member_is_kept_when_what_follows_from_it_panics(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"}, {Name: "b", Kind: "b", After: []string{"a"}}, {Name: "c", Kind: "c"}, {Name: "d", Kind: "d", After: []string{"c"}},
		}})
		a, c := w.claimKind("a"), w.claimKind("c")
		bad := flow.Members["b"].Given()
		traps.at("advance", bad.UUID.String())
		w.complete(a)
		w.is(given(a), core.Succeeded, core.Completed)
		w.complete(c)
		w.becomes(flow.Members["d"].Given(), core.Ready)
		eventually(t, "the follow-up work is set aside", func() bool { return len(w.asides()) > 0 })
		traps.clear()
		w.triedAgain(bad, core.Ready)
	})
}

func TestS63_follow_up_work_that_panics_holds_up_no_other(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		submit := func() engine.FlowAnswer {
			return w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: []core.FlowNode{{Name: "p", Kind: "p"}, {Name: "n", Flow: inner(), After: []string{"p"}}}})
		}
		one, two := submit(), submit()
		traps.at("task:begin_subflow", "")
		w.complete(w.claimKind("p"))
		eventually(t, "it is set aside", func() bool { return len(w.asides()) > 0 })
		traps.clear()
		w.complete(w.claimKind("p"))
		begun := func(flow engine.FlowAnswer) bool { return w.member(flow, "n").Children != nil }
		w.turning(100, "the other goes on, and then it does, too", func() bool { return begun(one) && begun(two) })
	})
}

func TestADR6_work_is_claimed_when_handing_it_over_panics(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"hand_over", "ride", "claim"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			onTraps(t, func(t *testing.T, w *world, traps *traps) {
				w.submit(core.Submission{})
				w.claim() // the class is known
				waiting := w.waiting(w.e, ask())
				traps.at(place, "")
				if place == "claim" {
					traps.at(place, "nothing yet")
				}
				id := w.submit(core.Submission{})
				same(t, "it is claimed", given(w.only(waiting)), id)
			})
		})
	}
}

func TestS67_a_panic_behind_a_commit_changes_no_answer(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		waiting := w.waiting(w.e, ask())
		traps.at("publish", "")
		id := w.submit(core.Submission{})
		same(t, "it is claimed", given(w.only(waiting)), id)
		if traps.clear() == 0 {
			t.Fatal("nothing panicked")
		}
		same(t, "events", w.story(id), []string{"execution.submitted", "lease.acquired"})
	})
}

func TestL131_lists_go_on_beside_an_execution_that_makes_them_panic(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		first := w.submit(core.Submission{Kind: "first"})
		traps.at("project", first.UUID.String())
		w.hold(first)
		w.submitMany(5, core.Submission{Kind: "later"})
		listed := func(f core.Filter) int {
			return len(must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: f}))(t).Items)
		}
		eventually(t, "the others are listed", func() bool { return listed(core.Filter{Kind: []string{"later"}}) == 5 })
		w.setAside(first.UUID.String())
		traps.clear()
		w.releaseHold(first)
		eventually(t, "it is listed when it changes again", func() bool { return listed(core.Filter{Kind: []string{"first"}}) == 1 })
	})
}

func TestL138_an_execution_that_makes_a_bulk_job_panic_is_counted_as_failed_and_stops_no_other(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		ids := w.submitMany(5, core.Submission{})
		traps.at("bulk", ids[2].UUID.String())
		view := w.bulk(engine.BulkRequest{Action: "cancel", IDs: ids})
		same(t, "the job", [2]int{view.Done, view.Failed}, [2]int{4, 1})
		traps.clear()
		w.is(ids[2], core.Ready, core.WaitingForWorker)
		w.is(ids[3], core.Cancelled, core.CancelledByRequest)
	})
}

func TestS69_hints_and_events_of_others_that_panic_are_made_up_for(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"hint", "hear"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{}, func(t *testing.T, w *world) {
				set := &traps{}
				w.cfg.Trap = set.trap
				w.restart()
				w.cfg.Trap = nil
				other := w.another()
				id := w.submit(core.Submission{})
				waiting := w.waiting(w.e, ask())
				same(t, "its own", given(w.only(waiting)), id)
				set.at(place, "")
				waiting = w.waiting(w.e, ask())
				answer := must(other.Submit(w.ctx(), client, core.Submission{Namespace: base.DefaultNamespace, Kind: "k"}))(t)
				same(t, "that of the other process", given(w.only(waiting)).UUID, answer.ID.UUID)
				eventually(t, "a panic", func() bool { return set.hit() > 0 })
				set.clear()
			})
		})
	}
}

// crowd counts how many pieces of follow-up work of one kind run at a time. They stay until ten of another kind are done.
type crowd struct {
	mu            sync.Mutex
	running, most int
	full          chan struct{} // closed when as many run as may
	others        int
	open          chan struct{} // closed when the others are done
}

const (
	crowdAtOnce = 4
	crowdOthers = 10
)

func (c *crowd) trap(place, _ string) {
	switch place {
	case "task:trim_history":
		c.enters()
		<-c.open
		c.leaves()
	case "task:drop_epoch":
		<-c.full
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.others++; c.others == crowdOthers {
			close(c.open)
		}
	}
}

func (c *crowd) enters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	if c.most = max(c.most, c.running); c.running == crowdAtOnce {
		select {
		case <-c.full:
		default:
			close(c.full)
		}
	}
}

func (c *crowd) leaves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

func (c *crowd) peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// leave leaves pieces of follow-up work behind that are due, each with a timer of its own.
func (w *world) leave(kind string, timer store.TimerKind, n int) {
	w.t.Helper()
	const tasks store.DocKind = 7
	ch := &store.Changes{}
	for i := range n {
		id := fmt.Sprint(kind, i)
		ch.PutDocs = append(ch.PutDocs, store.Doc{DocRef: store.DocRef{Kind: tasks, Key: id}, Body: []byte(`{"kind":"` + kind + `"}`)})
		ch.AddTimers = append(ch.AddTimers, store.Timer{At: w.now(), Kind: timer, Texts: []string{id}})
	}
	tx, _, err := w.store.Begin(w.ctx(), store.Want{})
	ok(w.t, err)
	ok(w.t, tx.Commit(w.ctx(), ch))
}

func TestS61_few_pieces_of_follow_up_work_run_at_once_and_no_kind_waits_for_another(t *testing.T) {
	t.Parallel()
	const trimHistory, dropEpoch store.TimerKind = 35, 40
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		w.leave("trim_history", trimHistory, 5000)
		w.turn(1)
		w.leave("drop_epoch", dropEpoch, crowdOthers)
		seen := &crowd{full: make(chan struct{}), open: make(chan struct{})}
		w.cfg.Trap = seen.trap
		w.e = w.openEngine(w.store)
		w.workedOff("drop_epoch")
		delayed := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.pass(1000)
		w.becomes(delayed, core.Ready)
		w.workedOff("trim_history")
		same(t, "at a time", seen.peak(), crowdAtOnce)
	})
}

func TestS63_all_rows_of_a_timer_whose_rule_fails_are_set_aside(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		ids := w.submitMany(3, core.Submission{DelayMS: ptr(int64(1000))})
		want := make([]string, len(ids))
		for i, id := range ids {
			want[i] = id.UUID.String()
		}
		slices.Sort(want)
		traps.at("settle", "")
		w.turn(1000)
		eventually(t, "all are set aside", func() bool { return len(w.asides()) >= len(ids) })
		got := w.asides()
		slices.Sort(got)
		same(t, "each once", got, want)
		traps.clear()
		w.turn(2100)
		w.onlyStatus("k", core.Ready, len(ids))
	})
}

// oneOut refuses one transaction with a command of that name, as if the database were gone for a moment.
type oneOut struct {
	name string
	done atomic.Bool
}

func (o *oneOut) BeforeCommit(commands []string) error {
	if slices.Contains(commands, o.name) && !o.done.Swap(true) {
		return errors.New("not now")
	}
	return nil
}

func (*oneOut) AfterCommit([]string) error { return nil }

func TestS63_a_timer_that_can_not_even_be_set_aside_is_tried_again(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		out := &oneOut{name: "quarantine"}
		w.cfg.Probe = out
		w.restart()
		id := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		traps.at("settle", id.UUID.String())
		w.turn(1000)
		eventually(t, "the store fails", out.done.Load)
		traps.clear()
		w.turning(100, "it is ready", func() bool { return len(w.take(ask())) == 1 })
	})
}
