package server

import (
	"bytes"
	"errors"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The memory that the bodies of all requests may take that are being handled.
const (
	defaultBodyMemory = 512 << 20
	leastBodyMemory   = 16 << 20
	// bodyShare is the part of the memory of the process that they get when that is known: the same again may be garbage that is not collected yet.
	bodyShare = 4
	// unbelieved is how much memory is taken for a body before anything has come of it.
	unbelieved = 1 << 20
	// growth is how many times more of what was announced a body gets when it has filled what it had: what it had is garbage then.
	growth = 4
)

// bodyMemory bounds what the bodies of all requests take together: as text, and as the lists that are read from it. Each alone is bounded, but
// many clients at once would take more than there is.
type bodyMemory struct {
	limit int64
	used  atomic.Int64
}

// take takes memory, or tells that there is none.
func (m *bodyMemory) take(n int64) bool {
	if m.used.Add(n) <= m.limit {
		return true
	}
	m.used.Add(-n)
	return false
}

func (m *bodyMemory) give(n int64) { m.used.Add(-n) }

// hold takes memory that the request gives back when it is answered.
func (x *exchange) hold(n int64) error {
	if !x.memory.take(n) {
		return refuse("overloaded", "the bodies of other requests take all the memory there is for them").after(time.Second).
			current("limit", x.memory.limit).hint("try again later, or send smaller requests")
	}
	x.held += n
	return nil
}

// drop gives back some of what the request holds.
func (x *exchange) drop(n int64) {
	x.memory.give(n)
	x.held -= n
}

// readWhole reads all there is, of which the length was announced; -1: it was not. Memory is taken for four times of what has come at most:
// whoever announces much and sends little holds little.
func (x *exchange) readWhole(from io.Reader, announced int64) ([]byte, error) {
	var body []byte
	for room := min(max(announced, 0), unbelieved) + bytes.MinRead; ; room = moreRoom(int64(cap(body)), announced) {
		if err := x.hold(room - int64(cap(body))); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, room), body...)
		for len(body) < cap(body) {
			n, err := from.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
			switch {
			case errors.Is(err, io.EOF):
				return body, nil
			case err != nil:
				return nil, err
			}
		}
	}
}

// moreRoom is how much memory a body gets that has filled what it had.
func moreRoom(had, announced int64) int64 {
	if whole := announced + bytes.MinRead; had < whole {
		return min(growth*had, whole)
	}
	return 2 * had
}

// memoryForBodies is what bodies may take in this process.
func memoryForBodies() int64 {
	return min(defaultBodyMemory, max(debug.SetMemoryLimit(-1)/bodyShare, leastBodyMemory))
}
