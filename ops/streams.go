package ops

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
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

func attemptNamed(index int) (string, error) {
	switch {
	case index < LatestAttempt:
		return "", calls.Refuse(base.CodeInvalidArgument, "%d is not an index", index).At("n", "use an index from 0 on, or LatestAttempt")
	case index == LatestAttempt:
		return "latest", nil
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

// FollowOptions say what of an execution is followed.
type FollowOptions struct {
	FrameFilter
	All   bool   // every attempt in order; else the newest one, and each newer one from its start
	After string // the id of the last frame that was seen; "": the start
}

// Follow returns the frames of an execution as its attempts send them, until the execution has ended or ctx ends; it then ends without an error.
// Control frames are among them: attempt_started before the first frame of an attempt, attempt_closed, gap, and at the end closed. It keeps trying
// through interruptions of the store. Keep Frame.ID to continue later.
//
// Codes: execution_not_found, invalid_cursor.
func (s Streams) Follow(ctx context.Context, id api.ID, o ...FollowOptions) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		options, path, err := calls.Target(id, o)
		if err != nil {
			yield(api.Frame{}, err)
			return
		}
		follow, after := "latest", options.After
		if options.All {
			follow = "all"
		}
		for try := 0; ctx.Err() == nil; {
			request := &wire.FollowStreamsRequest{
				ByID: path, Follow: follow, WaitFields: waitingFor(followPiece), FrameFields: options.fields(after, calls.FullPage),
			}
			page, err := transport.Call(ctx, s.via, wire.FollowStreams, request, transport.Options{Wait: followPiece})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && (!errors.Is(err, api.ErrUnavailable) || isClosed(err)):
				yield(api.Frame{}, err)
				return
			case err != nil:
				backoff.Pause(ctx, s.clock, max(backoff.Delay(try), api.RetryDelay(err)))
				try++
				continue
			}
			for _, frame := range page.Frames {
				if !yield(frame, nil) || frame.Type == api.StreamClosed {
					return
				}
			}
			if try, after = 0, page.Next; after == "closed" {
				return
			}
		}
	}
}

// SummaryOptions say which summary document is read.
type SummaryOptions struct {
	Attempt *int          // its index; nil: the newest one
	Above   int64         // with a wait: answer once the version is above this number
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
