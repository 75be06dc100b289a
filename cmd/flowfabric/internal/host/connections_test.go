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
		secure bool
		want   int
	}{
		{0, math.MaxInt64, true, 4096},
		{20_000, math.MaxInt64, false, 4096},
		{1024, math.MaxInt64, true, 512},
		{math.MaxUint64, 4 << 30, true, 4096},
		{20_000, 256 << 20, true, 409},
		{20_000, 256 << 20, false, 2048},
		{256, 256 << 20, true, 128},
		{20_000, 1 << 20, false, 16},
		{8, math.MaxInt64, false, 16},
	} {
		if got := connectionsWithin(c.files, c.memory, c.secure); got != c.want {
			t.Errorf("%d files, %d bytes, TLS %v: %d connections, want %d", c.files, c.memory, c.secure, got, c.want)
		}
	}
}
