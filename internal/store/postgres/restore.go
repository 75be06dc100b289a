package postgres

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Restore loads a dump into the database at url, in one transaction: after a failure nothing has changed. The rows of every table are counted before
// the commit. A database that has relations in the schema of the dump is refused, unless replace is set; then no other session may be connected,
// because a running engine would continue with what it remembers. The next process that opens the store finds a copy: it gives the
// installation and its log new names, so that positions of the old log are recognised as such.
func Restore(ctx context.Context, address string, cfg Config, path string, replace bool) (dumped Dumped, err error) {
	if dumped.Schema, err = schemaOf(ctx, path); err != nil {
		return dumped, err
	}
	err = onServer(ctx, address, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		return s.inOne(ctx, conn, func(tx pgx.Tx) error {
			if err := s.patient(ctx, tx); err != nil {
				return err
			}
			if err := s.lockSchema(ctx, tx); err != nil { // no process migrates meanwhile
				return err
			}
			if err := s.mayRestore(ctx, tx, dumped.Schema, replace); err != nil {
				return err
			}
			dumped.Rows, err = s.load(ctx, tx, path)
			if err != nil {
				return err
			}
			return s.loaded(ctx, tx, dumped)
		})
	})
	return dumped, explained(err)
}

// mayRestore refuses a database in which something would be lost.
func (s *Store) mayRestore(ctx context.Context, tx pgx.Tx, schema string, replace bool) error {
	var relations, sessions int
	if err := tx.QueryRow(ctx, s.cold["relations_of_schema"], schema).Scan(&relations); err != nil {
		return err
	}
	if relations > 0 && !replace {
		return base.Invalid("store", "the database already has tables in schema %s", schema).WithHint("restore into an empty database, or use `force` to replace the store")
	}
	if relations == 0 {
		return nil
	}
	if err := tx.QueryRow(ctx, s.cold["other_sessions"]).Scan(&sessions); err != nil {
		return err
	}
	if sessions > 0 {
		return base.Errorf(base.CodeStoreLocked, "other sessions are connected to the database: %d", sessions).
			WithHint("stop the servers, workers and programs that use the database, then repeat")
	}
	return nil
}

// load runs the script of a dump and returns the rows of its tables.
func (s *Store) load(ctx context.Context, tx pgx.Tx, path string) (map[string]int64, error) {
	server := tx.Conn().PgConn()
	return readScript(ctx, path, func(text string) error {
		_, err := server.Exec(ctx, text).ReadAll()
		return err
	}, func(statement string, rows io.Reader) error {
		_, err := server.CopyFrom(ctx, rows, statement)
		return err
	})
}

// loaded checks what was loaded, and marks it as a copy.
func (s *Store) loaded(ctx context.Context, tx pgx.Tx, dumped Dumped) error {
	if err := s.loadTexts(dumped.Schema); err != nil { // it may not be the configured one
		return err
	}
	s.found = true
	found, err := s.rowsByTable(ctx, tx, dumped.Schema)
	if err != nil {
		return err
	}
	if !maps.Equal(found, dumped.Rows) {
		return base.Errorf(base.CodeCorruption, "the restored tables have other numbers of rows than the backup")
	}
	schema, _, err := s.standing(ctx, tx)
	if err != nil {
		return err
	}
	if err := schema.Newer(); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, s.cold["mark_copy"])
	return err
}

// readScript has pg_restore turn a dump into a script, and passes on its statements and the rows between them. It returns the rows by table.
func readScript(ctx context.Context, path string, statements func(text string) error, rows func(statement string, rows io.Reader) error) (map[string]int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the program after an error
	run := tool(ctx, "pg_restore", "--file=-", "--clean", "--if-exists", "--no-owner", "--no-privileges", path)
	out, err := run.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run.cmd.Start(); err != nil {
		return nil, err
	}
	script := &script{in: bufio.NewReaderSize(out, 1<<20), rows: map[string]int64{}}
	if err := script.run(statements, rows); err != nil && !script.cut {
		cancel()
		_ = run.cmd.Wait() // it was ended on purpose
		return nil, err
	}
	if err := run.ended(run.cmd.Wait()); err != nil {
		return nil, base.Errorf(base.CodeCorruption, "%s cannot be read: %w", path, err)
	}
	if script.cut {
		return nil, base.Errorf(base.CodeCorruption, "%s ends among the rows of a table", path)
	}
	return script.rows, nil
}

// script is the text that pg_restore makes of a dump: statements, and rows after each COPY.
type script struct {
	in   *bufio.Reader
	text strings.Builder
	rows map[string]int64
	cut  bool // it ended among rows
}

func (s *script) run(statements func(string) error, rows func(string, io.Reader) error) error {
	for {
		line, err := s.in.ReadString('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case skipped(line):
		case strings.HasPrefix(line, "COPY ") && strings.HasSuffix(line, " FROM stdin;\n"):
			if err := s.flush(statements); err != nil {
				return err
			}
			if err := s.copy(strings.TrimSuffix(line, ";\n"), rows); err != nil {
				return err
			}
		default:
			s.text.WriteString(line)
		}
		if err != nil {
			return s.flush(statements)
		}
	}
}

// skipped reports whether a line is left out: commands of psql, which guard the script against psql itself; a setting that older servers do not
// know; and the removal of constraints and indexes, which fails for those of partitions. They go with their tables.
func skipped(line string) bool {
	return strings.HasPrefix(line, `\`) || strings.HasPrefix(line, "SET transaction_timeout") || strings.HasPrefix(line, "DROP INDEX") ||
		strings.HasPrefix(line, "ALTER TABLE") && strings.Contains(line, " DROP CONSTRAINT IF EXISTS ")
}

// flush passes on the statements read so far.
func (s *script) flush(statements func(string) error) error {
	text := s.text.String()
	s.text.Reset()
	return statements(text)
}

// copy passes on the rows of a table.
func (s *script) copy(statement string, rows func(string, io.Reader) error) error {
	table, _, _ := strings.Cut(strings.TrimPrefix(statement, "COPY "), " (")
	from := &copyRows{in: s.in}
	if err := rows(statement, from); err != nil {
		s.cut = from.cut
		return err
	}
	s.rows[table] = from.count
	return nil
}

// copyRows reads rows up to the line that ends them.
type copyRows struct {
	in    *bufio.Reader
	line  []byte // what is left of the current line
	count int64
	ended bool
	cut   bool // the script ended among the rows
}

// Read returns the rows as they are written.
func (c *copyRows) Read(p []byte) (int, error) {
	if len(c.line) == 0 {
		if c.ended {
			return 0, io.EOF
		}
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			c.cut = true
			return 0, io.ErrUnexpectedEOF
		}
		if string(line) == "\\.\n" {
			c.ended = true
			return 0, io.EOF
		}
		c.line = line
		c.count++
	}
	n := copy(p, c.line)
	c.line = c.line[n:]
	return n, nil
}

// parameters returns those of the address of a database.
func parameters(address string) map[string]string {
	all := map[string]string{}
	if parsed, err := url.Parse(address); err == nil {
		for name, values := range parsed.Query() {
			all[name] = values[0]
		}
	}
	return all
}

// directURL is the address that reaches the database without a pooler.
func (s *Store) directURL() string {
	if s.cfg.DirectURL != "" {
		return s.cfg.DirectURL
	}
	return s.url
}
