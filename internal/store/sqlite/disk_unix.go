//go:build linux || darwin

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// freeBytes returns the free space in the file system of a directory.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	return int64(stat.Bavail) * int64(stat.Bsize), err //nolint:unconvert // its type differs between systems
}
