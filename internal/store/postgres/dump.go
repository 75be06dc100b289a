package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Dumped describes a dump.
type Dumped struct {
	Schema string           // that has the tables
	Rows   map[string]int64 // by table
}

// Total returns the rows of all tables.
func (d Dumped) Total() (total int64) {
	for rows := range maps.Values(d.Rows) {
		total += rows
	}
	return total
}

// dumpMark is how every dump in the custom format begins.
const dumpMark = "PGDMP"

// IsDump reports whether a file begins as a dump of Postgres does.
func IsDump(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, len(dumpMark))
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(head[:n]) == dumpMark, err
}

// Dump writes the schema of the store at url to w with pg_dump, in its custom format, and returns the rows that it must have: they are counted in
// the snapshot that pg_dump reads. The store may be in use. ReadDump checks the result.
func Dump(ctx context.Context, url string, cfg Config, w io.Writer) (dumped Dumped, err error) {
	err = onServer(ctx, url, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		how := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, conn, how, func(tx pgx.Tx) error {
			if err := s.patient(ctx, tx); err != nil {
				return err
			}
			if _, err := s.locate(ctx, tx); err != nil {
				return err
			}
			schema, _, err := s.standing(ctx, tx)
			if err != nil {
				return err
			}
			if schema.Level == 0 {
				return schema.Older()
			}
			dumped, err = s.dump(ctx, tx, w)
			return err
		})
	})
	return dumped, explained(err)
}

// patient lets a transaction be idle while a program of Postgres works.
func (s *Store) patient(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, s.cold["limits"], milliseconds(longest), "0", true)
	return err
}

func (s *Store) dump(ctx context.Context, tx pgx.Tx, w io.Writer) (dumped Dumped, err error) {
	dumped.Schema = s.schema
	var major int
	if err := tx.QueryRow(ctx, s.cold["server_major"]).Scan(&major); err != nil {
		return dumped, err
	}
	if err := checkTool(ctx, "pg_dump", major); err != nil {
		return dumped, err
	}
	var snapshot string
	if err := tx.QueryRow(ctx, s.cold["export_snapshot"]).Scan(&snapshot); err != nil {
		return dumped, err
	}
	if dumped.Rows, err = s.rowsByTable(ctx, tx, dumped.Schema); err != nil {
		return dumped, err
	}
	environ, err := s.toolEnviron()
	if err != nil {
		return dumped, err
	}
	run := tool(ctx, "pg_dump", "--format=custom", "--no-password", "--no-owner", "--no-privileges", "--schema="+quoted(dumped.Schema), "--snapshot="+snapshot)
	run.cmd.Env, run.cmd.Stdout = append(run.cmd.Env, environ...), w
	return dumped, run.wait()
}

func (s *Store) rowsByTable(ctx context.Context, tx pgx.Tx, schema string) (map[string]int64, error) {
	rows, err := tx.Query(ctx, s.cold["rows_by_table"], schema)
	if err != nil {
		return nil, err
	}
	var table string
	var count int64
	byTable := map[string]int64{}
	_, err = pgx.ForEachRow(rows, []any{&table, &count}, func() error {
		byTable[table] = count
		return nil
	})
	return byTable, err
}

// ReadDump reads a whole dump with pg_restore, without a database, and counts its rows. A dump that is damaged, or that has no tables of a store, is
// refused with code corruption.
func ReadDump(ctx context.Context, path string) (dumped Dumped, err error) {
	if dumped.Schema, err = schemaOf(ctx, path); err != nil {
		return dumped, err
	}
	dumped.Rows, err = readScript(ctx, path, func(string) error { return nil }, func(_ string, rows io.Reader) error {
		_, err := io.Copy(io.Discard, rows)
		return err
	})
	return dumped, err
}

// schemaOf returns the schema that has the tables of the store in a dump, from its list of contents.
func schemaOf(ctx context.Context, path string) (string, error) {
	if err := checkTool(ctx, "pg_restore", 0); err != nil {
		return "", err
	}
	var list bytes.Buffer
	run := tool(ctx, "pg_restore", "--list", path)
	run.cmd.Stdout = &list
	if err := run.wait(); err != nil {
		return "", base.Errorf(base.CodeCorruption, "%s cannot be read: %w", path, err)
	}
	for line := range strings.Lines(list.String()) {
		// 217; 1259 16385 TABLE flowfabric installation owner
		if fields := strings.Fields(line); len(fields) > 5 && fields[3] == "TABLE" && fields[5] == "installation" {
			return fields[4], nil
		}
	}
	return "", base.Errorf(base.CodeCorruption, "%s is not a backup of a FlowFabric store", path)
}

// process is a program of Postgres that runs.
type process struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
}

// tool prepares a program of Postgres. It gets the environment of this process without our own settings, which contain secrets,
// and without a service, which would say where to connect.
func tool(ctx context.Context, name string, args ...string) *process {
	p := &process{cmd: exec.CommandContext(ctx, name, args...)}
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(line string) bool { return strings.HasPrefix(line, "FF_") || strings.HasPrefix(line, "PGSERVICE=") })
	p.cmd.Env = append(p.cmd.Env, "LC_ALL=C")
	p.cmd.Stderr = &p.errs
	return p
}

// wait runs the program to its end.
func (p *process) wait() error { return p.ended(p.cmd.Run()) }

// ended returns why the program failed, in its own words.
func (p *process) ended(err error) error {
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(p.errs.String()); text != "" {
		err = errors.New(text)
	}
	return base.Errorf(base.CodeInternal, "%s failed: %w", filepath.Base(p.cmd.Args[0]), err).WithHint("its message says why")
}

// explained returns the error of a database that does not answer as a refusal with a code, for callers that open no store.
func explained(err error) error {
	var refusal *base.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	if store.FaultOf(err) == store.Unavailable {
		return base.Errorf(base.CodeStoreUnavailable, "the store does not answer: %w", err)
	}
	return base.Errorf(base.CodeInternal, "the database refuses: %w", err).WithHint("its message says why")
}

// checkTool refuses to run a program of Postgres that is missing, or older than the server.
func checkTool(ctx context.Context, name string, server int) error {
	var out bytes.Buffer
	run := tool(ctx, name, "--version")
	run.cmd.Stdout = &out
	hint := "install the client programs of Postgres"
	if server > 0 {
		hint += " " + strconv.Itoa(server) + " or newer"
	}
	if err := run.wait(); err != nil {
		return base.Errorf(base.CodeNotImplemented, "%s cannot be run: %w", name, err).WithHint("%s, and put them on the PATH", hint)
	}
	// pg_dump (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)
	_, rest, _ := strings.Cut(out.String(), ") ")
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	major, err := strconv.Atoi(rest[:max(digits, 0)])
	if err != nil {
		return base.Errorf(base.CodeNotImplemented, "%s has an unknown version: %s", name, strings.TrimSpace(out.String())).WithHint("%s", hint)
	}
	if major < server {
		return base.Errorf(base.CodeNotImplemented, "%s is of version %d, the server of version %d", name, major, server).WithHint("%s", hint)
	}
	return nil
}

// sslVariables are the environment variables for parameters of an address that pgx resolves and does not keep.
var sslVariables = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslsni": "PGSSLSNI",
	"channel_binding": "PGCHANNELBINDING", "krbsrvname": "PGKRBSRVNAME",
}

// toolEnviron returns where a program of Postgres is to connect. The password is passed here and not as an argument, which every user of the machine
// can read.
func (s *Store) toolEnviron() ([]string, error) {
	config, err := s.directConfig()
	if err != nil {
		return nil, err
	}
	environ := []string{
		"PGHOST=" + config.Host, "PGPORT=" + strconv.Itoa(int(config.Port)), "PGUSER=" + config.User, "PGDATABASE=" + config.Database,
		"PGAPPNAME=flowfabric backup", "PGCONNECT_TIMEOUT=" + strconv.Itoa(int(s.cfg.Timeout.Seconds())), "PGOPTIONS=",
	}
	if config.Password != "" {
		environ = append(environ, "PGPASSWORD="+config.Password)
	}
	for name, value := range parameters(s.directURL()) {
		if variable := sslVariables[name]; variable != "" {
			environ = append(environ, variable+"="+value)
		} else if name == "sslpassword" {
			return nil, base.Invalid("store", "pg_dump cannot be given the password of the client's private key").WithHint("use a key without a password for backups")
		}
	}
	return environ, nil
}
