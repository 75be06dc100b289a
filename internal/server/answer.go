package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// answer is what a handler answers: one of body, raw and stream, or none of them for 204.
type answer struct {
	status int         // 0: the usual one of the operation
	header http.Header // besides those that every answer has; may be nil
	body   any         // JSON
	tagged any         // what the ETag is made of; nil: the body
	raw    *wire.Raw
	stream func(ctx context.Context, x *exchange) // writes everything itself
}

const (
	jsonContent    = "application/json; charset=utf-8"
	problemContent = "application/problem+json"
	linesContent   = "application/x-ndjson"
	htmlContent    = "text/html; charset=utf-8"
)

// shows returns an answer with the JSON of a value.
func shows(body any) answer { return answer{body: body} }

// nothing answers 204.
func nothing() answer { return answer{status: http.StatusNoContent} }

// with adds a header to an answer.
func (a answer) with(name, value string) answer {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
	return a
}

// write sends an answer.
func (s *Server) write(ctx context.Context, x *exchange, a answer) {
	header := x.w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	if at := header.Get("Location"); strings.HasPrefix(at, "/") {
		header.Set("Location", x.mount+at)
	}
	if x.route.Secret {
		header.Set("Cache-Control", "no-store")
	}
	if x.replayed() {
		header.Set(wire.HeaderReplayed, "true")
	}
	if a.status == 0 {
		a.status = x.route.Status[0]
	}
	switch {
	case a.stream != nil && x.r.Method == http.MethodHead:
		header.Set("Content-Type", rawContents[x.route.ID])
		x.w.WriteHeader(a.status)
	case a.stream != nil:
		a.stream(ctx, x)
	case a.raw != nil:
		if header.Get("Content-Security-Policy") == "" {
			header.Set("Content-Security-Policy", "default-src 'none'; sandbox") // the bytes come from a user: a browser must not run them
		}
		header.Set("Content-Type", a.raw.ContentType)
		s.send(x, a.status, a.raw.Data)
	case a.body != nil:
		s.writeJSON(x, a)
	default:
		x.w.WriteHeader(a.status)
	}
}

// replayed reports whether the answer is that of an earlier request with the same key (U13). The items of a batch are known each for
// itself.
func (x *exchange) replayed() bool { return x.caller.RequestKey != "" && x.repeated.Load() }

// mostKept is the largest buffer that is kept for another answer.
const mostKept = 1 << 20

// writeJSON sends the JSON of a value, or 304 when the caller has it.
func (s *Server) writeJSON(x *exchange, a answer) {
	buffer := s.texts.Get().(*[]byte)
	text, err := wire.Append((*buffer)[:0], a.body)
	defer func() {
		if *buffer = text; cap(text) <= mostKept {
			s.texts.Put(buffer)
		}
	}()
	if err != nil {
		s.writeProblem(x, err)
		return
	}
	if x.route.tag && a.status == http.StatusOK {
		about := text
		if a.tagged != nil {
			if about, err = wire.Marshal(a.tagged); err != nil {
				s.writeProblem(x, err)
				return
			}
		}
		tag := entityTag(about)
		x.w.Header().Set("ETag", tag)
		if hasTag(x.r, tag) {
			x.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	x.w.Header().Set("Content-Type", jsonContent)
	s.send(x, a.status, text)
}

// send sends a whole body, compressed on request. A body that contains a secret is not compressed, because its length would
// reveal something about it. An answer for which there is no memory until the client takes it is refused; that of an open route is the same for
// all, and kept anyway.
func (s *Server) send(x *exchange, status int, body []byte) {
	if x.route != nil && x.route.Roles&wire.Open == 0 {
		if err := x.holdAnswer(int64(len(body))); err != nil {
			s.metrics.rejected("overload")
			s.writeProblem(x, err)
			return
		}
	}
	header := x.w.Header()
	header.Add("Vary", "Accept-Encoding")
	if len(body) > compressFrom && takesGzip(x.r) && header.Get("Cache-Control") != "no-store" {
		header.Set("Content-Encoding", "gzip")
		body = compressed(body)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that went away needs no answer
}

func compressed(body []byte) []byte {
	var text bytes.Buffer
	zip := gzip.NewWriter(&text)
	_, _ = zip.Write(body) // a buffer takes everything
	_ = zip.Close()
	return text.Bytes()
}

// entityTag is a weak tag over an answer (U17).
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// hasTag reports whether If-None-Match names the tag. Weak and strong spellings are the same here.
func hasTag(r *http.Request, tag string) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for given := range strings.SplitSeq(line, ",") {
			given = strings.TrimSpace(given)
			if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
