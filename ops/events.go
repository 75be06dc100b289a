package ops

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Events reads the event log. All readers see the same order; events are kept for a week by default.
type Events struct {
	via   transport.Transport
	clock clock.Clock // used by Follow to pause while the log cannot be read
}

// ReadOptions select the events to read.
type ReadOptions struct {
	EventFilter
	After string        // a cursor, FromStart or FromEnd (default)
	Limit int           // of a page; 0: 100, at most 1000
	Wait  time.Duration // Read: how long to wait while there are no events, up to 30 s
}

// EventFilter selects events for which all given parts hold.
type EventFilter struct {
	Kinds       []string // exact, or a prefix that ends in a dot ("execution."); several: any of them
	ExecutionID api.ID
	FlowID      api.ID
	Lane        string
	Outcome     string // of execution.completed: success, failed, cancelled, expired, skipped
	InstanceID  string // of the worker
	Tags        map[string]string
	ActorType   string // client, worker, operator, approver, engine
	Since       time.Time
}

// Read returns the events after a position. Codes: invalid_cursor, invalid_filter, cursor_too_old.
func (e Events) Read(ctx context.Context, o ...ReadOptions) (api.EventPage, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.EventPage{}, err
	}
	for _, id := range []api.ID{options.ExecutionID, options.FlowID} {
		if id == "" {
			continue
		}
		if _, err := calls.ParseID(id); err != nil {
			return api.EventPage{}, err
		}
	}
	return calls.Value(transport.Call(ctx, e.via, wire.ListEvents, options.wire(), transport.Options{Wait: min(options.Wait, followPiece)}))
}

// followPiece is how long one read of Follow waits.
const followPiece = 30 * time.Second

// Follow returns events as they happen until ctx ends; it then ends without an error. It keeps trying through interruptions of
// the store. Each event is returned at least once, in order; keep Event.Cursor to continue later.
//
// Codes: invalid_cursor, invalid_filter, cursor_too_old.
func (e Events) Follow(ctx context.Context, o ...ReadOptions) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		options, err := transport.Single(o)
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		options.Wait = followPiece
		var idle backoff.Idle
		for try := 0; ctx.Err() == nil; {
			began := e.clock.Now()
			page, err := e.Read(ctx, options)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && (!errors.Is(err, api.ErrUnavailable) || isClosed(err)):
				yield(api.Event{}, err)
				return
			case err != nil:
				backoff.Pause(ctx, e.clock, max(backoff.Delay(try), api.RetryDelay(err)))
				try++
				continue
			}
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			try, options.After = 0, page.Next
			if len(page.Events) == 0 && page.AtEnd {
				idle.Pause(ctx, e.clock, began, followPiece)
			} else {
				idle.News()
			}
		}
	}
}

// isClosed reports whether an error means that the client itself was closed. A server that is shutting down returns the same
// code, but only an error from this process has one of the engine as its cause.
func isClosed(err error) bool {
	var here *base.Error
	return errors.As(err, &here) && here.Code == base.CodeShuttingDown
}

func (o ReadOptions) wire() *wire.EventsRequest {
	request := &wire.EventsRequest{
		PositionFields: wire.PositionFields{After: o.After}, Kind: o.Kinds, ExecutionID: string(o.ExecutionID), FlowID: string(o.FlowID),
		Lane: o.Lane, Outcome: o.Outcome, WorkerInstanceID: o.InstanceID, Actor: o.ActorType, Since: calls.Time(o.Since),
	}
	if o.Limit != 0 {
		request.PositionFields.Limit = &o.Limit
	}
	if o.Wait != 0 {
		wait := calls.Millis(o.Wait)
		request.WaitMS = &wait
	}
	if len(o.Tags) > 0 {
		request.Tags = make(map[string]*string, len(o.Tags))
	}
	for key, value := range o.Tags {
		request.Tags[key] = &value
	}
	return request
}
