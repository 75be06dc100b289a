package lite

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	sqlite3 "modernc.org/sqlite/lib"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *Conn {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func prepare(t *testing.T, c *Conn, text string) *Stmt {
	t.Helper()
	s, err := c.Prepare(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// round runs a statement to its end and tells how many rows it answered.
func round(t *testing.T, s *Stmt, read func(), args ...any) (rows int) {
	t.Helper()
	if err := s.Bind(args); err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	for {
		row, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !row {
			return rows
		}
		rows++
		read()
	}
}

func TestValues_come_back_as_they_were_bound(t *testing.T) {
	t.Parallel()
	s := prepare(t, open(t), "select ?, ?, ?, ?, ?, ?, ?, ?")
	long := bytes.Repeat([]byte{0, 1, 0xff}, mostKept)
	for range 3 { // the room for arguments grows and shrinks
		rows := round(t, s, func() {
			if s.Int(0) != -1<<63 || s.Text(1) != "a\x00ü" || !bytes.Equal(s.Bytes(2), []byte{0, 0xff}) {
				t.Errorf("got %d, %q, %v", s.Int(0), s.Text(1), s.Bytes(2))
			}
			if !s.IsNull(3) || s.Bytes(3) != nil || !s.IsNull(4) || s.Text(4) != "" || s.Int(4) != 0 {
				t.Error("nil and nil bytes are not null")
			}
			if empty := s.Bytes(5); empty == nil || len(empty) != 0 || s.IsNull(5) {
				t.Errorf("empty bytes came back as %v", empty)
			}
			if s.IsNull(6) || s.Text(6) != "" {
				t.Error("an empty text is null")
			}
			if !bytes.Equal(s.Show(7), long) {
				t.Error("long bytes did not come back")
			}
		}, int64(-1<<63), "a\x00ü", []byte{0, 0xff}, []byte(nil), nil, []byte{}, "", long)
		if rows != 1 {
			t.Fatalf("%d rows", rows)
		}
		round(t, s, func() {}, int64(1), nil, nil, nil, nil, nil, nil, "short")
		if s.room > mostKept {
			t.Fatalf("%d bytes are kept for arguments", s.room)
		}
	}
	if err := s.Bind([]any{3.5}); err == nil {
		t.Fatal("a float was bound")
	}
}

func TestChanges_and_numbers_are_told(t *testing.T) {
	t.Parallel()
	c := open(t)
	if err := c.Script("create table a (n integer primary key, t text unique); insert into a (t) values ('x'), ('y');"); err != nil {
		t.Fatal(err)
	}
	round(t, prepare(t, c, "insert into a (t) values (?)"), func() {}, "z")
	if c.Changed() != 1 || c.LastInsertID() != 3 {
		t.Fatalf("changed %d, number %d", c.Changed(), c.LastInsertID())
	}
	round(t, prepare(t, c, "update a set n = n + 10"), func() {})
	if c.Changed() != 3 {
		t.Fatalf("changed %d", c.Changed())
	}
	rows := round(t, prepare(t, c, "select n from a"), func() {})
	if rows != 3 {
		t.Fatalf("%d rows", rows)
	}
}

func TestStatements_are_compiled_once_whatever_is_bound(t *testing.T) {
	t.Parallel()
	c := open(t)
	if err := c.Script("create table a (k integer, n integer, primary key (k, n)) without rowid"); err != nil {
		t.Fatal(err)
	}
	s := prepare(t, c, "select n from a where k = ? and n >= ? order by n limit ?")
	for i := range int64(10) {
		round(t, s, func() {}, i, -i, 10*i)
	}
	if n := sqlite3.Xsqlite3_stmt_status(c.tls, s.handle, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
		t.Fatalf("compiled again %d times", n)
	}
}

func TestErrors_carry_the_code_of_sqlite(t *testing.T) {
	t.Parallel()
	c := open(t)
	if err := c.Script("create table a (t text unique) strict; insert into a values ('x')"); err != nil {
		t.Fatal(err)
	}
	s := prepare(t, c, "insert into a values (?)")
	for range 2 { // a statement that failed can be used again
		if err := s.Bind([]any{"x"}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Step()
		s.Reset()
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != sqlite3.SQLITE_CONSTRAINT_UNIQUE || refused.Kind() != sqlite3.SQLITE_CONSTRAINT || !strings.Contains(err.Error(), "a.t") {
			t.Fatalf("a second x: %v", err)
		}
	}
	round(t, s, func() {}, "y")
	for _, text := range []string{"select", "-- nothing", ""} {
		if _, err := c.Prepare(text); err == nil {
			t.Errorf("%q was prepared", text)
		}
	}
	if err := c.Script("nonsense"); err == nil {
		t.Error("nonsense was run")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent", "test.db")); err == nil {
		t.Error("a file in a directory that is not there was opened")
	}
}

func TestThe_end_of_a_context_interrupts_a_read(t *testing.T) {
	t.Parallel()
	c := open(t)
	endless := prepare(t, c, "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n")
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel()
	}()
	first := prepare(t, c, "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n")
	if err := first.Bind(nil); err != nil {
		t.Fatal(err)
	}
	if row, err := first.Step(); !row || err != nil { // keeps the connection active, so that the interrupt is not missed
		t.Fatal(row, err)
	}
	release := c.InterruptOn(ctx)
	close(started)
	_, err := endless.Step()
	endless.Reset()
	first.Reset()
	release()
	var interrupted *Error
	if !errors.As(err, &interrupted) || interrupted.Kind() != sqlite3.SQLITE_INTERRUPT {
		t.Fatalf("an endless read ended with %v", err)
	}
	if rows := round(t, prepare(t, c, "select 1"), func() {}); rows != 1 {
		t.Fatal("the connection cannot be used any more")
	}
}
