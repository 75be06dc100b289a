package streams

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxTailWait is the longest that a reader may wait (E17).
const maxTailWait = 30 * time.Second

// Newest names the newest attempt.
const Newest = -1

// Kept selects frames by type and mode.
type Kept struct {
	Types []string // none: all
	Modes stream.ModeSet
}

// FramesRequest asks for frames of one attempt (E15, E17).
type FramesRequest struct {
	Attempt int    // Newest: the newest one
	From    string // cursor, this frame included; "": the start
	After   string // cursor, this frame excluded; at most one of both
	To      string // cursor, this frame included; "": the end
	Limit   *int
	Wait    time.Duration
	Kept
}

// FramesPage is a part of a stream.
type FramesPage struct {
	Attempt int
	stream.ReadPage
	Next stream.Cursor // the position reached
}

// ReadFrames returns frames of one attempt, waiting for the first if asked to. Codes: execution_not_found, attempt_not_found, invalid_cursor,
// overloaded.
func (e *Streams) ReadFrames(ctx context.Context, c txn.Caller, id base.GivenID, r FramesRequest) (FramesPage, error) {
	limit, err := checkTail(r.Limit, r.Wait)
	if err != nil {
		return FramesPage{}, err
	}
	if err := r.check(); err != nil {
		return FramesPage{}, err
	}
	truncated := int64(0)
	return tailed(ctx, e, id.UUID, r.Wait, func(ctx context.Context, one *tail) (FramesPage, bool, error) {
		page, err := e.readFrames(ctx, c, id, &r, limit, one)
		if err != nil {
			return page, false, err
		}
		// A look after this one goes on where it ends, in the same attempt, which may be the newest no more.
		r.Attempt, r.From, r.After = page.Attempt, "", page.Next.String()
		truncated = max(truncated, page.TruncatedBefore)
		page.TruncatedBefore = truncated
		return page, len(page.Frames) > 0 || page.More || page.Closed.Reason != 0, nil
	})
}

func checkTail(limit *int, wait time.Duration) (int, error) {
	if wait < 0 || wait > maxTailWait {
		return 0, base.Invalid("wait_ms", "%s, want 0..%s", wait, maxTailWait)
	}
	return core.PageLimit(limit)
}

// tailed reads until there is something, or wait is over. The read gets the entry of the reader among those that wait; nil: it does not wait.
func tailed[P any](ctx context.Context, e *Streams, id base.UUID, wait time.Duration, read func(context.Context, *tail) (page P, done bool, err error)) (P, error) {
	if wait == 0 {
		page, _, err := read(ctx, nil)
		return page, err
	}
	timer := e.Cfg.Clock.NewTimer(wait)
	defer timer.Stop()
	for {
		one, err := e.tails.enter(id) // before the read, so that nothing is missed
		if err != nil {
			var none P
			return none, err
		}
		page, done, err := read(ctx, one)
		if err != nil || done {
			e.tails.withdraw(one)
			return page, err
		}
		select {
		case <-one.woken:
			continue
		case <-timer.C:
		case <-e.Stop:
		case <-ctx.Done():
		}
		e.tails.withdraw(one)
		return page, nil
	}
}

func (e *Streams) readFrames(ctx context.Context, c txn.Caller, id base.GivenID, r *FramesRequest, limit int, one *tail) (FramesPage, error) {
	v, a, err := e.seeAttempt(ctx, c, id, r.Attempt)
	if err != nil {
		return FramesPage{}, err
	}
	if one != nil {
		e.tails.knows(one, headRef(id.UUID, a.ID), a.head.LastSeq)
	}
	from, exclusive, to, err := r.cursors(a.Index)
	if err != nil {
		return FramesPage{}, err
	}
	query := stream.Query{Limit: limit, Types: r.Types, Modes: r.Modes}
	query.After, query.To = a.head.Range(from, exclusive, to)
	page, err := e.frames(ctx, v, a, query)
	if err != nil {
		return FramesPage{}, err
	}
	next := stream.FrameCursor(a.Index, page.Position)
	if page.Closed.Reason != 0 {
		next = a.head.End()
	}
	return FramesPage{Attempt: a.Index, ReadPage: page, Next: next}, nil
}

// check refuses two places to read from.
func (r *FramesRequest) check() error {
	if r.From != "" && r.After != "" {
		return base.Invalid("after", "from is given, too: use one of them")
	}
	return nil
}

// cursors reads the cursors of a request on one attempt.
func (r *FramesRequest) cursors(attempt int) (from stream.Cursor, exclusive bool, to stream.Cursor, err error) {
	to = stream.Cursor{Place: stream.AtEnd}
	read := func(field, text string, into *stream.Cursor) {
		if text != "" && err == nil {
			if *into, err = stream.ParseCursorOf(attempt, text); err != nil {
				err = inField(err, field)
			}
		}
	}
	read("from", r.From, &from)
	read("after", r.After, &from)
	read("to", r.To, &to)
	return from, r.After != "", to, err
}

// inField names the field of a request in which a cursor stood.
func inField(err error, field string) error {
	var refusal *base.Error
	if errors.As(err, &refusal) {
		return refusal.WithField(field)
	}
	return err
}

// seeAttempt reads the streams of an execution with one of its attempts. Codes: execution_not_found, attempt_not_found.
func (e *Streams) seeAttempt(ctx context.Context, c txn.Caller, id base.GivenID, index int) (*view, *attempt, error) {
	v, err := e.see(ctx, c, id, false)
	if err != nil {
		return nil, nil, err
	}
	newest := v.newest()
	if index == Newest && newest != nil {
		return v, newest, nil
	}
	if newest != nil && index >= 0 && index < newest.Index {
		if v, err = e.see(ctx, c, id, true); err != nil {
			return nil, nil, err
		}
	}
	if a := v.find(index); a != nil {
		return v, a, nil
	}
	return nil, nil, base.Errorf(base.CodeAttemptNotFound, "the execution has no such attempt").With("attempts", v.x.TotalAttempts)
}

// Chunks are read a few at a time at first, since a few may have as many frames as a page, and more as long as they are small. How large the next
// ones are is not known: only where all that are left are small together many are read at once.
const (
	firstChunks = 8
	moreChunks  = 32
	manyChunks  = 512
	chunkBytes  = 1 << 20
)

// frames reads a page of frames of an attempt. The head was read before the chunks.
func (e *Streams) frames(ctx context.Context, v *view, a *attempt, q stream.Query) (stream.ReadPage, error) {
	reader := stream.NewReader(a.head, &v.x.Policy.Stream, q, v.now)
	owner, limit, loadedBytes := txn.Owner(v.x.ID.UUID), firstChunks, 0
	for wants := reader.Wants(); len(wants) > 0; wants = reader.Wants() {
		scans := make([]store.Scan, len(wants))
		for i, want := range wants {
			scans[i] = scanOf(owner, want, min(limit, mostChunks(want.Left)))
		}
		loaded, err := e.Store.Read(ctx, store.Want{Scans: scans})
		if err != nil {
			return stream.ReadPage{}, txn.PublicFault(err)
		}
		size := 0
		for i, want := range wants {
			rows := make([][]byte, len(loaded.Scanned[i]))
			for j := range rows {
				rows[j] = loaded.Scanned[i][j].Data
				size += len(rows[j])
			}
			if err := reader.Feed(want.Mode, rows); err != nil {
				return stream.ReadPage{}, txn.Corrupt("chunk of a stream", err)
			}
		}
		if size < chunkBytes {
			limit = min(2*limit, manyChunks)
		} else {
			limit = firstChunks
		}
		loadedBytes += size
	}
	page := reader.Page()
	own(page.Frames, loadedBytes)
	return page, nil
}

// mostChunks is how many chunks are read at once of a mode that has so many bytes left.
func mostChunks(left int64) int {
	if left > stream.MaxPageBytes {
		return moreChunks
	}
	return manyChunks
}

// own makes frames independent of the chunks that were read for them if those take much more memory: a page may be kept until a slow client has taken it.
func own(frames []stream.Frame, loaded int) {
	size := 0
	for i := range frames {
		size += len(frames[i].Payload)
	}
	if loaded <= 2*size+chunkBytes/16 {
		return
	}
	for i := range frames {
		frames[i].Payload = bytes.Clone(frames[i].Payload)
	}
}

// scanOf is the scan of the first chunks that a reader wants.
func scanOf(owner string, want stream.Want, limit int) store.Scan {
	scan := store.Scan{Kind: docChunk, Owner: owner, Prefix: want.Limit[:len(want.Limit)-1], Limit: limit}
	if attempt, mode, seq, ok := stream.ParseKey(want.From); ok && seq > 0 {
		scan.After = stream.Key(attempt, mode, seq-1)
	}
	return scan
}
