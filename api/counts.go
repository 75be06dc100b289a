package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Count is the number of executions that match a filter.
type Count struct {
	// Counts is the number per value if By is given; executions without the tag are not counted. It is exact while Total is.
	// Beyond that, each value is counted separately, exactly up to 10,000: every status, public state, lane and kind, and the tag
	// values of the first 10,000 matches; at most 100 values.
	Counts  map[string]int `json:"counts,omitempty" doc:"By value, when by is given."`
	Total   int            `json:"total" doc:"Number of matches; exact up to 10,000."`
	AtLeast bool           `json:"at_least,omitempty" doc:"There are more than total."` // or more of some value than Counts says
	AsOf    time.Time      `json:"as_of,omitzero" doc:"Everything that was committed before this time is counted."`
}

// MarshalJSON writes the count as the HTTP API shows it.
func (c Count) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Count) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }
