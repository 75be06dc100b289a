package flowfabric

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Submit submits an execution. When it returns without an error the execution is durable.
//
// Codes: invalid_argument, invalid_policy, invalid_capabilities, invalid_tag_key, payload_too_large, idempotency_conflict,
// id_conflict, idempotency_in_progress, lane_not_accepting.
func (c *Client) Submit(ctx context.Context, s Submission) (SubmitResult, error) {
	var how transport.Options
	minted := s.ID == ""
	if minted {
		s.ID = mint.ID(c.conn.Clock)
		how.Key = string(s.ID) // one new key for both the call and the work
	}
	if err := s.Check(); err != nil {
		return SubmitResult{}, err
	}
	result, err := calls.Value(transport.Call(ctx, c.conn, wire.SubmitBriefly, &wire.SubmitRequest{Body: s}, how))
	if minted {
		result = firstOf(result, s.ID)
	}
	return result, err
}

// firstOf returns the answer to a submit under an id that the client generated: no other caller can have used the id, so a
// duplicate was made by an earlier try whose answer was lost.
func firstOf(result SubmitResult, minted ID) SubmitResult {
	if result.Duplicate && sameID(result.ID, minted) {
		result.Duplicate = false
	}
	return result
}

// SubmitMany submits up to 10 000 executions of 64 MiB in total. Each is accepted or refused on its own, see its Err; the answers
// are in the order of the submissions. With Atomic all of them are accepted or none.
//
// Codes of the call: batch_too_large; with Atomic also the first refusal, whose Current has its index.
func (c *Client) SubmitMany(ctx context.Context, all []Submission, o ...SubmitManyOptions) ([]SubmitResult, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	results := make([]SubmitResult, len(all))
	request := &wire.SubmitManyRequest{}
	request.Body.Atomic, request.Body.Items = options.Atomic, make([]Submission, 0, len(all))
	places := make([]int, 0, len(all)) // indexes in all of the submissions that are sent
	for i, s := range all {
		if s.ID == "" {
			s.ID = mint.ID(c.conn.Clock)
		}
		err := s.Check()
		switch {
		case err == nil:
			request.Body.Items, places = append(request.Body.Items, s), append(places, i)
		case options.Atomic:
			return nil, api.AtIndex(err, i)
		default:
			results[i] = SubmitResult{ID: all[i].ID, Err: err}
		}
	}
	if len(places) == 0 {
		return results, nil
	}
	answers, err := calls.Value(transport.Call(ctx, c.conn, wire.SubmitMany, request, transport.Options{}))
	switch {
	case err != nil:
		return nil, err
	case len(answers) != len(places):
		return nil, transport.Garbled(fmt.Errorf("%d answers about %d submissions", len(answers), len(places)))
	}
	for n, result := range answers {
		i := places[n]
		switch {
		case result.Err != nil:
			result = SubmitResult{ID: all[i].ID, Err: result.Err}
		case all[i].ID == "":
			result = firstOf(result, request.Body.Items[n].ID)
		}
		results[i] = result
	}
	return results, nil
}

// Get returns an execution. Codes: execution_not_found.
func (c *Client) Get(ctx context.Context, id ID) (*Execution, error) {
	return c.execution(ctx, id, 0)
}

// execution returns an execution; if wait is not 0, once it has ended or the wait is over.
func (c *Client) execution(ctx context.Context, id ID, wait time.Duration) (*Execution, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.GetExecutionRequest{ByID: path, WaitFields: wire.WaitUpTo(wait), View: wire.ViewFull}
	return transport.Call(ctx, c.conn, wire.GetExecution, request, transport.Options{Wait: wait})
}

// Wait returns the execution once it has ended, with any outcome. It waits as long as ctx allows.
//
// Codes: execution_not_found.
func (c *Client) Wait(ctx context.Context, id ID) (*Execution, error) {
	var idle backoff.Idle
	for {
		began := c.conn.Clock.Now()
		x, err := c.execution(ctx, id, calls.LongPoll)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
		case err != nil || x.Status.Terminal():
			return x, err
		}
		idle.Pause(ctx, c.conn.Clock, began, calls.LongPoll)
	}
}

// Cancel ends an execution that has not ended. Cancelling a cancelled execution succeeds.
//
// Codes: execution_not_found, execution_not_active, precondition_failed (Expect), idempotency_conflict (the request key was used
// for something else).
func (c *Client) Cancel(ctx context.Context, id ID, reason string, o ...CancelOptions) (*Execution, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.CancelRequest{FencedByID: wire.FencedByID{ByID: path}}
	request.Body.Reason, request.Body.Expect = reason, calls.Expected(string(options.Expect.Status), options.Expect.LeaseID, options.Expect.LeaseEpoch)
	return transport.Call(ctx, c.conn, wire.CancelExecution, request, transport.Options{Key: options.RequestKey})
}

// Signal delivers a signal about an outside event to waiting work. The token is the only credential that it needs.
//
// Codes: missing_token, invalid_token for every token that does not open the waitpoint, invalid_signal, reserved_name,
// reserved_source_type, payload_too_large, waitpoint_expired, waitpoint_closed, signal_limit_exceeded.
func (c *Client) Signal(ctx context.Context, s Signal) (api.SignalReceipt, error) {
	return signalVia(ctx, c.conn, s)
}

// Nudge makes the engine look for work now, in these lanes or in all of them. Use it after a transactional submit has committed.
//
// Codes: invalid_argument for an invalid lane name.
func (c *Client) Nudge(ctx context.Context, lanes ...string) error {
	request := &wire.NudgeRequest{}
	request.Body.Lanes = lanes
	_, err := transport.Call(ctx, c.conn, wire.Nudge, request, transport.Options{})
	return err
}

// sameID reports whether two spellings name one execution.
func sameID(a, b ID) bool {
	first, errA := calls.ParseID(a)
	second, errB := calls.ParseID(b)
	return errA == nil && errB == nil && first.UUID == second.UUID
}

// malformedToken replaces a text that a header cannot carry: it is refused as an invalid token.
const malformedToken = "malformed"

// signalVia is Client.Signal over a transport. The token is sent in a header. A signal without an identifier of its own is
// identified by the key of the call.
func signalVia(ctx context.Context, via transport.Transport, s Signal) (api.SignalReceipt, error) {
	if err := s.Payload.Problem("payload"); err != nil {
		return api.SignalReceipt{}, err
	}
	token := s.Token.Reveal()
	if !wire.HeaderText(token) {
		token = malformedToken
	}
	if s.ExecutionID == "" {
		request := &wire.SendSignalRequest{Waitpoint: calls.Segment(s.WaitpointID), Token: token, Body: wire.SignalFields{Signal: s}}
		return calls.Value(transport.Call(ctx, via, wire.SendSignal, request, transport.Options{}))
	}
	request := &wire.SendExecutionSignalRequest{ID: string(s.ExecutionID), Token: token}
	request.Body.WaitpointID, request.Body.Signal = s.WaitpointID, s
	return calls.Value(transport.Call(ctx, via, wire.SendExecutionSignal, request, transport.Options{}))
}
