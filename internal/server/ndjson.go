package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The bounds of the lines that are submitted together.
const (
	lineBatch = 500
	lineBytes = 8 << 20
)

// submitLines submits lines as they come in and answers each with a line (U33).
func (s *Server) submitLines(ctx context.Context, x *exchange) {
	_ = http.NewResponseController(x.w).EnableFullDuplex()          // HTTP/2 is so anyway
	x.caller.LineKey, x.caller.RequestKey = x.caller.RequestKey, "" // it names each line by its index, whatever the batches are
	lines := newLineWriter(x, linesContent)
	defer lines.Close()
	body := bufio.NewReaderSize(x.r.Body, 64<<10)
	line := s.lineClock(x)
	defer line.end()
	for index, more := 0, true; more; {
		batch := &wire.SubmitManyRequest{}
		var refusals []error // of all lines; those without one are in the batch
		size := 0
		for more && len(refusals) < lineBatch && size < lineBytes && (len(refusals) == 0 || hasLine(body)) {
			var text []byte
			var err error
			text, more, err = x.readLine(body, 2*s.cfg.MaxPayload+plainBody)
			size += len(text)
			if len(text) == 0 && err == nil {
				continue
			}
			line.Reset(s.lineTimeout)
			submission, err := lineSubmission(text, err)
			if refusals = append(refusals, err); err == nil {
				batch.Body.Items = append(batch.Body.Items, submission)
			}
		}
		line.Stop() // what takes long now is not the client
		if len(refusals) > 0 && !s.submitBatch(ctx, x, lines, batch, refusals, index) {
			return
		}
		x.drop(x.held)
		index += len(refusals)
		line.Reset(s.lineTimeout)
	}
}

// lineClock ends a body of which no line comes whole in time, however many bytes do: blank lines are none.
func (s *Server) lineClock(x *exchange) *stallClock {
	return newStallClock(s.lineTimeout, http.NewResponseController(x.w).SetReadDeadline)
}

// hasLine reports whether another line has come: those before must not wait for it.
func hasLine(body *bufio.Reader) bool {
	come, _ := body.Peek(body.Buffered()) // never more than is there
	return bytes.IndexByte(come, '\n') >= 0
}

// submitBatch submits some lines and writes their answers. It reports whether to continue.
func (s *Server) submitBatch(ctx context.Context, x *exchange, lines *lineWriter, batch *wire.SubmitManyRequest, refusals []error, from int) bool {
	x.caller.Lines = nil
	for i, refusal := range refusals {
		if refusal == nil { // those are submitted
			x.caller.Lines = append(x.caller.Lines, from+i)
		}
	}
	answers, err := s.submitAll(ctx, x, x.acting(), batch, refusals)
	if err != nil { // of the whole batch: every line gets it
		answers = &wire.Items[api.SubmitResult]{}
		for range refusals {
			answers.Add(api.SubmitResult{}, s.itemProblem(x, err))
		}
	}
	for _, item := range answers.Items {
		item.Index += from
		text, err := wire.Marshal(item)
		if err != nil || lines.Line(text) != nil {
			return false
		}
	}
	lines.Flush()
	return true
}

// lineSubmission reads the submission of a line.
func lineSubmission(text []byte, err error) (api.Submission, error) {
	if err != nil {
		return api.Submission{}, err
	}
	var submission api.Submission
	err = wire.DecodeJSON(text, &submission)
	return submission, err
}

// readLine reads a line without its end. A line over the limit is skipped and is payload_too_large, one for which there is no memory is skipped
// too; more is false at the end of the body.
func (x *exchange) readLine(body *bufio.Reader, limit int64) (text []byte, more bool, err error) {
	before := x.held
	var refused error
	for {
		part, err := body.ReadSlice('\n')
		if refused == nil {
			if refused = x.hold(int64(len(part))); int64(len(text)+len(part)) > limit {
				refused = &http.MaxBytesError{Limit: limit}
			}
		}
		if refused == nil {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, false, refuse("invalid_json", "the body did not come whole")
		case refused != nil:
			x.drop(x.held - before)
			return nil, err == nil, refused
		}
		return bytes.TrimSpace(text), err == nil, nil
	}
}
