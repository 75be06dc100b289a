package collect

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Collection is what is stored of an execution that collects. Its items are stored beside it.
type Collection struct {
	Mode       Mode      `json:"mode"`
	Execution  base.ID   `json:"execution"`
	FirstAt    base.Time `json:"first_at"`
	StartsAt   base.Time `json:"starts_at"`
	Items      int64     `json:"items"`
	Bytes      int64     `json:"bytes"` // of all inputs
	Input      base.UUID `json:"input"` // the item whose input a debounced execution has
	Policy     string    `json:"policy"`
	Priority   int       `json:"priority,omitempty"`    // the highest
	Tags       base.Tags `json:"tags,omitempty"`        // of all items; later ones win
	DeadlineAt base.Time `json:"deadline_at,omitempty"` // the earliest; 0: none
}

type storedCollection struct {
	Version int `json:"v"`
	Collection
}

// version is that of the stored form.
const version = 1

// Encode returns the stored form of the collection.
func (c Collection) Encode() []byte {
	text, _ := json.Marshal(storedCollection{version, c}) // cannot fail
	return text
}

// Decode reads what Encode wrote; anything else is corruption.
func Decode(data []byte) (Collection, error) {
	var s storedCollection
	err := json.Unmarshal(data, &s)
	c := s.Collection
	sound := (c.Mode == Debounce || c.Mode == Batch) && !c.Execution.IsZero() && !c.Input.IsZero() && c.FirstAt > 0 && c.StartsAt >= c.FirstAt &&
		c.Items > 0 && c.Bytes >= 0 && base.CheckTags(c.Tags) == nil
	if err != nil || s.Version != version || !sound {
		return Collection{}, base.Errorf(base.CodeCorruption, "what is stored of an execution that collects cannot be read").With("record", "collection")
	}
	return c, nil
}
