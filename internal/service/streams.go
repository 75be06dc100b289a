package service

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) streams() {
	on(s, wire.AppendFrames, s.appendFrames)
	on(s, wire.ReadStream, s.readStream)
	on(s, wire.FollowStreams, s.followStreams)
	on(s, wire.GetSummary, s.getSummary)
	on(s, wire.OpenStream, s.openStream)
}

// appendFrames appends frames to the stream of an attempt (U73). A call without a client_seq is identified by the key of its request (U13).
func (s *Service) appendFrames(ctx context.Context, c Caller, r *wire.AppendFramesRequest) (api.FrameReceipt, error) {
	frames, seq := r.Append()
	if err := api.CheckFrames(frames); err != nil {
		return api.FrameReceipt{}, err
	}
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return api.FrameReceipt{}, err
	}
	a, err := s.engine.AppendFrames(ctx, c.worker(), id, fence, engine.AppendRequest{Drafts: each(frames, draftOf), ClientSeq: seq, RequestKey: c.once()})
	if err != nil {
		return api.FrameReceipt{}, err
	}
	return api.FrameReceipt{
		FirstID: frameID(a.Attempt, a.FirstSeq), LastID: frameID(a.Attempt, a.LastSeq), FrameCount: a.FrameCount(), SummaryVersion: a.SummaryVersion,
	}, nil
}

func frameID(attempt int, seq int64) string { return stream.FrameCursor(attempt, seq).String() }

// draftOf converts a frame for the engine, which refuses a mode that there is none of.
func draftOf(f api.NewFrame) stream.Draft {
	payload := CorePayload(f.Payload)
	d := stream.Draft{Type: f.Type, Payload: payload.Data, ContentType: payload.ContentType, CorrelationID: f.CorrelationID}
	mode, ok := stream.ParseMode(f.Mode)
	if d.Mode = mode; !ok {
		d.Mode = stream.NoMode
	}
	return d
}

// readStream reads the stream of one attempt (U107). A limit of 0 requests an empty page: one frame is read nevertheless, because a request that
// is refused with another limit is refused with 0 too.
func (s *Service) readStream(ctx context.Context, c Caller, r *wire.ReadStreamRequest) (api.FramePage, error) {
	id, index, err := attemptOf(r.ID, r.N, "n")
	if err != nil {
		return api.FramePage{}, err
	}
	kept, err := keptFrames(&r.FrameFields)
	if err != nil {
		return api.FramePage{}, err
	}
	request := engine.FramesRequest{Attempt: index, From: r.From, After: r.Position(), To: r.To, Limit: r.Limit, Wait: waitGiven(r.WaitFields), Kept: kept}
	if r.Resumed() != "" {
		request.From = ""
	}
	empty := r.Limit != nil && *r.Limit == 0
	if empty {
		one := 1
		request.Limit, request.Wait = &one, 0
	}
	page, err := s.engine.ReadFrames(ctx, c.client(), id, request)
	switch {
	case err != nil:
		return api.FramePage{}, err
	case empty:
		return api.FramePage{Frames: []api.Frame{}, Next: beforeAll(r, &page), AtEnd: len(page.Frames) == 0 && !page.More}, nil
	case len(page.Frames) == 0 && s.cfg.closed() != nil:
		return api.FramePage{}, s.cfg.closed()
	}
	shown := api.FramePage{
		Frames: each(page.Frames, func(f stream.Frame) api.Frame { return frameOf(page.Attempt, &f) }),
		Next:   page.Next.String(), AtEnd: !page.More, TruncatedBefore: page.TruncatedBefore,
	}
	if page.Closed.Reason != 0 {
		shown.Closed = &api.StreamClose{At: page.Closed.At.Std(), Reason: page.Closed.Reason.String()}
	}
	return shown, nil
}

// beforeAll is the position before the first frame of a page.
func beforeAll(r *wire.ReadStreamRequest, page *engine.FramesPage) string {
	switch {
	case r.Position() != "":
		return r.Position()
	case r.From == "":
		return stream.Cursor{}.String()
	case len(page.Frames) == 0:
		return page.Next.String()
	default:
		return frameID(page.Attempt, page.Frames[0].Seq-1)
	}
}

// attemptOf reads the id of an execution and the index of an attempt, or latest.
func attemptOf(id, n, field string) (base.GivenID, int, error) {
	given, err := base.ParseID(id)
	if err != nil || n == latest {
		return given, engine.NewestAttempt, err
	}
	index, err := strconv.Atoi(n)
	if err != nil || index < 0 {
		return given, 0, base.Invalid(field, "this is not the index of an attempt").WithHint("use 0, 1, ... or latest")
	}
	return given, index, nil
}

// waitGiven is how long a request in this process waits; a server has read the fields itself.
func waitGiven(r wire.WaitFields) time.Duration {
	if r.WaitMS == nil {
		return 0
	}
	return duration(*r.WaitMS)
}

// keptFrames reads which frames are asked for.
func keptFrames(r *wire.FrameFields) (engine.KeptFrames, error) {
	kept := engine.KeptFrames{Types: r.Types}
	for _, name := range r.Types {
		if why := stream.CheckType(name); why != "" {
			return kept, base.Invalid("types", "%s", why)
		}
	}
	for _, name := range r.Modes {
		mode, ok := stream.ParseMode(name)
		if !ok || name == "" {
			return kept, base.Invalid("modes", "%q is not a mode", base.CutText(name, 64)).WithHint("use durable, summary and best_effort")
		}
		kept.Modes |= stream.SetOf(mode)
	}
	return kept, nil
}

// followStreams follows the attempts of an execution (U107).
func (s *Service) followStreams(ctx context.Context, c Caller, r *wire.FollowStreamsRequest) (api.FramePage, error) {
	follow, err := s.follow(ctx, c, &wire.OpenStreamRequest{ByID: r.ByID, Follow: r.Follow, FrameFields: r.FrameFields})
	if err != nil {
		return api.FramePage{}, err
	}
	empty, wait := r.Limit != nil && *r.Limit == 0, waitGiven(r.WaitFields)
	limit := r.Limit
	if empty {
		one := 1
		limit, wait = &one, 0
	}
	page, err := follow.Next(ctx, limit, wait)
	switch {
	case err != nil:
		return api.FramePage{}, err
	case empty:
		next := cmp.Or(r.Position(), stream.Cursor{}.String())
		return api.FramePage{Frames: []api.Frame{}, Next: next, AtEnd: len(page.Items) == 0 && page.AtEnd}, nil
	case len(page.Items) == 0 && s.cfg.closed() != nil:
		return api.FramePage{}, s.cfg.closed()
	}
	return followed(&page), nil
}

// follow makes a follower of streams.
func (s *Service) follow(ctx context.Context, c Caller, r *wire.OpenStreamRequest) (*engine.Follow, error) {
	kept, err := keptFrames(&r.FrameFields)
	if err != nil {
		return nil, err
	}
	request := engine.FollowRequest{After: r.Position(), Kept: kept}
	if r.N == "" {
		id, err := base.ParseID(r.ID)
		if err != nil {
			return nil, err
		}
		switch r.Follow {
		case "", latest:
		case "all":
			request.What = stream.Every
		default:
			return nil, base.Invalid("follow", "%q is not what can be followed", base.CutText(r.Follow, 64)).WithHint("use latest or all")
		}
		return s.engine.NewFollow(c.client(), id, request)
	}
	id, index, err := attemptOf(r.ID, r.N, "n")
	if err != nil {
		return nil, err
	}
	newest, err := s.engine.AttemptStream(ctx, c.client(), id, index)
	if err != nil {
		return nil, err
	}
	request.What, request.Attempt, request.From, request.To = stream.OnlyThis, newest.Index, r.From, r.To
	if r.Resumed() != "" {
		request.From = ""
	}
	return s.engine.NewFollow(c.client(), id, request)
}

// openStream makes a reader of streams for a server, which pushes what it reads (E20).
func (s *Service) openStream(ctx context.Context, c Caller, r *wire.OpenStreamRequest) (wire.StreamReader, error) {
	follow, err := s.follow(ctx, c, r)
	if err != nil {
		return wire.StreamReader{}, err
	}
	limit := r.Limit
	return wire.StreamReader{Next: func(ctx context.Context, wait time.Duration) (*api.FramePage, bool, error) {
		page, err := follow.Next(ctx, limit, wait)
		if err != nil {
			return nil, false, api.AsError(err)
		}
		shown := followed(&page)
		return &shown, page.Done, nil
	}}, nil
}

func followed(page *engine.FollowPage) api.FramePage {
	return api.FramePage{Frames: each(page.Items, itemOf), Next: page.Next.String(), AtEnd: page.AtEnd}
}

// itemOf converts what a follower is sent.
func itemOf(item engine.StreamItem) api.Frame {
	if item.Frame != nil {
		return frameOf(item.Attempt, item.Frame)
	}
	f, step := api.Frame{ID: item.ID, Attempt: item.Attempt}, &item.Control
	switch step.Kind {
	case stream.StepStarted:
		f.Type, f.At, f.AttemptType = api.AttemptStarted, step.Attempt.StartedAt.Std(), step.Attempt.Type
		if step.Supersedes >= 0 {
			f.Supersedes = &step.Supersedes
		}
	case stream.StepAttemptClosed:
		f.Type, f.At, f.Reason = api.AttemptClosed, step.Attempt.Closed.At.Std(), step.Attempt.Closed.Reason.String()
	case stream.StepGap:
		f.Type, f.Before = api.FrameGap, step.Before
	default:
		f.Type, f.At, f.Outcome = api.StreamClosed, step.End.At.Std(), step.End.Outcome
	}
	return f
}

func frameOf(attempt int, f *stream.Frame) api.Frame {
	return api.Frame{
		ID: frameID(attempt, f.Seq), Attempt: attempt, Type: f.Type, Mode: f.Mode.String(), At: f.At.Std(),
		Payload: api.Bytes(f.Payload, f.ContentType), CorrelationID: f.CorrelationID, SummaryVersion: f.SummaryVersion,
	}
}

// getSummary reads the summary document of an attempt (U107).
func (s *Service) getSummary(ctx context.Context, c Caller, r *wire.GetSummaryRequest) (api.StreamSummary, error) {
	n := r.Attempt
	if n == "" {
		n = latest
	}
	id, index, err := attemptOf(r.ID, n, "attempt")
	if err != nil {
		return api.StreamSummary{}, err
	}
	var above int64
	if r.WaitVersion != nil {
		above = *r.WaitVersion
	}
	found, err := s.engine.ReadSummary(ctx, c.client(), id, index, above, waitGiven(r.WaitFields))
	switch {
	case err != nil:
		return api.StreamSummary{}, err
	case found.Version <= above && s.cfg.closed() != nil:
		return api.StreamSummary{}, s.cfg.closed()
	}
	return api.StreamSummary{
		Attempt: found.Attempt, Document: found.Text, Version: found.Version, FirstAt: found.FirstAt.Std(), LastUpdated: found.LastAt.Std(),
	}, nil
}

// attemptStreamOf converts an attempt with what there is of its stream (U30).
func attemptStreamOf(a engine.AttemptStream) api.Attempt {
	shown := AttemptOf(a.Attempt)
	shown.Stream = &api.AttemptStream{FrameCount: a.FrameCount, Bytes: a.Bytes, ClosedAt: a.Closed.At.Std(), ClosedReason: a.Closed.Reason.String()}
	return shown
}
