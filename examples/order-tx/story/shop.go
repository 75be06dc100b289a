package story

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/postgres"
	"github.com/flowfabric/flowfabric/sqlite"
)

// shop is a program's own database. It is the one that the engine keeps its tables in: a transaction cannot span two.
type shop interface {
	// order writes an order and the work for it in one transaction, and takes both back when then fails.
	order(ctx context.Context, c *flowfabric.Client, number string, s flowfabric.Submission, then func() error) (*flowfabric.Execution, error)
	// ship writes a shipment and ends the work for it in one transaction.
	ship(ctx context.Context, t *flowfabric.Task, number, result string) error
	// shipments counts the shipments of an order.
	shipments(ctx context.Context, number string) (int, error)
	// orders counts the orders of that number.
	orders(ctx context.Context, number string) (int, error)
	close(ctx context.Context) error
}

// openShop opens the database of a store once more, as the program does that has it for its own data.
func openShop(ctx context.Context, store string) (shop, error) {
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		return openFile(ctx, path)
	}
	return openPostgres(ctx, store)
}

const (
	createOrders = "create table if not exists example_orders (number text primary key)"
	createShips  = "create table if not exists example_shipments (number text primary key)"
	shipFile     = "insert into example_shipments (number) values (?)"
	shippedFile  = "select count(*) from example_shipments where number = ?"
	shipOrder    = "insert into example_shipments (number) values ($1)"
	shipped      = "select count(*) from example_shipments where number = $1"
	insertFile   = "insert into example_orders (number) values (?)"
	countFile    = "select count(*) from example_orders where number = ?"
	insertOrder  = "insert into example_orders (number) values ($1)"
	countOrders  = "select count(*) from example_orders where number = $1"
)

// file is a SQLite file under database/sql. SQLite has one writer at a time: a transaction waits for its turn when it begins.
type file struct{ db *sql.DB }

func openFile(ctx context.Context, path string) (shop, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	for _, create := range []string{createOrders, createShips} {
		if _, err := db.ExecContext(ctx, create); err != nil {
			return nil, err
		}
	}
	return file{db}, nil
}

func (f file) order(ctx context.Context, c *flowfabric.Client, number string, s flowfabric.Submission, then func() error) (*flowfabric.Execution, error) {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // of what was not committed
	if _, err := tx.ExecContext(ctx, insertFile, number); err != nil {
		return nil, err
	}
	x, err := sqlite.SubmitSQLTx(ctx, c, tx, s)
	if err != nil {
		return nil, err
	}
	if err := then(); err != nil {
		return x, err
	}
	return x, tx.Commit()
}

func (f file) ship(ctx context.Context, t *flowfabric.Task, number, result string) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // of what was not committed
	if _, err := tx.ExecContext(ctx, shipFile, number); err != nil {
		return err
	}
	if err := sqlite.CompleteSQLTx(ctx, tx, t, result); err != nil {
		return err
	}
	return tx.Commit()
}

func (f file) shipments(ctx context.Context, number string) (n int, err error) {
	err = f.db.QueryRowContext(ctx, shippedFile, number).Scan(&n)
	return n, err
}

func (f file) orders(ctx context.Context, number string) (n int, err error) {
	err = f.db.QueryRowContext(ctx, countFile, number).Scan(&n)
	return n, err
}

func (f file) close(context.Context) error { return f.db.Close() }

// server is a Postgres database.
type server struct {
	url  string
	conn *pgx.Conn
}

func openPostgres(ctx context.Context, url string) (shop, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("the shop's database: %w", err)
	}
	for _, create := range []string{createOrders, createShips} {
		if _, err := conn.Exec(ctx, create); err != nil {
			return nil, err
		}
	}
	return server{url, conn}, nil
}

func (p server) order(ctx context.Context, c *flowfabric.Client, number string, s flowfabric.Submission, then func() error) (*flowfabric.Execution, error) {
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx) // of what was not committed
	if _, err := tx.Exec(ctx, insertOrder, number); err != nil {
		return nil, err
	}
	x, err := postgres.SubmitTx(ctx, c, tx, s)
	if err != nil {
		return nil, err
	}
	if err := then(); err != nil {
		return x, err
	}
	return x, tx.Commit(ctx)
}

// ship uses a connection of its own: handlers run beside everything else. A program has a pool.
func (p server) ship(ctx context.Context, t *flowfabric.Task, number, result string) error {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, shipOrder, number); err != nil {
			return err
		}
		return postgres.CompleteTx(ctx, tx, t, result)
	})
}

func (p server) shipments(ctx context.Context, number string) (n int, err error) {
	err = p.conn.QueryRow(ctx, shipped, number).Scan(&n)
	return n, err
}

func (p server) orders(ctx context.Context, number string) (n int, err error) {
	err = p.conn.QueryRow(ctx, countOrders, number).Scan(&n)
	return n, err
}

func (p server) close(ctx context.Context) error { return p.conn.Close(ctx) }
