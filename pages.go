package flowfabric

import (
	"iter"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// fullPage is the largest page of a list (U16).
const fullPage = 1000

// pageFields ask for a page; 0 as limit leaves it to the server.
func pageFields(limit int, cursor string) wire.PageFields {
	fields := wire.PageFields{Cursor: cursor}
	if limit != 0 {
		fields.Limit = &limit
	}
	return fields
}

// walk fetches pages as the loop goes, from a cursor on. An error ends it, one that there was before begins it.
func walk[T any](before error, cursor string, page func(cursor string) (Page[T], error)) iter.Seq2[T, error] {
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

// collect walks to the end.
func collect[T any](all iter.Seq2[T, error]) ([]T, error) {
	items := []T{}
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
