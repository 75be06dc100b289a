package server

import (
	"context"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveStreams() {
	handle(s, wire.ReadStream, s.readStream)
	handle(s, wire.FollowStreams, s.followStreams)
	handle(s, wire.GetSummary, s.getSummary)
}

// readStream reads the stream of one attempt, waits for what it says, or pushes it (U107).
func (s *Server) readStream(ctx context.Context, x *exchange, r *wire.ReadStreamRequest) (answer, error) {
	if wantsPush(x) {
		return s.pushStream(ctx, x, &wire.OpenStreamRequest{ByID: r.ByID, N: r.N, From: r.From, To: r.To, FrameFields: r.FrameFields}, r.Encoding)
	}
	return s.framesNow(ctx, x, r.WaitFields, r.Encoding, func(ctx context.Context, after string, wait time.Duration) (*api.FramePage, error) {
		if r.WaitFields = waitsFor(wait); after != "" {
			r.N, r.From = attemptAt(after), "" // the attempt may be the latest no more
			r.ReadOn(after)
		}
		return ask(ctx, s, x.by, wire.ReadStream, r)
	})
}

// followStreams follows the attempts of an execution (U107).
func (s *Server) followStreams(ctx context.Context, x *exchange, r *wire.FollowStreamsRequest) (answer, error) {
	if wantsPush(x) {
		return s.pushStream(ctx, x, &wire.OpenStreamRequest{ByID: r.ByID, Follow: r.Follow, FrameFields: r.FrameFields}, r.Encoding)
	}
	return s.framesNow(ctx, x, r.WaitFields, r.Encoding, func(ctx context.Context, after string, wait time.Duration) (*api.FramePage, error) {
		if r.WaitFields = waitsFor(wait); after != "" {
			r.ReadOn(after)
		}
		return ask(ctx, s, x.by, wire.FollowStreams, r)
	})
}

// waitsFor are the fields of a request in this process that waits for so long.
func waitsFor(wait time.Duration) wire.WaitFields {
	ms := wait.Milliseconds()
	return wire.WaitFields{WaitMS: &ms}
}

// framesNow answers with a page of frames, or with an empty one when the wait is over. read reads after a position; "": where the request says.
func (s *Server) framesNow(
	ctx context.Context, x *exchange, fields wire.WaitFields, encoding wire.Encoding,
	read func(ctx context.Context, after string, wait time.Duration) (*api.FramePage, error),
) (answer, error) {
	wait, err := waitOf(fields, eventWait)
	if err != nil {
		return answer{}, err
	}
	page, err := read(ctx, "", 0)
	if err != nil {
		return answer{}, err
	}
	if len(page.Frames) == 0 && page.AtEnd && page.Closed == nil && page.Next != "" && page.Next != atClosed && wait.atMost > 0 {
		ended, err := s.until(ctx, x, s.readers, wait.atMost, func(waiting context.Context) error {
			next, err := read(waiting, page.Next, wait.atMost)
			if err == nil {
				page = next
			}
			return err
		})
		if err != nil && !ended && api.CodeOf(err) != "shutting_down" {
			return answer{}, err
		}
	}
	framesShown(page.Frames, encoding)
	return wait.applied(shows(page)), nil
}

// attemptAt is the attempt of a position in it.
func attemptAt(position string) string {
	attempt, _, _ := strings.Cut(position, "-")
	return attempt
}

// atClosed is the position after the end of an execution.
const atClosed = "closed"

// framesShown shows payloads as the caller asked for.
func framesShown(frames []api.Frame, encoding wire.Encoding) {
	if encoding != wire.EncodingBytes {
		return
	}
	for i := range frames {
		frames[i].Payload = frames[i].Payload.AsBytes()
	}
}

// pushStream pushes what follows (E20). A reader that has everything, and after which nothing follows, is answered 204, so that browsers stop (E21).
func (s *Server) pushStream(ctx context.Context, x *exchange, r *wire.OpenStreamRequest, encoding wire.Encoding) (answer, error) {
	if r.Limit != nil && *r.Limit == 0 {
		r.Limit = nil // a stream has no empty pages
	}
	var reader *wire.StreamReader
	read := func(ctx context.Context, wait time.Duration) (*pushed, error) {
		page, done, err := reader.Next(ctx, wait)
		if err != nil {
			reader = nil // it may have passed over something
			return nil, err
		}
		framesShown(page.Frames, encoding)
		return pushedFrames(page, done), nil
	}
	open := func(ctx context.Context) (err error) {
		reader, err = ask(ctx, s, x.by, wire.OpenStream, r)
		return err
	}
	if err := open(ctx); err != nil {
		return answer{}, err
	}
	first, err := read(ctx, 0)
	if err != nil {
		return answer{}, err
	}
	if first.done && len(first.items) == 0 {
		return nothing(), nil
	}
	return s.push(ctx, x, first, func(ctx context.Context, after string, wait time.Duration) (*pushed, error) {
		if reader == nil {
			if r.N != "" {
				r.N, r.From = attemptAt(after), "" // the attempt may be the latest no more
			}
			r.ReadOn(after)
			if err := open(ctx); err != nil {
				return nil, err
			}
		}
		return read(ctx, wait)
	})
}

// frameMemory is what a frame takes in memory beside its payload, about.
const frameMemory = 512

// pushedFrames are frames to push. The event of a control frame is its type.
func pushedFrames(page *api.FramePage, done bool) *pushed {
	p := &pushed{items: make([]pushItem, len(page.Frames)), next: page.Next, done: done}
	for i := range page.Frames {
		frame := &page.Frames[i]
		event := "frame"
		if frame.IsControl() {
			event = frame.Type
		}
		p.items[i] = pushItem{frame.ID, event, frame}
		p.memory += frameMemory + int64(len(frame.Payload.Data))
	}
	return p
}

// getSummary reads a summary document, or waits until it changes (U18, U107).
func (s *Server) getSummary(ctx context.Context, x *exchange, r *wire.GetSummaryRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	r.WaitFields = wire.WaitFields{}
	found, err := ask(ctx, s, x.by, wire.GetSummary, r)
	if wait.atMost == 0 || err != nil && api.CodeOf(err) != "summary_not_found" {
		return shows(found), err
	}
	if r.WaitVersion == nil { // until it changes
		var version int64
		if err == nil {
			version = found.Version
		}
		r.WaitVersion = &version
	}
	missing := err
	r.WaitFields = waitsFor(wait.atMost)
	ended, err := s.until(ctx, x, s.readers, wait.atMost, func(waiting context.Context) error {
		next, err := ask(waiting, s, x.by, wire.GetSummary, r)
		if err == nil {
			found, missing = next, nil
		}
		return err
	})
	if ended || api.CodeOf(err) == "shutting_down" {
		err = missing
	}
	if err != nil {
		return answer{}, err
	}
	return wait.applied(shows(found)), nil
}
