package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// isEmpty reports whether a request asks for an empty page (U16).
func isEmpty(f wire.PageFields) bool { return f.Limit != nil && *f.Limit == 0 }

// everything reads all pages of a list.
func everything[T any](read func(cursor string) (*api.Page[T], error)) ([]T, error) {
	var all []T
	for cursor := ""; ; {
		page, err := read(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

func checkLimit(f wire.PageFields) error {
	if f.Limit != nil && *f.Limit < 0 {
		return refuse("invalid_argument", "a limit is not negative").at("query.limit")
	}
	return nil
}

// The sizes of a page (U16).
const (
	usualPage   = 100
	largestPage = 1000
	pageBytes   = 8 << 20 // of payloads; a larger item is a page of its own
)

// cutPage cuts a page out of a list that only grows at its end. Its cursor is bound to the list. It ends early
// where its payloads would pass pageBytes.
func cutPage[T any](all []T, f wire.PageFields, bound string, size func(T) int) (page api.Page[T], err error) {
	if err := checkLimit(f); err != nil {
		return page, err
	}
	from, err := positionOf(f.Cursor, bound)
	if err != nil {
		return page, err
	}
	limit := usualPage
	if f.Limit != nil {
		limit = min(*f.Limit, largestPage)
	}
	from = min(from, len(all))
	to := from
	for bytes := 0; to < min(from+limit, len(all)); to++ {
		if bytes += size(all[to]); bytes > pageBytes && to > from {
			break
		}
	}
	page.Items = all[from:to]
	if to < len(all) && limit > 0 {
		page.NextCursor = cursorAt(to, bound)
	}
	return page, nil
}

// pageOf answers with a page of a list whose items have no payloads to speak of.
func pageOf[T any](all []T, f wire.PageFields, bound string) (answer, error) {
	page, err := cutPage(all, f, bound, func(T) int { return 0 })
	return shows(page), err
}

// cursorAt is a position in a list, as opaque text.
func cursorAt(position int, bound string) string {
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint(markOf(bound), uint64(position)))
}

// positionOf reads a cursor; that of another list is invalid_cursor.
func positionOf(cursor, bound string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	mark := markOf(bound)
	// The decoder skips line ends, which no cursor has.
	if err == nil && !strings.ContainsAny(cursor, "\r\n") && len(text) > len(mark) && string(text[:len(mark)]) == string(mark) {
		if position, n := binary.Uvarint(text[len(mark):]); n == len(text)-len(mark) && position <= 1<<31 {
			return int(position), nil
		}
	}
	return 0, refuse("invalid_cursor", "the cursor does not belong to this list").at("query.cursor").hint("begin without a cursor")
}

// markOf distinguishes lists.
func markOf(bound string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "page of %s", bound))
	return sum[:6]
}
