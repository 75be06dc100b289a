// Package pgtest gives tests a real Postgres of their own: a private server in a private directory on a private socket, and
// in it a database for each test, copied from a template that the caller has filled. It needs no Docker and touches no
// server that was there before. It knows nothing of FlowFabric's tables.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Variable names the environment variable through which one server serves all test binaries of a run: the directory of its
// socket. When it is absent every test binary starts a server of its own.
const Variable = "FLOWFABRIC_TEST_POSTGRES"

// NotifyVariable names the environment variable that, set to "off", has every notification of a test's database lost. Whatever passes
// then does not depend on hints between processes.
const NotifyVariable = "FLOWFABRIC_TEST_NOTIFY"

// The roles of a server. Tests connect as an ordinary role that owns its databases and nothing else.
const (
	adminRole    = "postgres"
	ordinaryRole = "flowfabric"
)

// What a test waits for here at the most: in general, and for a statement about a database.
const (
	patience      = time.Minute
	adminPatience = 3 * time.Minute
)

// Cluster hands out databases. The server starts with the first one asked for.
type Cluster struct {
	fill func(ctx context.Context, url string) error

	start    sync.Once
	err      error
	server   *Server // nil when the server is not ours
	socket   string
	template string
	copying  string // how a template is copied, as a clause
	count    atomic.Int64

	mu   sync.Mutex // one statement at a time
	conn *pgx.Conn  // of the superuser, kept: to connect costs more than to copy
}

// New makes a cluster whose databases are copies of one that fill has filled. fill must leave no connection open. Nil: they
// are empty.
func New(fill func(ctx context.Context, url string) error) *Cluster { return &Cluster{fill: fill} }

// Around wraps the tests of a package, so that the server ends with them: goleak.VerifyTestMain(cluster.Around(m)).
func (c *Cluster) Around(m Tests) Tests { return around{c, m} }

// Tests are those of a package: a *testing.M, or one with something around it.
type Tests interface{ Run() int }

type around struct {
	cluster *Cluster
	tests   Tests
}

// Run runs the tests and then stops the server.
func (a around) Run() int {
	defer a.cluster.stop()
	return a.tests.Run()
}

// stop ends a server of our own, and leaves nothing on one that others use too.
func (c *Cluster) stop() {
	if c.server == nil && c.template != "" {
		_ = c.admin("drop database if exists " + c.template)
	}
	if c.conn != nil {
		_ = c.conn.Close(context.Background())
	}
	if c.server != nil {
		c.server.Stop()
	}
}

// Database makes a database for one test and returns its address. It is dropped when the test ends.
func (c *Cluster) Database(tb testing.TB) string {
	tb.Helper()
	c.ready(tb)
	return c.create(tb, c.template)
}

// Empty is Database without what fill put in.
func (c *Cluster) Empty(tb testing.TB) string {
	tb.Helper()
	c.ready(tb)
	return c.create(tb, "template0")
}

// Socket is the directory of the server's socket.
func (c *Cluster) Socket(tb testing.TB) string {
	tb.Helper()
	c.ready(tb)
	return c.socket
}

func (c *Cluster) ready(tb testing.TB) {
	tb.Helper()
	c.start.Do(func() { c.err = c.prepare() })
	if c.err != nil {
		tb.Fatalf("pgtest: %v", c.err)
	}
}

func (c *Cluster) create(tb testing.TB, template string) string {
	tb.Helper()
	url, drop := c.copyOf(tb, template)
	tb.Cleanup(func() {
		if err := drop(); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	return url
}

// Lasting is Database for several tests, one after the other: it lasts until drop is called.
func (c *Cluster) Lasting(tb testing.TB) (url string, drop func() error) {
	tb.Helper()
	c.ready(tb)
	return c.copyOf(tb, c.template)
}

func (c *Cluster) copyOf(tb testing.TB, template string) (url string, drop func() error) {
	tb.Helper()
	name := fmt.Sprintf("%s_%d", c.template, c.count.Add(1))
	if err := c.admin("create database " + name + " template " + template + " owner " + ordinaryRole + c.copying); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return URL(c.socket, ordinaryRole, name), func() error { return c.admin("drop database " + name + " with (force)") }
}

// AdminURL is the address of the same database for a superuser.
func (c *Cluster) AdminURL(tb testing.TB, url string) string {
	tb.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return URL(c.socket, adminRole, config.Database)
}

// prepare finds or starts the server and fills the template.
func (c *Cluster) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.socket = os.Getenv(Variable)
	if c.socket == "" {
		server, err := Start(ctx, nil)
		if err != nil {
			return err
		}
		c.server, c.socket = server, server.Socket()
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	c.template = fmt.Sprintf("t%d", os.Getpid())
	if err := c.admin("create database " + c.template + " owner " + ordinaryRole); err != nil {
		return err
	}
	if os.Getenv(NotifyVariable) == "off" {
		if err := c.mute(ctx); err != nil {
			return err
		}
	}
	if c.fill == nil {
		return nil
	}
	return c.fill(ctx, URL(c.socket, ordinaryRole, c.template))
}

// mute puts a function that does nothing in the place of pg_notify, in the template and so in all its copies. The old one is renamed: what
// a function with its number does is not looked up.
func (c *Cluster) mute(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, URL(c.socket, adminRole, c.template))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `set allow_system_table_mods = on;
		alter function pg_catalog.pg_notify(text, text) rename to pg_notify_aloud;
		create function pg_catalog.pg_notify(text, text) returns void language sql as ''`)
	return err
}

// connect makes the connection of the superuser. Since version 15 a database is copied page by page through the log, unless one asks for
// the files to be copied as before: a fifth of the work where syncing them costs nothing.
func (c *Cluster) connect(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, URL(c.socket, adminRole, "postgres"))
	if err != nil {
		return err
	}
	c.conn = conn
	var choice bool
	if err := conn.QueryRow(ctx, "select current_setting('server_version_num')::int >= 150000").Scan(&choice); err != nil {
		return err
	}
	if choice && memory() != "" {
		c.copying = " strategy file_copy"
	}
	return nil
}

// admin runs one statement as superuser. To drop a database waits until every process of the server has heard of it, and to copy one for a
// checkpoint: where many tests work at once that may take long. What it takes too long for is reported with what the server was doing.
func (c *Cluster) admin(sql string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), adminPatience)
	defer cancel()
	if c.conn.IsClosed() {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	_, err := c.conn.Exec(ctx, sql)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w while %s", sql, err, c.doings())
	}
	return err
}

// doings is what the server is doing.
func (c *Cluster) doings() (list string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, URL(c.socket, adminRole, "postgres"))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, `select string_agg(format('%s %s %s %s/%s %s: %s', pid, backend_type, datname, wait_event_type, wait_event, state, left(query, 80)), E'\n')
		from pg_stat_activity where state is distinct from 'idle' or wait_event is distinct from 'ClientRead'`).Scan(&list)
	if err != nil {
		return err.Error()
	}
	return list
}

// URL is the address of a database on the server with that socket directory.
func URL(socket, role, database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s", role, database, socket)
}

func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}
