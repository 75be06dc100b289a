package wire

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// View is the level of detail of an execution in an answer (U26). "" is the default of the operation.
type View string

// The views of an execution.
const (
	ViewIDs     View = "ids"     // lists: only the id
	ViewSummary View = "summary" // no payloads, no failure detail
	ViewFull    View = "full"    // also state vector and policy
)

// UnmarshalText reads a known view; others are invalid_argument.
func (v *View) UnmarshalText(text []byte) error {
	return oneOf((*string)(v), text, string(ViewIDs), string(ViewSummary), string(ViewFull))
}

// Encoding says how an answer shows payloads (U9). "" chooses by content type.
type Encoding string

// EncodingBytes shows every payload as base64.
const EncodingBytes Encoding = "bytes"

// UnmarshalText reads a known encoding; others are invalid_argument.
func (e *Encoding) UnmarshalText(text []byte) error {
	return oneOf((*string)(e), text, string(EncodingBytes))
}

// EncodingField is how the payloads of an answer are shown (U9).
type EncodingField struct {
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
}

// AskForBytes requests payloads as base64, so that they arrive unchanged, as Go clients need them.
func (f *EncodingField) AskForBytes() { f.Encoding = EncodingBytes }

func oneOf(into *string, text []byte, known ...string) error {
	if word := string(text); word == "" || slices.Contains(known, word) {
		*into = word
		return nil
	}
	return jsonx.Invalid("unknown value", "use "+strings.Join(known, " or "))
}

// Revision is the revision of a definition in If-Match (U17): an entity tag around a number. A bare number is accepted too.
type Revision int64

// MarshalText writes the entity tag.
func (r Revision) MarshalText() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(r), 10) + `"`), nil
}

// UnmarshalText reads "7", 7 and W/"7"; others are invalid_argument.
func (r *Revision) UnmarshalText(text []byte) error {
	word := strings.TrimPrefix(string(text), "W/")
	if inner, ok := strings.CutPrefix(word, `"`); ok {
		word, ok = strings.CutSuffix(inner, `"`)
		if !ok {
			word = ""
		}
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return jsonx.Invalid("not a revision", `send the number from the field revision, as "7"`)
	}
	*r = Revision(n)
	return nil
}

// WaitFields are the two ways to make a call wait (U18).
type WaitFields struct {
	WaitMS *int64 `query:"wait_ms" minimum:"0" doc:"Maximum wait in milliseconds."`
	Prefer string `header:"Prefer" argument:"wait_ms" doc:"wait=<seconds>, the same as wait_ms."`
}

// WaitUpTo asks the server to wait as long as that; 0: not at all.
func WaitUpTo(wait time.Duration) WaitFields {
	if wait == 0 {
		return WaitFields{}
	}
	return WaitFields{Prefer: "wait=" + strconv.Itoa(int(wait/time.Second))}
}

// Wait is how long to wait, and whether Prefer asked for it, so that the answer says Preference-Applied. wait_ms wins. A preference
// that cannot be read is ignored, as RFC 7240 wants; a negative wait_ms is invalid_argument.
func (w WaitFields) Wait() (wait time.Duration, preferred bool, err error) {
	if w.WaitMS != nil {
		if *w.WaitMS < 0 {
			return 0, false, &Error{Code: jsonx.CodeInvalidArgument, Field: "query.wait_ms", Detail: "a wait must not be negative"}
		}
		return jsonx.Duration(*w.WaitMS), false, nil
	}
	for preference := range strings.SplitSeq(w.Prefer, ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
		if strings.EqualFold(strings.TrimSpace(name), "wait") && err == nil {
			return time.Duration(seconds) * time.Second, true, nil
		}
	}
	return 0, false, nil
}
