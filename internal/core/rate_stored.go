package core

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

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
