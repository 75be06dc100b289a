package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveEvents() {
	handle(s, wire.ListEvents, s.listEvents)
	handle(s, wire.ListExecutionEvents, s.listExecutionEvents)
}

// listEvents reads or follows the log (U106).
func (s *Server) listEvents(ctx context.Context, r *wire.EventsRequest) (answer, error) {
	if x := exchangeOf(ctx); x.under == wire.OwnFeed {
		x.caller.Feed = &principal.Feed{Lanes: x.caller.key.Lanes}
		ctx = x.acting(ctx)
	}
	filter := flowfabric.EventFilter{
		Kinds: r.Kind, ExecutionID: flowfabric.ID(r.ExecutionID), FlowID: flowfabric.ID(r.FlowID), Lane: r.Lane, Outcome: r.Outcome,
		InstanceID: r.WorkerInstanceID, ActorType: r.Actor, Since: r.Since.Time,
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		value := r.Tags[key]
		if value == nil {
			return answer{}, refuse("invalid_filter", "the tag has no value").at("query.tag." + key).hint("write tag." + key + "=value")
		}
		if filter.Tags == nil {
			filter.Tags = map[string]string{}
		}
		filter.Tags[key] = *value
	}
	return s.readEvents(ctx, filter, r.PositionFields, r.WaitFields)
}

// ownEvents reports whether the events that are asked for are those of an execution or a flow that the key itself submitted.
func (s *Server) ownEvents(ctx context.Context, x *exchange, r any) (bool, error) {
	asked, ok := r.(*wire.EventsRequest)
	switch {
	case ok && asked.ExecutionID != "":
		return s.ownExecution(ctx, x, flowfabric.ID(asked.ExecutionID))
	case ok && asked.FlowID != "":
		return s.ownFlow(ctx, x, flowfabric.ID(asked.FlowID))
	default:
		return false, nil
	}
}

// ownFeed reports whether the events that are asked for are those of an instance that the key itself registered.
func (s *Server) ownFeed(ctx context.Context, x *exchange, r any) (bool, error) {
	asked, ok := r.(*wire.EventsRequest)
	if !ok || asked.WorkerInstanceID == "" {
		return false, nil
	}
	return s.owns(ctx, x, asked.WorkerInstanceID)
}

// listExecutionEvents reads or follows the events of one execution (U43).
func (s *Server) listExecutionEvents(ctx context.Context, r *wire.ExecutionEventsRequest) (answer, error) {
	if _, err := s.outline(ctx, flowfabric.ID(r.ID)); err != nil {
		return answer{}, err
	}
	return s.readEvents(ctx, flowfabric.EventFilter{ExecutionID: flowfabric.ID(r.ID)}, r.PositionFields, r.WaitFields)
}

// readEvents answers with a page, waits for one, or pushes events as they come.
func (s *Server) readEvents(ctx context.Context, filter flowfabric.EventFilter, at wire.PositionFields, fields wire.WaitFields) (answer, error) {
	options := flowfabric.ReadOptions{EventFilter: filter, After: at.Position()}
	if options.After == "" {
		options.After = flowfabric.FromEnd
	}
	if at.Limit != nil {
		if *at.Limit < 0 {
			return answer{}, refuse("invalid_argument", "a limit is not negative").at("query.limit")
		}
		options.Limit = min(*at.Limit, largestPage)
	}
	if wantsPush(exchangeOf(ctx)) {
		return s.push(ctx, options)
	}
	wait, err := waitOf(fields, eventWait)
	if err != nil {
		return answer{}, err
	}
	if at.Limit != nil && *at.Limit == 0 {
		options.Limit = 1 // what is refused with another limit is refused with 0 too
		_, err := s.client.Events().Read(ctx, options)
		return shows(flowfabric.EventPage{Next: options.After}), err
	}
	page, err := s.eventsNow(ctx, options, wait.atMost)
	return wait.told(shows(page)), err
}

// eventsNow is a page of events, or an empty one when the wait is over.
func (s *Server) eventsNow(ctx context.Context, options flowfabric.ReadOptions, wait time.Duration) (flowfabric.EventPage, error) {
	page, err := s.client.Events().Read(ctx, options)
	if err != nil || len(page.Events) > 0 || !page.AtEnd || wait <= 0 {
		return page, err
	}
	options.After = page.Next
	ended, err := s.until(ctx, s.readers, wait, func(waiting context.Context) error {
		options.Wait = wait
		next, err := s.client.Events().Read(waiting, options)
		if err == nil {
			page = next
		}
		return err
	})
	if ended || flowfabric.CodeOf(err) == "shutting_down" {
		return page, nil
	}
	return page, err
}

// wantsPush reports whether the caller accepts server-sent events (U19).
func wantsPush(x *exchange) bool {
	if x.r.Method != http.MethodGet {
		return false
	}
	for accepted := range strings.SplitSeq(x.r.Header.Get("Accept"), ",") {
		media, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(media), eventContent) {
			return true
		}
	}
	return false
}

// interrupted reports whether a read ended because its context did.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || flowfabric.CodeOf(err) == "shutting_down"
}
