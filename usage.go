package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/mint"
)

// The dimensions with a fixed meaning. Time is measured by the engine: reporting it is refused as reserved_dimension.
const (
	InputTokens  = api.InputTokens
	OutputTokens = api.OutputTokens
	CostMicros   = api.CostMicros // millionths of the currency
	WallMillis   = api.WallMillis
)

// Usage is an amount that work has used, or is about to use.
type Usage = api.Usage

// keyedUsage adds a key to a report without one before its first try, so that a second try does not count again.
func keyedUsage(u Usage, c clock.Clock) (keyed Usage, minted bool) {
	if u.DedupKey == "" {
		u.DedupKey, minted = mint.Key(c), true
	}
	return u, minted
}

// amounts returns an empty map instead of nil.
func amounts(given map[string]int64) map[string]int64 {
	if given == nil {
		return map[string]int64{}
	}
	return given
}
