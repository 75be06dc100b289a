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
	From    string // of stream.OnlyThis: cursor, this frame included, instead of After
	To      string // of stream.OnlyThis: cursor, this frame included; "": the close
	Kept
}

// Item is what a follower is sent: a frame, or a control item.
type Item struct {
	ID      string        // "": a gap, which has none
	Attempt int           // of StepClosed the newest one; -1: none began
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
	bounded  bool // of one attempt: it ends after the frame to, not with the close
	to       int64
	older    bool // attempts before the newest are needed
}

// FollowPage is what a follower is sent next.
type FollowPage struct {
	Items []Item
	Next  stream.Cursor // the position reached
	AtEnd bool          // nothing follows yet
	Done  bool          // nothing follows
}

// NewFollow makes a follower. Codes: invalid_cursor.
func (e *Streams) NewFollow(c txn.Caller, id base.GivenID, r FollowRequest) (*Follow, error) {
	f := &Follow{e: e, caller: c, id: id, kept: r.Kept, only: Newest, older: r.What == stream.Every}
	if r.What == stream.OnlyThis {
		return f, f.within(&r)
	}
	var after stream.Cursor
	if r.After != "" {
		var err error
		if after, err = stream.ParseCursor(r.After); err != nil {
			return nil, inField(err, "after")
		}
	}
	f.follower = stream.NewFollower(r.What, after)
	return f, nil
}

// within makes it follow one attempt, from a place to a place.
func (f *Follow) within(r *FollowRequest) error {
	asked := FramesRequest{From: r.From, After: r.After, To: r.To}
	if err := asked.check(); err != nil {
		return err
	}
	from, exclusive, to, err := asked.cursors(r.Attempt)
	if err != nil {
		return err
	}
	if !exclusive && from.Place == stream.AtFrame {
		from.Seq = max(0, from.Seq-1)
	}
	if to.Place == stream.AtFrame || to.Place == stream.AtStart {
		f.bounded, f.to = true, to.Seq
	}
	f.only, f.follower = r.Attempt, stream.NewAttemptFollower(r.Attempt, from)
	return nil
}

// over reports whether the last frame that was asked for has been passed.
func (f *Follow) over() bool {
	c := f.follower.Cursor()
	return f.bounded && (c.Place == stream.AtFrame || c.Place == stream.AtStart) && c.Seq >= f.to
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
		if page.Done = f.over(); page.Done {
			break
		}
		step := f.follower.Next(history)
		if page.Done = step.Kind == stream.StepDone; page.Done {
			break
		}
		if page.AtEnd = step.Kind == stream.StepWait; page.AtEnd {
			break
		}
		if step.Kind != stream.StepRead {
			page.Items = append(page.Items, v.control(step))
			continue
		}
		a := v.find(step.Attempt.Index)
		last := step.Attempt.LastSeq
		if f.bounded {
			last = min(last, f.to)
		}
		read, err := f.e.frames(ctx, v, a, stream.Query{
			After: step.After, To: last, Limit: limit - len(page.Items), MaxBytes: int64(stream.MaxPageBytes - size),
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
	page.Next, page.AtEnd = f.follower.Cursor(), page.AtEnd || page.Done
	return page, nil
}

// control is the item of a step that is no read.
func (v *view) control(step stream.Step) Item {
	item := Item{ID: step.ID.String(), Attempt: step.Attempt.Index, Control: step}
	if step.Kind == stream.StepClosed {
		item.Attempt = -1
		if newest := v.newest(); newest != nil {
			item.Attempt = newest.Index
		}
	}
	return item
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
