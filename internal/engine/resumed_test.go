package engine_test

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// readsOfWaits is a store that counts the looks at records of waits and at their payloads.
type readsOfWaits struct {
	store.Store
	n atomic.Int64
}

func (r *readsOfWaits) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if len(want.Owned) > 0 || slices.ContainsFunc(want.Docs, func(ref store.DocRef) bool { return ref.Owner != "" }) {
		r.n.Add(1)
	}
	return r.Store.Read(ctx, want)
}

// toldWait fails the test unless the task was told how its wait ended.
func toldWait(t *testing.T, task engine.Task, at engine.SuspendAnswer, cause core.SuspensionCause, signals ...string) {
	t.Helper()
	if task.Resumed == nil {
		t.Fatalf("a %s task was not told of its wait", task.How)
	}
	same(t, "wait", [3]any{task.How, task.Resumed.ID, task.Resumed.Cause}, [3]any{"resumed", at.SuspensionID, cause})
	same(t, "signals", heard(task.Resumed.Signals), append([]string{}, signals...))
}

func TestW80_a_claim_of_resumed_work_gets_how_the_wait_ended(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		continuation := everyByteOf(50_000)
		_, at := w.asleep(goAtA, func(c *core.SuspendCommand) {
			c.Continuation = &core.Payload{ContentType: "text/c", Data: continuation, Size: len(continuation)}
		})
		w.signalled(at, "no")
		w.signalled(at, "go")
		r := ask()
		r.RequestKey = "r1"
		fresh := w.submit(core.Submission{})
		r.Max = 2
		for range 2 { // a repeat gets the same
			tasks := w.take(r)
			same(t, "tasks", len(tasks), 2)
			for _, task := range tasks {
				if given(task).UUID == fresh.UUID {
					same(t, "of work that never waited", task.Resumed, nil)
					continue
				}
				toldWait(t, task, at, core.CauseSignal, "no: from no", "go: from go")
				same(t, "continuation", bytes.Equal(task.Resumed.Continuation.Data, continuation), true)
			}
		}
	})
}

func TestW80_targeted_claims_tell_it_too_and_claims_after_something_else_do_not(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.asleep(atA)
		_, _, err := w.resume(id, core.ResumeCommand{})
		ok(t, err)
		resumed := must(w.e.ClaimResumed(w.ctx(), client, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "w1"}))(t)
		toldWait(t, resumed, at, core.CauseOperator)
		w.release(resumed)
		again := w.claim()
		same(t, "after a release", [2]any{again.How, again.Resumed == nil}, [2]any{"resumed", true})

		at = w.suspend(again, atA)
		w.signalled(at, "x")
		taken := must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{}))(t)
		toldWait(t, taken, at, core.CauseSignal, "x: from x")
		w.pass(taken.Execution.Lease.ExpiresAt.Sub(w.now()) + taken.Execution.Policy.LeaseGraceMS + 1)
		w.becomes(id, core.Ready)
		reclaimed := w.claim()
		same(t, "a new attempt", [2]any{reclaimed.How, reclaimed.Resumed == nil}, [2]any{"reclaimed", true})
	})
}

func TestW80_many_resumed_tasks_cost_two_looks_and_others_none(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		const n = 7
		var waits []engine.SuspendAnswer
		for range n {
			_, at := w.asleep(atA)
			waits = append(waits, at)
		}
		for _, at := range waits {
			w.signalled(at, "x")
		}
		reads := &readsOfWaits{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(reads)
		r := ask()
		r.Max = n
		tasks := w.take(r)
		same(t, "tasks", len(tasks), n)
		for _, task := range tasks {
			same(t, "signals", heard(task.Resumed.Signals), []string{"x: from x"})
		}
		same(t, "looks at waits", reads.n.Load(), 2)
		w.submitMany(n, core.Submission{})
		same(t, "fresh tasks", len(w.take(r)), n)
		same(t, "looks at waits after that", reads.n.Load(), 2)
	})
}

func TestW10_a_wait_that_cannot_be_read_keeps_no_other_task_from_its_worker(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		bad, wait := w.asleep(atA)
		good, other := w.asleep(atA)
		w.signalled(wait, "x")
		w.signalled(other, "x")
		owner := bad.UUID.String()
		docs := must(w.store.Read(w.ctx(), store.Want{Owned: []store.Owned{{Kind: 15, Owner: owner}}}))(t).Owned
		broken := docs[store.Owned{Kind: 15, Owner: owner}][0]
		broken.Body = []byte("{")
		w.tamper(store.Changes{PutDocs: []store.Doc{broken}})
		r := ask()
		r.Max = 2
		tasks := w.take(r)
		same(t, "tasks", [2]any{len(tasks), given(tasks[0]).UUID}, [2]any{1, good.UUID})
		_, err := w.e.Observe(w.ctx(), client, bad)
		refused(t, err, base.CodeCorruption)
	})
}
