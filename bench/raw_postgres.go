package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// RawPostgres measures the database at url without any engine. Tables live in a schema of their own, which is dropped.
// The sample fails if the server is not durable (fsync, synchronous_commit, full_page_writes).
func RawPostgres(ctx context.Context, url string, cfg RawConfig) (*Sample, error) {
	cfg = cfg.filled()
	sample, err := measureRaw(ctx, cfg, func(ctx context.Context) (*rawTable, error) { return openPostgres(ctx, url, cfg) })
	if err != nil {
		return nil, err
	}
	sample.Settings, err = measure.StoreSettings(ctx, url)
	for name, value := range sample.Settings {
		if value == "off" {
			sample.Fail("%s is off: figures without durability do not count", name)
		}
	}
	return sample, err
}

func rawPostgres(ctx context.Context, env Env) (*Sample, error) {
	return RawPostgres(ctx, env.Postgres, RawConfig{Rows: env.Size(60_000)})
}

type postgresConn struct {
	conn                                       *pgx.Conn
	insertSQL, claimSQL, completeSQL, countSQL string
	body                                       []byte
	order                                      int64 // of the next row inserted here
	floor                                      int64 // lowest order key looked at: spares the claim the entries of rows that are done
	claims                                     int
}

// openPostgres makes a schema with an empty table.
func openPostgres(ctx context.Context, url string, cfg RawConfig) (_ *rawTable, err error) {
	schema := fmt.Sprintf("ffbench_%d", time.Now().UnixNano())
	table := &rawTable{}
	table.close = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for i, c := range table.conns {
			conn := c.(*postgresConn).conn
			if i == 0 {
				_, _ = conn.Exec(ctx, "drop schema if exists "+schema+" cascade")
			}
			_ = conn.Close(ctx)
		}
	}
	defer func() {
		if err != nil {
			table.close()
		}
	}()
	for i := range cfg.Connections {
		conn, err := connectPostgres(ctx, url, schema, cfg.Body)
		if err != nil {
			return nil, err
		}
		table.conns = append(table.conns, conn)
		if i == 0 {
			if err := conn.prepareSchema(ctx, schema); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

func connectPostgres(ctx context.Context, url, schema string, body int) (*postgresConn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = schema
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.RuntimeParams["enable_seqscan"] = "off" // the table has no statistics yet
	c := &postgresConn{body: bytes.Repeat([]byte{'x'}, body)}
	for name, target := range map[string]*string{
		"postgres_insert": &c.insertSQL, "postgres_claim": &c.claimSQL, "postgres_complete": &c.completeSQL, "postgres_count": &c.countSQL,
	} {
		if *target, err = text(name); err != nil {
			return nil, err
		}
	}
	c.conn, err = pgx.ConnectConfig(ctx, config)
	return c, err
}

func (c *postgresConn) prepareSchema(ctx context.Context, schema string) error {
	tables, err := text("postgres_schema")
	if err != nil {
		return err
	}
	_, err = c.conn.Exec(ctx, "create schema "+schema)
	if err == nil {
		_, err = c.conn.Exec(ctx, tables)
	}
	return err
}

func (c *postgresConn) insert(ctx context.Context, n int) error {
	ids, orders := make([]rowID, n), make([]int64, n)
	for i := range ids {
		c.order++
		ids[i], orders[i] = newRowID(), c.order
	}
	_, err := c.conn.Exec(ctx, c.insertSQL, time.Now().UnixMilli(), c.body, ids, orders)
	return err
}

// claim raises the floor to the first row it got, and looks at everything now and then and whenever it got less than it wanted: a
// row with a lower key may be committed later than one with a higher.
func (c *postgresConn) claim(ctx context.Context, n int) (rawClaim, error) {
	c.claims++
	if c.claims%50 == 0 {
		c.floor = 0
	}
	claim := rawClaim{lease: newRowID()}
	rows, err := c.conn.Query(ctx, c.claimSQL, c.floor, n, claim.lease, time.Now().Add(leaseTTL).UnixMilli())
	if err != nil {
		return claim, err
	}
	var id rowID
	var order int64
	lowest := int64(math.MaxInt64)
	_, err = pgx.ForEachRow(rows, []any{&id, &order}, func() error {
		claim.ids, lowest = append(claim.ids, id), min(lowest, order)
		return nil
	})
	c.floor = lowest
	if len(claim.ids) < n {
		c.floor = 0
	}
	return claim, err
}

func (c *postgresConn) complete(ctx context.Context, claim rawClaim) error {
	tag, err := c.conn.Exec(ctx, c.completeSQL, time.Now().UnixMilli(), claim.ids, claim.lease)
	if err == nil && tag.RowsAffected() != int64(len(claim.ids)) {
		err = errors.New("a claimed row was not there to complete")
	}
	return err
}

func (c *postgresConn) count(ctx context.Context) (completed, all int, err error) {
	err = c.conn.QueryRow(ctx, c.countSQL).Scan(&completed, &all)
	return completed, all, err
}
