package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
)

// The orders of L133. Ties go by UUID.
const (
	OrderCreatedDesc   = "created_desc"
	OrderCreatedAsc    = "created_asc"
	OrderCompletedDesc = "completed_desc" // terminal only
	OrderIDAsc         = "id_asc"
)

// ParseOrder reads an order of L133; "" is created_desc; anything else invalid_argument.
func ParseOrder(text string) (string, error) {
	switch {
	case text == "":
		return OrderCreatedDesc, nil
	case slices.Contains([]string{OrderCreatedDesc, OrderCreatedAsc, OrderCompletedDesc, OrderIDAsc}, text):
		return text, nil
	default:
		return "", Invalid("order", "%q is not an order", cutText(text, 80)).
			WithHint("use created_desc, created_asc, completed_desc or id_asc")
	}
}

// Page limits of L134.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// PageLimit is the number of rows of a page: 100 when absent, at most 1000. A negative limit is invalid_argument.
func PageLimit(given *int) (int, error) {
	switch {
	case given == nil:
		return DefaultPage, nil
	case *given < 0:
		return 0, Invalid("limit", "must not be negative")
	default:
		return min(*given, MaxPage), nil
	}
}

// Position is the place of a row in a list of executions: its sort time (absent in id_asc) and its UUID.
type Position struct {
	At Time
	ID UUID
}

// Scope names the list that f and order make. Cursors of one scope mean nothing in another (L134).
func (f *Filter) Scope(order string) string {
	return "executions\x00" + order + "\x00" + string(f.canonical())
}

// Cursor is the opaque text of p in the list scope.
func (p Position) Cursor(scope string) string {
	var key [24]byte
	binary.BigEndian.PutUint64(key[:8], uint64(p.At))
	copy(key[8:], p.ID[:])
	return EncodeCursor(scope, key[:])
}

// ParsePosition reads what Position.Cursor wrote for the same scope; anything else is invalid_cursor.
func ParsePosition(scope, cursor string) (Position, error) {
	key, err := DecodeCursor(scope, cursor)
	if err != nil {
		return Position{}, err
	}
	if len(key) != 24 {
		return Position{}, badCursor()
	}
	return Position{At: Time(binary.BigEndian.Uint64(key[:8])), ID: UUID(key[8:])}, nil
}

// A cursor is base64 of a version, a digest over scope and key, and the key. The digest is no secret: it catches cursors
// that were damaged or belong to another list.
const (
	cursorVersion = 1
	cursorDigest  = 8
	maxCursor     = 2048
)

// EncodeCursor makes the opaque cursor of a sort key in the list that scope names.
func EncodeCursor(scope string, key []byte) string {
	raw := append([]byte{cursorVersion}, digestCursor(scope, key)...)
	return base64.RawURLEncoding.EncodeToString(append(raw, key...))
}

// DecodeCursor gives back the sort key. A cursor of another list, or one that we never made, is invalid_cursor.
func DecodeCursor(scope, cursor string) (key []byte, err error) {
	if len(cursor) > maxCursor {
		return nil, badCursor()
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < 1+cursorDigest || raw[0] != cursorVersion {
		return nil, badCursor()
	}
	digest, key := raw[1:1+cursorDigest], raw[1+cursorDigest:]
	if !slices.Equal(digest, digestCursor(scope, key)) {
		return nil, badCursor()
	}
	return key, nil
}

// EncodeNumbers makes the cursor of a place that numbers from 0 on tell.
func EncodeNumbers(scope string, numbers ...int64) string {
	var key []byte
	for _, n := range numbers {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return EncodeCursor(scope, key)
}

// DecodeNumbers reads what EncodeNumbers wrote of as many numbers. The digest keeps nobody from making a cursor: numbers that no place has are
// invalid_cursor too, and none that it gives is negative.
func DecodeNumbers(scope, cursor string, numbers ...*int64) error {
	key, err := DecodeCursor(scope, cursor)
	if err != nil {
		return err
	}
	for _, into := range numbers {
		n, size := binary.Uvarint(key)
		if size <= 0 || n > math.MaxInt32 {
			return badCursor()
		}
		*into, key = int64(n), key[size:]
	}
	if len(key) > 0 {
		return badCursor()
	}
	return nil
}

func digestCursor(scope string, key []byte) []byte {
	h := sha256.New()
	addPart(h, []byte(scope))
	addPart(h, key)
	return h.Sum(nil)[:cursorDigest]
}

func badCursor() *Error {
	return Errorf(CodeInvalidCursor, "the cursor does not belong to this list").WithField("cursor").
		WithHint("use the cursor with the filter and order that it came from, or start without one")
}
