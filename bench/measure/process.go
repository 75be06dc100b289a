package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux tells processor time.
const tick = 10 * time.Millisecond

// CPU is the processor time that a process has used, in hundredths of a second; ok is false where it is not known.
func CPU(pid int) (used time.Duration, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold spaces
	words := strings.Fields(rest)
	if len(words) < 13 {
		return 0, false
	}
	for _, word := range words[11:13] { // user and system
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * tick
	}
	return used, true
}

// RSS is the memory of a process that lies in RAM, in bytes: now, and the most there ever was. ok is false where it is not known.
func RSS(pid int) (now, most int64, ok bool) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	now, nowOK := kilobytes(field(file, "VmRSS"))
	most, mostOK := kilobytes(field(file, "VmHWM"))
	return now, most, nowOK && mostOK
}

// kilobytes reads "123 kB".
func kilobytes(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return n << 10, err == nil
}
