package measure

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// FreshName is a name for something, used by nothing else.
func FreshName() string { return "ff_bench_" + strings.ToLower(rand.Text()[:12]) }

// removal bounds the time in which something is removed, also after an interrupt.
const removal = time.Minute

// FreshStore makes room for a store beside the one that is named, and says how to remove it. For sqlite:PATH that is a file in a
// new directory beside PATH, or in PATH if that is a directory, or in the system's place for temporary files without one. On a
// Postgres it is a new database, or a new schema of the given one if the role may not make databases.
func FreshStore(ctx context.Context, store string) (address string, remove func() error, err error) {
	path, isFile := strings.CutPrefix(store, "sqlite:")
	if !isFile {
		return freshPostgres(ctx, store)
	}
	parent := path
	if info, err := os.Stat(path); path != "" && (err != nil || !info.IsDir()) {
		parent = filepath.Dir(path)
	}
	dir, err := os.MkdirTemp(parent, "ff_bench_")
	if err != nil {
		return "", nil, err
	}
	return "sqlite:" + filepath.Join(dir, "bench.db"), func() error { return os.RemoveAll(dir) }, nil
}

// freshPostgres makes a database or a schema. Its connections bear its name, so that CutConnections finds them.
func freshPostgres(ctx context.Context, server string) (string, func() error, error) {
	name := FreshName()
	address, err := url.Parse(server)
	if err != nil {
		return "", nil, errors.New("write the address of the database as postgres://user@host/database")
	}
	query := address.Query()
	query.Set("application_name", name)
	address.RawQuery = query.Encode()
	err = execute(ctx, server, "create database "+name)
	if err == nil {
		address.Path = "/" + name
		return address.String(), dropped(ctx, server, "drop database if exists "+name+" with (force)"), nil
	}
	if !refused(err) {
		return "", nil, err
	}
	if err := execute(ctx, server, "create schema "+name); err != nil {
		if refused(err) {
			err = fmt.Errorf("the role may make neither a database nor a schema; grant it one of: alter role … createdb, grant create on database … to …: %w", err)
		}
		return "", nil, err
	}
	query.Set("search_path", name)
	address.RawQuery = query.Encode()
	return address.String(), dropped(ctx, server, "drop schema if exists "+name+" cascade"), nil
}

// CutConnections ends all connections to a fresh Postgres at its end, as a failing network or a restart does, and returns how many.
func CutConnections(ctx context.Context, address string) (cut int, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, `
		select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
		where application_name = current_setting('application_name') and pid <> pg_backend_pid()`).Scan(&cut)
	return cut, err
}

// refused tells that a role may not do something.
func refused(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "42501" // insufficient_privilege
}

func dropped(ctx context.Context, server, sql string) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		return execute(ctx, server, sql)
	}
}

func execute(ctx context.Context, server, sql string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}
