package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// PageOptions select a part of a list.
type PageOptions struct {
	Limit  int    // 0: 100; at most 1000
	Cursor string // NextCursor of the previous page
}

// Page is a part of a list. NextCursor is "" on the last page.
type Page[T any] struct {
	Items      []T       `json:"items" doc:"The items of this page."`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Cursor of the next page; absent at the end."`
	AsOf       time.Time `json:"as_of,omitzero" doc:"Everything that was committed before this time is in the list."`
}

// MarshalJSON writes the page as the HTTP API does: a page without items has an empty list.
func (p Page[T]) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (p Page[T]) AppendJSON(text []byte) ([]byte, error) {
	type fields Page[T]
	shown := fields(p)
	if shown.Items == nil {
		shown.Items = []T{}
	}
	return jsonx.Append(text, &shown)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *Page[T]) UnmarshalJSON(text []byte) error {
	*p = Page[T]{}
	return readAnswer(text, p)
}
