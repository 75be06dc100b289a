package stream

import "github.com/flowfabric/flowfabric/internal/core/base"

// Head is the record of one stream: what was ever appended, and what of it is retained. The zero Head with an Attempt is that of an attempt that has no frames
// and is not closed. No function changes a Head that it is given.
type Head struct {
	Attempt    int // not encoded: it is part of the row's key
	LastSeq    int64
	Tallies    [modes]Tally
	FirstAt    base.Time // the first append; zero: none
	LastAt     base.Time // the last append; zero: none
	Call       Call
	BestEffort Pace
	Deleted    [modes]int64 // of each mode the last seq of the chunks that were deleted; 0: none
	Closed     Closing      // not encoded: it follows from how the attempt ended
}

// Tally counts what was ever appended in one mode. The frames of a mode have ordinals from 1.
type Tally struct {
	Frames  int64
	Bytes   int64
	LastSeq int64 // 0: none
}

// Call is the last call that had a client_seq, and its answer (E3).
type Call struct {
	Present   bool
	Epoch     int64 // of the lease
	ClientSeq int64
	Answer    Answer
}

// Answer is what an append answers (E1).
type Answer struct {
	FirstSeq       int64
	LastSeq        int64
	SummaryVersion int64 // of the document after the call; 0 if the call had no summary frame
}

// FrameCount is the number of frames that were appended in the life of the stream, whether they are retained or not.
func (a Answer) FrameCount() int64 { return a.LastSeq }

// Closing is the close of a stream. The zero Closing is that of an open stream.
type Closing struct {
	At     base.Time
	Reason Reason
}

// Reason is how the attempt of a closed stream ended (E12). The zero Reason is none.
type Reason uint8

// The reasons of a close.
const (
	AttemptSuccess Reason = iota + 1
	AttemptFailure
	AttemptTimeout
	AttemptCancelled
	ExecutionDeadline
	Reclaimed // another attempt took over
	ReclaimsExhausted
	SuspensionTimeout
	BudgetExceeded
)

var reasonNames = [...]string{
	"", "attempt_success", "attempt_failure", "attempt_timeout", "attempt_cancelled", "execution_deadline", "reclaimed", "reclaims_exhausted",
	"suspension_timeout", "budget_exceeded",
}

// String is the word of the API.
func (r Reason) String() string { return base.NameOf(reasonNames[:], int(r)) }

// IsClosed reports whether the stream was closed.
func (h *Head) IsClosed() bool { return h.Closed.Reason != 0 }

// SummaryVersion is the version of the summary document, the number of patches that were applied; 0: there is no document.
func (h *Head) SummaryVersion() int64 { return h.Tallies[Summary].Frames }

// Bytes is the number of bytes that were appended in the life of the stream.
func (h *Head) Bytes() int64 {
	return h.Tallies[Durable].Bytes + h.Tallies[Summary].Bytes + h.Tallies[BestEffort].Bytes
}

// End is the cursor after everything that the stream has: its last frame, or its close.
func (h *Head) End() Cursor {
	if h.IsClosed() {
		return AttemptEndCursor(h.Attempt, h.LastSeq)
	}
	return FrameCursor(h.Attempt, h.LastSeq)
}

// next is the tally after a frame.
func (t Tally) next(f *Frame) Tally {
	return Tally{Frames: t.Frames + 1, Bytes: t.Bytes + int64(len(f.Payload)), LastSeq: f.Seq}
}
