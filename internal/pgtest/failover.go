package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Mark copies the server as it is now, for FallBack.
func (s *Server) Mark(ctx context.Context) error {
	mark := s.data() + ".mark"
	if err := os.RemoveAll(mark); err != nil {
		return err
	}
	if err := s.tool(ctx, "pg_basebackup", "-h", s.directory, "-U", adminRole, "-D", mark, "-c", "fast", "-X", "fetch", "--no-sync"); err != nil {
		return err
	}
	// A restore without anything to restore from: the copy begins a timeline of its own where it ends.
	if err := os.WriteFile(filepath.Join(mark, "recovery.signal"), nil, 0o644); err != nil {
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
	if _, err := io.WriteString(s.leash, "\n"); err != nil {
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

// Receiver lets a receiver of the server's log connect, which counts as a standby, until the test ends. Its name is pg_receivewal.
func (s *Server) Receiver(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	directory := s.data() + ".received"
	err := os.Mkdir(directory, 0o700)
	if err == nil && s.owner != nil {
		err = os.Chown(directory, int(s.owner.Uid), int(s.owner.Gid))
	}
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	//nolint:noctx // it lives until the test ends
	receiver := exec.Command(filepath.Join(s.bin, "pg_receivewal"), "-h", s.directory, "-U", adminRole, "-D", directory, "--synchronous")
	receiver.Dir, receiver.SysProcAttr = s.directory, &syscall.SysProcAttr{Credential: s.owner}
	if err := receiver.Start(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		_ = receiver.Process.Kill()
		_ = receiver.Wait()
	})
	if err := s.welcome(ctx, "select 1 / count(*) from pg_stat_replication where state = 'streaming'"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}
