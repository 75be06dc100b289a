package stream

import (
	"bytes"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Query selects frames of a stream (E15).
type Query struct {
	After    int64    // only frames after this seq
	To       int64    // only frames up to this seq
	Limit    int      // the most frames of a page; 0: none
	MaxBytes int64    // the most bytes of payloads, but for a single frame; 0: MaxPageBytes
	Types    []string // only frames of these types; none: of all
	Modes    ModeSet
}

// ReadPage is what a read found.
//
// A read that goes on after Position sees the frames that follow: pages concatenate to the same list as one read.
type ReadPage struct {
	Frames   []Frame // by ascending seq
	Position int64   // everything up to this seq was looked at
	More     bool    // something after Position may match
	// TruncatedBefore is above 0 if durable or summary frames of the modes asked for, after the Query's After and below this seq, are no longer
	// retained.
	TruncatedBefore int64
	Closed          Closing // of a closed stream, once its end was reached
}

// Range turns cursors into the bounds of a Query. A cursor of an earlier attempt counts as the start and one of a later attempt as the end.
func (h *Head) Range(from Cursor, exclusive bool, to Cursor) (after, last int64) {
	after, last = h.position(from), h.position(to)
	if from.Place == AtFrame && from.Attempt == h.Attempt && !exclusive {
		after = max(0, after-1)
	}
	return after, last
}

// position returns the seq of the last frame up to a cursor.
func (h *Head) position(c Cursor) int64 {
	switch {
	case c.Place == AtStart || c.inAttempt() && c.Attempt < h.Attempt:
		return 0
	case c.inAttempt() && c.Attempt == h.Attempt:
		return c.Seq
	default:
		return h.LastSeq
	}
}

// Reader builds a page from the chunks of a stream. The caller loads the chunks that Wants lists and passes them to Feed:
//
//	r := NewReader(head, policy, query, now)
//	for wants := r.Wants(); len(wants) > 0; wants = r.Wants() {
//		// load chunks for each of wants, and Feed them
//	}
//	page := r.Page()
//
// The head must have been read before the chunks, or in the same snapshot. Frames that were appended after the head was read are left out.
type Reader struct {
	head  Head
	query Query
	to    int64
	lanes [modes]lane
	bytes int64
	page  ReadPage
	done  bool // nothing is left to be read for this page
}

// Want names chunks that a Reader needs: those of a mode with From <= key < Limit, in the order of keys. The first of them suffice, in any number from one.
type Want struct {
	Mode        Mode
	From, Limit string
	Left        int64 // about how many bytes all chunks of the mode have that were not fed yet
}

// NewReader begins a read.
func NewReader(h Head, p *Policy, q Query, now base.Time) *Reader {
	r := &Reader{head: h, query: q, to: min(q.To, h.LastSeq), page: ReadPage{Position: q.After}}
	if r.query.MaxBytes == 0 {
		r.query.MaxBytes = MaxPageBytes
	}
	for m := range r.lanes {
		l := &r.lanes[m]
		l.window = h.Window(p, Mode(m), now)
		l.after, l.to, l.last = q.After, r.to, h.Tallies[m].LastSeq
		l.reached = max(q.After, h.Deleted[m])
		if l.ended = !q.Modes.Has(Mode(m)) || l.after >= min(l.to, l.last); !l.ended {
			l.drop(h.Deleted[m])
		}
	}
	_ = r.merge() // no lane has anything yet that could not be read
	return r
}

// Wants returns what the reader needs to continue. It returns nil when the page is complete.
func (r *Reader) Wants() []Want {
	if r.done {
		return nil
	}
	var wants []Want
	for m := range r.lanes {
		if l := &r.lanes[m]; l.needsChunks() {
			mode := Mode(m)
			wants = append(wants, Want{Mode: mode, From: Key(r.head.Attempt, mode, l.reached+1), Limit: KeyLimit(r.head.Attempt, mode), Left: r.left(mode)})
		}
	}
	return wants
}

// left bounds the bytes of the chunks of a mode that were not fed yet, from the first one that is retained.
func (r *Reader) left(mode Mode) int64 {
	l, all := &r.lanes[mode], &r.head.Tallies[mode]
	extent := &l.reader.extent
	passed, before := max(extent.Ordinal+extent.Count-1, l.window.First-1), max(extent.Before+extent.Bytes, l.window.Before)
	return all.Bytes - before + frameOverhead*(all.Frames-passed)
}

// frameOverhead is about what a frame takes in a chunk beside its payload.
const frameOverhead = 64

// Feed adds encoded chunks that Wants listed. No rows means that no more are stored. Rows of a mode that Wants did not list are ignored. Chunks that cannot
// be read are corruption. The frames of the page may share the bytes of the rows, which must not change afterwards.
func (r *Reader) Feed(mode Mode, rows [][]byte) error {
	l := &r.lanes[mode]
	if r.done || !l.needsChunks() {
		return nil
	}
	l.rows = rows
	if len(rows) == 0 {
		l.end()
	}
	if err := l.fill(); err != nil {
		return err
	}
	return r.merge()
}

// Page returns what was read so far. It is a valid page at any time, possibly a short one.
func (r *Reader) Page() ReadPage {
	p := r.page
	for m := range r.lanes {
		if Mode(m) != BestEffort {
			p.TruncatedBefore = max(p.TruncatedBefore, r.lanes[m].truncated)
		}
	}
	p.More = p.More || !r.done
	if !p.More && r.to == r.head.LastSeq {
		p.Closed = r.head.Closed
	}
	return p
}

// merge moves frames from the lanes to the page, in the order of their seq.
func (r *Reader) merge() error {
	for !r.done {
		least, limit := r.least()
		full := len(r.page.Frames) >= r.query.Limit
		if least == nil {
			if full && r.page.Position < r.to {
				r.done, r.page.More = true, true // to know better would take another read
			}
			return nil
		}
		for ; least.has && least.frame.Seq < limit; full = len(r.page.Frames) >= r.query.Limit {
			f := &least.frame
			if len(r.query.Types) == 0 || slices.Contains(r.query.Types, f.Type) {
				r.bytes += int64(len(f.Payload))
				if full || len(r.page.Frames) > 0 && r.bytes > r.query.MaxBytes {
					r.done, r.page.More = true, true
					return nil
				}
				if len(r.page.Frames) == cap(r.page.Frames) {
					r.grow(least.reader.extent.Count)
				}
				r.page.Frames = append(r.page.Frames, *f)
				if len(r.query.Types) > 0 { // or a few small frames would keep many large chunks
					r.page.Frames[len(r.page.Frames)-1].Payload = bytes.Clone(f.Payload)
				}
			}
			r.page.Position = f.Seq
			least.has = false
			if err := least.fill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow makes room for so many frames, or for twice as many as there are, or for a few, within the limit.
func (r *Reader) grow(n int64) {
	has := len(r.page.Frames)
	r.page.Frames = slices.Grow(r.page.Frames, min(max(has, int(n), 16), r.query.Limit-has))
}

// least returns the lane with the next frame, and the seq at which another lane comes first. It returns nil if a lane must be fed before, or if
// nothing is left; then the page is complete.
func (r *Reader) least() (least *lane, limit int64) {
	limit = r.to + 1
	next := limit
	for m := range r.lanes {
		l := &r.lanes[m]
		switch {
		case l.needsChunks():
			return nil, 0
		case !l.has:
		case l.frame.Seq < next:
			least, limit, next = l, next, l.frame.Seq
		default:
			limit = min(limit, l.frame.Seq)
		}
	}
	if least == nil {
		r.done = true
		r.page.Position = max(r.page.Position, r.to)
	}
	return least, limit
}
