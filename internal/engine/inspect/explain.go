package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Explain returns why an execution is not running (S56). It changes nothing. With a wait it returns when status, reason or one of the causes
// differs from the first ones, or with the current ones when d is over (U18).
func (e *Inspector) Explain(ctx context.Context, c txn.Caller, id base.GivenID, d time.Duration) (core.Explanation, error) {
	if d < 0 || d > txn.MaxWait {
		return core.Explanation{}, base.Invalid("wait_ms", "%s, want 0..%s", d, txn.MaxWait)
	}
	first, err := e.explain(ctx, c, id)
	if err != nil || d == 0 {
		return first, err
	}
	return e.explainChange(ctx, c, id, d, first)
}

// explainChange waits for an explanation that differs from the first. It reads again when the log grows, and when a cause is due to end: nothing
// else changes the answer. Causes that only depend on other executions are read once a second.
func (e *Inspector) explainChange(ctx context.Context, c txn.Caller, id base.GivenID, d time.Duration, first core.Explanation) (core.Explanation, error) {
	e.Log.Readers.Add(1)
	defer e.Log.Readers.Add(-1)
	over := e.Cfg.Clock.NewTimer(d)
	defer over.Stop()
	shown := first
	for {
		end, grew := e.Log.Position()
		due := e.Cfg.Clock.NewTimer(untilNext(&shown, e.StoreTime()))
		stay := true
		select {
		case <-grew:
			stay = e.awaitNews(ctx, id, end, over.C)
		case <-due.C:
		case <-over.C:
			stay = false
		case <-e.Stop:
			stay = false
		case <-ctx.Done():
			stay = false
		}
		due.Stop()
		next, err := e.explain(context.WithoutCancel(ctx), c, id)
		if err != nil || !stay || next.Differs(&first) {
			return next, err
		}
		shown = next
	}
}

// explainPause is how often causes are read that only depend on other executions.
const explainPause = time.Second

// awaitNews returns at once if the log has an event of the execution after a position, otherwise after a while. It reports whether to keep waiting.
func (e *Inspector) awaitNews(ctx context.Context, id base.GivenID, after int64, over <-chan time.Time) bool {
	pause := e.Cfg.Clock.NewTimer(explainPause)
	defer pause.Stop()
	for {
		end, grew := e.Log.Position()
		commits, err := e.Log.Read(ctx, after, txn.LogRead)
		if err != nil || slices.ContainsFunc(commits, func(commit store.Commit) bool { return concerns(&commit, id.UUID) }) {
			return true
		}
		if after = end; len(commits) > 0 {
			after = commits[len(commits)-1].Seq
		}
		if after < end {
			continue
		}
		select {
		case <-grew:
		case <-pause.C:
			return true
		case <-over:
			return false
		case <-e.Stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func concerns(commit *store.Commit, id base.UUID) bool {
	return slices.ContainsFunc(commit.Events, func(ev core.Event) bool { return ev.ExecutionID.UUID == id })
}

// untilNext returns the time until a cause ends by itself.
func untilNext(shown *core.Explanation, now base.Time) time.Duration {
	next := now.Add(txn.MaxWait.Milliseconds())
	for _, b := range shown.Blockers {
		if b.Until > now {
			next = min(next, b.Until)
		}
	}
	return time.Duration(next.Sub(now)+1) * time.Millisecond
}

// explain reads what decides over the execution and says what it finds.
func (e *Inspector) explain(ctx context.Context, c txn.Caller, id base.GivenID) (core.Explanation, error) {
	look, err := e.lookAt(ctx, c, id)
	if err != nil {
		return core.Explanation{}, err
	}
	in := &look.in
	if in.History, err = e.history(ctx, in.Execution); err != nil {
		return core.Explanation{}, err
	}
	if s := in.Execution.Status; s == core.Running || s.Terminal() {
		return core.Explain(*in), nil
	}
	if err := look.lookAtGraph(ctx); err != nil {
		return core.Explanation{}, err
	}
	if err := look.countLeases(ctx); err != nil {
		return core.Explanation{}, err
	}
	if err := look.findLine(ctx); err != nil {
		return core.Explanation{}, err
	}
	shown := core.Explain(*in)
	found, err := look.findHolders(ctx, shown.Blockers)
	if err != nil || !found {
		return shown, err
	}
	return core.Explain(*in), nil
}
