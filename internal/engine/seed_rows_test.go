package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What docs/seed-coverage.md says that core alone decides, shown on the stores.

func TestW6_L36_a_suspend_after_the_lapse_counts_and_one_of_another_epoch_is_stale(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.pass(base.Minute)
		w.becomes(given(task), core.Ready)
		other := waitFor(task, atA, func(c *core.SuspendCommand) { c.Fence.Epoch++ })
		w.untouched(given(task), func() error { _, err := w.e.Suspend(w.ctx(), client, given(task), other); return err }, base.CodeStaleLease)
		w.suspend(task, atA)
		w.is(given(task), core.Suspended, core.WaitingForSignal)

		late := w.started(core.Submission{Kind: "late"})
		w.pass(base.Minute)
		w.becomes(given(late), core.Ready)
		w.claimKind("late")
		_, err := w.e.Suspend(w.ctx(), client, given(late), waitFor(late, atA))
		refused(t, err, base.CodeStaleLease)
	})
}

func TestW56_a_key_of_a_suspend_is_good_for_its_lease_and_its_request_alone(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		s := w.suspend(task, goAtA, named("wait"))
		again := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, goAtA, named("wait"))))(t)
		same(t, "its holder gets the answer", []any{again.SuspensionID, again.Tokens[0].Reveal()}, []any{s.SuspensionID, s.Tokens[0].Reveal()})
		w.untouched(id, func() error {
			_, err := w.e.Suspend(w.ctx(), client, id, waitFor(task, atA, named("wait")))
			return err
		}, base.CodeIdempotencyConflict)
		stranger := w.started(core.Submission{Kind: "stranger"})
		got, err := w.e.Suspend(w.ctx(), client, id, waitFor(stranger, goAtA, named("wait")))
		refused(t, err, base.CodeExecutionNotActive)
		same(t, "sees no waitpoint", []int{len(got.Waitpoints), len(got.Tokens)}, []int{0, 0})
	})
}

// listed are the waitpoints of an execution as a list shows them.
func (w *world) listed(id base.GivenID, state string) []core.WaitpointView {
	w.t.Helper()
	return must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Execution: &id, State: state}))(w.t).Items
}

func TestW42_W45_W50_waitpoints_of_a_suspend_as_they_are_shown(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		names := `{"type":"all_of","members":[{"type":"single","waitpoint_key":"a","name":"y"},{"type":"single","waitpoint_key":"a","name":"x"},` +
			`{"type":"single","waitpoint_key":"a","name":"y"},{"type":"single","waitpoint_key":"a"},{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a"]}]}`
		for text, required := range map[string][]string{names: {"y", "x"}, operatorOnly: {"__operator_only__"}, timeoutOnly: {"__timeout_only__"}} {
			task := w.started(core.Submission{})
			w.suspend(task, text, timingOut(5000, "fail"), func(c *core.SuspendCommand) {
				if len(c.Waitpoints) == 0 {
					c.Waitpoints = []core.Binding{{}}
				}
			})
			views := w.listed(given(task), "")
			same(t, "one", len(views), 1)
			same(t, "active at once, to the timeout", []any{views[0].State, views[0].ExpiresAt}, []any{core.WaitpointActive, w.now().Add(5000)})
			same(t, "required names", views[0].RequiredNames, required)
			if views[0].Key == "" {
				t.Error("a binding without a key has none")
			}
		}
	})
}

func TestW36_W50_a_waitpoint_is_pending_until_a_suspend_adopts_it(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		create := func(c core.CreateWaitpointCommand) func() error {
			return func() error { _, err := w.e.CreateWaitpoint(w.ctx(), client, id, c); return err }
		}
		stale := fence(task)
		stale.Epoch++
		w.untouched(id, create(core.CreateWaitpointCommand{Fence: stale, Key: "a"}), base.CodeStaleLease)
		for _, expiry := range []base.Millis{0, -1, 31_536_000_001} {
			w.untouched(id, create(core.CreateWaitpointCommand{Fence: fence(task), Key: "a", ExpiresInMS: &expiry}), base.CodeInvalidWaitpoint)
		}
		a, b := w.pending(task, "a"), w.pending(task, "b")
		states := func() (all []string) {
			for _, view := range w.listed(id, "") {
				all = append(all, view.Key+" "+view.State)
			}
			slices.Sort(all)
			return all
		}
		same(t, "no names are required", len(w.listed(id, "")[0].RequiredNames), 0)
		same(t, "pending", states(), []string{"a " + core.WaitpointPending, "b " + core.WaitpointPending})
		s := w.suspend(task, atA, adopting(a.ID))
		same(t, "the adopted one is active", states(), []string{"a " + core.WaitpointActive, "b " + core.WaitpointPending})
		w.signalled(s, "go")
		same(t, "closed ones are not listed", states(), []string{"b " + core.WaitpointPending})
		same(t, "but if asked for", len(w.listed(id, "all")), 2)
		_ = b
	})
}

func TestW80_WI17_a_claim_of_resumed_work_keeps_attempt_and_start(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		before := *task.Execution
		s := w.suspend(task, atA)
		w.turn(5000)
		w.signalled(s, "go")
		w.turn(5000)
		r := ask()
		r.TTL = 12_345
		again := w.claimAs(r).Execution
		same(t, "the attempt", []any{again.Attempt.ID, again.Attempt.Index, again.Attempt.StartedAt}, []any{before.Attempt.ID, before.Attempt.Index, before.Attempt.StartedAt})
		same(t, "the first start", []base.Time{again.StartedAt, again.RunStartedAt}, []base.Time{before.StartedAt, before.RunStartedAt})
		same(t, "the epoch", again.LeaseEpoch, before.LeaseEpoch+1)
		same(t, "a lease of its own", []any{again.Lease.ID != before.Lease.ID, again.Lease.TTL, again.Lease.ExpiresAt}, []any{true, base.Millis(12_345), w.now().Add(12_345)})
		same(t, "running", again.Status, core.Running)
	})
}

func TestL108_L145_a_cancel_after_another_end_changes_nothing_and_each_end_is_told_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ends := map[string]func(engine.Task){
			"complete": func(task engine.Task) { w.complete(task) },
			"fail":     func(task engine.Task) { w.fail(task, "permanent") },
		}
		for how, end := range ends {
			task := w.started(core.Submission{Kind: how})
			end(task)
			w.untouched(given(task), func() error {
				_, err := w.e.Cancel(w.ctx(), client, given(task), nil, "client", engine.Operator{})
				return err
			}, base.CodeExecutionNotActive)
			same(t, how+" is reported once", w.count(given(task), "execution.completed"), 1)
		}
		id := w.submit(core.Submission{})
		w.cancel(id)
		w.cancel(id) // again is a success that changes nothing
		same(t, "a cancel is reported once", w.count(id, "execution.completed"), 1)
	})
}

func TestW1_L5_every_moment_of_a_command_is_one_reading_of_the_stores_clock(t *testing.T) {
	t.Parallel()
	onRunningClock(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		x := w.get(id)
		same(t, "a submit", []base.Time{x.QueuedAt, x.StatusSince, x.LastMutationAt}, []base.Time{x.CreatedAt, x.CreatedAt, x.CreatedAt})
		task := w.claim()
		got := task.Execution
		same(t, "a claim", []base.Time{got.Attempt.StartedAt, got.StartedAt, got.LastMutationAt, got.Lease.ExpiresAt.Add(-got.Lease.TTL)},
			[]base.Time{got.Lease.AcquiredAt, got.Lease.AcquiredAt, got.Lease.AcquiredAt, got.Lease.AcquiredAt})
		s := w.suspend(task, twoApprovers)
		must(w.approve("ann", id, core.ApproveCommand{WaitpointID: s.Waitpoints[0].ID, Name: "approved"}))(t)
		seen := w.observed(id)
		told := w.events(engine.EventFilter{Kinds: []string{"signal.accepted"}})
		same(t, "an approval", []base.Time{told[0].At, w.get(id).LastMutationAt}, []base.Time{seen.Signals[0].AcceptedAt, seen.Signals[0].AcceptedAt})
	})
}

// onRunningClock runs a test with a signing key on every store, each with a clock that runs on with every reading.
func onRunningClock(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	onSigning(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		ok(t, w.store.Close())
		w.ticks = &atomic.Int64{}
		w.store = w.openStore()
		w.e = w.openEngine(w.store)
		f(t, w)
	})
}

// failing is a store that cannot be reached while it is down.
type failing struct {
	store.Store
	down atomic.Bool
}

var errDown = &store.Fault{Kind: store.Unavailable, Err: errors.New("the store is down")}

func (f *failing) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if f.down.Load() {
		return nil, nil, errDown
	}
	return f.Store.Begin(ctx, want)
}

func (f *failing) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if f.down.Load() {
		return nil, errDown
	}
	return f.Store.Read(ctx, want)
}

func TestS30_L142_a_store_that_fails_says_nothing_of_a_grant(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		f := &failing{Store: w.store}
		w.store = f
		w.e = w.openEngine(f)
		g := w.granted(core.Submission{})
		f.down.Store(true)
		refused(t, w.verify(g), base.CodeStoreUnavailable)
		f.down.Store(false)
		ok(t, w.verify(g))
	})
}

func TestU26_the_flow_of_an_execution_is_shown_and_one_that_cannot_be_read_is_corruption(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}}})
		member, alone := flow.Members["a"].Given(), w.submit(core.Submission{})
		describe := func(id base.GivenID) (base.ID, error) {
			view, err := w.e.Describe(w.ctx(), client, id)
			if err != nil {
				return base.ID{}, err
			}
			return view.Execution.FlowID, nil
		}
		same(t, "of a member", must(describe(member))(t), w.flow(flow).Flow.ID)
		same(t, "of none", must(describe(alone))(t), base.ID{})
		_, err := describe(base.GivenID{UUID: base.UUID{1}})
		refused(t, err, base.CodeExecutionNotFound)
		w.spoil(member)
		_, err = describe(member)
		refused(t, err, base.CodeCorruption)
	})
}

func TestL130_reads_wait_for_no_command(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, _ := w.asleep(goAtA)
		cancel := newGate("cancel")
		w.cfg.Probe = cancel
		w.restart()
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.cancel(id)
		}()
		<-cancel.reached // its transaction holds the row
		w.is(id, core.Suspended, core.WaitingForSignal)
		same(t, "observed", len(w.observed(id).Signals), 0)
		same(t, "waitpoints", len(w.listed(id, "")), 1)
		close(cancel.open)
		<-done
		w.becomes(id, core.Cancelled)
	})
}
