package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

const (
	eventContent = "text/event-stream"
	keepAlive    = 15 * time.Second // between comments when nothing happens (E36)
	streamsFor   = 24 * time.Hour   // then the client connects again, by id
)

// push follows the log as server-sent events (E36). The first read happens before the answer begins, so that a wrong cursor is a
// problem and not a stream.
func (s *Server) push(ctx context.Context, x *exchange, r wire.EventsRequest) (answer, error) {
	r.WaitFields = wire.WaitFields{}
	if r.Limit != nil && *r.Limit == 0 {
		r.Limit = nil // a stream has no empty pages
	}
	page, err := ask(ctx, s, x.by, wire.ListEvents, &r)
	if err != nil {
		return answer{}, err
	}
	leave, err := s.sit(ctx, x, s.readers)
	if err != nil {
		return answer{}, err
	}
	if err := x.holdAnswer(memoryOf(page.Events)); err != nil {
		leave()
		s.metrics.rejected("overload")
		return answer{}, err
	}
	return answer{stream: func(ctx context.Context, x *exchange) {
		defer leave()
		defer s.metrics.enter(x, groupSSE)()
		s.follow(ctx, x, r, page)
	}}, nil
}

// follow writes events until the client goes, the server drains, the key is no longer valid, or there is no memory for them until the client has
// taken them. Resume is by the last id. The memory for the first page is held already.
func (s *Server) follow(ctx context.Context, x *exchange, r wire.EventsRequest, page *api.EventPage) {
	header := x.w.Header()
	header.Set("Content-Type", eventContent)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	stream := eventStream{x.w, page.Next}
	stream.line("retry: 2000")
	ctx, cancel := s.bounded(ctx, x, streamsFor)
	defer cancel()
	for failures := 0; ; {
		if !stream.send(page.Events) {
			return
		}
		x.dropAnswer(memoryOf(page.Events))
		page.Events = nil // they must not stay in memory while the stream waits for the next ones
		r = readOn(r, page.Next, keepAlive)
		next, err := ask(ctx, s, x.by, wire.ListEvents, &r)
		switch {
		case interrupted(ctx, err):
			return
		case errors.Is(err, api.ErrUnavailable) && failures < maxFailedReads:
			failures++
			page = &api.EventPage{Next: page.Next}
			stream.line(": waiting for the store")
			if !pause(ctx, time.Second<<failures) {
				return
			}
			continue
		case err != nil:
			s.cutOff(x, err)
			return
		}
		failures, page = 0, next
		if err := x.holdAnswer(memoryOf(page.Events)); err != nil {
			s.cutOff(x, err)
		}
		if len(page.Events) == 0 && !stream.quiet(page.Next) {
			return
		}
	}
}

// What an event, and one of its tags, takes in memory beside its texts, about.
const eventMemory, tagMemory = 512, 64

// memoryOf is how much memory events take that wait for their client, about.
func memoryOf(events []api.Event) (n int64) {
	for i := range events {
		n += eventMemory + int64(len(events[i].Data))
		for key, value := range events[i].Tags {
			n += tagMemory + int64(len(key)+len(value))
		}
	}
	return n
}

// maxFailedReads is how often a store that does not answer is asked again before the client is sent to another server.
const maxFailedReads = 4

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cutOff ends an answer that has begun in a way that no client takes for its end.
func (s *Server) cutOff(x *exchange, cause error) {
	if cause != nil && x.r.Context().Err() == nil {
		s.notes.Warn("an answer was cut off", "request_id", x.id, "route", x.routeName(), "error", cause)
	}
	panic(http.ErrAbortHandler)
}

// eventStream writes server-sent events.
type eventStream struct {
	w    *answerWriter
	last string // id that the client has
}

// line writes lines and sends them. It reports whether they could be written.
func (e *eventStream) line(lines ...string) bool {
	_, err := e.w.Write([]byte(strings.Join(lines, "\n") + "\n\n"))
	e.w.Flush()
	return err == nil
}

// sendAtOnce is how much of a page is written at once.
const sendAtOnce = 32 << 10

// send writes a page of events, each with its cursor as id. It is sent once it is complete: sending each event alone costs more than making it.
func (e *eventStream) send(events []api.Event) bool {
	if len(events) == 0 {
		return true
	}
	var text []byte
	for i := range events {
		event := &events[i]
		text = append(text, "id: "+event.Cursor+"\nevent: "+event.Kind+"\ndata: "...)
		var err error
		if text, err = wire.Append(text, event); err != nil {
			return false
		}
		if text = append(text, "\n\n"...); len(text) < sendAtOnce && i < len(events)-1 {
			continue
		}
		if _, err := e.w.Write(text); err != nil {
			return false
		}
		e.last, text = event.Cursor, text[:0]
	}
	e.w.Flush()
	return true
}

// quiet says that nothing matched: with the new position when the log moved, so that the client's does not grow old.
func (e *eventStream) quiet(position string) bool {
	if position == e.last {
		return e.line(": nothing happened")
	}
	e.last = position
	return e.line("id: "+position, "event: position", "data: {}")
}
