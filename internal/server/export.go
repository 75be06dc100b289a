package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// exported are the parts that an export may add to executions.
var exported = []string{"input", "result", "attempts", "signals", "events"}

// exportPage is how many executions of an export are read at a time.
const exportPage = 200

// exportExecutions streams the executions that match as lines, the last of which has the cursor for continuing (U36).
func (s *Server) exportExecutions(ctx context.Context, r *wire.ExportRequest) (answer, error) {
	for _, part := range r.Include {
		if !slices.Contains(exported, part) {
			return answer{}, refuse("invalid_argument", "this part cannot be included").at("query.include").hint("use " + strings.Join(exported, ", "))
		}
	}
	if err := checkLimit(r.PageFields); err != nil {
		return answer{}, err
	}
	if isEmpty(r.PageFields) { // export reads nothing, and what another limit is refused for is refused all the same
		if _, err := s.client.Executions().Page(ctx, flowfabric.ListOptions{Filter: filterOf(r.Filter()), Limit: limitOf(r.PageFields), Cursor: r.Cursor}); err != nil {
			return answer{}, err
		}
	}
	return answer{stream: func(ctx context.Context, x *exchange) { s.export(ctx, x, r) }}, nil
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
		page := flowfabric.Page[*flowfabric.Execution]{NextCursor: cursor}
		if left != 0 {
			limit := exportPage
			if left > 0 {
				limit = min(limit, left)
			}
			var err error
			page, err = s.client.Executions().Page(ctx, flowfabric.ListOptions{Filter: filterOf(r.Filter()), Limit: limit, Cursor: cursor})
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

func (s *Server) exportLines(ctx context.Context, x *exchange, lines *lineWriter, all []*flowfabric.Execution, r *wire.ExportRequest) {
	for _, execution := range all {
		line, err := s.exportLine(ctx, execution, r)
		if err != nil {
			s.cutOff(x, err)
		}
		if line != nil && lines.Line(line) != nil {
			s.cutOff(x, nil)
		}
	}
	lines.Flush()
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
	Attempts []flowfabric.Attempt      `json:"attempts,omitempty"`
	Signals  []flowfabric.SignalRecord `json:"signals,omitempty"`
	Events   []api.Event               `json:"events,omitempty"`
}

// exportLine returns an execution with what is to be included; nil if it was deleted meanwhile.
func (s *Server) exportLine(ctx context.Context, x *flowfabric.Execution, r *wire.ExportRequest) ([]byte, error) {
	part := *x
	part.Input, part.Result = leftOut(x.Input), leftOut(x.Result)
	var parts exportParts
	for _, name := range r.Include {
		var err error
		switch name {
		case "input":
			part.Input, err = s.client.Executions().Input(ctx, x.ID)
		case "result":
			part.Result, err = s.client.Executions().Result(ctx, x.ID)
			err = unlessState(err)
		case "attempts":
			parts.Attempts, err = s.client.Executions().Attempts(ctx, x.ID)
		case "signals":
			parts.Signals, err = s.signalsOf(ctx, x.ID, r.Encoding)
		case "events":
			parts.Events, err = s.eventsOf(ctx, x.ID)
		}
		if flowfabric.CodeOf(err) == "execution_not_found" {
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
	}
	return wire.Marshal(flat{shown(&part, "", r.Encoding), parts})
}

// signalsOf reads all signals of an execution, with their payloads.
func (s *Server) signalsOf(ctx context.Context, id flowfabric.ID, encoding wire.Encoding) ([]flowfabric.SignalRecord, error) {
	var all []flowfabric.SignalRecord
	for signal, err := range s.client.Executions().Signals(ctx, id) {
		if err != nil {
			return nil, err
		}
		all = append(all, signal)
	}
	return signalsShown(all, true, encoding), nil
}

// unlessState forgets that something is not there yet.
func unlessState(err error) error {
	if errors.Is(err, flowfabric.ErrState) {
		return nil
	}
	return err
}

// eventsOf reads all events of an execution that are kept.
func (s *Server) eventsOf(ctx context.Context, id flowfabric.ID) ([]api.Event, error) {
	var all []api.Event
	limit := largestPage
	request := &wire.EventsRequest{ExecutionID: string(id), PositionFields: wire.PositionFields{After: api.FromStart, Limit: &limit}}
	for {
		page, err := ask(ctx, s, wire.ListEvents, request)
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
