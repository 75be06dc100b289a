//go:build linux || darwin

package commands

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// checkDisk tells how much room is left where a store is.
func checkDisk(dir string) wire.Check {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return wire.Check{Name: "disk", State: checkFail, Detail: fmt.Sprintf("%s: %s", dir, err)}
	}
	free := stat.Bavail * uint64(stat.Bsize)
	check := wire.Check{Name: "disk", State: checkOK, Detail: fmt.Sprintf("%d MiB free in %s", free>>20, dir)}
	if free < diskBound {
		check.State, check.Hint = checkWarn, "make room: a full disk stops every change"
	}
	return check
}
