package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
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
		return "", base.Invalid("order", "%q is not an order", base.CutText(text, 80)).
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
		return 0, base.Invalid("limit", "must not be negative")
	default:
		return min(*given, MaxPage), nil
	}
}

// Position is the place of a row in a list of executions: its sort time (absent in id_asc) and its UUID.
type Position struct {
	At base.Time
	ID base.UUID
}

// Scope names the list that f and order define. A cursor is valid only in the scope that it was made for (L134).
func (f *Filter) Scope(order string) string {
	return "executions\x00" + order + "\x00" + string(f.canonical())
}

// Cursor returns the opaque text of p in the list scope.
func (p Position) Cursor(scope string) string {
	var key [24]byte
	binary.BigEndian.PutUint64(key[:8], uint64(p.At))
	copy(key[8:], p.ID[:])
	return EncodeCursor(scope, key[:])
}

// ParsePosition reads the output of Position.Cursor for the same scope; anything else is invalid_cursor.
func ParsePosition(scope, cursor string) (Position, error) {
	key, err := DecodeCursor(scope, cursor)
	if err != nil {
		return Position{}, err
	}
	if len(key) != 24 {
		return Position{}, badCursor()
	}
	return Position{At: base.Time(binary.BigEndian.Uint64(key[:8])), ID: base.UUID(key[8:])}, nil
}

// A cursor is base64 of a version, a digest over scope and key, and the key. The digest is not a secret: it detects cursors that are damaged or
// belong to another list.
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

// DecodeCursor returns the sort key. A cursor of another list, or one that EncodeCursor did not make, is invalid_cursor.
func DecodeCursor(scope, cursor string) (key []byte, err error) {
	if len(cursor) > maxCursor {
		return nil, badCursor()
	}
	raw, err := base.DecodeURLText(cursor)
	if err != nil || len(raw) < 1+cursorDigest || raw[0] != cursorVersion {
		return nil, badCursor()
	}
	digest, key := raw[1:1+cursorDigest], raw[1+cursorDigest:]
	if !slices.Equal(digest, digestCursor(scope, key)) {
		return nil, badCursor()
	}
	return key, nil
}

// EncodeNumbers makes the cursor of a place that is given by non-negative numbers.
func EncodeNumbers(scope string, numbers ...int64) string {
	var key []byte
	for _, n := range numbers {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return EncodeCursor(scope, key)
}

// DecodeNumbers reads the output of EncodeNumbers for the same count of numbers. The digest does not prevent a client from making a cursor, so
// negative numbers are invalid_cursor too and never returned.
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
	base.AddPart(h, []byte(scope))
	base.AddPart(h, key)
	return h.Sum(nil)[:cursorDigest]
}

func badCursor() *base.Error {
	return base.Errorf(base.CodeInvalidCursor, "the cursor does not belong to this list").WithField("cursor").
		WithHint("use the cursor with the filter and order that it came from, or start without one")
}
