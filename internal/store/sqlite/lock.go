package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// fileLock keeps other engines from opening a store (U133). It is an operating system lock on a file beside the store that names the holder, and on
// the store itself, which may have other names. The file beside it remains after the lock ends and has no meaning then.
type fileLock struct {
	file  *os.File
	inode *inodeLock // nil: none
}

func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, privateFile) //nolint:gosec // G703: the path is a setting of the operator
	if err != nil {
		return nil, base.Invalid("store", "the lock file cannot be opened: %w", err)
	}
	taken, err := lockHandle(file)
	if err != nil {
		return nil, errors.Join(base.Invalid("store", "the lock file cannot be locked: %w", err), file.Close())
	}
	if !taken {
		holder := holderOf(file)
		return nil, errors.Join(base.Errorf(base.CodeStoreLocked, "process %s has this file open", holder).
			With("pid", holder).WithHint("a SQLite file has one engine: use the one that runs, or a server"), file.Close())
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fault(err), file.Close())
	}
	return &fileLock{file: file}, nil
}

// holderOf reads the process id in the lock file; "unknown" before the holder has written it.
func holderOf(file *os.File) string {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if holder := strings.TrimSpace(string(text)); err == nil && holder != "" {
		return holder
	}
	return "unknown"
}

// release releases the store.
func (l *fileLock) release() error {
	return errors.Join(l.inode.release(), unlockHandle(l.file), l.file.Close())
}
