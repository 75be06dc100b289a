package sqlite

import (
	"errors"

	"golang.org/x/sys/unix"
)

// inodeLock is a lock on the database file itself: it holds under every name of the file, and even if the lock file was removed.
type inodeLock struct{ handle int }

// farAway is an offset beyond the content and SQLite's own locks.
const farAway = 1 << 62

// lockInode takes the lock of the file for this handle; taken is false if another handle has it. There is no lock if SQLite cannot open the file
// either, or if the file system does not support such locks.
//
// A handle must not be closed before the connections are: that would release SQLite's locks of the whole process. So a handle whose lock was
// refused stays open, since this very process may have the file open.
func lockInode(path string) (lock *inodeLock, taken bool) {
	handle, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, true
	}
	err = unix.FcntlFlock(uintptr(handle), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: farAway, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, false
	}
	return &inodeLock{handle}, true
}

// release releases the lock, if there is one, immediately, even if a child process that is just being started still has the handle. The connections
// must be closed.
func (l *inodeLock) release() error {
	if l == nil {
		return nil
	}
	free := unix.FcntlFlock(uintptr(l.handle), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: farAway, Len: 1})
	return errors.Join(free, unix.Close(l.handle))
}
