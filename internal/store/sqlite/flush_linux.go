package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the bytes of a file durable, without its modification time.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
