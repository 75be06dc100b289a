package engine_test

import (
	"context"
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

func TestL76_arguments_existence_settling_repeats_expect_status_and_caps_are_looked_at_in_this_order(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		hold := func(id base.GivenID, o engine.Operator) error {
			_, err := w.e.Hold(w.ctx(), operator, id, o)
			return err
		}
		ready, blocked := core.Expect{Status: ptr(core.Ready)}, core.Expect{Status: ptr(core.Blocked)}
		unknown := base.GivenID{UUID: base.UUID{1}}
		refused(t, hold(unknown, engine.Operator{Reason: strings.Repeat("x", 1025)}), base.CodeInvalidArgument)
		refused(t, hold(unknown, engine.Operator{Expect: ready}), base.CodeExecutionNotFound)

		id := w.submit(core.Submission{DeadlineAt: w.now() + 1000, PolicyJSON: []byte(`{"max_replay_count":0}`)})
		first := engine.Operator{RequestKey: "k", Expect: ready}
		ok(t, hold(id, first))
		w.turn(1000)
		w.is(id, core.Blocked, core.PausedByOperator) // reads do not settle
		ok(t, hold(id, first))                        // neither what it expected nor the status is looked at again
		w.is(id, core.Expired, core.ExecutionDeadline)
		w.untouched(id, func() error { return hold(id, engine.Operator{RequestKey: "k", Expect: blocked}) }, base.CodeIdempotencyConflict)
		refusal := w.untouched(id, func() error { return hold(id, engine.Operator{Expect: blocked}) }, base.CodePreconditionFailed)
		same(t, "what is the case", refusal.Details["status"], any("expired"))
		w.untouched(id, func() error { return hold(id, engine.Operator{}) }, base.CodeExecutionNotActive)

		replay := func(id base.GivenID) func() error {
			return func() error {
				_, err := w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{})
				return err
			}
		}
		waits := w.submit(policy(`{"max_replay_count":0}`))
		w.lane("default", core.LaneSettings{State: core.LaneDisabled})
		w.untouched(waits, replay(waits), base.CodeExecutionNotTerminal)
		w.untouched(id, replay(id), base.CodeMaxReplaysExhausted)
	})
}

// refusals are the operations of the table that can be refused by status alone, as this engine offers them, under a lease of another execution.
func (w *world) refusals(id base.GivenID, f core.Fence) map[string]func() error {
	o := engine.Operator{}
	return map[string]func() error{
		"operator_claim": func() error { _, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{}); return err },
		"renew": func() error {
			return must(w.e.Renew(w.ctx(), client, []engine.LeaseRef{{ID: id, Fence: f}}))(w.t)[0].Err
		},
		"progress": func() error { return w.e.Progress(w.ctx(), client, id, f, ptr(1), nil) },
		"complete": func() error { _, err := w.e.Complete(w.ctx(), client, id, f, nil); return err },
		"fail":     func() error { _, err := w.e.Fail(w.ctx(), client, id, core.FailCommand{Fence: f}); return err },
		"delay":    func() error { _, err := w.e.Delay(w.ctx(), client, id, f, w.now()+1); return err },
		"release":  func() error { _, err := w.e.Release(w.ctx(), client, id, f, ""); return err },
		"suspend": func() error {
			_, err := w.e.Suspend(w.ctx(), client, id, core.SuspendCommand{Fence: f, Condition: parsedCondition(operatorOnly)})
			return err
		},
		"resume":       func() error { _, _, err := w.e.Resume(w.ctx(), operator, id, core.ResumeCommand{}, o); return err },
		"cancel":       func() error { _, err := w.e.Cancel(w.ctx(), operator, id, nil, "", o); return err },
		"revoke":       func() error { _, err := w.e.Revoke(w.ctx(), operator, id, engine.RevokeRequest{}, o); return err },
		"replay":       func() error { _, err := w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, o); return err },
		"set_priority": func() error { _, err := w.e.SetPriority(w.ctx(), operator, id, 7, o); return err },
		"hold":         func() error { _, err := w.e.Hold(w.ctx(), operator, id, o); return err },
		"release_hold": func() error { _, err := w.e.ReleaseHold(w.ctx(), operator, id, o); return err },
	}
}

// refusalIn is the code with which a cell refuses a stranger's fence or an operation that does not fit the status, "" if it does not.
func refusalIn(row core.Transition, status core.Status) base.Code {
	cell := row.Cell(status)
	switch {
	case status == core.Cancelled && row.Operation == "cancel":
		return "" // the same answer again
	case cell.Kind == core.CellRefuses:
		return cell.Code
	case cell.Kind != core.CellFences:
		return ""
	case status.Terminal() || status == core.Suspended:
		return base.CodeExecutionNotActive
	default:
		return base.CodeStaleLease
	}
}

func TestLC2_L78_every_refusal_of_the_table_leaves_the_record_as_it_was(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		cells, stranger := 0, fence(w.started(core.Submission{Kind: "stranger"}))
		for status, id := range w.inEveryStatus() {
			commands := w.refusals(id, stranger)
			for _, row := range core.Transitions() {
				command, code := commands[row.Operation], refusalIn(row, status)
				if command == nil || code == "" {
					continue
				}
				cells++
				refusal := w.untouched(id, command, code)
				if code == base.CodeExecutionNotActive {
					x := w.get(id)
					_, vector := core.Derive(x, core.LaneActive)
					same(t, row.Rule+" in "+status.String(), [4]any{refusal.Details["status"], refusal.Details["reason"], refusal.Details["terminal_outcome"], refusal.Details["lease_epoch"]},
						[4]any{status.String(), x.Reason.String(), vector.TerminalOutcome, x.LeaseEpoch})
				}
			}
		}
		if cells < 70 {
			t.Fatalf("%d cells refuse: too few to be the table", cells)
		}
	})
}

func TestL130_a_read_sees_one_committed_version(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"max_replay_count":1000}`))
		same(t, "no attempt before the first", w.get(id).Attempt, nil)
		var over atomic.Bool
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for !over.Load() {
					x := w.get(id)
					running := x.Status == core.Running
					if running != (x.Lease != nil) || (x.Attempt != nil) != (x.TotalAttempts > 0) || x.Status.Terminal() != (x.CompletedAt != 0) ||
						running && (x.Lease.AttemptID != x.Attempt.ID || x.Attempt.LastEpoch != x.LeaseEpoch) {
						t.Errorf("a mixture of versions: %+v", x)
						return
					}
				}
			})
		}
		for range 15 {
			w.release(w.claim())
			w.complete(w.claim())
			w.replay(id)
		}
		over.Store(true)
		readers.Wait()
	})
}

// stumbling is a store whose transactions meet so many deadlocks first.
type stumbling struct {
	store.Store
	begins, commits atomic.Int64
}

func deadlock() error { return &store.Fault{Kind: store.Retry, Err: context.Canceled} }

func (s *stumbling) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if s.begins.Add(-1) >= 0 {
		return nil, nil, deadlock()
	}
	tx, loaded, err := s.Store.Begin(ctx, want)
	return stumblingTx{tx, s}, loaded, err
}

type stumblingTx struct {
	store.Tx
	s *stumbling
}

func (t stumblingTx) Commit(ctx context.Context, ch *store.Changes) error {
	if t.s.commits.Add(-1) >= 0 {
		t.Tx.Rollback(ctx)
		return deadlock()
	}
	return t.Tx.Commit(ctx, ch)
}

func TestL143_deadlocks_are_tried_again_and_no_caller_learns_of_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &stumbling{Store: w.store}
		w.e = w.openEngine(s)
		stumble := func() { s.begins.Store(2); s.commits.Store(2) }
		stumble()
		id := w.submit(core.Submission{})
		stumble()
		task := w.claim()
		stumble()
		must(w.renew(task, 0))(t)
		stumble()
		w.release(task)
		stumble()
		w.hold(id)
		stumble()
		w.releaseHold(id)
		task = w.claim()
		stumble()
		w.complete(task)
		stumble()
		w.replay(id)
		stumble()
		must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k"}, {Kind: "k"}}, true))(t)
		same(t, "each happened once", w.story(id), []string{
			"execution.submitted", "lease.acquired", "lease.released", "execution.held", "execution.blocked", "execution.hold_released", "execution.ready",
			"lease.acquired", "execution.completed", "execution.replayed",
		})
	})
}

func TestL144_events_exist_iff_their_change_is_committed_and_in_its_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		fails := &stopAfter{name: "cancel"}
		w.cfg.Probe = fails
		w.restart()
		id := w.submit(core.Submission{})
		w.release(w.claim())
		before, story := w.get(id), w.story(id)
		_, err := w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{})
		if err == nil || fails.refused.Load() == 0 {
			t.Fatalf("the commit was not stopped: %v", err)
		}
		same(t, "the record without the commit", w.get(id), before)
		same(t, "the events without the commit", w.story(id), story)
		fails.open.Store(true)
		w.cancel(id)
		same(t, "the record", w.get(id).Status, core.Cancelled)
		same(t, "the events in order", w.story(id), append(story, "execution.cancel_requested", "execution.completed"))
	})
}

func TestL148_a_step_is_remembered_with_its_run_attempt_lease_and_time(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		w.complete(task)
		w.replay(id)
		task = w.claim()
		w.turn(5)
		must(w.e.PutStep(w.ctx(), client, id, fence(task), "charge", core.Payload{Data: []byte{0, 255}, ContentType: "a/b"}))(t)
		want := core.StepRecord{
			ExecutionID: id.ID(), RunIndex: 1, Name: "charge", AttemptIndex: 1, LeaseEpoch: 2, CreatedAt: w.now(), ContentType: "a/b", Result: []byte{0, 255},
		}
		same(t, "steps", must(w.e.Steps(w.ctx(), client, id, engine.StepsRequest{}))(t).Records, []core.StepRecord{want})
	})
}

func TestS60_one_loop_turns_every_kind_of_timer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		lapses := w.started(core.Submission{})
		timesOut := w.started(policy(`{"timeout_policy":{"attempt_timeout_ms":1000},"retry_policy":{"max_retries":0}}`))
		expires := w.submit(core.Submission{Lane: "other", DeadlineAt: w.now() + 1000})
		delayed := w.submit(core.Submission{Lane: "other", DelayMS: ptr(int64(1000))})
		goes := w.submit(core.Submission{Lane: "other", IdempotencyKey: "key", PolicyJSON: []byte(`{"retention_ms":1000,"dedup_window_ms":1000}`)})
		w.cancel(goes)
		bulk := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "priority", IDs: []base.GivenID{delayed}, Args: engine.BulkArgs{Priority: 3}}))(t)
		w.lane("default", core.LaneSettings{MaxConcurrent: 5})
		w.pass(base.Minute + 1000)
		w.becomes(given(lapses), core.Ready)
		w.becomes(given(timesOut), core.Failed)
		w.becomes(expires, core.Expired)
		w.becomes(delayed, core.Ready)
		w.gone(goes)
		eventually(t, "the key is free", func() bool { return !w.hasKey("key") })
		same(t, "bulk job", w.ended(bulk.JobID).Done, 1)
		eventually(t, "follow-up work", func() bool { return !must(w.e.GetLane(w.ctx(), client, "default"))(t).Lane.Counting })
		eventually(t, "an instance lapses", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})) == 1 })
		w.pass(base.Day)
		eventually(t, "and goes", func() bool { return len(w.workers(engine.WorkerQuery{State: "all"})) == 0 })
	})
}

// recorder remembers the commands of each transaction, in order, and holds those with a command of its gate's name back.
type recorder struct {
	*gate
	mu      sync.Mutex
	batches [][]string
}

// BeforeCommit remembers.
func (r *recorder) BeforeCommit(commands []string) error {
	r.mu.Lock()
	r.batches = append(r.batches, commands)
	r.mu.Unlock()
	return r.gate.BeforeCommit(commands)
}

// seen are the transactions so far, and how many commands of that name they had.
func (r *recorder) seen(name string) (batches, commands int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, batch := range r.batches {
		for _, command := range batch {
			if command == name {
				commands++
			}
		}
	}
	return len(r.batches), commands
}

func TestS66_a_foreground_command_waits_for_one_batch_of_the_sweep_and_no_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const chunk = 500 // which the sweep has under way at a time
		r := &recorder{gate: newGate("wake")}
		open := sync.OnceFunc(func() { close(r.open) })
		defer open() // also when the test fails
		w.submitMany(4*chunk, core.Submission{DelayMS: ptr(int64(1000))})
		w.cfg.Probe = r
		w.restart()
		w.turn(1000)
		<-r.reached
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.submit(core.Submission{})
		}()
		before := 0
		eventually(t, "it waits behind the sweep's commands", func() bool {
			batches, wakes := r.seen("wake")
			before = batches
			return int(gauge(t, w.e, metrics.CommitQueueDepth)) == chunk-wakes+1
		})
		open()
		<-done
		r.mu.Lock()
		defer r.mu.Unlock()
		served := slices.IndexFunc(r.batches, func(batch []string) bool { return slices.Contains(batch, "submit") })
		for _, batch := range r.batches[before:served] {
			if slices.Contains(batch, "wake") {
				t.Fatalf("a batch of %d commands of the sweep came first", len(batch))
			}
		}
	})
}
