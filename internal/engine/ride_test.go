package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// held acts once, when a commit is decided and not yet written.
type held struct{ act func() }

// BeforeCommit acts at the first commit.
func (h *held) BeforeCommit([]string) error {
	if act := h.act; act != nil {
		h.act = nil
		act()
	}
	return nil
}

// AfterCommit lets everything pass.
func (*held) AfterCommit([]string) error { return nil }

// rides lets a claim for so many come while a commit is under way, and then commands. The queue has what was submitted before.
func rides(t *testing.T, most int, f func(w *world, together func(commands ...func()) engine.ClaimAnswer)) {
	t.Helper()
	gate := &held{}
	onAlone(t, engine.Config{NoTimers: true, PollInterval: time.Hour, Probe: gate}, func(t *testing.T, w *world) {
		w.submit(core.Submission{Lane: "gate"}) // its class is known
		f(w, func(commands ...func()) engine.ClaimAnswer {
			var answer <-chan engine.ClaimAnswer
			var all sync.WaitGroup
			gate.act = func() {
				r := ask()
				r.Max = most
				answer = w.claiming(r)
				eventually(t, "it waits", func() bool { return gauge(t, w.e, metrics.ClaimWaiters) == 1 })
				for i, command := range commands {
					all.Go(command)
					eventually(t, "it queues", func() bool { return gauge(t, w.e, metrics.CommitQueueDepth) == float64(i+1) })
				}
			}
			w.submit(core.Submission{Lane: "gate"})
			all.Wait()
			return <-answer
		})
	})
}

func TestS16_a_claim_rides_along_with_the_commit_of_an_ending(t *testing.T) {
	t.Parallel()
	rides(t, 1, func(w *world, together func(...func()) engine.ClaimAnswer) {
		task := w.started(core.Submission{})
		queued := w.submit(core.Submission{})
		answer := together(func() { ok(w.t, w.completing(task)) })
		same(w.t, "claimed", given(answer.Tasks[0]), queued)
		same(w.t, "one commit", w.commitOf(queued, "lease.acquired"), w.commitOf(given(task), "execution.completed"))
	})
}

func TestS18_what_a_commit_files_stands_in_its_place_for_the_claims_that_ride_along(t *testing.T) {
	t.Parallel()
	rides(t, 2, func(w *world, together func(...func()) engine.ClaimAnswer) {
		w.complete(w.started(core.Submission{Kind: "known"}))
		queued := w.submit(core.Submission{})
		w.turn(1)
		behind := w.submit(core.Submission{})
		w.turn(1)
		var best, last base.GivenID
		answer := together(
			func() {
				best = w.submit(core.Submission{Kind: "known", Priority: 5, Input: core.Payload{Data: []byte("best")}})
			},
			func() { last = w.submit(core.Submission{}) },
		)
		same(w.t, "claimed", []base.GivenID{given(answer.Tasks[0]), given(answer.Tasks[1])}, []base.GivenID{best, queued})
		same(w.t, "its input", string(answer.Tasks[0].Execution.Input.Data), "best")
		same(w.t, "one commit", w.commitOf(best, "lease.acquired"), w.commitOf(best, "execution.submitted"))
		same(w.t, "and the other", w.commitOf(queued, "lease.acquired"), w.commitOf(best, "execution.submitted"))
		for _, id := range []base.GivenID{behind, last} {
			w.is(id, core.Ready, core.WaitingForWorker)
			same(w.t, "the next", given(w.claim()), id)
		}
	})
}

func TestS36_claims_do_not_ride_along_with_a_change_of_the_rules(t *testing.T) {
	t.Parallel()
	rides(t, 1, func(w *world, together func(...func()) engine.ClaimAnswer) {
		w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 5})
		task := w.started(attached(use("mail")))
		free := w.submit(core.Submission{})
		w.turn(1)
		urgent := attached(use("mail"))
		urgent.Priority = 1
		blocked := w.submit(urgent)
		answer := together(func() { w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 1}) })
		same(w.t, "claimed", given(answer.Tasks[0]), free)
		w.blockedOn(blocked, "slots:mail")
		w.complete(task)
	})
}
