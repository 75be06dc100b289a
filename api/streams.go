package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Modes of frames. They state how long a frame is kept.
const (
	ModeDurable    = "durable"     // within the bounds of the stream policy
	ModeSummary    = "summary"     // a merge patch (RFC 7396) of the summary document
	ModeBestEffort = "best_effort" // for a short time, in a number that follows the rate
)

// Types of control frames, which are among the frames of a Follow. No worker can send one.
const (
	AttemptStarted = "attempt_started" // what earlier attempts have said is superseded
	AttemptClosed  = "attempt_closed"  // the attempt has ended, and says nothing more
	FrameGap       = "gap"             // frames before Before are no longer kept
	StreamClosed   = "closed"          // the execution has ended
)

// NewFrame is a frame to append to the stream of an attempt.
type NewFrame struct {
	Type          string  `json:"type,omitempty" maxLength:"64" doc:"1 to 64 of a-z 0-9 . _ -; default data. stdout, stderr and log are conventional."`
	Mode          string  `json:"mode,omitempty" enum:"durable,summary,best_effort" doc:"Default durable."`
	Payload       Payload `json:"payload,omitempty" spread:"sent" doc:"At most 64 KiB. Of a summary frame: a merge patch (RFC 7396)."`
	CorrelationID string  `json:"correlation_id,omitempty" maxLength:"128" doc:"An id of the caller's, returned unchanged."`
}

// FrameReceipt is the answer to an append.
type FrameReceipt struct {
	FirstID        string `json:"first_id" doc:"Id of the first frame of the call."`
	LastID         string `json:"last_id" doc:"Id of its last frame."`
	FrameCount     int64  `json:"frame_count" doc:"Frames that were appended in the life of the stream, whether they are still kept or not."`
	SummaryVersion int64  `json:"summary_version,omitempty" doc:"Version of the summary document after the call, if the call had a summary frame."`
}

// Frame is an entry of a stream: what an attempt has said, or a control frame of a Follow.
type Frame struct {
	ID             string    `json:"id,omitempty" doc:"<attempt>-<seq>. A gap has none."`
	Attempt        int       `json:"attempt" doc:"Index of the attempt. Of closed: the last attempt; -1 if none began."`
	Type           string    `json:"type" doc:"Type of the frame; of a control frame attempt_started, attempt_closed, gap or closed."`
	Mode           string    `json:"mode,omitempty" enum:"durable,summary,best_effort" doc:"How long it is kept."`
	At             time.Time `json:"at,omitzero" doc:"When."`
	Payload        Payload   `json:"payload,omitempty" spread:"shown" doc:"What was said."`
	CorrelationID  string    `json:"correlation_id,omitempty" doc:"An id of the sender's."`
	SummaryVersion int64     `json:"summary_version,omitempty" doc:"Of a summary frame: version of the document after it."`

	AttemptType string `json:"attempt_type,omitempty" enum:"initial,retry,reclaim,replay" doc:"Of attempt_started: what started the attempt."`
	Supersedes  *int   `json:"supersedes,omitempty" doc:"Of attempt_started: the attempt before it."`
	Reason      string `json:"reason,omitempty" doc:"Of attempt_closed: how the attempt ended."`
	Before      int64  `json:"before,omitempty" doc:"Of a gap: frames of the attempt with a lower number are no longer kept."`
	Outcome     string `json:"outcome,omitempty" enum:"success,failed,cancelled,expired,skipped" doc:"Of closed: the outcome of the execution."`
}

// IsControl reports whether the frame was made by the engine and not said by an attempt.
func (f *Frame) IsControl() bool {
	switch f.Type {
	case AttemptStarted, AttemptClosed, FrameGap, StreamClosed:
		return true
	}
	return false
}

// FramePage is a part of a stream.
type FramePage struct {
	Frames          []Frame      `json:"items" doc:"The frames, in order."`
	Next            string       `json:"next" doc:"Continue reading after this position."` // set even if there are no frames
	AtEnd           bool         `json:"at_end" doc:"There is nothing later yet. If false, read on after next, even if items is empty."`
	TruncatedBefore int64        `json:"truncated_before,omitempty" doc:"Durable or summary frames with a number below this one are no longer kept. A follow has a frame of type gap instead."`
	Closed          *StreamClose `json:"closed,omitempty" doc:"Of one attempt: how its stream ended. Set once the end is reached; a follow has frames of the types attempt_closed and closed instead."`
}

// StreamClose is the end of a stream.
type StreamClose struct {
	At     time.Time `json:"at,omitzero" doc:"When."`
	Reason string    `json:"reason" enum:"attempt_success,attempt_failure,attempt_timeout,attempt_cancelled,execution_deadline,reclaimed,reclaims_exhausted,suspension_timeout,budget_exceeded" doc:"How the attempt ended."`
}

// StreamSummary is the document that the summary frames of an attempt have made.
type StreamSummary struct {
	Attempt     int             `json:"attempt" doc:"Index of the attempt."`
	Document    json.RawMessage `json:"document" doc:"The document."`
	Version     int64           `json:"version" doc:"Number of patches that were applied."`
	FirstAt     time.Time       `json:"first_applied_at,omitzero" doc:"When the first one was."`
	LastUpdated time.Time       `json:"last_updated_at,omitzero" doc:"When the last one was."`
}

// AttemptStream is what there is of an attempt's stream.
type AttemptStream struct {
	FrameCount   int64     `json:"frame_count" doc:"Frames that were appended, whether they are still kept or not."`
	Bytes        int64     `json:"bytes" doc:"Bytes of their payloads."`
	ClosedAt     time.Time `json:"closed_at,omitzero" doc:"When it was closed; absent while it is open."`
	ClosedReason string    `json:"closed_reason,omitempty" doc:"How the attempt ended."`
}

// StreamPolicy says which frames of an attempt are kept. Each mode is trimmed by itself, and all frames go with their execution.
// Summary documents are kept, with their newest 64 patches.
type StreamPolicy struct {
	MaxFrames  int    // durable frames; 0: 10,000, at most 1,000,000
	MaxBytes   int64  // bytes of durable frames; 0: 64 MiB, 64 KiB to 1 GiB
	OnFull     string // StreamDropsOldest (default) or StreamRefuses
	BestEffort BestEffortPolicy
}

// Values of StreamPolicy.OnFull.
const (
	StreamDropsOldest = "drop_oldest" // the oldest durable frames are dropped
	StreamRefuses     = "refuse"      // new ones are refused: stream_full
)

// BestEffortPolicy says which best-effort frames are kept: as many as come in twice TTL at the current rate, within the bounds,
// and none that is older than twice TTL.
type BestEffortPolicy struct {
	TTL     time.Duration // 0: 30 seconds, 1 second to 10 minutes
	Floor   int           // frames; 0: 64, at most 16,384
	Ceiling int           // frames; 0: 16,384, at most 65,536
	Alpha   float64       // weight of the last append in the rate, up to 1; 0: 0.2
}

// streamJSON is the StreamPolicy in JSON.
type streamJSON struct {
	MaxFrames  int            `json:"max_frames,omitempty"`
	MaxBytes   int64          `json:"max_bytes,omitempty"`
	OnFull     string         `json:"on_full,omitempty"`
	BestEffort bestEffortJSON `json:"best_effort,omitzero"`
}

type bestEffortJSON struct {
	TTL     time.Duration `json:"ttl_ms,omitempty"`
	Floor   int           `json:"floor,omitempty"`
	Ceiling int           `json:"ceiling,omitempty"`
	Alpha   float64       `json:"alpha,omitempty"`
}

func (s streamJSON) policy() StreamPolicy {
	return StreamPolicy{s.MaxFrames, s.MaxBytes, s.OnFull, BestEffortPolicy(s.BestEffort)}
}

func (s StreamPolicy) json() streamJSON {
	return streamJSON{s.MaxFrames, s.MaxBytes, s.OnFull, bestEffortJSON(s.BestEffort)}
}

// MarshalJSON writes the frame as the HTTP API takes it.
func (f NewFrame) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// MarshalJSON writes the frame as the HTTP API shows it.
func (f Frame) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (f *Frame) UnmarshalJSON(text []byte) error { return readAnswer(text, f) }

// MarshalJSON writes the page as the HTTP API shows it.
func (p FramePage) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&p) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *FramePage) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// MarshalJSON writes the close as the HTTP API shows it.
func (c StreamClose) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *StreamClose) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes the document as the HTTP API shows it.
func (s StreamSummary) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *StreamSummary) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// MarshalJSON writes it as the HTTP API shows it.
func (s AttemptStream) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *AttemptStream) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// CheckFrames returns the error of the first payload that could not be made.
func CheckFrames(frames []NewFrame) error {
	for i := range frames {
		field := base.Element("frames", i) + ".payload"
		if err := frames[i].Payload.Problem(field); err != nil {
			return err
		}
	}
	return nil
}
