package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteEvents struct{ client *remote }

func (remoteEvents) sealed() {}

func (r remoteEvents) Read(ctx context.Context, o ...ReadOptions) (EventPage, error) {
	options, err := single(o)
	if err != nil {
		return EventPage{}, err
	}
	for _, id := range []ID{options.ExecutionID, options.FlowID} {
		if id == "" {
			continue
		}
		if _, err := parseID(id); err != nil {
			return EventPage{}, err
		}
	}
	wait, asked := min(options.Wait, followPiece), r.client.clock.Now()
	answer, err := call(ctx, r.client, wire.ListEvents, options.wire(), sending{wait: wait})
	if err != nil {
		return EventPage{}, err
	}
	if len(answer.Items) == 0 {
		r.client.rest(ctx, asked, wait)
	}
	return eventPageFrom(answer), nil
}

func (o ReadOptions) wire() *wire.EventsRequest {
	request := &wire.EventsRequest{
		PositionFields: wire.PositionFields{After: o.After}, Kind: o.Kinds, ExecutionID: string(o.ExecutionID), FlowID: string(o.FlowID),
		Lane: o.Lane, Outcome: o.Outcome, WorkerInstanceID: o.InstanceID, Actor: o.ActorType, Since: wireTime(o.Since),
	}
	if o.Limit != 0 {
		request.PositionFields.Limit = &o.Limit
	}
	if o.Wait != 0 {
		wait := millis(o.Wait)
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

// Follow reads on from the last position by long polls.
func (r remoteEvents) Follow(ctx context.Context, o ...ReadOptions) iter.Seq2[Event, error] {
	return follow(ctx, r.client.clock, o, r.Read, func(error) bool { return r.client.isClosed() })
}
