package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
)

// Kind is a kind of work with the types of its input and its result; an untyped string constant can be used as one. []byte,
// string and Payload are sent unchanged, None means no payload, everything else is JSON. Names have 1..128 bytes of 0x21..0x7e.
type Kind[In, Out any] string

// Submit submits an execution. When it returns without an error the execution is durable. Several option structs are merged: what a
// later one sets replaces what an earlier one has.
//
// Codes: invalid_argument, invalid_id, invalid_policy, invalid_capabilities, invalid_tag_key, payload_too_large,
// idempotency_conflict, id_conflict, idempotency_in_progress, lane_not_accepting, overloaded, store_unavailable, timeout.
func (k Kind[In, Out]) Submit(ctx context.Context, c *Client, in In, opts ...SubmitOptions) (*Run[Out], error) {
	result, err := c.Submit(ctx, k.Submission(in, opts...))
	if err != nil {
		return nil, err
	}
	return &Run[Out]{client: c, id: result.ID, duplicate: result.Duplicate}, nil
}

// Submission returns the submission that Submit sends, for SubmitMany and SubmitTx.
func (k Kind[In, Out]) Submission(in In, opts ...SubmitOptions) Submission {
	return Submission{Kind: string(k), Input: encode(in), SubmitOptions: merged(opts)}
}

// merged merges option structs: the later ones win.
func merged(all []SubmitOptions) (o SubmitOptions) {
	for _, more := range all {
		o = o.Merged(more)
	}
	return o
}

// With returns the kind with default options, such as a lane, tags or a retry policy, for everything that is submitted through it.
// Options given with a submit replace them one by one, those of the policy too.
func (k Kind[In, Out]) With(defaults ...SubmitOptions) KindWith[In, Out] {
	return KindWith[In, Out]{kind: k, defaults: merged(defaults)}
}

// KindWith is a Kind with default options. Make it with Kind.With.
type KindWith[In, Out any] struct {
	kind     Kind[In, Out]
	defaults SubmitOptions
}

// Kind returns the kind without the default options, for Handle.
func (k KindWith[In, Out]) Kind() Kind[In, Out] { return k.kind }

// Submit is Kind.Submit with the default options.
func (k KindWith[In, Out]) Submit(ctx context.Context, c *Client, in In, opts ...SubmitOptions) (*Run[Out], error) {
	return k.kind.Submit(ctx, c, in, k.options(opts))
}

// Submission is Kind.Submission with the default options.
func (k KindWith[In, Out]) Submission(in In, opts ...SubmitOptions) Submission {
	return k.kind.Submission(in, k.options(opts))
}

// Node is Kind.Node with the default options.
func (k KindWith[In, Out]) Node(name string, in In, opts ...SubmitOptions) Node {
	return k.kind.Node(name, in, k.options(opts))
}

func (k KindWith[In, Out]) options(opts []SubmitOptions) SubmitOptions {
	return k.defaults.Merged(merged(opts))
}

// Submission is an execution to submit.
type Submission = api.Submission

// SubmitOptions set where, when and how an execution runs. The zero value is ready to use.
type SubmitOptions = api.SubmitOptions

// SubmitResult is the answer to a submit.
type SubmitResult = api.SubmitResult

// Run is a submitted execution with the type of its result.
type Run[Out any] struct {
	client    *Client
	id        ID
	duplicate bool
}

// Attach returns a Run of the execution with an id. It makes no call.
func Attach[Out any](c *Client, id ID) *Run[Out] { return &Run[Out]{client: c, id: id} }

// ID returns the id of the execution.
func (r *Run[Out]) ID() ID { return r.id }

// Duplicate reports whether the idempotency key or id had been used before, for the same work.
func (r *Run[Out]) Duplicate() bool { return r.duplicate }

// Result waits for the end of the execution and decodes its result. If it did not succeed the error is an *ExecutionError.
//
// Codes: execution_not_found, invalid_json if the result cannot be decoded into Out.
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

// Wait returns once the execution has ended, with any outcome, or ctx ends.
//
// Codes: execution_not_found.
func (r *Run[Out]) Wait(ctx context.Context) (*Execution, error) { return r.client.Wait(ctx, r.id) }

// Cancel ends the execution unless it has ended. Cancelling a cancelled execution succeeds.
//
// Codes: execution_not_found, execution_not_active.
func (r *Run[Out]) Cancel(ctx context.Context, reason string) error {
	_, err := r.client.Cancel(ctx, r.id, reason)
	return err
}
