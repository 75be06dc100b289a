package jsonx

import (
	"math"
	"strconv"
)

// The bounds of the lists and maps of a request. They are counted while they are read: a text of three megabytes may name a million empty
// objects, and each takes a hundred times the memory that it was written in.
const (
	defaultMost = 10_000   // elements, where the field says nothing else by its tag most
	freeRoom    = 64 << 20 // bytes that any request may take in memory for its lists and maps
	roomPerByte = 4        // and for each byte of its text
	mapEntry    = 64       // bytes that an entry of a map takes beside its value
	heldAtOnce  = 1 << 20  // bytes of which the memory that requests share is asked at a time
)

// mostNow is how many elements the list or map may have that is read now. Those of answers are not bounded: the request has said how many.
func (d *Decoder) mostNow() int {
	most := d.most
	d.most = 0
	switch {
	case d.lenient:
		return math.MaxInt
	case most == 0:
		return defaultMost
	default:
		return most
	}
}

// tooMany ends the reading of a request because a list or map has more elements than it may.
func (d *Decoder) tooMany(most int) {
	d.stop(&Error{
		Code: CodeBatchTooLarge, Detail: "there are more than " + strconv.Itoa(most) + " elements", Hint: "send several requests", Limit: most,
	})
}

// room takes memory for a list or map, and reports whether the request may have it.
func (d *Decoder) room(bytes int) bool {
	d.used += bytes
	if d.lenient || d.used <= freeRoom+roomPerByte*len(d.data) && d.holds() {
		return true
	}
	d.stop(&Error{Code: CodeBatchTooLarge, Detail: "the lists of the request are too large", Hint: "send several requests"})
	return false
}

// holds takes more of the memory that all requests share when this one has used what it was given. A small one never asks.
func (d *Decoder) holds() bool {
	if d.hold == nil || d.used-d.held <= heldAtOnce {
		return true
	}
	more := d.used - d.held
	d.held = d.used
	return d.hold(more)
}

// stop ends the reading, with a fault that is the only one told.
func (d *Decoder) stop(e *Error) {
	if d.broken == nil {
		d.long, d.broken, d.at = e, e, len(d.data)
	}
}

// longIn says that the list that is too long is within a member.
func (d *Decoder) longIn(name string) {
	if d.long != nil {
		d.long.Field = "/" + EscapePointer(name) + d.long.Field
	}
}
