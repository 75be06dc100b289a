package flowfabric

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// methods are the methods of a Client that are the same over every transport.
type methods struct {
	via   transport.Transport
	clock clock.Clock // by which ids are minted and waits are measured
}

func (c methods) Executions() Executions { return Executions{c.via} }
func (c methods) Flows() Flows           { return Flows(c) }
func (c methods) Operate() Operate       { return Operate{c.via} }
func (c methods) Waitpoints() Waitpoints { return Waitpoints{c.via} }
func (c methods) Events() Events         { return Events(c) }
func (c methods) Quotas() Quotas         { return Quotas{c.via} }
func (c methods) Lanes() Lanes           { return Lanes{c.via} }
func (c methods) Workers() Workers       { return Workers{c.via} }
func (c methods) Budgets() Budgets       { return Budgets{c.via} }
func (c methods) Work() Work             { return Work{c.via} }
func (c methods) Admin() Admin           { return Admin{c.via} }

// Submit gives work that brings no id one before the first try, so that a repeat is a duplicate (L86).
func (c methods) Submit(ctx context.Context, s Submission) (SubmitResult, error) {
	var how transport.Options
	minted := s.ID == ""
	if minted {
		s.ID = mintID(c.clock)
		how.Key = string(s.ID) // one new name for the call and for the work
	}
	if err := s.Check(); err != nil {
		return SubmitResult{}, err
	}
	result, err := value(transport.Call(ctx, c.via, wire.SubmitBriefly, &wire.SubmitRequest{Body: s}, how))
	if minted {
		result = firstOf(result, s.ID)
	}
	return result, err
}

// firstOf is the answer to a submit under an id that the client has minted for it: nobody else can have used the id, so a duplicate is
// one of a try whose answer was lost.
func firstOf(result SubmitResult, minted ID) SubmitResult {
	if result.Duplicate && sameID(result.ID, minted) {
		result.Duplicate = false
	}
	return result
}

func (c methods) SubmitMany(ctx context.Context, all []Submission, o ...SubmitManyOptions) ([]SubmitResult, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	results := make([]SubmitResult, len(all))
	request := &wire.SubmitManyRequest{}
	request.Body.Atomic, request.Body.Items = options.Atomic, make([]Submission, 0, len(all))
	places := make([]int, 0, len(all)) // of what is sent in all
	for i, s := range all {
		if s.ID == "" {
			s.ID = mintID(c.clock)
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
	answers, err := value(transport.Call(ctx, c.via, wire.SubmitMany, request, transport.Options{}))
	switch {
	case err != nil:
		return nil, err
	case len(answers) != len(places):
		return nil, garbled(fmt.Errorf("%d answers about %d submissions", len(answers), len(places)))
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

func (c methods) Get(ctx context.Context, id ID) (*Execution, error) {
	return c.execution(ctx, id, 0)
}

// execution shows an execution, if wait is not 0 when it has ended or the wait is over.
func (c methods) execution(ctx context.Context, id ID, wait time.Duration) (*Execution, error) {
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.GetExecutionRequest{ByID: path, WaitFields: prefer(wait), View: wire.ViewFull}
	return transport.Call(ctx, c.via, wire.GetExecution, request, transport.Options{Wait: wait})
}

// longPoll is how long one call waits; the client asks again until its caller gives up.
const longPoll = 30 * time.Second

func (c methods) Wait(ctx context.Context, id ID) (*Execution, error) {
	for {
		x, err := c.execution(ctx, id, longPoll)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
		case err != nil || x.Status.Terminal():
			return x, err
		}
	}
}

func (c methods) Cancel(ctx context.Context, id ID, reason string, o ...CancelOptions) (*Execution, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.CancelRequest{FencedByID: wire.FencedByID{ByID: path}}
	request.Body.Reason, request.Body.Expect = reason, options.Expect.wire()
	return transport.Call(ctx, c.via, wire.CancelExecution, request, transport.Options{Key: options.RequestKey})
}

func (c methods) Signal(ctx context.Context, s Signal) (SignalReceipt, error) {
	return signalVia(ctx, c.via, s)
}

func (c methods) Nudge(ctx context.Context, lanes ...string) error {
	request := &wire.NudgeRequest{}
	request.Body.Lanes = lanes
	_, err := transport.Call(ctx, c.via, wire.Nudge, request, transport.Options{})
	return err
}

// target is where a call on one execution goes, and its options; invalid_argument, invalid_id.
func target[O any](id ID, o []O) (options O, path wire.ByID, err error) {
	if options, err = single(o); err == nil {
		path, err = byID(id)
	}
	return options, path, err
}

// byID puts an id into a path; invalid_id.
func byID(id ID) (wire.ByID, error) {
	if _, err := parseID(id); err != nil {
		return wire.ByID{}, err
	}
	return wire.ByID{ID: string(id)}, nil
}

// sameID reports whether two spellings name one execution.
func sameID(a, b ID) bool {
	first, errA := parseID(a)
	second, errB := parseID(b)
	return errA == nil && errB == nil && first.UUID == second.UUID
}

// mintID makes an id before the first try, so that a repeat is a duplicate (L86).
func mintID(c clock.Clock) ID { return ID(base.IDOf(mintUUID(c)).String()) }
