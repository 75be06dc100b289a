package stream

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Frame is what a reader gets. Its size is the number of bytes of its payload; all bounds in bytes are bounds of payloads.
type Frame struct {
	Seq            int64 // from 1, dense over all modes
	At             base.Time
	Type           string
	Mode           Mode
	Payload        []byte
	ContentType    string
	CorrelationID  string // "": none
	SummaryVersion int64  // of a summary frame: the version of the document after it; 0 otherwise
}

// Draft is a frame as a caller gives it. The zero Draft is a durable frame of type data without payload.
type Draft struct {
	Type          string // 1..64 of a-z 0-9 . _ -; "": data
	Mode          Mode
	Payload       []byte // up to 65,536 bytes; of a summary frame a merge patch
	ContentType   string // 1..128 printable ASCII; "": application/octet-stream, application/json for summary frames
	CorrelationID string // 0..128 bytes of UTF-8 without control characters
}

// Defaults of a Draft.
const (
	DefaultType             = "data"
	DefaultPatchContentType = "application/json"
)

// Types of control items, which no frame may have.
const (
	TypeStarted       = "attempt_started"
	TypeAttemptClosed = "attempt_closed"
	TypeGap           = "gap"
	TypeClosed        = "closed"
)

// CheckDrafts checks the arguments of an append: over all frames, first invalid_frame, then reserved_name, then frame_too_large; last batch_too_large.
// Field names the frame at fault: for batch_too_large it is the first one that does not fit.
func CheckDrafts(drafts []Draft) error {
	if len(drafts) == 0 {
		return base.Errorf(base.CodeInvalidFrame, "must have at least one frame").WithField(fieldFrames)
	}
	for _, check := range draftChecks {
		for i := range drafts {
			if err := check(&drafts[i]); err != nil {
				return err.WithField(base.Element(fieldFrames, i) + "." + err.Field)
			}
		}
	}
	return checkBatch(drafts)
}

const fieldFrames = "frames"

// draftChecks are the checks of one frame, in order. They set the member at fault as the field.
var draftChecks = [...]func(*Draft) *base.Error{(*Draft).malformed, (*Draft).reserved, (*Draft).tooLarge}

func (d *Draft) malformed() *base.Error {
	field, why := "type", ""
	if d.Type != "" {
		why = CheckType(d.Type)
	}
	if why == "" && int(d.Mode) >= modes {
		field, why = "mode", "must be one of "+strings.Join(modeNames[:], ", ")
	}
	if why == "" && d.ContentType != "" {
		field, why = "content_type", base.CheckBytes(d.ContentType, maxContentType, 0x20, "must be printable ASCII")
	}
	if why == "" {
		field, why = "correlation_id", base.CheckPlain(d.CorrelationID, 0, MaxCorrelation)
	}
	if why == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidFrame, "%s", why).WithField(field)
}

// CheckType returns why a text is no type of a frame; "": it may be one.
func CheckType(text string) string {
	if why := base.CheckLength(text, 1, MaxType); why != "" {
		return why
	}
	allowed := func(c byte) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !base.OnlyBytes(text, allowed) {
		return "must be lower-case letters, digits and . _ -"
	}
	return ""
}

func (d *Draft) reserved() *base.Error {
	switch d.Type {
	case TypeStarted, TypeAttemptClosed, TypeGap, TypeClosed:
	default:
		if !strings.HasPrefix(d.Type, "__") {
			return nil
		}
	}
	return base.Errorf(base.CodeReservedName, "the type %s belongs to the engine", d.Type).WithField("type")
}

func (d *Draft) tooLarge() *base.Error {
	if len(d.Payload) <= MaxPayload {
		return nil
	}
	return base.Errorf(base.CodeFrameTooLarge, "%d bytes, at most %d are allowed in a frame", len(d.Payload), MaxPayload).
		WithField("payload").With("size", len(d.Payload)).With("limit", MaxPayload).
		WithHint("send the data in several frames")
}

func checkBatch(drafts []Draft) error {
	size := 0
	for i := range drafts {
		if i == MaxCallFrames {
			return base.Errorf(base.CodeBatchTooLarge, "%d frames, at most %d are allowed in a call", len(drafts), MaxCallFrames).
				WithField(base.Element(fieldFrames, i)).With("limit", MaxCallFrames).WithHint("send several calls")
		}
		if size += len(drafts[i].Payload); size > MaxCallBytes {
			return base.Errorf(base.CodeBatchTooLarge, "the payloads have more than %d bytes together", MaxCallBytes).
				WithField(base.Element(fieldFrames, i)).With("limit", MaxCallBytes).WithHint("send several calls")
		}
	}
	return nil
}

// contentType is the content type that is stored.
func (d *Draft) contentType() string {
	switch {
	case d.ContentType != "":
		return d.ContentType
	case d.Mode == Summary:
		return DefaultPatchContentType
	default:
		return base.DefaultContentType
	}
}

// frame is the frame that is stored.
func (d *Draft) frame(seq int64, at base.Time) Frame {
	f := Frame{Seq: seq, At: at, Type: d.Type, Mode: d.Mode, Payload: d.Payload, ContentType: d.contentType(), CorrelationID: d.CorrelationID}
	if f.Type == "" {
		f.Type = DefaultType
	}
	return f
}
