package gctune

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestU20_the_memory_of_a_container_is_read(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"268435456\n": 256 << 20, "max\n": math.MaxInt64, "9223372036854771712\n": math.MaxInt64, "": math.MaxInt64, "-1\n": math.MaxInt64} {
		file := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readLimit(file); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	if got := readLimit(filepath.Join(t.TempDir(), "none")); got != math.MaxInt64 {
		t.Errorf("no file: %d", got)
	}
	for available, want := range map[int64]int64{1000 << 20: 800 << 20, 256 << 20: 176 << 20, 64 << 20: 32 << 20} {
		if got := Within(available); got != want {
			t.Errorf("of %d: %d, want %d", available, got, want)
		}
	}
}
