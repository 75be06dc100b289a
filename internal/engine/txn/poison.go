package txn

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A panic is a bug of this program that some row or command triggers. It ends only the work that met it: its transaction is rolled back, the row or
// command is found and set aside like any other that fails (S63), and the process continues. Every goroutine of the engine runs below Guard or
// KeepRunning, and every mutex is released by a deferred call (internal/archtest checks both), so that nothing waits for a goroutine that panicked.

// The places where panics are contained, as metrics and logs name them.
const (
	InCommand = "command"
	InClaim   = "claim"
	inTimer   = "timer"
	inTask    = "followup"
	inCommit  = "commit" // after it: what was written stays, and is published
	InSearch  = "search"
	inLog     = "log"
	inHint    = "hint"
	inUpkeep  = "upkeep"
)

// RestartPause is how long a loop that panicked pauses before it starts again.
const RestartPause = time.Second

// Panicked is the error of what met a panic. Its callers see code internal, and nothing of the panic itself.
type Panicked struct {
	cause  *store.Panicked
	Row    base.UUID   // the row being handled; zero: none
	graph  bool        // the ends of members were being applied to their graph
	Public *base.Error // what callers see
}

// NewPanicked returns the error of what met a panic: what names it, and row is the row that was being handled, or zero.
func NewPanicked(what string, cause *store.Panicked, row base.UUID) *Panicked {
	public := base.Errorf(base.CodeInternal, "%s met a fault of the engine", what).WithHint("its log tells where; nothing was changed")
	return &Panicked{cause: cause, Row: row, Public: public}
}

// Error returns what the program panicked with.
func (p *Panicked) Error() string { return p.cause.Error() }

// Unwrap returns what callers see, and the panic.
func (p *Panicked) Unwrap() []error { return []error{p.Public, p.cause} }

// PanicOf returns the panic behind an error, or nil if it has another cause.
func PanicOf(err error) *Panicked {
	var p *Panicked
	errors.As(err, &p)
	return p
}

// Caught turns what a deferred call has recovered into the error of its function, which is err if there was no panic. A panic is counted and
// logged.
func (e *Engine) Caught(place string, recovered any, err error) error {
	if recovered == nil {
		return err
	}
	cause := store.Recovered(recovered)
	fault := NewPanicked(place, cause, base.UUID{})
	e.ReportPanic(place, "", fault)
	return fault
}

// ReportPanic counts and logs a panic. The log handler is user code, and may itself be what panics.
func (e *Engine) ReportPanic(place, what string, p *Panicked) {
	defer func() { _ = recover() }()
	e.Meter.Panicked(place)
	row := ""
	if !p.Row.IsZero() {
		row = p.Row.String()
	}
	e.QuietLog.Error("the engine panicked", "place", place, "command", what, "row", row, "panic", p.cause.What, "stack", string(p.cause.Stack))
}

// Guard runs f. If f panics, Guard returns an error.
func (e *Engine) Guard(place string, f func()) (err error) {
	defer func() { err = e.Caught(place, recover(), err) }()
	f()
	return nil
}

// Contain runs f for a call on a goroutine of its own. If f panics, the panic is counted and logged, and Contain returns an error with code
// timeout: the outcome of the call is unknown.
func (e *Engine) Contain(f func()) error {
	if err := e.Guard(InCommand, f); err != nil {
		return UnknownOutcome(err)
	}
	return nil
}

// KeepRunning runs a loop of the engine until it returns. A loop that panics is started again: its work is in the store and in shared state, not in
// its own variables.
func (e *Engine) KeepRunning(place string, loop func()) {
	for e.Guard(place, loop) != nil && !e.Stopping() {
		timer := e.Cfg.Clock.NewTimer(RestartPause)
		select {
		case <-timer.C:
		case <-e.Stop:
		}
		timer.Stop()
	}
}

// Trap reports to a test which row is being handled.
func (e *Engine) Trap(place string, row base.UUID) {
	if e.Cfg.Trap != nil {
		e.Cfg.Trap(place, row.String())
	}
}

// At records the row that the transaction handles now: a panic is attributed to it.
func (u *Tx) At(place string, row base.UUID) {
	u.Row = row
	u.Engine.Trap(place, row)
}

// decideAll decides a batch, one command after the other.
func (u *Tx) decideAll(batch []*Request) []error {
	refusals := make([]error, len(batch))
	for i, r := range batch {
		refusals[i] = u.decide(r.Command)
		if cmd, ok := r.Command.(underLease); ok && refusals[i] != nil {
			refusals[i] = u.Engine.FromElsewhere(cmd.Carried(), refusals[i])
		}
	}
	return refusals
}

// decide decides one command, unless a room refuses it.
func (u *Tx) decide(cmd Command) error {
	for _, refuse := range u.Engine.points.refuse {
		if err := refuse(u, cmd); err != nil {
			return err
		}
	}
	return cmd.Decide(u)
}

// gaveUp returns the error of a batch whose transaction panicked. The transaction may be in any state: the error gives the transaction up, and the
// batch is split until the command that causes the panic is alone. A panic while work is handed to claims is attributed to no command: the batch is
// tried again without the hand-over, and a pick finds the row.
func (e *Engine) gaveUp(batch []*Request, u *Tx, recovered any, err error) error {
	if recovered == nil {
		return err
	}
	cause, row := store.Recovered(recovered), base.UUID{}
	if u != nil {
		row = u.Row
		if u.Handing {
			u.TakeBack(cause)
			return &store.Fault{Kind: store.Conflict, Err: errors.Join(errHandOver, cause)}
		}
	}
	fault := guilty(batch, cause, row)
	fault.graph = u != nil && u.Advancing
	return fault
}

// guilty returns the error of a batch that met a panic. For a command on many rows it names the row being handled.
func guilty(batch []*Request, cause *store.Panicked, row base.UUID) *Panicked {
	name := InCommand
	if len(batch) > 0 {
		name = batch[0].Name()
		if many, ok := batch[0].Command.(interface{ Panicked(row base.UUID) }); ok && len(batch) == 1 {
			many.Panicked(row)
		}
	}
	return NewPanicked(name, cause, row)
}

// leavesGraph reports whether a command may succeed if the edges of what it ends are left to follow-up work, because resolving them panicked. The
// end is then committed, and that work finds and sets aside the member that causes the panic.
func leavesGraph(batch []*Request, mode BatchMode, err error) bool {
	p := PanicOf(err)
	return p != nil && p.graph && !mode.leave && len(batch) == 1
}

// reportGuilty logs the panic of a command that is alone in its batch. Other errors are ignored.
func (e *Engine) reportGuilty(r *Request, err error) {
	if p := PanicOf(err); p != nil {
		e.ReportPanic(InCommand, r.Name(), p)
	}
}

// answering runs f, which answers a batch. If f panics, the requests that are still unanswered get an error.
func (e *Engine) answering(batch []*Request, f func()) {
	err := e.Guard(InCommand, f)
	if err == nil {
		return
	}
	for _, r := range batch {
		r.finish(UnknownOutcome(err))
	}
}

// UnknownOutcome returns the answer for a call whose outcome is unknown.
func UnknownOutcome(err error) error {
	return base.Errorf(base.CodeTimeout, "a fault of the engine was met before the answer: %w", err).WithHint("the outcome is unknown; the same call again is safe")
}

// writeOut writes the changes. A panic while they are prepared has written nothing; after any other panic of the store the outcome is unknown.
func (u *Tx) writeOut(ctx context.Context) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = &store.Fault{Kind: store.Unknown, Err: u.Engine.Caught(inCommit, what, nil)}
		}
	}()
	err = u.StoreTx.Commit(ctx, &u.Changes)
	var cause *store.Panicked
	if store.FaultOf(err) == store.Broken && errors.As(err, &cause) {
		return NewPanicked(inCommit, cause, base.UUID{})
	}
	return err
}

// afterCommit runs what follows from a commit. If it panics, the commit stands: what this process has cached is dropped and read again.
func (u *Tx) afterCommit(f func()) {
	if u.Engine.Guard(inCommit, f) == nil {
		return
	}
	_ = u.Engine.Guard(inCommit, func() {
		for _, ent := range u.Order {
			u.Engine.rows.forget(ent.Exec.ID.UUID)
		}
		u.Engine.Log.look()
		u.Engine.Dispatcher.Rescan()
	})
}
