package host

import (
	"math"
	"testing"
)

func TestU20_connections_of_an_address_leave_files_and_memory_to_others(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files  uint64
		memory int64
		want   int
	}{
		{0, math.MaxInt64, 4096},
		{20_000, math.MaxInt64, 4096},
		{1024, math.MaxInt64, 512},
		{math.MaxUint64, 4 << 30, 4096},
		{20_000, 256 << 20, 409},
		{256, 256 << 20, 128},
		{20_000, 1 << 20, 16},
		{8, math.MaxInt64, 16},
	} {
		if got := connectionsWithin(c.files, c.memory); got != c.want {
			t.Errorf("%d files and %d bytes: %d connections, want %d", c.files, c.memory, got, c.want)
		}
	}
}
