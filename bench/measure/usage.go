package measure

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Usage is what a store has used up to a moment. What is not known is nil.
type Usage struct {
	Bytes        *int64 // that its data take
	WAL          *int64 // bytes of log written; SQLite: the size of the log, which is used again and again
	Commits      *int64
	Transactions *int64 // committed or not
}

// UsageOf looks at a store: on Postgres at the whole database, and at the log of the whole server.
func UsageOf(ctx context.Context, address string) (Usage, error) {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		return Usage{Bytes: sizeOf(path), WAL: sizeOf(path + "-wal")}, nil
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return Usage{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var u Usage
	err = conn.QueryRow(ctx, `
		select pg_database_size(datname), xact_commit, xact_commit + xact_rollback,
			case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint end
		from pg_stat_database where datname = current_database()`).Scan(&u.Bytes, &u.Commits, &u.Transactions, &u.WAL)
	return u, err
}

func sizeOf(file string) *int64 {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	size := info.Size()
	return &size
}

// Settled waits as long as the statistics of a Postgres may lag behind: its processes report up to a second late.
func Settled(ctx context.Context, address string) error {
	if strings.HasPrefix(address, "sqlite:") {
		return nil
	}
	select {
	case <-time.After(statisticsLag):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// statisticsLag is how late Postgres tells what its processes did.
const statisticsLag = 1200 * time.Millisecond

// StoreSettings are the settings of a Postgres that decide what a commit costs, and its version.
func StoreSettings(ctx context.Context, address string) (map[string]string, error) {
	if strings.HasPrefix(address, "sqlite:") {
		return map[string]string{"journal_mode": "wal", "synchronous": "full"}, nil
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	settings := map[string]string{}
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"} {
		var value string
		if err := conn.QueryRow(ctx, "show "+name).Scan(&value); err != nil {
			return nil, err
		}
		settings[name] = value
	}
	return settings, nil
}
