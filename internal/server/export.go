package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// exported are the parts that an export may add to executions.
var exported = []string{"input", "result", "attempts", "signals", "events", "frames"}

// exportPage is how many executions of an export are read at a time.
const exportPage = 200

// exportExecutions streams the executions that match as lines, the last of which has the cursor for continuing (U36).
func (s *Server) exportExecutions(ctx context.Context, x *exchange, r *wire.ExportRequest) (answer, error) {
	for _, part := range r.Include {
		if !slices.Contains(exported, part) {
			return answer{}, refuse("invalid_argument", "this part cannot be included").at("query.include").hint("use " + strings.Join(exported, ", "))
		}
	}
	if err := checkLimit(r.PageFields); err != nil {
		return answer{}, err
	}
	if isEmpty(r.PageFields) { // export reads nothing, and what another limit is refused for is refused all the same
		if _, err := s.exportPage(ctx, x, r, 1, r.Cursor); err != nil {
			return answer{}, err
		}
	}
	return answer{stream: func(ctx context.Context, x *exchange) { s.export(ctx, x, r) }}, nil
}

// exportPage reads executions to export.
func (s *Server) exportPage(ctx context.Context, x *exchange, r *wire.ExportRequest, limit int, cursor string) (*api.Page[*api.Execution], error) {
	request := &wire.ListExecutionsRequest{FilterFields: r.FilterFields, PageFields: wire.PageFields{Limit: &limit, Cursor: cursor}}
	return ask(ctx, s, x.by, wire.ListExecutions, request)
}

// export writes the lines. An error before the first line is a problem; later ones cut the answer off, so that the client does
// not take it for complete.
func (s *Server) export(ctx context.Context, x *exchange, r *wire.ExportRequest) {
	left := -1 // all of them
	if r.Limit != nil {
		left = *r.Limit
	}
	var lines *lineWriter
	for cursor := r.Cursor; ; {
		page := &api.Page[*api.Execution]{NextCursor: cursor}
		if left != 0 {
			limit := exportPage
			if left > 0 {
				limit = min(limit, left)
			}
			var err error
			page, err = s.exportPage(ctx, x, r, limit, cursor)
			if err != nil && lines == nil {
				s.writeProblem(x, err)
				return
			}
			if err != nil {
				s.cutOff(x, err)
			}
		}
		if lines == nil {
			lines = newLineWriter(x, linesContent)
		}
		s.exportLines(ctx, x, lines, page.Items, r)
		cursor = page.NextCursor
		if left > 0 {
			left -= len(page.Items)
		}
		if cursor == "" || left == 0 || s.drains() {
			s.exportEnd(x, lines, cursor)
			return
		}
	}
}

func (s *Server) exportLines(ctx context.Context, x *exchange, lines *lineWriter, all []*api.Execution, r *wire.ExportRequest) {
	for _, execution := range all {
		held := x.held
		line, err := s.exportLine(ctx, x, execution, r)
		if err != nil {
			s.cutOff(x, err)
		}
		if line != nil && s.exportOne(x, lines, line) != nil {
			s.cutOff(x, nil)
		}
		x.drop(x.held - held) // what the line was made of
	}
	lines.Flush()
}

// exportOne writes a line, if there is memory for it until the client has taken it.
func (s *Server) exportOne(x *exchange, lines *lineWriter, line []byte) error {
	size := int64(len(line))
	if err := x.holdAnswer(size); err != nil {
		s.cutOff(x, err)
	}
	defer x.dropAnswer(size)
	return lines.Line(line)
}

// exportEnd writes the last line.
func (s *Server) exportEnd(x *exchange, lines *lineWriter, cursor string) {
	line, err := wire.Marshal(struct {
		NextCursor *string `json:"next_cursor"`
	}{given(cursor)})
	if err != nil || lines.Line(line) != nil {
		s.cutOff(x, err)
	}
	lines.Close()
}

// given is a text, or nil for none.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// exportParts are what an export adds to an execution.
type exportParts struct {
	Attempts []api.Attempt      `json:"attempts,omitempty"`
	Signals  []api.SignalRecord `json:"signals,omitempty"`
	Events   []api.Event        `json:"events,omitempty"`
	Frames   []api.Frame        `json:"frames,omitempty"`
	// FramesNext is the position after which the rest of the frames is, if there are more than a line may have.
	FramesNext string `json:"frames_next,omitempty"`
}

// exportLine returns an execution with what is to be included; nil if it was deleted meanwhile.
func (s *Server) exportLine(ctx context.Context, x *exchange, of *api.Execution, r *wire.ExportRequest) ([]byte, error) {
	part := *of
	part.Input, part.Result = leftOut(of.Input), leftOut(of.Result)
	var parts exportParts
	id := wire.ByID{ID: string(of.ID)}
	for _, name := range r.Include {
		var err error
		switch name {
		case "input":
			part.Input, err = payloadOf(ask(ctx, s, x.by, wire.GetExecutionInput, &id))
		case "result":
			part.Result, err = payloadOf(ask(ctx, s, x.by, wire.GetExecutionResult, &wire.GetResultRequest{ByID: id}))
			err = unlessState(err)
		case "attempts":
			parts.Attempts, err = everything(func(cursor string) (*api.Page[api.Attempt], error) {
				request := &wire.ListAttemptsRequest{PageByID: wire.PageByID{ByID: id, PageFields: wire.PageFields{Cursor: cursor}}}
				return ask(ctx, s, x.by, wire.ListAttempts, request)
			})
		case "signals":
			parts.Signals, err = s.signalsOf(ctx, x, id, r.Encoding)
		case "events":
			parts.Events, err = s.eventsOf(ctx, x, of.ID)
		case "frames":
			parts.Frames, parts.FramesNext, err = s.framesOf(ctx, x, id)
		}
		if api.CodeOf(err) == "execution_not_found" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Encoding == wire.EncodingBytes {
		for i := range parts.Attempts {
			parts.Attempts[i] = attemptAsBytes(parts.Attempts[i])
		}
		framesShown(parts.Frames, r.Encoding)
	}
	return wire.Marshal(flat{shown(&part, "", r.Encoding), parts})
}

// signalsOf reads all signals of an execution, with their payloads.
func (s *Server) signalsOf(ctx context.Context, x *exchange, id wire.ByID, encoding wire.Encoding) ([]api.SignalRecord, error) {
	all, err := everything(func(cursor string) (*api.Page[api.SignalRecord], error) {
		request := &wire.ListSignalsRequest{PageByID: wire.PageByID{ByID: id, PageFields: wire.PageFields{Cursor: cursor}}, Inline: true}
		return ask(ctx, s, x.by, wire.ListExecutionSignals, request)
	})
	return signalsShown(all, true, encoding), err
}

// payloadOf returns the bytes of an answer as a payload.
func payloadOf(raw *wire.Raw, err error) (api.Payload, error) {
	if err != nil {
		return api.Payload{}, err
	}
	return api.Payload{Data: raw.Data, ContentType: raw.ContentType}, nil
}

// unlessState forgets that something is not there yet.
func unlessState(err error) error {
	if errors.Is(err, api.ErrState) {
		return nil
	}
	return err
}

// eventsOf reads all events of an execution that are kept.
func (s *Server) eventsOf(ctx context.Context, x *exchange, id api.ID) ([]api.Event, error) {
	var all []api.Event
	limit := largestPage
	request := &wire.EventsRequest{ExecutionID: string(id), PositionFields: wire.PositionFields{After: api.FromStart, Limit: &limit}}
	for {
		page, err := ask(ctx, s, x.by, wire.ListEvents, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		if page.AtEnd {
			return all, nil
		}
		request.After = page.Next
	}
}

// exportedFrames bounds the bytes of frames in a line: streams may be much larger than everything else of an execution.
const exportedFrames = 16 << 20

// framesOf reads what the attempts of an execution said, as far as a line may have it, and the position after which there is more; "": there is not.
// Memory is held for the frames until the line is sent.
func (s *Server) framesOf(ctx context.Context, x *exchange, id wire.ByID) (all []api.Frame, next string, err error) {
	limit, size := largestPage, int64(0)
	request := &wire.FollowStreamsRequest{ByID: id, Follow: "all", FrameFields: wire.FrameFields{Limit: &limit}}
	for {
		page, err := ask(ctx, s, x.by, wire.FollowStreams, request)
		if err != nil {
			return nil, "", err
		}
		if err := x.holdAnswer(pushedFrames(page, false).memory); err != nil {
			return nil, "", err
		}
		for _, frame := range page.Frames {
			if !frame.IsControl() {
				all, size = append(all, frame), size+frameMemory+int64(len(frame.Payload.Data))
			}
		}
		switch {
		case page.AtEnd:
			return all, "", nil
		case size >= exportedFrames:
			return all, page.Next, nil
		}
		request.ReadOn(page.Next)
	}
}
