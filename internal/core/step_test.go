package core

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL6_bounds_of_steps_hold_at_the_bound_and_above(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		code  base.Code
		field string
	}{
		{CheckStepArguments("", nil), base.CodeInvalidArgument, "name"},
		{CheckStepArguments("a", nil), "", ""},
		{CheckStepArguments(strings.Repeat("a", 128), nil), "", ""},
		{CheckStepArguments(strings.Repeat("a", 129), nil), base.CodeInvalidArgument, "name"},
		{CheckStepArguments("s", make([]byte, 1<<20)), "", ""},
		{CheckStepArguments("s", make([]byte, 1<<20+1)), base.CodePayloadTooLarge, ""},
		{CheckStepCount(9999), "", ""},
		{CheckStepCount(10_000), base.CodeStepLimitExceeded, ""},
	} {
		expect(t, c.err, c.code, c.field)
	}
}
