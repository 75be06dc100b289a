//go:build !linux

package sqlite

// inodeLock is empty here: a lock on the database itself would interfere with SQLite's own. A file with several names is refused instead.
type inodeLock struct{}

func lockInode(path string) (lock *inodeLock, taken bool) { return nil, namesOf(path) <= 1 }

func (*inodeLock) release() error { return nil }
