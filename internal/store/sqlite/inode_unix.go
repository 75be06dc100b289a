//go:build unix && !linux

package sqlite

import (
	"os"
	"syscall"
)

// namesOf returns the number of names of a file; 0 if unknown.
func namesOf(path string) uint64 {
	found, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := found.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink)
}
