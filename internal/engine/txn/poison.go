package txn

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A panic is a bug of this program that some row or command triggers. It ends only the work that met it: its transaction is rolled back, the row or
// command is found and set aside like any other that fails (S63), and the process continues. Every goroutine of the engine runs below contain or
// keepRunning, and every mutex is released by a deferred call (internal/archtest checks both), so that nothing waits for a goroutine that panicked.

// The places where panics are contained, as metrics and logs name them.
const (
	inCommand = "command"
	inClaim   = "claim"
	inTimer   = "timer"
	inTask    = "followup"
	inCommit  = "commit" // after it: what was written stays, and is published
	InSearch  = "search"
	inLog     = "log"
	inHint    = "hint"
	inUpkeep  = "upkeep"
)

// restartPause is how long a loop that panicked pauses before it starts again.
const restartPause = time.Second

// panicked is the error of what met a panic. Its callers see code internal, and nothing of the panic itself.
type panicked struct {
	cause *store.Panicked
	row   base.UUID // the row being handled; zero: none
	graph bool      // flows were being advanced
	told  *base.Error
}

func newPanicked(what string, cause *store.Panicked, row base.UUID) *panicked {
	told := base.Errorf(base.CodeInternal, "%s met a fault of the engine", what).WithHint("its log tells where; nothing was changed")
	return &panicked{cause: cause, row: row, told: told}
}

// Error returns what the program panicked with.
func (p *panicked) Error() string { return p.cause.Error() }

// Unwrap returns what callers see, and the panic.
func (p *panicked) Unwrap() []error { return []error{p.told, p.cause} }

// panicOf returns the panic behind an error, or nil if it has another cause.
func panicOf(err error) *panicked {
	var p *panicked
	errors.As(err, &p)
	return p
}

// caught turns what a deferred call has recovered into the error of its function, which is err if there was no panic. A panic is counted and
// logged.
func (e *Engine) caught(place string, recovered any, err error) error {
	if recovered == nil {
		return err
	}
	cause := store.Recovered(recovered)
	fault := newPanicked(place, cause, base.UUID{})
	e.reportPanic(place, "", fault)
	return fault
}

// reportPanic counts and logs a panic. The log handler is user code, and may itself be what panics.
func (e *Engine) reportPanic(place, what string, p *panicked) {
	defer func() { _ = recover() }()
	e.Meter.Panicked(place)
	row := ""
	if !p.row.IsZero() {
		row = p.row.String()
	}
	e.notes.Error("the engine panicked", "place", place, "command", what, "row", row, "panic", p.cause.What, "stack", string(p.cause.Stack))
}

// contain runs f. If f panics, contain returns an error.
func (e *Engine) contain(place string, f func()) (err error) {
	defer func() { err = e.caught(place, recover(), err) }()
	f()
	return nil
}

// Contain runs f for a call on a goroutine of its own. If f panics, the panic is counted and logged, and Contain returns an error with code
// timeout: the outcome of the call is unknown.
func (e *Engine) Contain(f func()) error {
	if err := e.contain(inCommand, f); err != nil {
		return unknownOutcome(err)
	}
	return nil
}

// KeepRunning runs a loop of the engine until it returns. A loop that panics is started again: its work is in the store and in shared state, not in
// its own variables.
func (e *Engine) KeepRunning(place string, loop func()) {
	for e.contain(place, loop) != nil && !e.stopping() {
		timer := e.Cfg.Clock.NewTimer(restartPause)
		select {
		case <-timer.C:
		case <-e.Stop:
		}
		timer.Stop()
	}
}

// trap reports to a test which row is being handled.
func (e *Engine) trap(place string, row base.UUID) {
	if e.Cfg.Trap != nil {
		e.Cfg.Trap(place, row.String())
	}
}

// At records the row that the unit handles now: a panic is attributed to it.
func (u *Tx) At(place string, row base.UUID) {
	u.row = row
	u.Engine.trap(place, row)
}

// decideAll decides a batch, one command after the other.
func (u *Tx) decideAll(batch []*request) []error {
	refusals := make([]error, len(batch))
	for i, r := range batch {
		refusals[i] = r.Decide(u)
		if cmd, ok := r.command.(underLease); ok && refusals[i] != nil {
			refusals[i] = u.Engine.fromElsewhere(cmd.carried(), refusals[i])
		}
	}
	return refusals
}

// gaveUp returns the error of a batch whose transaction panicked. The unit may be in any state: the error gives the transaction up, and the batch
// is split until the command that causes the panic is alone. A panic while work is handed to claims is attributed to no command: the batch is tried
// again without the hand-over, and a pick finds the row.
func (e *Engine) gaveUp(batch []*request, u *Tx, recovered any, err error) error {
	if recovered == nil {
		return err
	}
	cause, row := store.Recovered(recovered), base.UUID{}
	if u != nil {
		row = u.row
		if u.handing {
			u.takeBack(cause)
			return &store.Fault{Kind: store.Conflict, Err: errors.Join(errHandOver, cause)}
		}
	}
	fault := guilty(batch, cause, row)
	fault.graph = u != nil && u.advancing
	return fault
}

// guilty returns the error of a batch that met a panic. For a command on many rows it names the row being handled.
func guilty(batch []*request, cause *store.Panicked, row base.UUID) *panicked {
	name := inCommand
	if len(batch) > 0 {
		name = batch[0].Name()
		if many, ok := batch[0].command.(interface{ Panicked(row base.UUID) }); ok && len(batch) == 1 {
			many.Panicked(row)
		}
	}
	return newPanicked(name, cause, row)
}

// leavesGraph reports whether a command may succeed if the edges of what it ends are left to follow-up work, because resolving them panicked. The
// end is then committed, and that work finds and sets aside the member that causes the panic.
func leavesGraph(batch []*request, mode batchMode, err error) bool {
	p := panicOf(err)
	return p != nil && p.graph && !mode.leave && len(batch) == 1
}

// reportGuilty logs the panic of a command that is alone in its batch. Other errors are ignored.
func (e *Engine) reportGuilty(r *request, err error) {
	if p := panicOf(err); p != nil {
		e.reportPanic(inCommand, r.Name(), p)
	}
}

// answering runs f, which answers a batch. If f panics, the requests that are still unanswered get an error.
func (e *Engine) answering(batch []*request, f func()) {
	err := e.contain(inCommand, f)
	if err == nil {
		return
	}
	for _, r := range batch {
		r.finish(unknownOutcome(err))
	}
}

// unknownOutcome returns the answer for a call whose outcome is unknown.
func unknownOutcome(err error) error {
	return base.Errorf(base.CodeTimeout, "a fault of the engine was met before the answer: %w", err).WithHint("the outcome is unknown; the same call again is safe")
}

// lends records the claims that the unit serves besides its commands, and the function that lets them keep waiting if the unit fails.
func (u *Tx) lends(k *pick, back func(*pick, error)) { u.lent, u.back = k, back }

// takeBack lets the claims keep waiting that the unit was to serve.
func (u *Tx) takeBack(why error) {
	if k := u.lent; k != nil {
		u.lent = nil
		_ = u.Engine.contain(inClaim, func() { u.back(k, why) })
	}
	u.handing = false
}

// tellClaims answers the claims after the commit. If that panics, they get the answer that their outcome is unknown: they may have leases.
func (u *Tx) tellClaims(k *pick, tell func(*Tx, *pick)) {
	u.lent, u.handing = nil, false
	if err := u.Engine.contain(inClaim, func() { tell(u, k) }); err != nil {
		u.Engine.picker.lost(k.calls, err)
	}
}

// writeOut writes the changes. A panic while they are prepared has written nothing; after any other panic of the store the outcome is unknown.
func (u *Tx) writeOut(ctx context.Context) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = &store.Fault{Kind: store.Unknown, Err: u.Engine.caught(inCommit, what, nil)}
		}
	}()
	err = u.tx.Commit(ctx, &u.Changes)
	var cause *store.Panicked
	if store.FaultOf(err) == store.Broken && errors.As(err, &cause) {
		return newPanicked(inCommit, cause, base.UUID{})
	}
	return err
}

// told runs what follows from a commit. If it panics, the commit stands: what this process has cached is dropped and read again.
func (u *Tx) told(f func()) {
	if u.Engine.contain(inCommit, f) == nil {
		return
	}
	_ = u.Engine.contain(inCommit, func() {
		for _, ent := range u.order {
			u.Engine.recall.forget(ent.Exec.ID.UUID)
		}
		u.Engine.Log.look()
		u.Engine.picker.lookAgain()
	})
}
