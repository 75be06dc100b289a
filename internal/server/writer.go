package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// answerWriter is the way to the client. It remembers what was answered, and gives up on a client that takes nothing for long.
type answerWriter struct {
	http.ResponseWriter
	status int           // 0 until the head is written
	stall  time.Duration // in which the client must take or send something
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the head, once.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// piece is how much is sent before the client must have received some of it.
const piece = 64 << 10

// Write sends a part of the body.
func (w *answerWriter) Write(part []byte) (sent int, err error) {
	w.WriteHeader(http.StatusOK)
	for sent < len(part) && err == nil {
		var n int
		n, err = w.writePiece(part[sent:min(sent+piece, len(part))])
		sent += n
	}
	return sent, err
}

func (w *answerWriter) writePiece(part []byte) (int, error) {
	defer stalled(w.stall, http.NewResponseController(w.ResponseWriter).SetWriteDeadline)()
	return w.ResponseWriter.Write(part)
}

// Flush sends what was written so far.
func (w *answerWriter) Flush() {
	controller := http.NewResponseController(w.ResponseWriter)
	defer stalled(w.stall, controller.SetWriteDeadline)()
	_ = controller.Flush() // a writer that cannot flush sends when it likes
}

// boundRest gives the client time to take what is not sent yet when the handler returns. A client of HTTP/2 may give no room for
// it, and net/http waits for that without an end. Over HTTP/1.1 the writes to the connection are bounded.
func (w *answerWriter) boundRest(r *http.Request) {
	if r.ProtoMajor >= 2 {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(clock.System().Now().Add(w.stall)) // what is not a stream has none
	}
}

// past is a deadline that has passed, whatever the time is.
var past = time.Unix(1, 0)

// stallClock sets a deadline that has passed once a time is over, which ends what blocks. Once it has ended it sets none: a stream of
// HTTP/2 has no deadlines after its handler has returned, and setting one would end the process.
type stallClock struct {
	*time.Timer

	mu    sync.Mutex
	ended bool
}

func newStallClock(after time.Duration, setDeadline func(time.Time) error) *stallClock {
	c := &stallClock{}
	c.Timer = time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.ended {
			_ = setDeadline(past)
		}
	})
	return c
}

// end stops the clock for good. A deadline that is being set is set before it returns.
func (c *stallClock) end() {
	if c.Stop() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// stalled ends what blocks for longer than that. Call what it returns when the client has moved.
func stalled(after time.Duration, setDeadline func(time.Time) error) (moved func()) {
	return newStallClock(after, setDeadline).end
}

// patientReader gives up on a body of which nothing more arrives.
type patientReader struct {
	io.ReadCloser
	controller *http.ResponseController
	stall      time.Duration
}

// Read reads a part of the body.
func (p patientReader) Read(into []byte) (int, error) {
	defer stalled(p.stall, p.controller.SetReadDeadline)()
	return p.ReadCloser.Read(into)
}

// compressFrom is the size of an answer from which compression is worth it (U23).
const compressFrom = 1 << 10

// takesGzip reports whether the client accepts a compressed answer.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(coding), ";")
		quality = strings.ReplaceAll(quality, " ", "")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && quality != "q=0" && !strings.HasPrefix(quality, "q=0.000") {
			return true
		}
	}
	return false
}

// lineWriter sends lines as they come, compressed on request.
type lineWriter struct {
	w   *answerWriter
	zip *gzip.Writer // nil: as they are
}

// newLineWriter begins an answer of lines.
func newLineWriter(x *exchange, contentType string) *lineWriter {
	header := x.w.Header()
	header.Set("Content-Type", contentType)
	header.Add("Vary", "Accept-Encoding")
	lines := &lineWriter{w: x.w}
	if takesGzip(x.r) {
		header.Set("Content-Encoding", "gzip")
		lines.zip = gzip.NewWriter(x.w)
	}
	x.w.WriteHeader(http.StatusOK)
	return lines
}

// Line writes one line.
func (l *lineWriter) Line(text []byte) error {
	to := io.Writer(l.w)
	if l.zip != nil {
		to = l.zip
	}
	_, err := to.Write(append(text, '\n'))
	return err
}

// Flush sends what was written so far.
func (l *lineWriter) Flush() {
	if l.zip != nil {
		_ = l.zip.Flush() // the next line finds out
	}
	l.w.Flush()
}

// Close ends the answer.
func (l *lineWriter) Close() {
	if l.zip != nil {
		_ = l.zip.Close() // the client sees that it is cut
	}
	l.w.Flush()
}
