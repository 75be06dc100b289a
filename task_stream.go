package flowfabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

// Stream returns a writer to the stream of the attempt, which others read while the work runs: see Run.Frames. A task has one
// stream: all its writers share the order and the first error. Calls of the writer end when ctx ends.
//
// Frames are sent as they are written, without a delay. Those that are written while a call is under way travel in the next one,
// so a write costs no round trip. What a handler has written is stored before the command that ends the attempt, or parks the
// work, is sent.
func (t *Task) Stream(ctx context.Context) *StreamWriter {
	return &StreamWriter{ctx, t.frames(ctx)}
}

// StreamWriter writes to the stream of an attempt. Its methods may be called concurrently.
//
// It holds up to 2 MiB that are not stored yet; while more is to come its methods wait. If frames are refused, Write, Send, Merge
// and Flush return that error from then on, and so they do once the lease is lost, with the cause of the end of the handler's
// context. Without a Flush a handler does not learn of the last refusal, which is then only logged.
type StreamWriter struct {
	ctx context.Context //nolint:containedctx // io.Writer has no other place for it
	out *outbox
}

// maxText is the longest text that Write makes of several writes.
const maxText = 32 << 10

// Write appends text as durable frames of type data. A text above 64 KiB is split between characters. What is written while a
// call is under way may become one frame with the text before it.
//
// Codes: stream_full, stale_lease, lease_expired, lease_revoked, execution_not_active.
func (w *StreamWriter) Write(text []byte) (int, error) {
	written := 0
	for written < len(text) {
		piece := text[written:]
		piece = piece[:cut(piece, stream.MaxPayload)]
		if err := w.out.add(w.ctx, NewFrame{Payload: Payload{Data: piece, ContentType: contentText}}, true); err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// Send appends a frame, which is not joined with others.
//
// Codes: those of Write; invalid_frame, reserved_name, frame_too_large above 64 KiB, invalid_patch, patch_too_deep,
// summary_too_large. All but the last are returned at once and concern only this frame.
func (w *StreamWriter) Send(frame NewFrame) error {
	if err := checkFrame(&frame); err != nil {
		return err
	}
	return w.out.add(w.ctx, frame, false)
}

// Merge applies a merge patch (RFC 7396) to the summary document of the attempt, which others read with Streams.Summary. The
// patch is encoded as JSON, and must be an object: null removes a member, an object merges, everything else replaces.
//
// Codes: those of Send; invalid_argument if the patch cannot be encoded.
func (w *StreamWriter) Merge(patch any) error {
	return w.Send(NewFrame{Mode: ModeSummary, Payload: JSON(patch)})
}

// Flush returns once everything that was written before is stored.
//
// Codes: those of Write and Send.
func (w *StreamWriter) Flush() error {
	w.out.live()
	defer w.out.live()
	return w.out.flush(w.ctx)
}

// contentText is the content type of what Write appends.
const contentText = "text/plain; charset=utf-8"

// cut returns how much of a text fits into a frame without a part of a character. Bytes that are not text are cut anywhere.
func cut(text []byte, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for n := most; n > most-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return most
}

// checkFrame refuses a frame on its own: in a call it would take those of others with it.
func checkFrame(f *NewFrame) error {
	if err := f.Payload.Problem("payload"); err != nil {
		return err
	}
	draft := stream.Draft{Type: f.Type, Payload: f.Payload.Data, ContentType: f.Payload.ContentType, CorrelationID: f.CorrelationID}
	mode, ok := stream.ParseMode(f.Mode)
	if draft.Mode = mode; !ok {
		draft.Mode = stream.NoMode
	}
	err := stream.CheckDrafts([]stream.Draft{draft})
	if err == nil && draft.Mode == stream.Summary {
		if problem := stream.CheckPatch(draft.Payload); problem != nil {
			err = problem
		}
	}
	var refusal *Error
	if errors.As(api.AsError(err), &refusal) {
		refusal.Field = strings.TrimPrefix(refusal.Field, "frames[0].")
		return refusal
	}
	return nil
}

// Bounds of the frame of a panic.
const (
	typePanic     = "panic"
	maxPanicValue = 8 << 10
)

// streamPanic appends the value and the stack of a panic of the handler (U144). If earlier frames were refused this one is tried
// nevertheless.
func (t *Task) streamPanic(ctx context.Context, what any, stack []byte) {
	text := base.CutText(fmt.Sprintf("panic: %v", what), maxPanicValue) + "\n\n" + string(stack)
	text = strings.ToValidUTF8(base.CutText(text, stream.MaxPayload), "")
	out := t.frames(ctx)
	out.forgive()
	frame := NewFrame{Type: typePanic, Payload: Payload{Data: []byte(text), ContentType: contentText}}
	_ = out.add(context.WithoutCancel(ctx), frame, false) // its refusal is logged, and the attempt fails all the same
}

// joined reports whether a text became part of the frame before it.
func joined(last *NewFrame, text []byte) bool {
	if len(last.Payload.Data)+len(text) > maxText {
		return false
	}
	last.Payload.Data = append(last.Payload.Data, text...)
	return true
}

// kept returns the frame with bytes of its own: the caller may use those it gave again.
func kept(f NewFrame) NewFrame {
	f.Payload.Data = bytes.Clone(f.Payload.Data)
	return f
}
