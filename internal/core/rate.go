package core

import (
	"encoding/binary"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// maxRateEntries bounds the number of distinct moments in a window.
const maxRateEntries = 4096

// RateWindow holds the admissions of one rate key that may still count (S40), oldest first. It is bounded: beyond maxRateEntries moments neighbours
// are merged under the later one, so that a merged admission counts slightly longer and never shorter (SI8). The zero value is a window without
// admissions.
type RateWindow struct {
	entries []rateEntry // in ascending order of time
	changed bool
}

// rateEntry is the number of admissions at one moment.
type rateEntry struct {
	at base.Time
	n  int
}

// Count returns how many admissions count at now: each counts until the end of the window that begins with it, exclusive.
func (w *RateWindow) Count(now base.Time, window base.Millis) int {
	count := 0
	for i := len(w.entries) - 1; i >= 0 && w.entries[i].counts(now, window); i-- {
		count += w.entries[i].n
	}
	return count
}

func (e rateEntry) counts(now base.Time, window base.Millis) bool { return e.at.Add(window) > now }

// NextFree returns the first moment from now on at which fewer than limit admissions count; a limit of 0 is off.
func (w *RateWindow) NextFree(now base.Time, window base.Millis, limit int) base.Time {
	counting := w.Count(now, window)
	if limit == 0 || counting < limit {
		return now
	}
	for _, e := range w.entries {
		if !e.counts(now, window) {
			continue
		}
		if counting -= e.n; counting < limit {
			return e.at.Add(window)
		}
	}
	return now
}

// Take records an admission at now. The caller has checked that there is room for it.
func (w *RateWindow) Take(now base.Time) {
	w.changed = true
	i, found := w.find(now)
	if found {
		w.entries[i].n++
		return
	}
	w.entries = slices.Insert(w.entries, i, rateEntry{at: now, n: 1})
	if len(w.entries) > maxRateEntries {
		w.merge()
	}
}

// GiveBack removes one admission at that moment and reports whether there was one. An admission that was trimmed or merged under a later moment is
// not found and continues to count.
func (w *RateWindow) GiveBack(at base.Time) bool {
	i, found := w.find(at)
	if !found {
		return false
	}
	w.changed = true
	if w.entries[i].n--; w.entries[i].n == 0 {
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	return true
}

func (w *RateWindow) find(at base.Time) (index int, found bool) {
	return slices.BinarySearchFunc(w.entries, at, func(e rateEntry, at base.Time) int { return int(min(max(e.at-at, -1), 1)) })
}

// Trim removes admissions that no longer count.
func (w *RateWindow) Trim(now base.Time, window base.Millis) {
	for len(w.entries) > 0 && !w.entries[0].counts(now, window) {
		w.entries, w.changed = w.entries[1:], true
	}
}

// Changed reports whether the window differs from what was read and must be written.
func (w *RateWindow) Changed() bool { return w.changed }

// Empty reports whether the window has no admissions.
func (w *RateWindow) Empty() bool { return len(w.entries) == 0 }

// LastsUntil returns the moment from which nothing counts any more; absent if the window is empty.
func (w *RateWindow) LastsUntil(window base.Millis) base.Time {
	if w.Empty() {
		return 0
	}
	return w.entries[len(w.entries)-1].at.Add(window)
}

// merge merges the moments of each interval of time under its last one. Intervals are a power of two long and aligned to multiples of their length,
// so that merging again moves nothing further: an admission counts longer by less than one interval, a thousandth of the time covered.
func (w *RateWindow) merge() {
	span := w.entries[len(w.entries)-1].at.Sub(w.entries[0].at)
	stretch := base.Time(1)
	for int64(stretch)*(maxRateEntries/2) < span {
		stretch *= 2
	}
	merged := w.entries[:1]
	for _, e := range w.entries[1:] {
		if last := &merged[len(merged)-1]; last.at/stretch == e.at/stretch {
			last.at, last.n = e.at, last.n+e.n
		} else {
			merged = append(merged, e)
		}
	}
	w.entries = merged
}

// rateFormat is the first byte of the stored form of a window.
const rateFormat = 1

// Encode returns the stored form of the window: after the format, one number per entry, which is twice the distance from the previous moment, plus
// one if several were admitted, followed in that case by how many.
func (w *RateWindow) Encode() []byte {
	data := append(make([]byte, 0, 1+4*len(w.entries)), rateFormat)
	var before base.Time
	for _, e := range w.entries {
		distance := uint64(e.at-before) << 1
		before = e.at
		if e.n == 1 {
			data = binary.AppendUvarint(data, distance)
			continue
		}
		data = binary.AppendUvarint(data, distance|1)
		data = binary.AppendUvarint(data, uint64(e.n))
	}
	return data
}

// DecodeRateWindow reads what Encode wrote. Errors: corruption.
func DecodeRateWindow(data []byte) (*RateWindow, error) {
	if len(data) == 0 || data[0] != rateFormat {
		return nil, corruptRate("it is of no known format")
	}
	w := &RateWindow{}
	var at base.Time
	for data = data[1:]; len(data) > 0; {
		var e rateEntry
		var why string
		if e, data, why = decodeRateEntry(data, at); why != "" {
			return nil, corruptRate(why)
		}
		if len(w.entries) == maxRateEntries {
			return nil, corruptRate("it has too many entries")
		}
		w.entries, at = append(w.entries, e), e.at
	}
	return w, nil
}

// decodeRateEntry reads the entry that follows one at the moment before, and returns the remaining bytes.
func decodeRateEntry(data []byte, before base.Time) (e rateEntry, rest []byte, why string) {
	distance, size := binary.Uvarint(data)
	if size <= 0 {
		return e, nil, "a moment is cut off"
	}
	rest = data[size:]
	e = rateEntry{at: before + base.Time(distance>>1), n: 1}
	if e.at <= before {
		return e, nil, "its moments do not ascend"
	}
	if distance&1 == 0 {
		return e, rest, ""
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n < 2 || n > 1<<40 {
		return e, nil, "a count is impossible"
	}
	e.n = int(n)
	return e, rest[size:], ""
}

func corruptRate(why string) error {
	return base.Errorf(base.CodeCorruption, "the admissions of a rate cannot be read: %s", why)
}
