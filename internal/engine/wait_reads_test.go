package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// unsweptWithKey runs a test on engines that have a signing key and whose timers do not run.
func unsweptWithKey(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	unswept(t, func(t *testing.T, w *world) {
		must(w.seedKey("a", 1))(t)
		f(t, w)
	})
}

// oneSignal is met by any signal at the key.
func oneSignal(key string) *condition.Condition {
	return &condition.Condition{Kind: condition.Single, Waitpoints: []string{key}}
}

// everySignal is met once there is a signal at each of the keys.
func everySignal(keys ...string) *condition.Condition {
	all := &condition.Condition{Kind: condition.AllOf}
	for _, key := range keys {
		all.Members = append(all.Members, *oneSignal(key))
	}
	return all
}

// people is met once so many different people have approved at the key.
func people(n int, key string) *condition.Condition {
	return &condition.Condition{
		Kind: condition.Count, N: n, CountKind: condition.CountDistinctSources, Matcher: condition.ByName("approved"),
		SourceTypes: []string{condition.SourceOperator, condition.SourceApprover}, Waitpoints: []string{key},
	}
}

// freshAt are bindings that make waitpoints of these keys.
func freshAt(keys ...string) (bindings []core.Binding) {
	for _, key := range keys {
		bindings = append(bindings, core.Binding{Key: ptr(key)})
	}
	return bindings
}

// waitsAt is a suspend until every key has a signal.
func waitsAt(keys ...string) core.SuspendCommand {
	return core.SuspendCommand{Waitpoints: freshAt(keys...), Condition: everySignal(keys...)}
}

// rests hands the lease of a task back until the condition is met.
func (w *world) rests(task engine.Task, cmd core.SuspendCommand) engine.SuspendAnswer {
	w.t.Helper()
	cmd.Fence = fence(task)
	return must(w.e.Suspend(w.ctx(), client, given(task), cmd))(w.t)
}

// resting is an execution that was submitted, taken and suspended.
func (w *world) resting(s core.Submission, cmd core.SuspendCommand) (base.GivenID, engine.SuspendAnswer) {
	w.t.Helper()
	task := w.started(s)
	return given(task), w.rests(task, cmd)
}

// reach sends a signal to the waitpoint of a suspension that has this number among its bindings.
func (w *world) reach(at engine.SuspendAnswer, number int, name string, payload []byte) core.SignalAnswer {
	w.t.Helper()
	return must(w.e.Signal(w.ctx(), client, nil, at.Tokens[number], core.SignalCommand{
		WaitpointID: at.Waitpoints[number].ID, Name: name, Payload: core.Payload{ContentType: "text/x", Data: payload, Size: len(payload)},
	}))(w.t)
}

// everyByteOf is a payload of that size in which every byte occurs.
func everyByteOf(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	return data
}

// arrived are the names and the sizes of signals, and whether their bytes are all there.
func arrived(signals []core.Signal) (list []string) {
	for _, s := range signals {
		list = append(list, fmt.Sprintf("%d %s at %s, %d bytes, whole %v, matched %v",
			s.Ordinal, s.Name, s.WaitpointKey, s.Payload.Size, bytes.Equal(s.Payload.Data, everyByteOf(s.Payload.Size)), s.Matched))
	}
	return list
}

func TestW82_observe_shows_the_open_suspension_and_then_the_one_closed_last(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		same(t, "never suspended", must(w.e.Observe(w.ctx(), client, id))(t), nil)

		cmd := waitsAt("a", "b")
		cmd.ReasonCode, cmd.TimeoutMS = "waiting_for_callback", ptr(base.Hour)
		cmd.Continuation = &core.Payload{ContentType: "text/c", Data: everyByteOf(3000), Size: 3000}
		at := w.rests(task, cmd)
		w.reach(at, 0, "one", everyByteOf(100_000))
		w.reach(at, 0, "two", nil)
		open := must(w.e.Observe(w.ctx(), client, id))(t)
		same(t, "suspension", [4]any{open.ID, open.Cause, open.ReasonCode, open.TimeoutAt}, [4]any{at.SuspensionID, core.SuspensionCause(""), "waiting_for_callback", w.now().Add(base.Hour)})
		first := []string{"1 one at a, 100000 bytes, whole true, matched true", "2 two at a, 0 bytes, whole true, matched true"}
		same(t, "signals", arrived(open.Signals), first)
		same(t, "reading consumes nothing", arrived(must(w.e.Observe(w.ctx(), client, id))(t).Signals), first)

		closer := w.reach(at, 1, "three", everyByteOf(1))
		closed := must(w.e.Observe(w.ctx(), client, id))(t)
		same(t, "cause", [2]any{closed.Cause, closed.CloserSignalID}, [2]any{core.CauseSignal, closer.SignalID})
		same(t, "signals", arrived(closed.Signals), append(first, "3 three at b, 1 bytes, whole true, matched true"))
		same(t, "continuation", [2]any{closed.Continuation.ContentType, bytes.Equal(closed.Continuation.Data, everyByteOf(3000))}, [2]any{"text/c", true})

		w.complete(w.claim())
		must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{}))(t)
		same(t, "this run was never suspended", must(w.e.Observe(w.ctx(), client, id))(t), nil)
		same(t, "history", len(must(w.e.Suspensions(w.ctx(), client, id, "", nil))(t).Items), 1)
	})
}

func TestW5_reads_of_what_is_not_there_and_of_other_namespaces_are_answered_alike(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.resting(core.Submission{}, waitsAt("a"))
		for what, who := range map[string]struct {
			c  engine.Caller
			id base.GivenID
			wp base.UUID
		}{
			"foreign": {stranger, id, at.Waitpoints[0].ID},
			"unknown": {client, base.GivenID{UUID: base.UUID{0: 9, 15: 1}}, base.UUID{0: 9, 15: 2}},
		} {
			for call, err := range map[string]error{
				"observe":     second(w.e.Observe(w.ctx(), who.c, who.id)),
				"suspensions": second(w.e.Suspensions(w.ctx(), who.c, who.id, "", nil)),
				"signals":     second(w.e.Signals(w.ctx(), who.c, who.id, engine.SignalQuery{})),
				"waitpoints":  second(w.e.Waitpoints(w.ctx(), who.c, engine.WaitpointQuery{Execution: &who.id})),
			} {
				if base.CodeOf(err) != base.CodeExecutionNotFound {
					t.Errorf("%s, %s: %v", what, call, err)
				}
			}
			refused(t, second(w.e.Waitpoint(w.ctx(), who.c, who.wp)), base.CodeWaitpointNotFound)
			refused(t, second(w.e.Links(w.ctx(), who.c, who.wp)), base.CodeWaitpointNotFound)
		}
		same(t, "of all executions", len(must(w.e.Waitpoints(w.ctx(), stranger, engine.WaitpointQuery{}))(t).Items), 0)
		same(t, "suspended", len(must(w.e.Suspended(w.ctx(), stranger, engine.SuspendedQuery{}))(t).Items), 0)
	})
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

func TestW85_signals_come_in_order_of_acceptance_with_their_payloads(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		pending := must(w.e.CreateWaitpoint(w.ctx(), client, id, core.CreateWaitpointCommand{Fence: fence(task), Key: "early"}))(t)
		lonely := must(w.e.CreateWaitpoint(w.ctx(), client, id, core.CreateWaitpointCommand{Fence: fence(task), Key: "lonely"}))(t)
		for i, wp := range []engine.Issued{pending, lonely, pending} {
			data := everyByteOf(10 + i)
			must(w.e.Signal(w.ctx(), client, nil, wp.Token, core.SignalCommand{WaitpointID: wp.ID, Name: "n", Payload: core.Payload{Data: data, Size: len(data)}}))(t)
		}
		cmd := waitsAt("late")
		cmd.Waitpoints = append(cmd.Waitpoints, core.Binding{UsePending: true, ID: pending.ID})
		cmd.Condition = everySignal("late", "early")
		at := w.rests(task, cmd)
		w.reach(at, 0, "n", everyByteOf(20))
		all := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{}))(t)
		same(t, "all", arrived(all.Items), []string{
			"1 n at early, 10 bytes, whole true, matched true", "2 n at lonely, 11 bytes, whole true, matched false",
			"3 n at early, 12 bytes, whole true, matched true", "4 n at late, 20 bytes, whole true, matched true",
		})
		of := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Suspension: at.SuspensionID}))(t)
		same(t, "of the suspension", arrived(of.Items), slices.Delete(arrived(all.Items), 1, 2))
		same(t, "of an unknown one", len(must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Suspension: base.UUID{1}}))(t).Items), 0)
		_, err := w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Cursor: "x"})
		refused(t, err, base.CodeInvalidCursor)
	})
}

func TestW85_a_page_of_large_signals_ends_before_it_is_too_large(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.resting(core.Submission{}, core.SuspendCommand{Waitpoints: freshAt("a"), Condition: people(1, "a")})
		const size, n = 256 << 10, 40
		for range n {
			w.reach(at, 0, "n", everyByteOf(size))
		}
		var seen []core.Signal
		q := engine.SignalQuery{}
		for pages := 1; ; pages++ {
			page := must(w.e.Signals(w.ctx(), client, id, q))(t)
			seen = append(seen, page.Items...)
			if q.Cursor = page.Next; q.Cursor == "" {
				same(t, "pages", pages, 2)
				break
			}
			same(t, "on the first page", len(page.Items), 8<<20/size)
		}
		same(t, "signals", len(seen), n)
		for i, s := range seen {
			same(t, "ordinal", s.Ordinal, i+1)
		}
	})
}

func TestW2_reads_show_what_due_timers_have_ended(t *testing.T) {
	t.Parallel()
	unsweptWithKey(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		pending := must(w.e.CreateWaitpoint(w.ctx(), client, id, core.CreateWaitpointCommand{Fence: fence(task), Key: "p", ExpiresInMS: ptr(int64(500))}))(t)
		cmd := waitsAt("a")
		cmd.TimeoutMS, cmd.Behavior = ptr(int64(1000)), core.BehaviorAutoResume
		at := w.rests(task, cmd)
		before := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd

		w.turn(499)
		same(t, "open", len(must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Execution: &id}))(t).Items), 2)
		same(t, "of all", len(must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{}))(t).Items), 2)
		w.turn(1)
		for what, of := range map[string]*base.GivenID{"of one": &id, "of all": nil} {
			open := must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Execution: of}))(t).Items
			same(t, what, []base.UUID{open[0].ID}, []base.UUID{at.Waitpoints[0].ID})
			closed := must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Execution: of, State: "closed"}))(t).Items
			same(t, what+" closed", [2]any{closed[0].ID, closed[0].CloseReason}, [2]any{pending.ID, core.ClosedExpired})
		}
		same(t, "the waitpoint", must(w.e.Waitpoint(w.ctx(), client, pending.ID))(t).State, core.WaitpointClosed)

		w.turn(499)
		same(t, "suspended", len(must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{}))(t).Items), 1)
		w.turn(1)
		same(t, "suspended no more", len(must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{}))(t).Items), 0)
		seen := must(w.e.Observe(w.ctx(), client, id))(t)
		same(t, "observed", [3]any{seen.Cause, len(seen.Signals), seen.Signals[0].Name}, [3]any{core.CauseTimeout, 1, "__timeout__"})
		signals := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{}))(t).Items
		same(t, "its bytes", len(signals[0].Payload.Data) > 0, true)
		same(t, "nothing was written", must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd, before)

		resumed := must(w.e.ClaimResumed(w.ctx(), client, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "w1"}))(t)
		same(t, "and what was shown is what happened", resumed.Resumed.Signals[0], signals[0])
	})
}

func TestW8_limits_of_0_1000_and_1001(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.resting(core.Submission{}, core.SuspendCommand{Waitpoints: freshAt("a", "b"), Condition: everySignal("a", "b")})
		w.reach(at, 0, "x", nil)
		w.reach(at, 0, "y", nil)
		for _, c := range []struct{ limit, waitpoints, signals, suspended int }{{0, 0, 0, 0}, {1, 1, 1, 1}, {1000, 2, 2, 1}, {1001, 2, 2, 1}} {
			one := must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Execution: &id, Limit: &c.limit}))(t)
			all := must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Limit: &c.limit}))(t)
			signals := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Limit: &c.limit}))(t)
			history := must(w.e.Suspensions(w.ctx(), client, id, "", &c.limit))(t)
			suspended := must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{Limit: &c.limit}))(t)
			same(t, fmt.Sprint("limit ", c.limit),
				[5]int{len(one.Items), len(all.Items), len(signals.Items), len(history.Items), len(suspended.Items)},
				[5]int{c.waitpoints, c.waitpoints, c.signals, c.suspended, c.suspended})
			more := c.limit == 1
			same(t, fmt.Sprint("more than ", c.limit),
				[5]bool{one.Next != "", all.Next != "", signals.Next != "", history.Next != "", suspended.Next != ""},
				[5]bool{more, more, more, false, false})
		}
		for _, err := range []error{
			second(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{Limit: ptr(-1)})),
			second(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{Limit: ptr(-1)})),
			second(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Limit: ptr(-1)})),
			second(w.e.Suspensions(w.ctx(), client, id, "", ptr(-1))),
			second(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{State: "open"})),
		} {
			refused(t, err, base.CodeInvalidArgument)
		}
	})
}
