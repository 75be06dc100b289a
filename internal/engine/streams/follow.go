package streams

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// FollowRequest asks to follow the streams of an execution (E18).
type FollowRequest struct {
	What    stream.Following
	Attempt int    // of stream.OnlyThis
	After   string // cursor, exclusive; "": the start
	Kept
}

// Item is what a follower is sent: a frame, or a control item.
type Item struct {
	ID      string // "": a gap, which has none
	Attempt int
	Frame   *stream.Frame // nil: a control item
	Control stream.Step   // of a control item
}

// Follow is a follower of the streams of one execution. It is used by one goroutine at a time.
type Follow struct {
	e        *Streams
	caller   txn.Caller
	id       base.GivenID
	kept     Kept
	only     int // the attempt that is followed alone; Newest: none
	follower *stream.Follower
	older    bool // attempts before the newest are needed
	done     bool
}

// FollowPage is what a follower is sent next.
type FollowPage struct {
	Items []Item
	Next  stream.Cursor // the position reached
	Done  bool          // nothing follows
}

// NewFollow makes a follower. Codes: invalid_cursor.
func (e *Streams) NewFollow(c txn.Caller, id base.GivenID, r FollowRequest) (*Follow, error) {
	f := &Follow{e: e, caller: c, id: id, kept: r.Kept, only: Newest, older: r.What == stream.Every}
	var after stream.Cursor
	var err error
	if r.What == stream.OnlyThis {
		if r.After != "" {
			after, err = stream.ParseCursorOf(r.Attempt, r.After)
		}
		f.only, f.follower = r.Attempt, stream.NewAttemptFollower(r.Attempt, after)
	} else {
		if r.After != "" {
			after, err = stream.ParseCursor(r.After)
		}
		f.follower = stream.NewFollower(r.What, after)
	}
	if err != nil {
		return nil, inField(err, "after")
	}
	return f, nil
}

// Next returns what follows, waiting for the first item if asked to. Codes: execution_not_found, attempt_not_found, overloaded.
func (f *Follow) Next(ctx context.Context, limit *int, wait time.Duration) (FollowPage, error) {
	most, err := checkTail(limit, wait)
	if err != nil {
		return FollowPage{}, err
	}
	return tailed(ctx, f.e, f.id.UUID, wait, func(ctx context.Context, one *tail) (FollowPage, bool, error) {
		page, err := f.next(ctx, most, one)
		return page, len(page.Items) > 0 || page.Done, err
	})
}

func (f *Follow) next(ctx context.Context, limit int, one *tail) (FollowPage, error) {
	v, err := f.see(ctx)
	if err != nil {
		return FollowPage{}, err
	}
	if newest := v.newest(); one != nil && newest != nil {
		f.e.tails.knows(one, headRef(f.id.UUID, newest.ID), newest.head.LastSeq)
	}
	var page FollowPage
	history, size := v.history(), 0
	for len(page.Items) < limit && size < stream.MaxPageBytes {
		step := f.follower.Next(history)
		if step.Kind == stream.StepDone {
			page.Done = true
			break
		}
		if step.Kind == stream.StepWait {
			break
		}
		if step.Kind != stream.StepRead {
			page.Items = append(page.Items, Item{ID: step.ID.String(), Attempt: step.Attempt.Index, Control: step})
			continue
		}
		a := v.find(step.Attempt.Index)
		read, err := f.e.frames(ctx, v, a, stream.Query{
			After: step.After, To: step.Attempt.LastSeq, Limit: limit - len(page.Items), MaxBytes: int64(stream.MaxPageBytes - size),
			Types: f.kept.Types, Modes: f.kept.Modes,
		})
		if err != nil {
			return FollowPage{}, err
		}
		if gap, dropped := f.follower.Advance(&read); dropped {
			page.Items = append(page.Items, Item{Attempt: a.Index, Control: gap})
		}
		for i := range read.Frames {
			frame := &read.Frames[i]
			page.Items = append(page.Items, Item{ID: stream.FrameCursor(a.Index, frame.Seq).String(), Attempt: a.Index, Frame: frame})
			size += len(frame.Payload)
		}
	}
	page.Next = f.follower.Cursor()
	return page, nil
}

// see reads what the follower needs to know: the newest attempt alone, as long as it is the one that is followed.
func (f *Follow) see(ctx context.Context) (*view, error) {
	if f.only != Newest {
		v, _, err := f.e.seeAttempt(ctx, f.caller, f.id, f.only)
		return v, err
	}
	v, err := f.e.see(ctx, f.caller, f.id, f.older)
	if err != nil || f.older || !f.behind(v) {
		return v, err
	}
	return f.e.see(ctx, f.caller, f.id, true)
}

// behind reports whether the follower's place is not in the newest attempt, nor before it all.
func (f *Follow) behind(v *view) bool {
	newest := v.newest()
	switch c := f.follower.Cursor(); c.Place {
	case stream.AtFrame, stream.AtAttemptEnd:
		return newest != nil && c.Attempt < newest.Index
	case stream.AtClosed:
		return v.x.ReplayCount > 0
	default:
		return false
	}
}
