package calls

import (
	"iter"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// FullPage is the largest page of a list (U16).
const FullPage = 1000

// PageFields selects a page; a limit of 0 leaves it to the server.
func PageFields(limit int, cursor string) wire.PageFields {
	fields := wire.PageFields{Cursor: cursor}
	if limit != 0 {
		fields.Limit = &limit
	}
	return fields
}

// Walk iterates from a cursor on and fetches pages as needed. An error ends it; an error passed in is returned first.
func Walk[T any](before error, cursor string, page func(cursor string) (api.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if before != nil {
			yield(none, before)
			return
		}
		for next := cursor; ; {
			part, err := page(next)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range part.Items {
				if !yield(item, nil) {
					return
				}
			}
			if next = part.NextCursor; next == "" {
				return
			}
		}
	}
}

// Collect returns all elements of an iteration.
func Collect[T any](all iter.Seq2[T, error]) ([]T, error) {
	items := []T{}
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
