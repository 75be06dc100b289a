package service

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) events() {
	on(s, wire.ListEvents, s.listEvents)
}

// listEvents reads the event log (U106). A limit of 0 requests an empty page: one event is read nevertheless, because a request
// that is refused with another limit is refused with 0 too.
func (s *Service) listEvents(ctx context.Context, c Caller, r *wire.EventsRequest) (api.EventPage, error) {
	request, err := eventsRequest(r)
	if err != nil {
		return api.EventPage{}, err
	}
	empty := r.Limit != nil && *r.Limit == 0
	if empty {
		request.Limit, request.Wait = 1, 0
	}
	page, err := s.engine.ReadEvents(ctx, c.operator(), request)
	switch {
	case err != nil:
		return api.EventPage{}, err
	case empty:
		return api.EventPage{Events: []api.Event{}, Next: request.After}, nil
	case len(page.Events) == 0 && s.cfg.closed() != nil:
		return api.EventPage{}, s.cfg.closed()
	}
	return api.EventPage{Events: each(page.Events, eventOf), Next: page.Next, AtEnd: page.AtEnd}, nil
}

func eventsRequest(r *wire.EventsRequest) (engine.EventsRequest, error) {
	request := engine.EventsRequest{
		After: cmp.Or(r.Position(), api.FromEnd),
		Filter: engine.EventFilter{
			Kinds: r.Kind, Lane: r.Lane, Outcome: r.Outcome, InstanceID: r.WorkerInstanceID, ActorType: r.Actor, Since: base.TimeOf(r.Since.Time),
		},
	}
	if r.PositionFields.Limit != nil {
		request.Limit = *r.PositionFields.Limit
	}
	if r.WaitMS != nil {
		request.Wait = duration(*r.WaitMS)
	}
	if len(r.Tags) > 0 {
		request.Filter.Tags = make(map[string]string, len(r.Tags))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		value := r.Tags[key]
		if value == nil {
			return engine.EventsRequest{}, base.Errorf(base.CodeInvalidFilter, "the tag has no value").
				WithField(wire.TagArgument(key)).WithHint("write `tag.%s=VALUE`", key)
		}
		request.Filter.Tags[key] = *value
	}
	for _, part := range []struct {
		id   string
		into **base.GivenID
	}{{r.ExecutionID, &request.Filter.ExecutionID}, {r.FlowID, &request.Filter.FlowID}} {
		if part.id == "" {
			continue
		}
		given, err := base.ParseID(part.id)
		if err != nil {
			return engine.EventsRequest{}, err
		}
		*part.into = &given
	}
	return request, nil
}

// eventVersion is the version of the fields of all kinds of events.
const eventVersion = 1

func eventOf(l engine.LoggedEvent) api.Event {
	event := api.Event{
		ID: l.ID.String(), Cursor: l.Cursor, Kind: l.Kind, V: eventVersion, At: l.At.Std(), Namespace: l.Namespace,
		ExecutionID: idOf(l.ExecutionID), FlowID: idOf(l.FlowID), RootFlowID: idOf(l.RootFlowID),
		InstanceID: l.InstanceID, Tags: maps.Clone(l.Tags), Actor: api.Actor{Type: l.Actor.Type, ID: l.Actor.ID}, RequestID: l.RequestID, Data: l.Data.JSON(),
	}
	if l.AttemptIndex >= 0 {
		index := l.AttemptIndex
		event.AttemptIndex = &index
	}
	if l.Class != nil {
		event.ExecKind, event.Lane = l.Class.Kind, l.Class.Lane
	}
	return event
}
