package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is an offset after any content: a locked range could not be read to find the holder.
const beyond = 1 << 30

// lockHandle takes the file's lock for this process; taken is false if another process has it. The lock ends with the process, even after a crash.
func lockHandle(file *os.File) (taken bool, err error) {
	err = windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: beyond})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// unlockHandle does nothing: closing the handle releases the lock.
func unlockHandle(*os.File) error { return nil }
