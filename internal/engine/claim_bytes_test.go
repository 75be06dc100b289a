package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// largeInput is the largest that the default limits allow: sixteen of them are what one answer to a claim may carry.
var largeInput = core.Payload{Data: make([]byte, 4<<20)}

// submitLarge fills an answer to the last byte and files one byte behind it.
func (w *world) submitLarge() (full []base.GivenID, behind base.GivenID) {
	w.t.Helper()
	full = w.submitMany(16, core.Submission{Priority: 1, Input: largeInput})
	return full, w.submit(core.Submission{Input: core.Payload{Data: []byte("x")}})
}

// fillsOneAnswer claims far more than one answer carries.
func (w *world) fillsOneAnswer(full []base.GivenID, behind base.GivenID) {
	w.t.Helper()
	r := ask()
	r.Max = 100
	got := map[base.GivenID]bool{}
	for _, task := range w.take(r) {
		got[given(task)] = true
		same(w.t, "input", len(task.Execution.Input.Data), len(largeInput.Data))
	}
	same(w.t, "as many as have room", len(got), len(full))
	for _, id := range full {
		same(w.t, id.UUID.String(), got[id], true)
	}
	w.is(behind, core.Ready, core.WaitingForWorker)
	rest := w.take(r)
	same(w.t, "the next answer", [2]any{len(rest), given(rest[0])}, [2]any{1, behind})
}

func TestS21_an_answer_to_a_claim_carries_64_MiB_of_input_and_not_a_byte_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.fillsOneAnswer(w.submitLarge())
	})
}

func TestS21_inputs_that_are_larger_than_those_before_are_bounded_too(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		full, behind := w.submitLarge()
		for range 23 { // until large ones are not expected any more
			first := w.submit(core.Submission{Priority: 2})
			same(t, "a small one", given(w.claim()), first)
		}
		w.fillsOneAnswer(full, behind)
	})
}

func TestS6_order_holds_where_queues_are_asked_for_fewer_rows_than_are_wanted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var all []base.GivenID
		for n := range 36 {
			kind := "few"
			if n < 12 || n%4 != 0 {
				kind = "many"
			}
			all = append(all, w.submit(core.Submission{Kind: kind, Priority: 100 - n}))
		}
		w.restart() // nothing is known of the sizes any more
		r := ask()
		r.Max = 100
		var got []base.GivenID
		for len(got) < len(all) {
			tasks := w.take(r)
			if len(tasks) == 0 {
				t.Fatalf("nothing after %d of %d", len(got), len(all))
			}
			for _, task := range tasks {
				got = append(got, given(task))
			}
		}
		same(t, "in order", got, all)
	})
}

func TestS19_a_claim_that_does_not_wait_is_not_told_empty_because_others_had_the_rows_that_were_looked_at(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Lane: "gate"})
		w.submitMany(40, core.Submission{})
		const calls = 20 // of a queue of which nothing is known, fewer rows are looked at
		b := w.interpose()
		answers := make(chan int, calls)
		b.afterBegin.set(picks, func() {
			for i := range calls {
				go func() {
					r := ask()
					r.InstanceID = fmt.Sprint("i", i)
					answer, err := w.e.Claim(w.ctx(), client, r)
					if err != nil {
						t.Error(err)
					}
					answers <- len(answer.Tasks)
				}()
			}
			eventually(t, "all wait for their turn", func() bool { return gauge(t, w.e, metrics.ClaimWaiters) == calls+1 })
		})
		r := ask()
		r.Lanes = []string{"gate"}
		same(t, "the first", len(w.take(r)), 1)
		for range calls {
			same(t, "tasks", <-answers, 1)
		}
	})
}

func TestS6_a_lane_that_opens_in_the_transaction_of_a_submit_gives_its_backlog_first(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"opened first": "open", "submitted first": "submit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unswept(t, func(t *testing.T, w *world) {
				b := w.interpose()
				w.complete(w.started(core.Submission{}))
				w.lane("default", core.LaneSettings{State: core.LanePaused})
				backlog := w.submit(core.Submission{})
				answer := w.waiting(w.e, askTwo())
				var later base.GivenID
				open := func() {
					must(w.e.SetLaneState(w.ctx(), operator, "default", core.LaneActive, engine.Operator{}))(t)
				}
				submit := func() { later = w.submit(core.Submission{Priority: -1}) }
				w.turn(1)
				if first == "open" {
					w.batched(b, open, submit)
				} else {
					w.batched(b, submit, open)
				}
				same(t, "one transaction", w.commitOf(later, "execution.submitted"), w.laneChanged())
				tasks := (<-answer).Tasks
				if len(tasks) == 1 {
					tasks = append(tasks, w.claim())
				}
				same(t, "in order", [2]base.GivenID{given(tasks[0]), given(tasks[1])}, [2]base.GivenID{backlog, later})
			})
		})
	}
}

// laneChanged is the position of the commit that told of a lane's last change.
func (w *world) laneChanged() (seq int64) {
	w.t.Helper()
	for after := int64(0); ; {
		commits := must(w.store.Log(w.ctx(), after, 1000))(w.t)
		if len(commits) == 0 {
			return seq
		}
		for _, commit := range commits {
			after = commit.Seq
			for i := range commit.Events {
				if commit.Events[i].Kind == "lane.changed" {
					seq = commit.Seq
				}
			}
		}
	}
}
