package ops

import (
	"context"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Streams reads what attempts say while they work.
type Streams struct {
	via   transport.Transport
	clock clock.Clock // used by Follow to pause while streams cannot be read
}

// FramesOptions select frames of one attempt.
type FramesOptions struct {
	FrameFilter
	From  string        // the id of a frame, which is included; "": the start
	After string        // the id of a frame, which is not included; at most one of both
	To    string        // the id of the last frame; "": the end
	Limit int           // of a page; 0: 100, at most 1000
	Wait  time.Duration // how long to wait while there is nothing, up to 30 s
}

// FrameFilter selects frames by type and mode.
type FrameFilter struct {
	Types []string // none: all
	Modes []string // none: all
}

// Read returns frames of one attempt, by its index or LatestAttempt. Codes: execution_not_found, attempt_not_found, invalid_cursor.
func (s Streams) Read(ctx context.Context, id api.ID, attempt int, o ...FramesOptions) (api.FramePage, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.FramePage{}, err
	}
	n, err := attemptNamed(attempt)
	if err != nil {
		return api.FramePage{}, err
	}
	wait := min(options.Wait, followPiece)
	request := &wire.ReadStreamRequest{
		ByID: path, N: n, WaitFields: waitingFor(wait), From: options.From, To: options.To, FrameFields: options.fields(options.After, options.Limit),
	}
	return calls.Value(transport.Call(ctx, s.via, wire.ReadStream, request, transport.Options{Wait: wait}))
}

// latest names the newest attempt in a path.
const latest = "latest"

func attemptNamed(index int) (string, error) {
	switch {
	case index < LatestAttempt:
		return "", calls.Refuse(base.CodeInvalidArgument, "%d is not an index", index).At("n", "use an index from 0 on, or LatestAttempt")
	case index == LatestAttempt:
		return latest, nil
	default:
		return strconv.Itoa(index), nil
	}
}

func waitingFor(wait time.Duration) wire.WaitFields {
	if wait == 0 {
		return wire.WaitFields{}
	}
	ms := calls.Millis(wait)
	return wire.WaitFields{WaitMS: &ms}
}

func (f FrameFilter) fields(after string, limit int) wire.FrameFields {
	fields := wire.FrameFields{After: after, Types: f.Types, Modes: f.Modes}
	if limit != 0 {
		fields.Limit = &limit
	}
	return fields
}

// SummaryOptions say which summary document is read.
type SummaryOptions struct {
	Attempt *int          // its index; nil: the newest one
	Above   int64         // with a wait: answer once the version is above this number; of the newest attempt, also if it is that of another attempt
	Wait    time.Duration // at most a minute
}

// Summary returns the document that the summary frames of an attempt have made. Codes: execution_not_found, attempt_not_found, summary_not_found.
func (s Streams) Summary(ctx context.Context, id api.ID, o ...SummaryOptions) (*api.StreamSummary, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.GetSummaryRequest{ByID: path, WaitFields: waitingFor(options.Wait)}
	if options.Attempt != nil {
		if request.Attempt, err = attemptNamed(*options.Attempt); err != nil {
			return nil, err
		}
	}
	if options.Wait > 0 {
		request.WaitVersion = &options.Above
	}
	return transport.Call(ctx, s.via, wire.GetSummary, request, transport.Options{Wait: options.Wait})
}
