package flowfabric

import (
	"context"
	"maps"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Kind is a kind of work with the types of its input and its result; an untyped string constant is one. []byte, string and
// Payload travel as they are, None is nothing, everything else is JSON. Names have 1..128 bytes of 0x21..0x7e.
type Kind[In, Out any] string

// Submit hands in a piece of work. When it returns without an error the execution is durable.
//
// Codes: invalid_argument, invalid_id, invalid_policy, invalid_capabilities, invalid_tag_key, payload_too_large,
// idempotency_conflict, id_conflict, idempotency_in_progress, lane_not_accepting, overloaded, store_unavailable, timeout.
func (k Kind[In, Out]) Submit(ctx context.Context, c Client, in In, opts ...SubmitOptions) (*Run[Out], error) {
	o, err := single(opts)
	if err != nil {
		return nil, err
	}
	result, err := c.Submit(ctx, Submission{Kind: string(k), Input: encode(in), SubmitOptions: o})
	if err != nil {
		return nil, err
	}
	return &Run[Out]{client: c, id: result.ID, duplicate: result.Duplicate}, nil
}

// Submission is what Submit sends, for SubmitMany and SubmitTx. Two option structs are refused by the call that uses it.
func (k Kind[In, Out]) Submission(in In, opts ...SubmitOptions) Submission {
	o, err := single(opts)
	s := Submission{Kind: string(k), Input: encode(in), SubmitOptions: o}
	if err != nil {
		s.Input = api.Failed(err)
	}
	return s
}

// Submission is a piece of work to do.
type Submission struct {
	Kind  string
	Input Payload
	SubmitOptions
}

// SubmitOptions say where, when and how. The zero value is useful.
type SubmitOptions struct {
	ID             ID     // minted by the client when empty, so that a repeat is a duplicate
	Lane           string // "default"
	IdempotencyKey string // one execution in a namespace has it at a time
	Priority       int    // 0..9000, higher first; clamped, never refused
	Delay          time.Duration
	StartAt        time.Time // instead of Delay
	Deadline       time.Time // not done by then: expired
	Tags           map[string]string
	Requires       []string // capabilities a worker must have
	BudgetIDs      []string // budgets that it uses, by id or name; up to 16
	// Estimate is what it is expected to use, by dimension: reserved when it starts.
	Estimate map[string]int64
	Budgets  []BudgetDefinition // that are made with it and cover it; up to 4
	Quotas   []QuotaUse         // that limit when it starts; up to 8
	Policy   *Policy            // nil: no retry, engine defaults
}

// short are the options that are short for fields of the policy.
func (o *SubmitOptions) short() Policy {
	return Policy{Capabilities: o.Requires, BudgetIDs: o.BudgetIDs, Estimate: o.Estimate, Budgets: o.Budgets, Quotas: o.Quotas}
}

// SubmitResult is the answer to a submit.
type SubmitResult struct {
	ID          ID
	Duplicate   bool // the idempotency key or id had been used before, for the same work
	PublicState string
	Priority    int   // as clamped
	Err         error // of SubmitMany: why this item was refused
}

// Run is an execution that was submitted, with the type of its result.
type Run[Out any] struct {
	client    Client
	id        ID
	duplicate bool
}

// Attach makes a Run of an execution that is known by its id. It reads nothing.
func Attach[Out any](c Client, id ID) *Run[Out] { return &Run[Out]{client: c, id: id} }

// ID names the execution.
func (r *Run[Out]) ID() ID { return r.id }

// Duplicate tells that the idempotency key or id had been used before, for the same work.
func (r *Run[Out]) Duplicate() bool { return r.duplicate }

// Result waits for the end and decodes the result. An execution that ended otherwise gives an *ExecutionError.
//
// Codes: execution_not_found, invalid_json when the result is not an Out.
func (r *Run[Out]) Result(ctx context.Context) (out Out, err error) {
	x, err := r.Wait(ctx)
	if err != nil {
		return out, err
	}
	if x.Status != StatusSucceeded {
		return out, &ExecutionError{ID: x.ID, Status: x.Status, Reason: x.Reason, Failure: x.Failure}
	}
	result := x.Result
	if result.Omitted() {
		if result, err = r.client.Executions().Result(ctx, r.id); err != nil {
			return out, err
		}
	}
	return decode[Out](result)
}

// Wait returns when the execution has ended, however it ended, or when ctx ends.
//
// Codes: execution_not_found.
func (r *Run[Out]) Wait(ctx context.Context) (*Execution, error) { return r.client.Wait(ctx, r.id) }

// Cancel ends the execution unless it has ended. One that was cancelled before is a success.
//
// Codes: execution_not_found, execution_not_active.
func (r *Run[Out]) Cancel(ctx context.Context, reason string) error {
	_, err := r.client.Cancel(ctx, r.id, reason)
	return err
}

// core checks what only the client can check and converts the rest for the engine. The id must be set.
func (s Submission) core(namespace string) (core.Submission, error) {
	if err := s.Input.Problem("input"); err != nil {
		return core.Submission{}, err
	}
	id, err := parseID(s.ID)
	if err != nil {
		return core.Submission{}, err
	}
	policy, err := encodePolicy(s.Policy, s.short())
	if err != nil {
		return core.Submission{}, err
	}
	sub := core.Submission{
		ID: &id, Namespace: namespace, Lane: s.Lane, Kind: s.Kind, Input: service.CorePayload(s.Input), Priority: s.Priority,
		IdempotencyKey: s.IdempotencyKey, Tags: maps.Clone(s.Tags), PolicyJSON: policy,
		DelayUntil: core.TimeOf(s.StartAt), DeadlineAt: core.TimeOf(s.Deadline),
	}
	if s.Delay != 0 {
		delay := millis(s.Delay)
		sub.DelayMS = &delay
	}
	return sub, nil
}
