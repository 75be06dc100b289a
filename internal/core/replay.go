package core

import (
	"cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ReplayCommand is the command replay (L109).
type ReplayCommand struct {
	By         string
	Reason     string
	DeadlineAt base.Time // absent: by the policy, else the old one if it is in the future
	Lane       *Lane     // of the execution

	Rejoin   *Rejoin  // of a member of a flow whose join is recomputed
	Cascade  string   // "": none
	Reopened []string // names of the other members that it reopens
}

// Replay reopens a finished execution (L109, L110). Errors: invalid_argument, execution_not_terminal, max_replays_exhausted, lane_not_accepting.
func (x *Execution) Replay(fx *Effects, c ReplayCommand) error {
	if err := x.CheckReplay(fx.Now, c); err != nil {
		return err
	}
	from := x.Status
	x.ReplayCount++
	x.Next = NextInitial
	if x.Attempt != nil {
		x.Next = NextReplay
		x.ReplayLineage = &Lineage{PreviousIndex: x.Attempt.Index, Reason: c.Reason, By: c.By, ReplayNumber: x.ReplayCount}
	}
	x.DeadlineAt = x.deadlineAfterReplay(fx.Now, c.DeadlineAt)
	x.forgetRun()
	x.QueuedAt = fx.Now
	x.rejoin(fx.Now, c.Rejoin)
	x.gate(fx.Now)
	x.emitReplayed(fx, from, c.Reason, c.Reopened, cmp.Or(c.Cascade, CascadeNone))
	return nil
}

// CheckReplay is the refusal of a replay, in the order of L109; the graph is not checked.
func (x *Execution) CheckReplay(now base.Time, c ReplayCommand) error {
	if c.DeadlineAt.Reached(now) {
		return base.Invalid("deadline_at", "has passed already")
	}
	if err := base.CheckAhead("deadline_at", c.DeadlineAt, now); err != nil {
		return err
	}
	switch {
	case !x.Status.Terminal():
		return x.refuse(base.CodeExecutionNotTerminal)
	case x.ReplayCount >= x.Policy.MaxReplays:
		return x.replaysExhausted()
	case !c.Lane.Settings.State.Accepting():
		return base.Errorf(base.CodeLaneNotAccepting, "lane %q is %s", x.Class.Lane, c.Lane.Settings.State).
			With("lane", x.Class.Lane).With("state", c.Lane.Settings.State.String())
	default:
		return nil
	}
}

// deadlineAfterReplay returns the deadline given by the call, else the policy's counted from now, else the old one if it is in the future (L110).
func (x *Execution) deadlineAfterReplay(now, given base.Time) base.Time {
	switch {
	case given != 0:
		return given
	case x.Policy.ExecutionDeadlineMS > 0:
		return now.Add(x.Policy.ExecutionDeadlineMS)
	case x.DeadlineAt.Reached(now):
		return 0
	default:
		return x.DeadlineAt
	}
}

// forgetRun resets what belongs to the run that has ended (L110). Fields that the end has already cleared are not listed.
func (x *Execution) forgetRun() {
	x.Earlier = x.FlowsBelow()
	x.Result, x.ResultEpoch, x.ResultOf, x.Children = nil, 0, base.ID{}, nil
	x.Failure, x.Cancellation, x.Progress = nil, nil, nil
	x.RetryCount, x.ReclaimCount, x.Retries = 0, 0, nil
	x.LastLease = nil
	x.CompletedAt, x.RunStartedAt = 0, 0
}

func (x *Execution) replaysExhausted() error {
	err := base.Errorf(base.CodeMaxReplaysExhausted, "the execution was replayed %d times", x.ReplayCount).
		With("replay_count", x.ReplayCount).With("max_replay_count", x.Policy.MaxReplays)
	if x.Member != nil {
		err.With("name", x.Member.Name)
	}
	return err
}
