package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"
)

// The memory that the bodies of all requests may take that are being handled, and the answers that clients have not taken yet.
const (
	defaultBodyMemory = 512 << 20
	leastBodyMemory   = 16 << 20
	// bodyShare is the part of the memory of the process that they get when that is known: the same again may be garbage that is not collected yet.
	bodyShare = 4
	// unbelieved is how much memory is taken for a body before anything has come of it.
	unbelieved = 1 << 20
	// growth is how many times more of what was announced a body gets when it has filled what it had: what it had is garbage then.
	growth = 4
	// smallAnswer is the size up to which an answer is not counted: the number of connections bounds those.
	smallAnswer = 16 << 10
)

// bodyMemory bounds what the bodies of all requests and the answers to them take together: as text, and as the lists that are read from it. Each
// alone is bounded, but many clients at once, or clients that take their answers slowly, would take more than there is. Of the memory one key,
// or one address without a key, has a share: it must not take what the others need.
type bodyMemory struct {
	limit int64
	share int64 // of one holder

	mu   sync.Mutex
	used int64
	held map[string]int64 // by holder; none is 0
}

func newBodyMemory(limit int64) *bodyMemory {
	largest := min(largestBody, limit/2)
	return &bodyMemory{limit: limit, share: max(limit/keyPart, largest+largest/keyPart), held: map[string]int64{}} // what is decoded from the largest body needs room as well
}

// take reserves memory for a holder, or reports that there is none. A holder without a name has no share: it may take all.
func (m *bodyMemory) take(holder string, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case holder != "" && m.held[holder]+n > m.share:
		return refuse("rate_limited", "the bodies of the caller's requests take all the memory that one caller has for them").after(time.Second).
			current("limit", m.share).hint("send fewer requests at a time, or smaller ones")
	case m.used+n > m.limit:
		return refuse("overloaded", "the bodies of other requests take all the memory there is for them").after(time.Second).
			current("limit", m.limit).hint("try again later, or send smaller requests")
	}
	m.add(holder, n)
	return nil
}

// takeForAnswer reserves memory for an answer that waits until its client has taken it; own is what its request holds already. While less than half
// is taken, an answer of any size fits: what a server with more memory has stored can be read one thing at a time.
func (m *bodyMemory) takeForAnswer(holder string, own, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	held, used := m.held[holder]-own, m.used-own
	switch {
	case holder != "" && held > m.share/2 && held+n > m.share:
		return refuse("rate_limited", "answers that the caller has not taken yet need all the memory that one caller has for them").after(time.Second).
			current("limit", m.share).hint("ask for less at a time, and read the answers faster")
	case used > m.limit/2 && used+n > m.limit:
		return refuse("overloaded", "answers that clients have not taken yet need all the memory there is for them").after(time.Second).
			current("limit", m.limit).hint("try again later, or ask for less at a time")
	}
	m.add(holder, n)
	return nil
}

// count reserves memory for a holder also where there is none.
func (m *bodyMemory) count(holder string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(holder, n)
}

func (m *bodyMemory) give(holder string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(holder, -n)
}

// add counts memory. The lock is held.
func (m *bodyMemory) add(holder string, n int64) {
	m.used += n
	if holder == "" || n == 0 {
		return
	}
	if m.held[holder] += n; m.held[holder] == 0 {
		delete(m.held, holder)
	}
}

// headMemory is the memory that the head of a request takes while it comes: the first kilobyte is free, but
// thousands of clients could each send a large one and not its end.
type headMemory struct {
	of     *bodyMemory
	holder string // in whose share it counts

	mu      sync.Mutex
	reading bool  // what comes is a head
	full    bool  // there was no memory for it
	come    int64 // bytes of it
	held    int64
}

const (
	smallHead = 1 << 10 // while it comes
	usualHead = 8 << 10 // of a request that is handled
	// headCost is how much memory a byte of a head takes at most, where headers are as short as can be; headerCost is what one of them takes beside
	// its text.
	headCost, headerCost = 12, 100
)

// begin begins the next head.
func (h *headMemory) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading, h.come = true, 0
}

// grow counts bytes that have come. It reports whether there is memory for them.
func (h *headMemory) grow(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reading {
		return true
	}
	h.come += int64(n)
	more := headCost*max(h.come-smallHead, 0) - h.held
	if more <= 0 {
		return true
	}
	if h.full = h.of.take(h.holder, more) != nil; h.full {
		return false
	}
	h.held += more
	return true
}

// refused reports whether there was no memory for a head.
func (h *headMemory) refused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.full
}

// end gives the memory back: the head has come, or never will. What the request takes counts as its body does.
func (h *headMemory) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of.give(h.holder, h.held)
	h.reading, h.held = false, 0
}

// holderOf is in whose share the heads count that come over a connection. Behind a trusted proxy are many.
func (s *Server) holderOf(conn net.Conn) string {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || s.trusts(peer.Addr().Unmap()) {
		return ""
	}
	return "address/" + oneHost(peer.Addr().Unmap())
}

// headMemoryOf is how much memory the head of a request takes beyond what any does.
func headMemoryOf(r *http.Request) int64 {
	size := headSize(r)
	for _, values := range r.Header {
		size += headerCost * len(values)
	}
	return max(int64(size)-usualHead, 0)
}

// holdHead reserves memory for the head of a request that then waits for its body, or for something else.
func (x *exchange) holdHead() error { return x.hold(headMemoryOf(x.r)) }

// holder returns whose share the request counts against: that of its key, or of its address if it has a token. In open mode all
// requests have the same holder.
func (x *exchange) holder() string {
	switch {
	case x.caller.open:
		return ""
	case x.caller.key != nil:
		return x.caller.shareName()
	default:
		return "address/" + x.address
	}
}

// hold takes memory that the request gives back when it is answered.
func (x *exchange) hold(n int64) error {
	if err := x.memory.take(x.holder(), n); err != nil {
		return err
	}
	x.held += n
	return nil
}

// holdAnswer takes memory for an answer, or a line of one, that the client has not taken yet. Only reads are refused: what a command has done is
// told, and counts, so that reads are refused meanwhile.
func (x *exchange) holdAnswer(n int64) error {
	switch reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead; {
	case n <= smallAnswer:
		return nil
	case !reads:
		x.memory.count(x.holder(), n)
	default:
		if err := x.memory.takeForAnswer(x.holder(), x.held, n); err != nil {
			return err
		}
	}
	x.held += n
	return nil
}

// dropAnswer gives back what holdAnswer took for so many bytes.
func (x *exchange) dropAnswer(n int64) {
	if n > smallAnswer {
		x.drop(n)
	}
}

// drop gives back some of what the request holds.
func (x *exchange) drop(n int64) {
	x.memory.give(x.holder(), n)
	x.held -= n
}

// readWhole reads a whole body, of which the length was announced; -1: it was not. At most four times the memory of what has
// arrived is reserved: a client that announces much and sends little occupies little.
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
