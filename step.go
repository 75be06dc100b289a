package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
)

// Step runs do once and stores its result: every later call of the handler, in this attempt or another of the same run, gets that
// result without running do. An error is not stored. Names have 1..128 bytes of 0x21..0x7e; a name that is used again in one call
// of the handler gets "#2", "#3" and so on, in order of use; a name that itself ends like that is stored with "#1" appended. Only
// names identify steps: the handler need not be deterministic.
//
// After a crash between do and the storing of its result, do runs again: use Task.EffectKey for effects outside. Results are
// encoded as by Kind.
//
// Codes: invalid_argument (name, or a result that does not encode), payload_too_large above 1 MiB, step_limit_exceeded above 10
// 000 steps, invalid_json if a stored result cannot be decoded into T, stale_lease, lease_revoked, execution_not_active.
func Step[T any](ctx context.Context, t *Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	name = t.steps.next(name)
	stored, found, err := t.storedStep(ctx, name)
	if err != nil {
		return none, err
	}
	if found {
		return decode[T](stored)
	}
	ctx, span := t.startStep(ctx, name)
	code := categoryPanic // unless it returns
	defer func() { span.end(code) }()
	value, err := runStep(ctx, t, name, do)
	code = stepCode(err)
	return value, err
}

// runStep runs do and stores its result, or returns the one that another call stored meanwhile.
func runStep[T any](ctx context.Context, t *Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	value, err := do(ctx)
	if err != nil {
		return none, err
	}
	answer, err := t.storeStep(ctx, name, encode(value))
	if err != nil {
		return none, err
	}
	if answer.Outcome == "exists" && answer.Step != nil {
		return decode[T](answer.Step.Result)
	}
	return value, nil
}

// storedStep returns the result of an earlier call. They are read once; the first lease of an execution has none.
func (t *Task) storedStep(ctx context.Context, name string) (Payload, bool, error) {
	if t.claimed.Lease.Epoch <= 1 {
		return Payload{}, false, nil
	}
	t.steps.reading.Lock()
	defer t.steps.reading.Unlock()
	if t.steps.stored == nil {
		records, err := t.runner.client.Executions().Steps(ctx, t.claimed.ID)
		if err != nil {
			return Payload{}, false, err
		}
		t.steps.stored = make(map[string]Payload, len(records))
		for _, r := range records {
			t.steps.stored[r.Name] = r.Result
		}
	}
	result, found := t.steps.stored[name]
	return result, found, nil
}

// storeStep stores a result. The result of do is stored even if ctx has ended, as long as the lease is valid.
func (t *Task) storeStep(ctx context.Context, name string, result Payload) (api.WorkAnswer, error) {
	return t.keepUntilAnswered(ctx, api.WorkItem{Op: api.OpStep, Step: name, Result: result})
}
