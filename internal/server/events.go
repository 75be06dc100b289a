package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveEvents() {
	handle(s, wire.ListEvents, s.listEvents)
	handle(s, wire.ListExecutionEvents, s.listExecutionEvents)
}

// listEvents reads or follows the log (U106).
func (s *Server) listEvents(ctx context.Context, x *exchange, r *wire.EventsRequest) (answer, error) {
	if x.under == wire.OwnFeed {
		x.caller.Feed = &service.Feed{Lanes: x.caller.key.Lanes}
		x.by = x.acting()
	}
	return s.readEvents(ctx, x, r)
}

// ownEvents reports whether the events that are asked for are those of an execution or a flow that the key itself submitted.
func (s *Server) ownEvents(ctx context.Context, x *exchange, r any) (bool, error) {
	asked, ok := r.(*wire.EventsRequest)
	switch {
	case ok && asked.ExecutionID != "":
		return s.ownExecution(ctx, x, api.ID(asked.ExecutionID))
	case ok && asked.FlowID != "":
		return s.ownFlow(ctx, x, api.ID(asked.FlowID))
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
func (s *Server) listExecutionEvents(ctx context.Context, x *exchange, r *wire.ExecutionEventsRequest) (answer, error) {
	if _, err := s.outline(ctx, x.by, api.ID(r.ID)); err != nil {
		return answer{}, err
	}
	return s.readEvents(ctx, x, &wire.EventsRequest{WaitFields: r.WaitFields, PositionFields: r.PositionFields, ExecutionID: r.ID})
}

// readEvents answers with a page, waits for one, or pushes events as they come.
func (s *Server) readEvents(ctx context.Context, x *exchange, r *wire.EventsRequest) (answer, error) {
	if wantsPush(x) {
		return s.pushEvents(ctx, x, *r)
	}
	wait, err := waitOf(r.WaitFields, eventWait)
	if err != nil {
		return answer{}, err
	}
	if r.Limit != nil && *r.Limit == 0 {
		page, err := ask(ctx, s, x.by, wire.ListEvents, r)
		return shows(page), err
	}
	page, err := s.eventsNow(ctx, x, *r, wait.atMost)
	return wait.applied(shows(page)), err
}

// eventsNow is a page of events, or an empty one when the wait is over.
func (s *Server) eventsNow(ctx context.Context, x *exchange, r wire.EventsRequest, wait time.Duration) (*api.EventPage, error) {
	r.WaitFields = wire.WaitFields{}
	page, err := ask(ctx, s, x.by, wire.ListEvents, &r)
	if err != nil || len(page.Events) > 0 || !page.AtEnd || wait <= 0 {
		return page, err
	}
	r = readOn(r, page.Next, wait)
	ended, err := s.until(ctx, x, s.readers, wait, func(waiting context.Context) error {
		next, err := ask(waiting, s, x.by, wire.ListEvents, &r)
		if err == nil {
			page = next
		}
		return err
	})
	if ended || api.CodeOf(err) == "shutting_down" {
		return page, nil
	}
	return page, err
}

// pushEvents follows the log (E36).
func (s *Server) pushEvents(ctx context.Context, x *exchange, r wire.EventsRequest) (answer, error) {
	r.WaitFields = wire.WaitFields{}
	if r.Limit != nil && *r.Limit == 0 {
		r.Limit = nil // a stream has no empty pages
	}
	read := func(ctx context.Context) (*pushed, error) {
		page, err := ask(ctx, s, x.by, wire.ListEvents, &r)
		if err != nil {
			return nil, err
		}
		return pushedEvents(page), nil
	}
	first, err := read(ctx)
	if err != nil {
		return answer{}, err
	}
	return s.push(ctx, x, first, func(ctx context.Context, after string, wait time.Duration) (*pushed, error) {
		r = readOn(r, after, wait)
		return read(ctx)
	})
}

// What an event, and one of its tags, takes in memory beside its texts, about.
const eventMemory, tagMemory = 512, 64

// pushedEvents are events to push, each with its cursor as id.
func pushedEvents(page *api.EventPage) *pushed {
	p := &pushed{items: make([]pushItem, len(page.Events)), next: page.Next}
	for i := range page.Events {
		event := &page.Events[i]
		p.items[i] = pushItem{event.Cursor, event.Kind, event}
		p.memory += eventMemory + int64(len(event.Data))
		for key, value := range event.Tags {
			p.memory += tagMemory + int64(len(key)+len(value))
		}
	}
	return p
}

// readOn is the same request after a position, which waits for what happens there.
func readOn(r wire.EventsRequest, after string, wait time.Duration) wire.EventsRequest {
	ms := wait.Milliseconds()
	r.PositionFields = wire.PositionFields{After: after, Limit: r.Limit}
	r.WaitFields = wire.WaitFields{WaitMS: &ms}
	return r
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
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || api.CodeOf(err) == "shutting_down"
}
