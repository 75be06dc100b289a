package stream

import (
	"encoding/binary"
	"math"
)

// The first byte of everything that is stored is the version of its format. It is below 0x80, so that a store may use that bit.
const headVersion = 1

// Parts of a head that are often absent.
const (
	headCall = 1 << iota
	headBestEffort
	headDeleted
	headParts = 1<<iota - 1
)

// parts returns the parts of h that its encoding must contain.
func (h *Head) parts() byte {
	var parts byte
	set := func(part byte, present bool) {
		if present {
			parts |= part
		}
	}
	set(headCall, h.Call.Present)
	set(headBestEffort, h.BestEffort != Pace{})
	set(headDeleted, h.Deleted != [modes]int64{})
	return parts
}

// Encode returns the stored form of h, which leaves out the attempt and the close.
func (h *Head) Encode() []byte {
	parts := h.parts()
	to := append(make([]byte, 0, 96), headVersion, parts)
	to = appendCount(to, h.LastSeq)
	for _, t := range h.Tallies {
		to = appendCount(to, t.Frames)
		to = appendCount(to, t.Bytes)
		to = appendCount(to, t.LastSeq)
	}
	to = binary.AppendVarint(to, int64(h.FirstAt))
	to = binary.AppendVarint(to, int64(h.LastAt))
	if parts&headCall != 0 {
		to = binary.AppendVarint(to, h.Call.Epoch)
		to = binary.AppendVarint(to, h.Call.ClientSeq)
		to = appendCount(to, h.Call.Answer.FirstSeq)
		to = appendCount(to, h.Call.Answer.LastSeq)
		to = appendCount(to, h.Call.Answer.SummaryVersion)
	}
	if parts&headBestEffort != 0 {
		to = binary.AppendVarint(to, int64(h.BestEffort.At))
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(h.BestEffort.Expected))
		to = appendCount(to, h.BestEffort.First)
	}
	if parts&headDeleted != 0 {
		for _, seq := range h.Deleted {
			to = appendCount(to, seq)
		}
	}
	return to
}

// DecodeHead reads the output of Encode for that attempt; anything else is corruption.
func DecodeHead(attempt int, data []byte) (Head, error) {
	d := decoder{data: data}
	d.check(d.byte() == headVersion)
	parts := d.byte()
	d.check(parts <= headParts)
	h := Head{Attempt: attempt, LastSeq: d.count()}
	for m := range h.Tallies {
		h.Tallies[m] = Tally{Frames: d.count(), Bytes: d.count(), LastSeq: d.count()}
	}
	h.FirstAt, h.LastAt = d.time(), d.time()
	if parts&headCall != 0 {
		h.Call = Call{Present: true, Epoch: d.int(), ClientSeq: d.int()}
		h.Call.Answer = Answer{FirstSeq: d.count(), LastSeq: d.count(), SummaryVersion: d.count()}
	}
	if parts&headBestEffort != 0 {
		h.BestEffort = Pace{At: d.time(), Expected: d.float(), First: d.count()}
	}
	if parts&headDeleted != 0 {
		for m := range h.Deleted {
			h.Deleted[m] = d.count()
		}
	}
	if !d.finished() || h.parts() != parts || !h.consistent() {
		return Head{}, unreadable("head of a stream")
	}
	return h, nil
}

// float reads a finite number of at least 0.
func (d *decoder) float() float64 {
	bytes := d.cut(8)
	if d.bad {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(bytes))
	d.check(f >= 0 && !math.IsInf(f, 1) && !math.Signbit(f))
	return f
}

// consistent reports whether an Append can have made h: the modes have all frames between them, and none has frames without a place.
func (h *Head) consistent() bool {
	left, last := h.LastSeq, int64(0)
	for m, t := range h.Tallies {
		if t.Frames > left || t.LastSeq < t.Frames || t.LastSeq > h.LastSeq || (t.Frames == 0) != (t.LastSeq == 0) ||
			t.Bytes/MaxPayload > t.Frames || h.Deleted[m] > t.LastSeq {
			return false
		}
		left -= t.Frames
		last = max(last, t.LastSeq)
	}
	a := h.Call.Answer
	return left == 0 && last == h.LastSeq && h.BestEffort.First <= h.Tallies[BestEffort].Frames && a.LastSeq <= h.LastSeq && a.FirstSeq <= a.LastSeq
}
