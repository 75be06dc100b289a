package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"

	"github.com/flowfabric/flowfabric/internal/core"
)

// conn is one connection and its prepared statements. One goroutine uses it at a time.
//
// The driver is used without database/sql: its pool, conversions and scanning would cost as much as the statements.
type conn struct {
	raw      rawConn
	texts    map[string]string // all statements by name
	prepared map[string]*prepared
	when     durability // how commits are synced; of the writing connection only
}

type rawConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
}

type prepared struct {
	raw  rawStmt
	args []driver.NamedValue
	row  row
}

type rawStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connect opens the file and applies the settings of a connection.
func connect(path string, texts map[string]string, pragmas ...string) (*conn, error) {
	name := url.URL{Scheme: "file", Path: path}
	connector, err := sqlite.NewConnector(name.String())
	if err != nil {
		return nil, err
	}
	opened, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	raw, ok := opened.(rawConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's connection is a %T", opened), opened.Close())
	}
	c := &conn{raw: raw, texts: texts, prepared: map[string]*prepared{}}
	for _, pragma := range pragmas {
		if err := c.script("pragma " + pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("pragma %s: %w", pragma, err), c.close())
		}
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, p := range c.prepared {
		errs = append(errs, p.raw.Close())
	}
	c.prepared = nil
	return errors.Join(append(errs, c.raw.Close())...)
}

// script runs any number of statements without arguments.
func (c *conn) script(text string) error {
	_, err := c.raw.ExecContext(context.Background(), text, nil)
	return err
}

// statement finds a statement by name and prepares it when it is first used.
func (c *conn) statement(name string) (*prepared, error) {
	if p := c.prepared[name]; p != nil {
		return p, nil
	}
	text, ok := c.texts[name]
	if !ok {
		return nil, fmt.Errorf("there is no statement %q", name)
	}
	p, err := c.prepare(text)
	if err != nil {
		return nil, fmt.Errorf("statement %q: %w", name, err)
	}
	c.prepared[name] = p
	return p, nil
}

func (c *conn) prepare(text string) (*prepared, error) {
	opened, err := c.raw.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	raw, ok := opened.(rawStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's statement is a %T", opened), opened.Close())
	}
	return &prepared{raw: raw}, nil
}

func (p *prepared) bind(args []driver.Value) []driver.NamedValue {
	if len(p.args) != len(args) {
		p.args = make([]driver.NamedValue, len(args))
	}
	for i, arg := range args {
		p.args[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return p.args
}

// exec runs a statement that answers no rows and tells how many it changed. It is never cut short: to interrupt a write in
// flight would leave its transaction in doubt.
func (c *conn) exec(name string, args ...driver.Value) (changed int64, err error) {
	result, err := c.result(name, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert is exec for a statement that inserts one row under a new number, which it tells.
func (c *conn) insert(name string, args ...driver.Value) (number int64, err error) {
	result, err := c.result(name, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (c *conn) result(name string, args []driver.Value) (driver.Result, error) {
	p, err := c.statement(name)
	if err != nil {
		return nil, err
	}
	return p.raw.ExecContext(context.Background(), p.bind(args))
}

// run is exec for statements whose count does not matter.
func (c *conn) run(name string, args ...driver.Value) error {
	_, err := c.exec(name, args...)
	return err
}

// each calls read for every row that a statement answers. A context that can end interrupts it: give one for long reads only.
func (c *conn) each(ctx context.Context, name string, read func(row) error, args ...driver.Value) error {
	p, err := c.statement(name)
	if err != nil {
		return err
	}
	return p.each(ctx, read, args)
}

func (p *prepared) each(ctx context.Context, read func(row) error, args []driver.Value) (err error) {
	rows, err := p.raw.QueryContext(ctx, p.bind(args))
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	if p.row == nil {
		p.row = make(row, len(rows.Columns()))
	}
	for {
		switch err := rows.Next(p.row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := read(p.row); err != nil {
			return err
		}
	}
}

// row is what a statement answered. It is valid until the next row is read; bytes and texts taken from it stay.
type row []driver.Value

func (r row) int(i int) int64 {
	v, _ := r[i].(int64)
	return v
}

func (r row) time(i int) core.Time { return core.Time(r.int(i)) }

func (r row) text(i int) string {
	v, _ := r[i].(string)
	return v
}

// bytes keeps null apart from empty; the driver has nil for both, but only empty bytes have a type.
func (r row) bytes(i int) []byte {
	v, present := r[i].([]byte)
	if present && v == nil {
		return []byte{}
	}
	return v
}

func (r row) uuid(i int) (u core.UUID) {
	v, _ := r[i].([]byte)
	copy(u[:], v)
	return u
}

// optional makes the absent id null.
func optional(u *core.UUID) driver.Value {
	if u.IsZero() {
		return nil
	}
	return u[:]
}

// optionalText makes the empty text null.
func optionalText(text string) driver.Value {
	if text == "" {
		return nil
	}
	return text
}

// optionalBytes makes nil null. Without it a nil slice would reach the driver as bytes.
func optionalBytes(data []byte) driver.Value {
	if data == nil {
		return nil
	}
	return data
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
