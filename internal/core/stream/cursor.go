package stream

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Place is the kind of a Cursor.
type Place uint8

// The kinds of cursors, in their order.
const (
	AtStart      Place = iota // before everything
	AtFrame                   // at a frame of an attempt; seq 0: at its attempt_started
	AtAttemptEnd              // at the close of an attempt, after its last frame
	AtEnd                     // after all that there is when the cursor is used
	AtClosed                  // after the end of the execution
)

// Cursor is a place in the streams of an execution. The zero Cursor is the start.
type Cursor struct {
	Place   Place
	Attempt int   // of AtFrame and AtAttemptEnd
	Seq     int64 // of AtFrame; of AtAttemptEnd the attempt's last frame, 0 if it has none
}

// Texts of cursors.
const (
	textStart  = "start"
	textEnd    = "end"
	textClosed = "closed"
	endSuffix  = "-end"
)

// FrameCursor returns the cursor of a frame, which is also its id. With seq 0 it is that of the attempt's attempt_started.
func FrameCursor(attempt int, seq int64) Cursor {
	return Cursor{Place: AtFrame, Attempt: attempt, Seq: seq}
}

// AttemptEndCursor returns the cursor of the close of an attempt whose last frame has that seq.
func AttemptEndCursor(attempt int, last int64) Cursor {
	return Cursor{Place: AtAttemptEnd, Attempt: attempt, Seq: last}
}

// String is the text that ParseCursor reads.
func (c Cursor) String() string {
	switch c.Place {
	case AtStart:
		return textStart
	case AtEnd:
		return textEnd
	case AtClosed:
		return textClosed
	}
	var room [48]byte
	text := append(strconv.AppendInt(room[:0], int64(c.Attempt), 10), '-')
	text = strconv.AppendInt(text, c.Seq, 10)
	if c.Place == AtAttemptEnd {
		text = append(text, endSuffix...)
	}
	return string(text)
}

// ParseCursor reads start, end, closed, <attempt>-<seq> and <attempt>-<seq>-end; anything else is invalid_cursor.
func ParseCursor(text string) (Cursor, error) {
	switch text {
	case textStart:
		return Cursor{}, nil
	case textEnd:
		return Cursor{Place: AtEnd}, nil
	case textClosed:
		return Cursor{Place: AtClosed}, nil
	}
	c := Cursor{Place: AtFrame}
	rest, ended := strings.CutSuffix(text, endSuffix)
	if ended {
		c.Place = AtAttemptEnd
	}
	before, after, both := strings.Cut(rest, "-")
	attempt, ok := parseNumber(before, math.MaxInt32)
	seq, also := parseNumber(after, math.MaxInt64-1)
	if !both || !ok || !also {
		return Cursor{}, invalidCursor("a cursor is start, end, closed or the id of a frame: %s is none", shown(text))
	}
	c.Attempt, c.Seq = int(attempt), seq
	return c, nil
}

// ParseCursorOf reads what ParseCursor does where one attempt is read, and a bare seq too. A cursor of another attempt is invalid_cursor.
func ParseCursorOf(attempt int, text string) (Cursor, error) {
	if seq, ok := parseNumber(text, math.MaxInt64-1); ok {
		return FrameCursor(attempt, seq), nil
	}
	c, err := ParseCursor(text)
	if err != nil {
		return Cursor{}, err
	}
	if c.inAttempt() && c.Attempt != attempt {
		return Cursor{}, invalidCursor("%s is a cursor of attempt %d, not of %d", c, c.Attempt, attempt)
	}
	return c, nil
}

func (c Cursor) inAttempt() bool { return c.Place == AtFrame || c.Place == AtAttemptEnd }

// Compare orders cursors: the start, then attempts by their index and in each the frames by seq and its close after the frame that it names, then the
// end, then the end of the execution.
func (c Cursor) Compare(d Cursor) int {
	if c.inAttempt() && d.inAttempt() {
		return cmp.Or(cmp.Compare(c.Attempt, d.Attempt), cmp.Compare(c.Seq, d.Seq), cmp.Compare(c.Place, d.Place))
	}
	return cmp.Compare(c.Place, d.Place)
}

// parseNumber reads a number up to most in the only form in which it is written.
func parseNumber(text string, most int64) (int64, bool) {
	if text == "" || text[0] == '0' && text != "0" || !base.OnlyBytes(text, func(c byte) bool { return '0' <= c && c <= '9' }) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= most
}

func invalidCursor(format string, args ...any) error {
	return base.Errorf(base.CodeInvalidCursor, format, args...).WithField("cursor").WithHint("use the id of a frame that was read, start or end")
}

// shown is what an error shows of a text of a caller.
func shown(text string) string {
	return strconv.Quote(base.CutText(strings.ToValidUTF8(text, "\uFFFD"), 80))
}
