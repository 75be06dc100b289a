package pgtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// backUp makes an online backup of the server's files, with the log that it needs to become consistent.
func (s *Server) backUp(ctx context.Context, into string) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	start, stop := "select pg_backup_start('mark', true)", "select labelfile from pg_backup_stop(false)"
	if strings.HasPrefix(conn.PgConn().ParameterStatus("server_version"), "14.") { // the functions had other names before 15
		start, stop = "select pg_start_backup('mark', true, false)", "select labelfile from pg_stop_backup(false, false)"
	}
	if _, err := conn.Exec(ctx, start); err != nil {
		return err
	}
	// The log comes last: it must reach to the end of the backup.
	if err := s.copyTree(s.data(), into, "pg_wal", "postmaster.pid", "postmaster.opts"); err != nil {
		return err
	}
	var label []byte
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return err
	}
	return errors.Join(s.write(filepath.Join(into, "backup_label"), label), s.copyTree(filepath.Join(s.data(), "pg_wal"), filepath.Join(into, "pg_wal")))
}

// copyTree copies a directory without these of its entries. What vanishes meanwhile was of no use: the log makes it good.
func (s *Server) copyTree(from, into string, without ...string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(without, name) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(without, name):
			return nil
		case entry.IsDir():
			return errors.Join(os.Mkdir(filepath.Join(into, name), 0o700), s.own(filepath.Join(into, name)))
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.write(filepath.Join(into, name), content)
	})
}

// write makes a file of the server.
func (s *Server) write(path string, content []byte) error {
	return errors.Join(os.WriteFile(path, content, 0o600), s.own(path))
}

// own gives a file to whom the server runs as.
func (s *Server) own(path string) error {
	if s.owner == nil {
		return nil
	}
	return os.Chown(path, int(s.owner.Uid), int(s.owner.Gid))
}
