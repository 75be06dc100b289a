package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Count is how many executions match a filter.
type Count struct {
	// Counts is how many there are of each value, when By is given; what does not have the tag is in no count. It is exact while
	// Total is. Beyond, each value is counted for itself, exactly up to 10 000: every status, public state, lane and kind, and the
	// tag values of the first 10 000 found; at most 100 values.
	Counts  map[string]int `json:"counts,omitempty" doc:"By value, when by is given."`
	Total   int            `json:"total" doc:"How many match; exact up to 10 000."`
	AtLeast bool           `json:"at_least,omitempty" doc:"There are more than total."` // or more of some value than Counts says
	AsOf    time.Time      `json:"as_of,omitzero" doc:"What was committed before this moment is counted."`
}

// MarshalJSON writes the count as the HTTP API shows it.
func (c Count) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Count) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }
