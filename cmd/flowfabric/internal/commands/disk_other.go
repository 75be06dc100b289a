//go:build !linux && !darwin

package commands

import "github.com/flowfabric/flowfabric/internal/wire"

// checkDisk knows no way to look here.
func checkDisk(dir string) wire.Check {
	return wire.Check{Name: "disk", State: checkWarn, Detail: "cannot be looked at on this system", Hint: "see that there is room in " + dir}
}
