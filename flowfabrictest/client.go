package flowfabrictest

import (
	"context"
	"crypto/rand"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// again makes a call, and makes it again when the process died under it. The call must recognise its repeats.
func again[T any](ctx context.Context, e *Env, call func(ctx context.Context, c flowfabric.Client) (T, error)) (T, error) {
	for {
		p := e.alive(ctx)
		during, cancel := p.during(ctx)
		answer, err := call(during, p.client)
		cancel()
		if err == nil || !p.dead() || ctx.Err() != nil {
			return answer, err
		}
	}
}

// Submit is that of the client. It survives the death of the process.
func (e *Env) Submit(ctx context.Context, s flowfabric.Submission) (flowfabric.SubmitResult, error) {
	minted := s.ID == ""
	if minted {
		s.ID = e.mintID()
	}
	tries := 0
	result, err := again(ctx, e, func(ctx context.Context, c flowfabric.Client) (flowfabric.SubmitResult, error) {
		tries++
		return c.Submit(ctx, s)
	})
	if minted && tries > 1 && result.ID == s.ID {
		result.Duplicate = false // a try whose answer was lost had created it
	}
	return result, err
}

// SubmitMany is that of the client. It survives the death of the process.
func (e *Env) SubmitMany(ctx context.Context, all []flowfabric.Submission, o ...flowfabric.SubmitManyOptions) ([]flowfabric.SubmitResult, error) {
	own := make([]flowfabric.Submission, len(all))
	for i, s := range all {
		if s.ID == "" {
			s.ID = e.mintID()
		}
		own[i] = s
	}
	tries := 0
	results, err := again(ctx, e, func(ctx context.Context, c flowfabric.Client) ([]flowfabric.SubmitResult, error) {
		tries++
		return c.SubmitMany(ctx, own, o...)
	})
	for i := range results {
		if all[i].ID == "" && tries > 1 && results[i].ID == own[i].ID {
			results[i].Duplicate = false
		}
	}
	return results, err
}

// Get is that of the client.
func (e *Env) Get(ctx context.Context, id flowfabric.ID) (*flowfabric.Execution, error) {
	return again(ctx, e, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Execution, error) { return c.Get(ctx, id) })
}

// Wait is that of the client. What needs time to end ends when the clock is turned: Advance first.
func (e *Env) Wait(ctx context.Context, id flowfabric.ID) (*flowfabric.Execution, error) {
	return again(ctx, e, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Execution, error) { return c.Wait(ctx, id) })
}

// Cancel is that of the client. It survives the death of the process.
func (e *Env) Cancel(ctx context.Context, id flowfabric.ID, reason string, o ...flowfabric.CancelOptions) (*flowfabric.Execution, error) {
	return again(ctx, e, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Execution, error) {
		return c.Cancel(ctx, id, reason, o...)
	})
}

// Nudge is that of the client.
func (e *Env) Nudge(ctx context.Context, lanes ...string) error {
	_, err := again(ctx, e, func(ctx context.Context, c flowfabric.Client) (struct{}, error) {
		return struct{}{}, c.Nudge(ctx, lanes...)
	})
	return err
}

// Executions reads executions. Lists and counts settle first: what they read follows the log.
func (e *Env) Executions() flowfabric.Executions { return flowfabric.NewExecutions(e) }

// Flows are graphs of executions. Its commands survive the death of the process.
func (e *Env) Flows() flowfabric.Flows { return flowfabric.NewFlows(e, e.clock) }

// Events reads the log.
func (e *Env) Events() flowfabric.Events { return flowfabric.NewEvents(e, e.clock) }

// Work is the worker protocol, for tests that act as a worker. Its commands survive the death of the process.
func (e *Env) Work() flowfabric.Work { return flowfabric.NewWork(e) }

// mintID makes an id before the first try.
func (e *Env) mintID() flowfabric.ID { return flowfabric.ID(base.IDOf(e.mint()).String()) }

// mintKey makes a request key before the first try.
func (e *Env) mintKey() string { return e.mint().String() }

func (e *Env) mint() base.UUID {
	var random [10]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return e.minter.Mint(e.clock.Now(), random)
}
