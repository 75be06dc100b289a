package gctune

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitFiles tell how much memory the container of this process has, of cgroups 2 and 1.
var limitFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// FitContainer lets this process stay within the memory of its container: the Go runtime does not look at it by itself. A user who sets GOMEMLIMIT
// has decided.
func FitContainer() {
	if os.Getenv("GOMEMLIMIT") == "" {
		fit(limitFiles)
	}
}

func fit(files []string) {
	for _, file := range files {
		if available := readLimit(file); available < math.MaxInt64 {
			debug.SetMemoryLimit(Within(available))
			return
		}
	}
}

// outside is how much memory the program itself takes, and what the runtime does not count, however small the container is.
const outside = 80 << 20

// Within is how much of a container's memory the Go runtime may take: four fifths, or less in a small container.
func Within(available int64) int64 { return max(available/2, min(available/5*4, available-outside)) }

// readLimit reads a limit in bytes; math.MaxInt64: there is none.
func readLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 || limit >= 1<<60 { // "max", or as good as that
		return math.MaxInt64
	}
	return limit
}
