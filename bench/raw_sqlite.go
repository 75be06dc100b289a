package bench

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// RawSQLite measures SQLite without any engine, in files below dir that it removes: WAL, synchronous=FULL, one writer.
func RawSQLite(ctx context.Context, dir string, cfg RawConfig) (*Sample, error) {
	cfg = cfg.filled()
	sample, err := measureRaw(ctx, cfg, func(ctx context.Context) (*rawTable, error) { return openSQLite(ctx, dir, cfg) })
	if err != nil {
		return nil, err
	}
	sample.Settings = map[string]string{"journal_mode": "wal", "synchronous": "full"}
	return sample, nil
}

func rawSQLite(ctx context.Context, env Env) (*Sample, error) {
	return RawSQLite(ctx, env.Dir, RawConfig{Rows: env.Size(60_000)})
}

type sqliteConn struct {
	conn                           *sql.Conn
	insertOne, claimN, completeOne *sql.Stmt
	countAll                       *sql.Stmt
	body                           []byte
	order                          int64 // of the next row inserted
}

// openSQLite makes a file with an empty table.
func openSQLite(ctx context.Context, dir string, cfg RawConfig) (_ *rawTable, err error) {
	own, err := os.MkdirTemp(dir, "raw-sqlite-")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(own, "raw.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	table := &rawTable{close: func() {
		_ = db.Close()
		_ = os.RemoveAll(own)
	}}
	defer func() {
		if err != nil {
			table.close()
		}
	}()
	conn := &sqliteConn{body: bytes.Repeat([]byte{'x'}, cfg.Body)}
	if err := conn.prepare(ctx, db); err != nil {
		return nil, err
	}
	table.conns = []rawConn{conn}
	return table, nil
}

func (c *sqliteConn) prepare(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	c.conn = conn
	var mode, level string
	if err := conn.QueryRowContext(ctx, "pragma journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, "pragma synchronous").Scan(&level); err != nil {
		return err
	}
	if mode != "wal" || level != "2" {
		return fmt.Errorf("journal_mode is %s and synchronous %s, want wal and 2", mode, level)
	}
	tables, err := text("sqlite_schema")
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, tables); err != nil {
		return err
	}
	for name, target := range map[string]**sql.Stmt{
		"sqlite_insert": &c.insertOne, "sqlite_claim": &c.claimN, "sqlite_complete": &c.completeOne, "sqlite_count": &c.countAll,
	} {
		statement, err := text(name)
		if err != nil {
			return err
		}
		if *target, err = conn.PrepareContext(ctx, statement); err != nil { //nolint:sqlclosecheck // closed with the file
			return err
		}
	}
	return nil
}

// transaction runs f in one transaction.
func (c *sqliteConn) transaction(ctx context.Context, f func() error) error {
	if _, err := c.conn.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	if err := f(); err != nil {
		_, rollback := c.conn.ExecContext(ctx, "rollback")
		return errors.Join(err, rollback)
	}
	_, err := c.conn.ExecContext(ctx, "commit")
	return err
}

func (c *sqliteConn) insert(ctx context.Context, n int) error {
	return c.transaction(ctx, func() error {
		now := time.Now().UnixMilli()
		for range n {
			c.order++
			id := newRowID()
			if _, err := c.insertOne.ExecContext(ctx, id[:], c.order, now, c.body); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *sqliteConn) claim(ctx context.Context, n int) (rawClaim, error) {
	claim := rawClaim{lease: newRowID()}
	err := c.transaction(ctx, func() error {
		rows, err := c.claimN.QueryContext(ctx, n, claim.lease[:], time.Now().Add(leaseTTL).UnixMilli())
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		var id sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&id); err != nil {
				return err
			}
			claim.ids = append(claim.ids, rowID(id))
		}
		return rows.Err()
	})
	return claim, err
}

func (c *sqliteConn) complete(ctx context.Context, claim rawClaim) error {
	return c.transaction(ctx, func() error {
		now := time.Now().UnixMilli()
		for _, id := range claim.ids {
			if _, err := c.completeOne.ExecContext(ctx, now, id[:], claim.lease[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *sqliteConn) count(ctx context.Context) (completed, all int, err error) {
	err = c.countAll.QueryRowContext(ctx).Scan(&completed, &all)
	return completed, all, err
}
