package wire

import (
	"strconv"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Items are the results for many items (U22), in the order of the request.
type Items[T any] struct {
	Items  []Item[T] `json:"items" doc:"One entry per item, in the order of the request."`
	Failed int       `json:"failed" doc:"Number of refused items."`
}

// Item is the result for one item. In JSON the fields of Value are next to index, ok and error.
type Item[T any] struct {
	Index int      `json:"index" doc:"Position of the item in the request."`
	OK    bool     `json:"ok" doc:"Whether the item was accepted."`
	Error *Problem `json:"error,omitempty" doc:"Why the item was refused."`
	Value T        `json:"-" inline:"true"` // a struct; zero if the item was refused
}

// ItemsFor allocates results for n items.
func ItemsFor[T any](n int) *Items[T] { return &Items[T]{Items: make([]Item[T], 0, n)} }

// Add appends the result for the next item: a refusal, or a value.
func (all *Items[T]) Add(value T, refusal *Problem) {
	item := Item[T]{Index: len(all.Items), OK: refusal == nil, Error: refusal}
	if item.OK {
		item.Value = value
	} else {
		all.Failed++
	}
	all.Items = append(all.Items, item)
}

// MarshalJSON writes one flat object.
func (i Item[T]) MarshalJSON() ([]byte, error) { return i.AppendJSON(nil) }

// AppendJSON writes one flat object: a refusal, or the fields of the value.
func (i *Item[T]) AppendJSON(text []byte) ([]byte, error) {
	text = strconv.AppendInt(append(text, `{"index":`...), int64(i.Index), 10)
	if i.OK {
		return jsonx.AppendInto(append(text, `,"ok":true`...), &i.Value)
	}
	text = append(text, `,"ok":false`...)
	if i.Error != nil {
		var err error
		if text, err = jsonx.Append(append(text, `,"error":`...), i.Error); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads one flat object.
func (i *Item[T]) UnmarshalJSON(text []byte) error {
	type head Item[T]
	if err := Unmarshal(text, (*head)(i)); err != nil || !i.OK {
		return err
	}
	return Unmarshal(text, &i.Value)
}

// ReadItems reads the JSON of Items, and returns their number. The argument of item is valid until item returns.
func ReadItems[T any](text []byte, item func(i int, item *Item[T])) (n int, err error) {
	var answer struct {
		Items  jsonx.Each[Item[T]] `json:"items"`
		Failed int                 `json:"failed"`
	}
	answer.Items.Do = func(one *Item[T]) {
		item(n, one)
		n++
	}
	err = DecodeAnswer(text, &answer)
	return n, err
}

// Page is a part of a list (U16).
type Page[T any] = api.Page[T]

// PageFields are the query parameters of a list (U16).
type PageFields struct {
	Limit  *int   `query:"limit" minimum:"0" doc:"Items per page; 100 if absent, at most 1000; 0 returns an empty page."`
	Cursor string `query:"cursor" doc:"next_cursor of the previous page, with the same filter and order."`
}
