//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lockHandle takes the file's lock for this process; taken is false if another process has it. The lock ends with the process, even after a crash.
func lockHandle(file *os.File) (taken bool, err error) {
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlockHandle releases the lock immediately, even if a child process that is just being started still has the file open.
func unlockHandle(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
