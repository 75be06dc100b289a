package core

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestU11_of_several_faulty_weights_the_same_is_reported_each_time(t *testing.T) {
	t.Parallel()
	for range 50 {
		s := LaneSettings{State: LaneActive, Fairness: FairnessByKey, FairnessWeights: map[string]int{"d": 0, "a": 1, "c": 0, "b": -1, "e": 0}}
		if err := wantCode(t, s.Normalize(), base.CodeInvalidArgument); err.Message != `weight of "b" must be in 1..1000` {
			t.Fatalf("%v", err)
		}
	}
}
