package stream

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Window determines which frames of a mode are retained at a moment. It depends on the head, the policy and the time, and needs of a chunk its extent alone:
// a reader gets the same whether old chunks were deleted or not.
type Window struct {
	Mode   Mode
	First  int64     // ordinal of the first frame that is retained by number
	Before int64     // a frame with fewer bytes of its mode before it is out of retention
	Since  base.Time // a chunk of an earlier time is out of retention; of best-effort frames alone
}

// Window returns what is retained of a mode (E6, E7, E8).
func (h *Head) Window(p *Policy, mode Mode, now base.Time) Window {
	t := &h.Tallies[mode]
	w := Window{Mode: mode, First: 1, Since: math.MinInt64}
	switch mode {
	case Durable:
		if p.OnFull != Refuse {
			w.First = max(1, t.Frames-int64(p.MaxFrames)+1)
			w.Before = max(0, t.Bytes-p.MaxBytes)
		}
	case Summary:
		w.First = max(1, t.Frames-MaxPatches+1)
	case BestEffort:
		w.First = max(1, h.BestEffort.First)
		w.Since = now.Add(-2 * p.BestEffort.TTLMS)
	}
	return w
}

// Gone reports whether no frame of a chunk is retained.
func (w *Window) Gone(s *Extent) bool {
	return s.At < w.Since || s.Ordinal+s.Count-1 < w.First || s.Before+s.Bytes-s.LastSize < w.Before
}

// retains reports whether the frame that the reader has just read is retained.
func (w *Window) retains(r *frameReader) bool {
	return r.extent.At >= w.Since && r.extent.Ordinal+r.index-1 >= w.First && r.before >= w.Before
}

// Trim returns how many chunks of a mode may be deleted: the first n of those given. Their extents must be in the order of their keys and begin with the oldest
// chunk that is stored. The returned head records the deletion and must be written in the same transaction.
func (h Head) Trim(p *Policy, mode Mode, now base.Time, oldest []Extent) (n int, after Head) {
	w := h.Window(p, mode, now)
	for n < len(oldest) && oldest[n].Mode == mode && w.Gone(&oldest[n]) {
		n++
	}
	if n > 0 {
		h.Deleted[mode] = oldest[n-1].LastSeq
	}
	return n, h
}

// MayTrim reports whether Trim may find something to delete, as far as the head shows: some frames were not deleted, and some are out of retention.
// For best-effort frames, whose oldest time is not in the head, it reports whether any frame was not deleted.
func (h *Head) MayTrim(p *Policy, mode Mode, now base.Time) bool {
	if h.Deleted[mode] == h.Tallies[mode].LastSeq {
		return false
	}
	w := h.Window(p, mode, now)
	return mode == BestEffort || w.First > 1 || w.Before > 0
}

// room checks that the policy has room for durable frames (E6): stream_full.
func (h *Head) room(p *Policy, after Tally) error {
	if p.OnFull != Refuse || after.Frames == h.Tallies[Durable].Frames {
		return nil
	}
	if after.Frames <= int64(p.MaxFrames) && after.Bytes <= p.MaxBytes {
		return nil
	}
	return base.Errorf(base.CodeStreamFull, "the stream has %d frames of %d and %d bytes of %d: the call does not fit", h.Tallies[Durable].Frames, p.MaxFrames, h.Tallies[Durable].Bytes, p.MaxBytes).
		With("frames", h.Tallies[Durable].Frames).With("max_frames", p.MaxFrames).With("bytes", h.Tallies[Durable].Bytes).With("max_bytes", p.MaxBytes).
		WithHint("send fewer frames, use another mode, or submit with a stream_policy that has more room")
}
