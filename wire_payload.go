package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// moments of Go and of the wire.
func wireTime(t time.Time) wire.Time { return wire.TimeOf(t) }

// readAnswer reads the JSON of an answer; fields that are not known are ignored (U4).
func readAnswer[W any](text []byte) (*W, error) {
	answer := new(W)
	return answer, readInto(text, answer)
}

func readInto(text []byte, answer any) error {
	if err := wire.Unmarshal(text, answer); err != nil {
		return unreadable(err)
	}
	return nil
}

// each converts a list. The result is never nil: lists in answers are [] when they are empty.
func each[From, To any](all []From, convert func(From) To) []To {
	converted := make([]To, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// some converts a list that is left out when it is empty.
func some[From, To any](all []From, convert func(From) To) []To {
	if len(all) == 0 {
		return nil
	}
	return each(all, convert)
}

// refusedItem is an item that was refused, in JSON.
type refusedItem struct {
	Error *wire.Problem `json:"error,omitempty"`
}

// appendItem adds the answer about one item: what became of it, or why it was refused.
func appendItem(text []byte, value any, refusal error) ([]byte, error) {
	if refusal != nil {
		return wire.Append(text, &refusedItem{problemOf(refusal)})
	}
	return wire.Append(text, value)
}

// readItem reads what appendItem wrote, and an item of a batch.
func readItem[W any](text []byte) (value W, refusal, err error) {
	item, err := readAnswer[refusedItem](text)
	if err != nil || item.Error != nil {
		return value, refusalFrom(item.Error), err
	}
	err = readInto(text, &value)
	return value, nil, err
}
