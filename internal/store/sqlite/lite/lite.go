// Package lite uses SQLite without database/sql: one connection, its prepared statements, and typed values in and out. It is a thin layer over the
// C interface of the pure Go build, so that a statement costs little more than SQLite itself: the pool, locks, conversions and copies of the driver
// would double the cost. It knows nothing of what is stored.
//
// A Conn and everything made from it must be used by one goroutine at a time.
package lite

import (
	"context"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Error is an error of SQLite.
type Error struct {
	Code int // extended result code
	Text string
}

// Error shows text and code.
func (e *Error) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.Text, e.Code) }

// Kind returns the primary result code.
func (e *Error) Kind() int { return e.Code & 0xff }

// Conn is an open connection.
type Conn struct {
	tls *libc.TLS
	db  uintptr
	out uintptr // space for one pointer that SQLite fills in
}

// A connection is used by one goroutine at a time, so SQLite need not lock it.
const openFlags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE | sqlite3.SQLITE_OPEN_NOMUTEX | sqlite3.SQLITE_OPEN_EXRESCODE

const pointerSize = int(unsafe.Sizeof(uintptr(0)))

// Open opens a file and creates it if it does not exist. The name is used literally.
func Open(path string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS()}
	c.out = libc.Xcalloc(c.tls, 1, libc.Tsize_t(pointerSize))
	name, err := libc.CString(path)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, c.out, openFlags, 0)
	c.db = c.taken()
	if rc == sqlite3.SQLITE_OK {
		rc = c.fixPlans()
	}
	if rc != sqlite3.SQLITE_OK {
		err := c.error(rc)
		_ = c.Close() // a connection that failed to open has nothing to lose
		return nil, err
	}
	return c, nil
}

// fixPlans makes the plan of a statement independent of the bound values. Otherwise SQLite recompiles some statements whenever their values change,
// which costs ten times the statement.
func (c *Conn) fixPlans() int32 {
	const slots = 2 * 8 // two arguments of the C call, on every platform
	args := libc.Xmalloc(c.tls, slots)
	if args == 0 {
		return sqlite3.SQLITE_NOMEM
	}
	defer libc.Xfree(c.tls, args)
	return sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(args, int32(1), uintptr(0)))
}

// Writable returns an error if the file is read-only: SQLite opens it nevertheless and refuses the first write.
func (c *Conn) Writable() error {
	name, err := libc.CString("main")
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	if sqlite3.Xsqlite3_db_readonly(c.tls, c.db, name) == 1 {
		return &Error{Code: sqlite3.SQLITE_READONLY, Text: "the database can only be read"}
	}
	return nil
}

// Close closes the connection. Its statements must be closed before.
func (c *Conn) Close() error {
	var err error
	if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
		err = c.error(rc)
	}
	libc.Xfree(c.tls, c.out)
	c.tls.Close()
	c.db, c.out = 0, 0
	return err
}

// Script runs any number of statements and ignores their results.
func (c *Conn) Script(text string) error {
	zero, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, zero)
	if rc := sqlite3.Xsqlite3_exec(c.tls, c.db, zero, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return c.error(rc)
	}
	return nil
}

// Prepare compiles one statement.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	zero, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, zero)
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, zero, int32(len(text)), sqlite3.SQLITE_PREPARE_PERSISTENT, c.out, 0)
	if rc != sqlite3.SQLITE_OK {
		return nil, c.error(rc)
	}
	s := &Stmt{c: c, handle: c.taken()}
	if s.handle == 0 {
		return nil, &Error{Code: sqlite3.SQLITE_MISUSE, Text: "there is no statement in " + text}
	}
	return s, nil
}

// Changed returns the number of rows that the last insert, update or delete changed.
func (c *Conn) Changed() int64 { return sqlite3.Xsqlite3_changes64(c.tls, c.db) }

// LastInsertID returns the rowid of the last inserted row.
func (c *Conn) LastInsertID() int64 { return sqlite3.Xsqlite3_last_insert_rowid(c.tls, c.db) }

// InterruptOn interrupts the connection's statements when ctx ends, until release is called. It is for reads: interrupting a write aborts its
// transaction.
func (c *Conn) InterruptOn(ctx context.Context) (release func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		tls := libc.NewTLS() // the connection's is in use
		sqlite3.Xsqlite3_interrupt(tls, c.db)
		tls.Close()
	})
	return func() {
		if !stop() {
			<-interrupted // so that it does not hit a later statement
		}
	}
}

// taken returns the pointer that SQLite filled in last.
func (c *Conn) taken() uintptr { return *(*uintptr)(pointer(c.out)) }

func (c *Conn) error(rc int32) error {
	text := ""
	if c.db != 0 {
		text = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	}
	return &Error{Code: int(rc), Text: text}
}

// pointer converts an address on SQLite's heap, which Go does not manage, into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// memory returns n bytes on SQLite's heap.
func memory(address uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(address)), n) }
