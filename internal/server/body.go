package server

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The sizes of bodies (U20).
const (
	plainBody   = 64 << 10 // beside payloads
	listBody    = 4 << 20  // lists of ids and leases
	largestBody = 96 << 20
	flowBody    = 32 << 20 // of a graph
	stepPayload = 1 << 20
	signalSize  = 256 << 10 // of a payload
	framesSize  = 1 << 20   // of the payloads of a call

	continuationSize = 64 << 10
	conditionSize    = 64 << 10
)

// bodyLimit is how much an operation reads: what its payloads may need, which is up to twice their size as JSON, and 64 KiB.
func (s *Server) bodyLimit(o *wire.Operation) int64 {
	limit := int64(plainBody)
	switch o.ID {
	case wire.SubmitExecutions.ID, wire.SendWork.ID:
		limit = largestBody
	case wire.SubmitFlow.ID, wire.ExtendFlow.ID, wire.SpawnChildren.ID:
		limit = flowBody
	case wire.StartBulk.ID, wire.HeartbeatWorker.ID:
		limit = listBody
	case wire.SubmitExecution.ID, wire.CompleteExecution.ID, wire.FailExecution.ID:
		limit += 2 * s.cfg.MaxPayload
	case wire.AppendFrames.ID:
		limit += 2 * framesSize
	case wire.PutStep.ID:
		limit += 2 * stepPayload
	case wire.SuspendExecution.ID:
		limit += 2*continuationSize + conditionSize
	case wire.SendSignal.ID, wire.SendExecutionSignal.ID, wire.ApproveExecution.ID:
		limit += 2 * signalSize
	case wire.DeliverCallback.ID:
		limit = signalSize // the body is the payload
	}
	return min(limit, largestBody, s.memory.limit/2) // what is decoded from it needs room as well
}

// decode reads a request strictly (U5), unless its body does not come.
func (x *exchange) decode(into any) (came bool, err error) {
	in := incoming(x)
	var full error
	in.Hold = func(bytes int) bool {
		full = x.hold(int64(bytes))
		return full == nil
	}
	controller := http.NewResponseController(x.w)
	x.r.Body = patientReader{x.r.Body, controller, x.w.stall}
	if x.route.ID == wire.SubmitExecutions.ID && isLines(x.r) {
		_ = controller.SetReadDeadline(time.Time{}) // lines may come for long; each read has its own bound
		return true, wire.DecodeHead(in, into)
	}
	if in.Body, err = readBody(x, x.route.body); err != nil {
		return false, err
	}
	_ = controller.SetReadDeadline(time.Time{}) // the request is read; what waits now is the answer
	err = wire.DecodeRequest(in, into)
	return true, cmp.Or(full, err)
}

// readBody reads a whole body, up to a limit.
func readBody(x *exchange, limit int64) ([]byte, error) {
	if x.r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if coding := x.r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, refuse("unsupported_media_type", "the body is compressed").at("header.Content-Encoding").hint("send it as it is")
	}
	body, err := x.readWhole(http.MaxBytesReader(x.w, x.r.Body, limit), x.r.ContentLength)
	var tooLarge *http.MaxBytesError
	var noRoom *refusal
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooLarge):
		return nil, tooLarge
	case errors.As(err, &noRoom):
		x.discardBody()
		return nil, noRoom
	default: // cut off, or too slow
		return nil, refuse("invalid_json", "the body did not come whole")
	}
}

// discarded is how much is read of a body for which there was no memory.
const discarded = 4 << 20

// discardBody reads on, without keeping anything, after a body of an allowed size was refused before its end: a client that is still sending when the
// connection closes gets an error of the connection in place of the answer, which tells it to try again. Larger bodies are cut off all the same, and
// the time of the whole body is bounded.
func (x *exchange) discardBody() {
	if x.r.ProtoMajor >= 2 { // a stream of its own ends after its answer
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(x.r.Body, discarded))
}

// isLines reports whether the body is NDJSON.
func isLines(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == linesContent
}
