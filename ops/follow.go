package ops

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// FollowOptions say what of an execution is followed.
type FollowOptions struct {
	FrameFilter
	All     bool   // every attempt in order; else the newest one, and each newer one from its start
	Attempt *int   // only this attempt, by its index or LatestAttempt, for which Follow waits if there is none; nil: as All says
	After   string // the id of the last frame that was seen; "": the start
	NoWait  bool   // end after what there is now; an interruption of the store is then an error
}

// Follow returns the frames of an execution as its attempts send them, until the execution has ended or ctx ends; it then ends without an error.
// Control frames are among them: attempt_started before the first frame of an attempt, attempt_closed, gap, and at the end closed. Of one attempt
// only gap and attempt_closed are, and it ends with the attempt. Follow keeps trying through interruptions of the store. Keep Frame.ID to continue
// later; a gap has none.
//
// Codes: execution_not_found, invalid_cursor; with Attempt also attempt_not_found.
func (s Streams) Follow(ctx context.Context, id api.ID, o ...FollowOptions) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		options, path, err := calls.Target(id, o)
		if err != nil {
			yield(api.Frame{}, err)
			return
		}
		next, err := s.following(path, &options)
		if err != nil {
			yield(api.Frame{}, err)
			return
		}
		var idle backoff.Idle
		for try := 0; ctx.Err() == nil; {
			began := s.clock.Now()
			page, done, err := next(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && (options.NoWait || !errors.Is(err, api.ErrUnavailable) || isClosed(err)):
				yield(api.Frame{}, err)
				return
			case err != nil:
				backoff.Pause(ctx, s.clock, max(backoff.Delay(try), api.RetryDelay(err)))
				try++
				continue
			}
			for _, frame := range page.Frames {
				if !yield(frame, nil) {
					return
				}
			}
			try = 0
			switch {
			case done || options.NoWait && page.AtEnd:
				return
			case len(page.Frames) == 0 && page.AtEnd:
				idle.Pause(ctx, s.clock, began, followPiece)
			default:
				idle.News()
			}
		}
	}
}

// pages reads what follows, or waits for it, and reports whether nothing follows after that. A call that failed may be repeated.
type pages func(ctx context.Context) (page api.FramePage, done bool, err error)

func (s Streams) following(path wire.ByID, o *FollowOptions) (pages, error) {
	wait := followPiece
	if o.NoWait {
		wait = 0
	}
	if o.Attempt == nil {
		return s.attempts(path, o, wait, calls.FullPage), nil
	}
	n, err := attemptNamed(*o.Attempt)
	if err != nil {
		return nil, err
	}
	one := &oneAttempt{n: n, after: o.After}
	first := s.attempts(path, &FollowOptions{}, wait, 1)
	return func(ctx context.Context) (api.FramePage, bool, error) {
		if one.n == latest && !o.NoWait {
			began, page, err := firstAttempt(ctx, first)
			if err != nil || began == "" {
				return page, false, err
			}
			one.n = began
		}
		request := &wire.ReadStreamRequest{ByID: path, N: one.n, WaitFields: waitingFor(wait), FrameFields: o.fields(one.after, calls.FullPage)}
		page, err := transport.Call(ctx, s.via, wire.ReadStream, request, transport.Options{Wait: wait})
		if err != nil {
			return api.FramePage{}, false, err
		}
		return *page, one.read(page), nil
	}, nil
}

// firstAttempt returns the index of the newest attempt, or waits for it; "" with an empty page: there is none yet. If there is none at the end of the
// execution, next reads nothing of it any more: attempt_not_found.
func firstAttempt(ctx context.Context, next pages) (index string, empty api.FramePage, err error) {
	page, done, err := next(ctx)
	if err != nil {
		return "", page, err
	}
	for _, frame := range page.Frames {
		if frame.Type == api.AttemptStarted {
			return strconv.Itoa(frame.Attempt), api.FramePage{}, nil
		}
	}
	if done {
		return "", page, calls.Refuse(base.CodeAttemptNotFound, "the execution ended before it had an attempt")
	}
	return "", api.FramePage{Next: page.Next, AtEnd: page.AtEnd}, nil
}

// attempts follows the attempts of an execution.
func (s Streams) attempts(path wire.ByID, o *FollowOptions, wait time.Duration, limit int) pages {
	follow, after := "latest", o.After
	if o.All {
		follow = "all"
	}
	return func(ctx context.Context) (api.FramePage, bool, error) {
		request := &wire.FollowStreamsRequest{ByID: path, Follow: follow, WaitFields: waitingFor(wait), FrameFields: o.fields(after, limit)}
		page, err := transport.Call(ctx, s.via, wire.FollowStreams, request, transport.Options{Wait: wait})
		if err != nil {
			return api.FramePage{}, false, err
		}
		after = page.Next
		return *page, after == api.StreamClosed, nil
	}
}

// oneAttempt is a reader of the stream of one attempt.
type oneAttempt struct {
	n     string // index of the attempt; latest until its first page was read
	after string
	gap   int64 // the last gap that was told; 0: none
}

// read adds the control frames to a page, as a server does that pushes the stream, and reports whether it is the last one.
func (a *oneAttempt) read(page *api.FramePage) (last bool) {
	n, _, _ := strings.Cut(page.Next, "-")
	index, _ := strconv.Atoi(n) // a position in an attempt begins with its index
	if page.TruncatedBefore > a.gap {
		a.gap = page.TruncatedBefore
		page.Frames = append([]api.Frame{{Attempt: index, Type: api.FrameGap, Before: a.gap}}, page.Frames...)
	}
	last = page.Closed != nil
	if last && a.after != page.Next {
		page.Frames = append(page.Frames, api.Frame{
			ID: page.Next, Attempt: index, Type: api.AttemptClosed, At: page.Closed.At, Reason: page.Closed.Reason,
		})
	}
	a.n, a.after = n, page.Next
	return last
}
