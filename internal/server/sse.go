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

// pushed is a page of what is pushed.
type pushed struct {
	items  []pushItem
	memory int64  // what the items take until the client has taken them, about
	next   string // position after them
	done   bool   // nothing follows
}

// pushItem is one server-sent event.
type pushItem struct {
	id, event string // id "": it has none
	data      any
}

// reading reads what follows a position, waiting for it.
type reading func(ctx context.Context, after string, wait time.Duration) (*pushed, error)

// push answers with server-sent events (E20, E36). The first page was read before the answer begins, so that a wrong cursor is a problem and not a
// stream.
func (s *Server) push(ctx context.Context, x *exchange, page *pushed, read reading) (answer, error) {
	leave, err := s.sit(ctx, x, s.readers)
	if err != nil {
		return answer{}, err
	}
	if err := x.holdAnswer(page.memory); err != nil {
		leave()
		s.metrics.rejected("overload")
		return answer{}, err
	}
	return answer{stream: func(ctx context.Context, x *exchange) {
		defer leave()
		defer s.metrics.enter(x, groupSSE)()
		s.pushOn(ctx, x, page, read)
	}}, nil
}

// pushOn writes items until nothing follows, the client goes, the server drains, the key is no longer valid, or there is no memory for them until the
// client has taken them. Resume is by the last id. The memory for the first page is held already.
func (s *Server) pushOn(ctx context.Context, x *exchange, page *pushed, read reading) {
	header := x.w.Header()
	header.Set("Content-Type", eventContent)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	stream := eventStream{x.w, page.next}
	stream.line("retry: 2000")
	ctx, cancel := s.bounded(ctx, x, streamsFor)
	defer cancel()
	for failures := 0; ; {
		if !stream.send(page.items) || page.done {
			return
		}
		x.dropAnswer(page.memory)
		page.items, page.memory = nil, 0 // they must not stay in memory while the stream waits for the next ones
		next, err := read(ctx, page.next, keepAlive)
		switch {
		case interrupted(ctx, err):
			return
		case errors.Is(err, api.ErrUnavailable) && failures < maxFailedReads:
			failures++
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
		if err := x.holdAnswer(page.memory); err != nil {
			s.cutOff(x, err)
		}
		if len(page.items) == 0 && !page.done && !stream.quiet(page.next) {
			return
		}
	}
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

// send writes items. They are sent once all are written: sending each alone costs more than making it.
func (e *eventStream) send(items []pushItem) bool {
	if len(items) == 0 {
		return true
	}
	var text []byte
	for i := range items {
		item := &items[i]
		if item.id != "" {
			text = append(text, "id: "+item.id+"\n"...)
			e.last = item.id
		}
		text = append(text, "event: "+item.event+"\ndata: "...)
		var err error
		if text, err = wire.Append(text, item.data); err != nil {
			return false
		}
		if text = append(text, "\n\n"...); len(text) < sendAtOnce && i < len(items)-1 {
			continue
		}
		if _, err := e.w.Write(text); err != nil {
			return false
		}
		text = text[:0]
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
