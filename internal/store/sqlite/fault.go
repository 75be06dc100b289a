package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite/lite"
)

// primary masks an extended result code to its primary code.
const primary = 0xff

// codeOf returns the result code of SQLite, 0 if err has none. Errors of a user's own transaction come from a database/sql driver.
func codeOf(err error) int {
	var own *lite.Error
	var foreign interface{ Code() int }
	switch {
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &foreign):
		return foreign.Code()
	}
	return 0
}

func isBusy(err error) bool {
	kind := codeOf(err) & primary
	return kind == sqlite3.SQLITE_BUSY || kind == sqlite3.SQLITE_LOCKED
}

// fault classifies a failure of a statement. Errors of core and faults are returned unchanged.
func fault(err error) error {
	var refused *base.Error
	var known *store.Fault
	if err == nil || errors.As(err, &refused) || errors.As(err, &known) {
		return err
	}
	if damaged(err) {
		return &store.Fault{Kind: store.Broken, Err: base.Errorf(base.CodeCorruption, "the file is damaged: %w", err).WithHint(restore)}
	}
	if full(err) {
		return store.NoRoom(err)
	}
	kind := store.Broken
	var path *fs.PathError
	if errors.As(err, &path) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = store.Unavailable
	}
	switch code := codeOf(err); code & primary {
	case sqlite3.SQLITE_CONSTRAINT:
		if code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || code == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
			kind = store.Conflict
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		kind = store.Busy
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM:
		kind = store.Unavailable
	}
	return &store.Fault{Kind: kind, Err: err}
}

// damaged reports whether SQLite found that its own pages are inconsistent.
func damaged(err error) bool {
	kind := codeOf(err) & primary
	return kind == sqlite3.SQLITE_CORRUPT || kind == sqlite3.SQLITE_NOTADB
}

// full reports whether the disk is full.
func full(err error) bool {
	return codeOf(err)&primary == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// commitFault is fault for the commit itself: if writing it failed, a recovery after a crash may still find it complete.
func commitFault(err error) error {
	if codeOf(err)&primary == sqlite3.SQLITE_IOERR {
		return &store.Fault{Kind: store.Unknown, Err: err}
	}
	return fault(err)
}

func unavailable(err error) error { return &store.Fault{Kind: store.Unavailable, Err: err} }
