package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the bytes of a file safe; when it was written does not matter.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
