package migrated

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// What ends the use of a database: rows that were deleted stay in its files and in the server's statistics. To make a database, to warm its
// sessions and to drop it costs as much as twenty tests of little work.
const (
	mostTests = 200
	mostRows  = 5000
)

// patience bounds what is done between two tests.
const patience = 3 * time.Minute

// Database is one that several tests use, one after the other.
type Database struct {
	URL string

	kept    postgres.Kept
	drop    func() error
	conn    *pgx.Conn // of its own, beside those of the tests
	schema  string    // fingerprint of the schema
	renewal string    // statements that make it as new
	tests   int       // so far
	rows    int64     // that they left behind
}

// Open opens a store on the database, on connections of earlier ones where there are any.
func (d *Database) Open(ctx context.Context, cfg postgres.Config) (*postgres.Store, error) {
	return d.OpenAt(ctx, d.URL, cfg)
}

// idleLimit is how long a session of a test may be idle in a transaction, unless the test says otherwise.
const idleLimit = 10 * time.Minute

// OpenAt is Open at another address of the database, through a pooler; cfg has the address without it.
func (d *Database) OpenAt(ctx context.Context, url string, cfg postgres.Config) (*postgres.Store, error) {
	cfg.Kept = &d.kept
	if cfg.IdleLimit == 0 { // a machine that stands still for seconds must not end the sessions of a test
		cfg.IdleLimit = idleLimit
	}
	return postgres.Open(ctx, url, cfg)
}

// schemaSQL changes with every change of the schema: each gives a row of a catalogue another xmin. Settings of the database are part of it.
const schemaSQL = `select string_agg(part || ':' || n || ':' || x, ' ' order by part) from (
	select 'class' part, count(*) n, sum(xmin::text::bigint) x from pg_class where oid >= 16384
	union all select 'attribute', count(*), sum(xmin::text::bigint) from pg_attribute where attrelid >= 16384
	union all select 'index', count(*), sum(xmin::text::bigint) from pg_index where indrelid >= 16384
	union all select 'inherits', count(*), sum(xmin::text::bigint) from pg_inherits
	union all select 'constraint', count(*), sum(xmin::text::bigint) from pg_constraint where oid >= 16384
	union all select 'default', count(*), sum(xmin::text::bigint) from pg_attrdef
	union all select 'trigger', count(*), sum(xmin::text::bigint) from pg_trigger
	union all select 'rule', count(*), sum(xmin::text::bigint) from pg_rewrite where oid >= 16384
	union all select 'type', count(*), sum(xmin::text::bigint) from pg_type where oid >= 16384
	union all select 'function', count(*), sum(xmin::text::bigint) from pg_proc where oid >= 16384
	union all select 'sequence', count(*), sum(xmin::text::bigint) from pg_sequence
	union all select 'namespace', count(*), sum(xmin::text::bigint) from pg_namespace
	union all select 'setting', count(*), coalesce(sum(xmin::text::bigint), 0) from pg_db_role_setting s
		where setdatabase = (select oid from pg_database where datname = current_database())
	union all select 'database', count(*), sum(xmin::text::bigint) from pg_database where datname = current_database()) parts`

// stateSQL lists the tables, and the statements that set every sequence to where it is.
const stateSQL = `select
	array(select oid::regclass::text from pg_class where relnamespace = '` + postgres.DefaultSchema + `'::regnamespace and relkind = 'r' order by 1),
	array(select format('select setval(%L, %s, %L)', sequencename, coalesce(last_value, start_value), last_value is not null)
		from pg_sequences where schemaname = '` + postgres.DefaultSchema + `' order by 1)`

// renewal writes the statements that bring the rows of every table and every sequence back to what they are now.
func renewal(ctx context.Context, conn *pgx.Conn) (string, error) {
	var tables, statements []string
	if err := conn.QueryRow(ctx, stateSQL).Scan(&tables, &statements); err != nil {
		return "", err
	}
	for _, table := range tables {
		statements = append(statements, "delete from "+table)
		var insert *string
		err := conn.QueryRow(ctx, "select format('insert into %s overriding system value select * from jsonb_populate_recordset(null::%1$s, %L)', $1::text, jsonb_agg(to_jsonb(t))) from "+
			table+" t having count(*) > 0", table).Scan(&insert)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return "", err
		default:
			statements = append(statements, *insert)
		}
	}
	return strings.Join(statements, ";\n"), nil
}

// begin connects to a database that is new and takes note of its schema.
func (d *Database) begin(ctx context.Context) (err error) {
	if d.conn, err = pgx.Connect(ctx, d.URL); err != nil {
		return err
	}
	return d.conn.QueryRow(ctx, schemaSQL).Scan(&d.schema)
}

// renew makes the database as new, and reports whether another test may have it.
func (d *Database) renew(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.tests++; d.tests == mostTests {
		return false, nil
	}
	if same, err := d.same(ctx); err != nil || !same {
		return false, err
	}
	results, err := d.conn.PgConn().Exec(ctx, d.renewal).ReadAll()
	for _, result := range results {
		if result.CommandTag.Delete() {
			d.rows += result.CommandTag.RowsAffected()
		}
	}
	return d.rows < mostRows, err
}

// same reports whether the test has left nothing but rows behind: no session beside the kept ones, no change of the schema.
func (d *Database) same(ctx context.Context) (bool, error) {
	if alone, err := d.alone(ctx); err != nil || !alone {
		return false, err
	}
	var schema string
	err := d.conn.QueryRow(ctx, schemaSQL).Scan(&schema)
	return schema == d.schema, err
}

// aloneSQL counts the sessions but for those that a pooler keeps and does not use.
const aloneSQL = `select count(*)::int from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
	and not (application_name = '` + pgtest.PoolerName + `' and state = 'idle')`

// alone reports whether no session is left beside the kept ones. One that was closed ends a moment later.
func (d *Database) alone(ctx context.Context) (bool, error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		var sessions int
		err := d.conn.QueryRow(ctx, aloneSQL).Scan(&sessions)
		if err != nil || sessions == 1+d.kept.Len() {
			return err == nil, err
		}
		<-tick.C
	}
	return false, nil
}

// end drops the database.
func (d *Database) end() error {
	d.kept.Close()
	if d.conn != nil {
		_ = d.conn.Close(context.Background())
	}
	return d.drop()
}
