//go:build linux || darwin

package sqlite

import "golang.org/x/sys/unix"

// freeBytes is how much room is left where a directory is.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	return int64(stat.Bavail) * int64(stat.Bsize), err //nolint:unconvert // its type differs between systems
}
