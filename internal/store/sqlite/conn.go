package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store/sqlite/lite"
)

// conn is one connection and its prepared statements. It is used by one goroutine at a time.
type conn struct {
	raw      *lite.Conn
	texts    map[string]string // all statements by name
	prepared map[string]statement
	meter    *metrics.Statements // nil: nothing is measured
}

// statement is a prepared statement with its metrics.
type statement struct {
	*lite.Stmt
	meter *metrics.Statement
}

// connect opens the file and applies the settings of a connection.
func connect(path string, texts map[string]string, pragmas ...string) (*conn, error) {
	raw, err := lite.Open(path)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, texts: texts, prepared: map[string]statement{}}
	for _, pragma := range pragmas {
		if err := raw.Script("pragma " + pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("pragma %s: %w", pragma, err), c.close())
		}
	}
	return c, nil
}

// close ends the connection. A second close does nothing.
func (c *conn) close() error {
	if c.raw == nil {
		return nil
	}
	for _, statement := range c.prepared {
		statement.Close()
	}
	err := c.raw.Close()
	c.raw, c.prepared = nil, nil
	return err
}

// statement returns a statement by name and prepares it on first use.
func (c *conn) statement(name string) (statement, error) {
	if found, ok := c.prepared[name]; ok {
		return found, nil
	}
	text, ok := c.texts[name]
	if !ok {
		return statement{}, fmt.Errorf("there is no statement %q", name)
	}
	raw, err := c.raw.Prepare(text)
	if err != nil {
		return statement{}, fmt.Errorf("statement %q: %w", name, err)
	}
	fresh := statement{raw, c.meter.Of(name)}
	c.prepared[name] = fresh
	return fresh, nil
}

// run runs a statement whose result is ignored. It is never interrupted: interrupting a write in flight would leave its transaction in doubt.
func (c *conn) run(name string, args ...any) error {
	statement, err := c.statement(name)
	if err != nil {
		return err
	}
	if err := statement.Bind(args); err != nil {
		return err
	}
	began := statement.meter.Begin()
	_, err = statement.Step()
	statement.Reset()
	statement.meter.End(began)
	return err
}

// change is run for statements that change rows. It returns how many.
func (c *conn) change(name string, args ...any) (rows int64, err error) {
	if err := c.run(name, args...); err != nil {
		return 0, err
	}
	return c.raw.Changed(), nil
}

// each calls read for every row that a statement returns.
func (c *conn) each(name string, read func(row) error, args ...any) error {
	statement, err := c.statement(name)
	if err != nil {
		return err
	}
	began := statement.meter.Begin()
	err = rows(statement.Stmt, read, args)
	statement.meter.End(began)
	return err
}

// search is each for a statement that is used once and may take long: the end of ctx interrupts it.
func (c *conn) search(ctx context.Context, text string, read func(row) error, args []any) error {
	statement, err := c.raw.Prepare(text)
	if err != nil {
		return err
	}
	defer statement.Close()
	defer c.raw.InterruptOn(ctx)()
	if err := ctx.Err(); err != nil {
		return err // an interrupt that comes before the statement runs is lost
	}
	err = rows(statement, read, args)
	if ended := ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return err
}

func rows(statement *lite.Stmt, read func(row) error, args []any) error {
	if err := statement.Bind(args); err != nil {
		return err
	}
	defer statement.Reset()
	for {
		there, err := statement.Step()
		if err != nil || !there {
			return err
		}
		if err := read(row{statement}); err != nil {
			return err
		}
	}
}

// row is the current row of a statement, valid until the next step. Bytes and texts taken from it are copies.
type row struct{ *lite.Stmt }

func (r row) time(i int) base.Time { return base.Time(r.Int(i)) }

func (r row) uuid(i int) (u base.UUID) {
	copy(u[:], r.Show(i))
	return u
}

// optional returns null for the absent id.
func optional(u *base.UUID) any {
	if u.IsZero() {
		return nil
	}
	return u[:]
}

// optionalText returns null for the empty text.
func optionalText(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
