package lite

import (
	"fmt"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Stmt is a prepared statement. It is used in rounds: Bind, Step until there are no more rows, Reset.
type Stmt struct {
	c      *Conn
	handle uintptr
	args   uintptr // bytes and texts of the arguments, on SQLite's heap
	room   int     // size of args
}

const (
	leastRoom = 256
	mostKept  = 64 << 10 // of the argument buffer between rounds
)

// Close ends the statement.
func (s *Stmt) Close() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.handle) // repeats the error of the last round, which was already returned
	libc.Xfree(s.c.tls, s.args)
	s.handle, s.args, s.room = 0, 0, 0
}

// Bind sets all arguments: int64, string, []byte, or nil for null; nil bytes are null too, empty ones are not.
func (s *Stmt) Bind(args []any) error {
	if err := s.reserve(args); err != nil {
		return err
	}
	at := s.args
	for i, arg := range args {
		var rc int32
		switch v := arg.(type) {
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(s.c.tls, s.handle, int32(i+1), v)
		case string:
			copy(memory(at, len(v)), v)
			rc = sqlite3.Xsqlite3_bind_text(s.c.tls, s.handle, int32(i+1), at, int32(len(v)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(v))
		case []byte:
			rc = s.bindBytes(i, at, v)
			at += uintptr(len(v))
		case nil:
			rc = sqlite3.Xsqlite3_bind_null(s.c.tls, s.handle, int32(i+1))
		default:
			return fmt.Errorf("argument %d is a %T", i+1, arg)
		}
		if rc != sqlite3.SQLITE_OK {
			return s.c.error(rc)
		}
	}
	return nil
}

func (s *Stmt) bindBytes(i int, at uintptr, v []byte) int32 {
	if v == nil {
		return sqlite3.Xsqlite3_bind_null(s.c.tls, s.handle, int32(i+1))
	}
	copy(memory(at, len(v)), v)
	return sqlite3.Xsqlite3_bind_blob(s.c.tls, s.handle, int32(i+1), at, int32(len(v)), sqlite3.SQLITE_STATIC)
}

// reserve makes room for the bytes and texts of args. The buffer is never empty, because SQLite treats an empty value without an address as null.
func (s *Stmt) reserve(args []any) error {
	need := leastRoom
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			need += len(v)
		case []byte:
			need += len(v)
		}
	}
	if need <= s.room && (s.room <= mostKept || need > mostKept) {
		return nil
	}
	libc.Xfree(s.c.tls, s.args)
	if s.args = libc.Xmalloc(s.c.tls, libc.Tsize_t(need)); s.args == 0 {
		s.room = 0
		return &Error{Code: sqlite3.SQLITE_NOMEM, Text: "out of memory"}
	}
	s.room = need
	return nil
}

// Step advances to the next row, if there is one.
func (s *Stmt) Step() (row bool, err error) {
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.handle); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.error(rc)
	}
}

// Reset ends a round and releases the locks and snapshots of the statement.
func (s *Stmt) Reset() {
	sqlite3.Xsqlite3_reset(s.c.tls, s.handle) // repeats the error of the last step, which was already returned
}

// IsNull reports whether column i of the row is null.
func (s *Stmt) IsNull(i int) bool {
	return sqlite3.Xsqlite3_column_type(s.c.tls, s.handle, int32(i)) == sqlite3.SQLITE_NULL
}

// Int returns column i of the row; 0 if it is null.
func (s *Stmt) Int(i int) int64 { return sqlite3.Xsqlite3_column_int64(s.c.tls, s.handle, int32(i)) }

// Text returns a copy of column i of the row; "" if it is null.
func (s *Stmt) Text(i int) string {
	at := sqlite3.Xsqlite3_column_text(s.c.tls, s.handle, int32(i))
	if at == 0 {
		return ""
	}
	return string(memory(at, s.size(i)))
}

// Bytes returns a copy of column i of the row; nil if it is null.
func (s *Stmt) Bytes(i int) []byte {
	shown := s.Show(i)
	if shown == nil {
		return nil
	}
	return append(make([]byte, 0, len(shown)), shown...)
}

// Show returns column i of the row in SQLite's own memory, valid until the next Step or Reset; nil if it is null.
func (s *Stmt) Show(i int) []byte {
	at := sqlite3.Xsqlite3_column_blob(s.c.tls, s.handle, int32(i))
	switch {
	case at != 0:
		return memory(at, s.size(i))
	case s.IsNull(i):
		return nil
	default:
		return []byte{}
	}
}

func (s *Stmt) size(i int) int {
	return int(sqlite3.Xsqlite3_column_bytes(s.c.tls, s.handle, int32(i)))
}
