package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Mark copies the server as it is now, for FallBack. The copy is made through SQL and not by pg_basebackup, which not every package of Postgres has.
func (s *Server) Mark(ctx context.Context) error {
	mark := s.data() + ".mark"
	if err := os.RemoveAll(mark); err != nil {
		return err
	}
	if err := s.backUp(ctx, mark); err != nil {
		return err
	}
	// A restore without anything to restore from: the copy begins a timeline of its own where it ends.
	if err := s.write(filepath.Join(mark, "recovery.signal"), nil); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(mark, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("restore_command = 'false'\n")
	return errors.Join(err, file.Close())
}

// FallBack ends the server at once and puts in its place, under the same address, the copy that Mark has made: as a failover to a standby
// that was behind, everything that was committed since is lost, and the database is on another timeline.
func (s *Server) FallBack(ctx context.Context) error {
	before, err := s.timeline(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.leash, "mark\n"); err != nil {
		return err
	}
	// Division by zero until another timeline answers.
	return s.welcome(ctx, fmt.Sprintf("select 1 / (%s <> '%s')::int", timelineSQL, before))
}

// timelineSQL is an error while the server recovers.
const timelineSQL = "left(pg_walfile_name(pg_current_wal_lsn()), 8)"

func (s *Server) timeline(ctx context.Context) (name string, err error) {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "select "+timelineSQL).Scan(&name)
	return name, err
}

// Fallible starts a server of its own for one test, with an empty database, and returns the address of that.
func Fallible(tb testing.TB, settings map[string]string) (*Server, string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := Start(ctx, settings)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(server.Stop)
	if err := execute(ctx, server.URL(), "create database fallible owner "+ordinaryRole); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return server, URL(server.Socket(), ordinaryRole, "fallible")
}
