package sqlite

import (
	"errors"

	"golang.org/x/sys/unix"
)

// inodeLock is a lock on the database itself: it holds under every name that the file has, and when the lock file was removed.
type inodeLock struct{ handle int }

// farAway is an offset that neither content nor SQLite's own locks reach.
const farAway = 1 << 62

// lockInode takes the lock of the file for this handle; taken is false if another has it. Where it cannot be had, because SQLite cannot open
// the file either or the file system knows no such locks, there is none.
//
// A handle is not closed before the connections are: that would take SQLite's locks of the whole process away with it. So one whose lock
// was refused stays open, since it may be this very process that has the file open.
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

// release gives the lock back, if there is one, at once, also if a child process that is just being started still has the handle. The connections
// are closed.
func (l *inodeLock) release() error {
	if l == nil {
		return nil
	}
	free := unix.FcntlFlock(uintptr(l.handle), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: farAway, Len: 1})
	return errors.Join(free, unix.Close(l.handle))
}
