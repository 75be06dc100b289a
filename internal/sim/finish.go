package sim

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/memory"
)

const (
	healed    = 5 * time.Minute  // by then everything is over once the faults have stopped (I7)
	callBound = 90 * time.Second // by then a call is answered while nothing fails
	quietTime = 2500 * time.Millisecond
)

// call issues a command and waits for its outcome. ok is false if there is none within the bound.
func (w *World) call(index int, what string, run func(ctx context.Context, e *engine.Engine) (any, error)) (answer any, err error, ok bool) { //nolint:revive // ok says whether there is an answer or an error at all
	p := w.procs[index]
	for until := w.now() + callBound; !p.up(); {
		if w.now() > until {
			w.found("I7: p%d does not open", index)
			return nil, nil, false
		}
		if p.killed || p.failed() { // what starts processes starts it again
			p.kill()
			p = w.start(index)
		}
		w.pass(100 * time.Millisecond)
	}
	known := false
	c := w.issue(p, what, run, func(a any, e error) { answer, err, known = a, e, true })
	for until := w.now() + callBound; !known && w.now() < until && len(w.findings) == 0; {
		if w.step() {
			continue
		}
		if i := slices.Index(w.journal.unknown, c); i >= 0 {
			w.pass(200 * time.Millisecond)
			if i := slices.Index(w.journal.unknown, c); i >= 0 {
				w.repeat(p, i)
			}
			continue
		}
		w.idle(time.Second)
	}
	if !known && len(w.findings) == 0 {
		w.found("I7: %q is not answered within %v although nothing fails", what, callBound)
	}
	return answer, err, known
}

// prepare makes what every history begins with.
func (w *World) prepare() {
	for _, lane := range []struct {
		name string
		s    core.LaneSettings
	}{{plainLane, core.LaneSettings{State: core.LaneActive, Fairness: core.FairnessOff}}, {fairLane, core.LaneSettings{State: core.LaneActive}}, {cappedLane, core.LaneSettings{State: core.LaneActive, MaxConcurrent: laneCap}}} {
		w.must("put lane "+lane.name, func(ctx context.Context, e *engine.Engine) (any, error) {
			return e.PutLane(ctx, operator(), lane.name, lane.s, engine.Operator{})
		})
	}
}

// must is call for what cannot fail.
func (w *World) must(what string, run func(ctx context.Context, e *engine.Engine) (any, error)) {
	if _, err, ok := w.call(0, what, run); ok && err != nil {
		w.found("%s: %v", what, err)
	}
}

// heal stops all faults and starts what is down.
func (w *World) heal() {
	w.record("the faults stop")
	for i, p := range w.procs {
		p.faults, p.slow, p.frozen = nil, 0, time.Time{}
		p.mu.Lock()
		p.lose, p.double, p.delay, p.deaf = 0, 0, 0, time.Time{}
		p.mu.Unlock()
		if p.killed || p.failed() {
			p.kill()
			w.start(i)
		}
	}
	for _, t := range w.turns {
		t.from = time.Time{}
	}
}

// finish stops the faults, lets all work end, and checks everything.
func (w *World) finish() {
	w.heal()
	w.passUntil(patience+time.Second, func() bool { return len(w.commands) == 0 }) // calls under way end
	for _, step := range []func(){w.settleUnknown, w.reopen, w.unlimit, w.seal, w.drainInOrder, w.drain, w.check} {
		if step(); len(w.findings) > 0 {
			return
		}
	}
}

// settleUnknown repeats commands until their outcome is known (I1: nothing that was accepted is lost, nothing is done twice).
func (w *World) settleUnknown() {
	for until := w.now() + healed; len(w.journal.unknown) > 0 || len(w.commands) > 0; {
		if w.now() > until {
			w.found("I7: %d commands have no known outcome", len(w.journal.unknown)+len(w.commands))
			return
		}
		for i, p := range w.procs {
			if p.killed || p.failed() {
				p.kill()
				w.start(i)
			}
		}
		if p := w.up(w.sched); p != nil && len(w.journal.unknown) > 0 {
			w.repeat(p, 0)
		}
		w.pass(500 * time.Millisecond)
		if len(w.findings) > 0 {
			return
		}
	}
}

// reopen makes lanes active and releases what is held.
func (w *World) reopen() {
	for _, lane := range lanes() {
		_, _, _ = w.call(0, "activate "+lane, func(ctx context.Context, e *engine.Engine) (any, error) {
			return e.SetLaneState(ctx, operator(), lane, core.LaneActive, engine.Operator{})
		})
	}
	w.pass(time.Duration(ttl)*time.Millisecond + quietTime) // leases end
	for _, x := range w.records() {
		if x.Held != nil && len(w.findings) == 0 {
			_, _, _ = w.call(0, "release hold", func(ctx context.Context, e *engine.Engine) (any, error) {
				return e.ReleaseHold(ctx, operator(), x.ID.Given(), engine.Operator{})
			})
		}
	}
}

// direct is a handle on the database that no engine uses.
func (w *World) direct() (s *memory.Store, done func()) {
	s = w.db.Open(memory.Process{})
	return s, func() { _ = s.Close() }
}

// records returns all executions that the log names, by id. Whether there are others is found by check.
func (w *World) records() (list []*core.Execution) {
	s, done := w.direct()
	defer done()
	ids, err := w.logged(s)
	if err != nil {
		w.found("the log: %v", err)
		return nil
	}
	loaded, err := s.Read(context.Background(), store.Want{Executions: ids})
	if err != nil {
		w.found("the executions: %v", err)
		return nil
	}
	list = slices.Collect(maps.Values(loaded.Executions))
	slices.SortFunc(list, func(a, b *core.Execution) int { return compareIDs(a.ID.UUID, b.ID.UUID) })
	return list
}

func (w *World) snapshot() *invariants.Snapshot {
	s, done := w.direct()
	defer done()
	ids, err := w.logged(s)
	if err != nil {
		w.found("the log: %v", err)
		return nil
	}
	snap, err := invariants.Take(context.Background(), s, ids)
	if err != nil {
		w.found("a snapshot: %v", err)
		return nil
	}
	return snap
}

// named are the executions that the log names, up to a position. What was read of a log does not change.
type named struct {
	after int64
	known map[base.UUID]bool
	ids   []base.UUID
}

// logged returns the executions that the log names.
func (w *World) logged(s store.Store) (ids []base.UUID, err error) {
	for l := &w.named; ; {
		commits, err := s.Log(context.Background(), l.after, 1000)
		if err != nil || len(commits) == 0 {
			return l.ids, err
		}
		for _, c := range commits {
			if c.Seq != l.after+1 {
				return nil, fmt.Errorf("position %d follows %d", c.Seq, l.after)
			}
			l.after = c.Seq
			for i := range c.Events {
				if id := c.Events[i].ExecutionID; !id.IsZero() && !l.known[id.UUID] {
					l.known[id.UUID] = true
					l.ids = append(l.ids, id.UUID)
				}
			}
		}
	}
}

// waiting returns the rows of the plain lane that no admission holds back, in order (S6).
func (w *World) waiting() (rows []store.QueueRow) {
	s, done := w.direct()
	defer done()
	dict, err := s.Dictionary(context.Background())
	if err != nil {
		w.found("the dictionary: %v", err)
		return nil
	}
	var want store.Want
	for _, class := range dict.Classes {
		if class.Lane == plainLane {
			want.Pick = append(want.Pick, store.Pick{Class: class.ID, Floor: math.MinInt64, Limit: 1000})
		}
	}
	if len(want.Pick) == 0 {
		return nil
	}
	loaded, err := s.Read(context.Background(), want)
	if err != nil {
		w.found("the queues: %v", err)
		return nil
	}
	slices.SortFunc(loaded.Picked, store.QueueRow.Compare)
	return loaded.Picked
}

// drainInOrder claims one execution after the other in the plain lane, through one process after the other. Each claim takes the first: what waits
// before it, before and after the claim, was passed over (S6, S9).
func (w *World) drainInOrder() {
	w.pass(quietTime)
	var claimed []engine.Task // they are completed later: what becomes ready by that is known to other processes only after a while (S68)
	for n := 0; n < 60 && len(w.findings) == 0; n++ {
		before := w.waiting()
		if len(before) == 0 {
			break
		}
		p := w.procs[n%len(w.procs)]
		q := engine.ClaimRequest{WorkerID: "drain", InstanceID: fmt.Sprintf("drain-%d", p.index), Lanes: []string{plainLane}, Max: 1, TTL: base.Minute, RequestKey: w.requestKey()}
		answer, err, ok := w.call(p.index, "claim the first", func(ctx context.Context, e *engine.Engine) (any, error) { return e.Claim(ctx, client(""), q) })
		if !ok || err != nil {
			w.found("S6: a claim fails: %v", err)
			return
		}
		after := w.waiting()
		tasks := answer.(engine.ClaimAnswer).Tasks
		for _, row := range before {
			if len(tasks) > 0 && row.ID == tasks[0].Execution.ID.UUID {
				break
			}
			if slices.Contains(after, row) && (len(tasks) == 0 || row.Order < tasks[0].Execution.OrderKey) {
				w.found("S6: p%d claims %s and passes over %s", p.index, taken(tasks), w.describe(row.ID))
				return
			}
		}
		if len(tasks) > 0 {
			claimed = append(claimed, tasks[0])
		}
	}
	for i := range claimed {
		w.finishTask(i%len(w.procs), &claimed[i])
	}
}

func taken(tasks []engine.Task) string {
	if len(tasks) == 0 {
		return "nothing"
	}
	return show(tasks[0].Execution)
}

// show is what a finding says of an execution.
func show(x *core.Execution) string {
	return fmt.Sprintf("%s (%s, %s, next %s, order %d, class %d with %s, blocked on %q)", x.ID, x.Status, x.Reason, x.Next, x.OrderKey, x.Class.ID, x.Class.Needs, x.BlockedOn)
}

func (w *World) describe(id base.UUID) string {
	for _, x := range w.records() {
		if x.ID.UUID == id {
			return show(x)
		}
	}
	return id.String()
}

// finishTask completes a task of the drain.
func (w *World) finishTask(index int, t *engine.Task) {
	l := w.journal.leased(t, "drain")
	if l == nil {
		return
	}
	answer, err, ok := w.call(index, "complete "+l.String(), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Complete(ctx, client(""), l.j.id.Given(), l.f, nil)
	})
	switch {
	case !ok:
	case err == nil:
		a := answer.(core.CompleteAnswer)
		w.journal.ended(l.j, a.Status, a.Repeated)
	case base.CodeOf(err) != base.CodeExecutionNotActive && base.CodeOf(err) != base.CodeStaleLease:
		w.found("I7: a task cannot be completed: %v", err)
	}
}

// drain works until everything is over (I7, I17).
func (w *World) drain() {
	for began, n := w.now(), 0; ; n++ {
		var left []*core.Execution
		for _, x := range w.records() {
			if !x.Status.Terminal() {
				left = append(left, x)
			}
		}
		if len(left) == 0 || len(w.findings) > 0 {
			return
		}
		if w.now() > began+healed {
			for _, x := range left[:min(5, len(left))] {
				w.found("I7: %s is %s (%s, next %s, blocked on %q) although everything was done for it", x.ID, x.Status, x.Reason, x.Next, x.BlockedOn)
			}
			return
		}
		p := w.procs[n%len(w.procs)]
		q := engine.ClaimRequest{
			WorkerID: "drain", InstanceID: fmt.Sprintf("drain-%d", p.index), Lanes: lanes(), Max: 20, TTL: base.Minute, RequestKey: w.requestKey(), Wait: 500 * time.Millisecond,
		}
		answer, err, ok := w.call(p.index, "claim the rest", func(ctx context.Context, e *engine.Engine) (any, error) { return e.Claim(ctx, client(""), q) })
		if !ok || err != nil {
			w.found("I7: a claim fails: %v", err)
			return
		}
		tasks := answer.(engine.ClaimAnswer).Tasks
		for i := range tasks {
			w.finishTask(p.index, &tasks[i])
		}
		if len(tasks) == 0 {
			w.unblock(left)
		}
	}
}

// unblock does what executions wait for that no claim can take.
func (w *World) unblock(left []*core.Execution) {
	w.pass(time.Second)
	for _, x := range left {
		if x.Status == core.Suspended && len(w.findings) == 0 {
			_, _, _ = w.call(0, "resume", func(ctx context.Context, e *engine.Engine) (any, error) {
				_, _, err := e.Resume(ctx, operator(), x.ID.Given(), core.ResumeCommand{}, engine.Operator{})
				return nil, err
			})
		}
	}
}
