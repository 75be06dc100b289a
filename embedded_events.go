package flowfabric

import (
	"context"
	"iter"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedEvents struct{ client *embedded }

func (embeddedEvents) sealed() {}

func (e embeddedEvents) Read(ctx context.Context, o ...ReadOptions) (EventPage, error) {
	options, err := single(o)
	if err != nil {
		return EventPage{}, err
	}
	request, err := options.request()
	if err != nil {
		return EventPage{}, err
	}
	page, err := e.client.engine.ReadEvents(ctx, e.client.asOperator(ctx), request)
	if err != nil {
		return EventPage{}, publicError(err)
	}
	if len(page.Events) == 0 && e.client.closed.Load() {
		return EventPage{}, e.client.shuttingDown()
	}
	shown := EventPage{Events: make([]Event, len(page.Events)), Next: page.Next, AtEnd: page.AtEnd}
	for i, event := range page.Events {
		shown.Events[i] = eventOf(event)
	}
	return shown, nil
}

func (e embeddedEvents) Follow(ctx context.Context, o ...ReadOptions) iter.Seq2[Event, error] {
	return follow(ctx, e.client.clock, o, e.Read, func(err error) bool { return CodeOf(err) == string(core.CodeShuttingDown) })
}

func (o ReadOptions) request() (engine.EventsRequest, error) {
	request := engine.EventsRequest{
		After: o.After, Limit: o.Limit, Wait: o.Wait,
		Filter: engine.EventFilter{
			Kinds: o.Kinds, Lane: o.Lane, Outcome: o.Outcome, InstanceID: o.InstanceID, Tags: o.Tags, ActorType: o.ActorType, Since: core.TimeOf(o.Since),
		},
	}
	for _, part := range []struct {
		id   ID
		into **core.GivenID
	}{{o.ExecutionID, &request.Filter.ExecutionID}, {o.FlowID, &request.Filter.FlowID}} {
		if part.id == "" {
			continue
		}
		given, err := parseID(part.id)
		if err != nil {
			return engine.EventsRequest{}, err
		}
		*part.into = &given
	}
	return request, nil
}

func eventOf(l engine.LoggedEvent) Event {
	event := Event{
		ID: l.ID.String(), Cursor: l.Cursor, Kind: l.Kind, At: l.At.Std(), Namespace: l.Namespace,
		ExecutionID: idOf(l.ExecutionID), FlowID: idOf(l.FlowID), RootFlowID: idOf(l.RootFlowID), AttemptIndex: l.AttemptIndex,
		InstanceID: l.InstanceID, Tags: maps.Clone(l.Tags), ActorType: l.Actor.Type, ActorID: l.Actor.ID, RequestID: l.RequestID, Data: l.Data.JSON(),
	}
	if l.Class != nil {
		event.ExecKind, event.Lane = l.Class.Kind, l.Class.Lane
	}
	return event
}
