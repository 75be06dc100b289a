package service

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// page returns a page of a list of the engine. A limit of 0 requests an empty page (U16): one item is read nevertheless, because
// a request that is refused with another limit is refused with 0 too.
func page[From, To any](f wire.PageFields, show func(From) To, give func(cursor string, limit *int) (all []From, next string, err error)) (api.Page[To], error) {
	limit := f.Limit
	empty := limit != nil && *limit == 0
	switch {
	case empty:
		one := 1
		limit = &one
	case limit != nil && *limit < 0:
		return api.Page[To]{}, base.Invalid("limit", "a limit is not negative")
	}
	all, next, err := give(f.Cursor, limit)
	if err != nil || empty {
		return api.Page[To]{Items: []To{}}, err
	}
	return api.Page[To]{Items: each(all, show), NextCursor: next}, nil
}

// each converts a list. The result is never nil, because empty lists in answers are [].
func each[From, To any](all []From, convert func(From) To) []To {
	converted := make([]To, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// some converts a list that is omitted when empty.
func some[From, To any](all []From, convert func(From) To) []To {
	if len(all) == 0 {
		return nil
	}
	return each(all, convert)
}
