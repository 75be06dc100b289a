// Package postgres keeps executions in Postgres 14 or newer: it implements the contract of package store with pgx, with SQL in .sql files. It works
// behind a pooler in transaction mode, needs neither superuser nor extensions, and relies only on row locks. It moves rows without interpreting
// them: nothing here makes a decision about an execution.
package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqltext"
)

//go:embed statements/*.sql cold/*.sql migrations/*.sql
var files embed.FS

// oldestServer is the first version of Postgres with every feature that is used here.
const oldestServer = 140000

// Store is an open database.
type Store struct {
	cfg  Config
	name string // of this handle, among all that send hints
	// impatient is Config.LockWait in the server's syntax.
	impatient string
	url       string
	pool      *pgxpool.Pool
	closed    atomic.Bool               // the pool may be another store's
	info      store.Info                // except the identity of the log, and the schema level
	level     atomic.Int64              // of the schema
	logID     atomic.Pointer[base.UUID] // as last read
	memory    atomic.Pointer[memory]
	service   string            // that stores commits below the server; "": none
	schema    string            // of the database, that has the tables
	olderIn   string            // where a program from before schemas could be chosen finds its tables; "": nowhere
	found     bool              // there is a store
	unsettled bool              // the store was made by such a program and is where it was
	entered   bool              // the store lists this program
	beaten    atomic.Int64      // when that was last renewed, by the host's clock
	outdated  atomic.Bool       // the store has a schema that this program must not use
	ages      string            // the expression that names an incarnation
	texts     map[string]string // statements of trips, by name
	cold      map[string]string // statements that run individually
	keeps     map[string]bool   // which of them a connection prepares and keeps
	policies  store.Policies
	meter     *metrics.Statements
	notes     *quiet.Log // log of lasting trouble
	// partitions is held while partitions of the log are created.
	partitions sync.Mutex
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.TxSubmitter = (*Store)(nil)
	_ store.Sizer       = (*Store)(nil)
)

// Open connects to the database at url, or to that of Config.Pool, and migrates its schema as cfg states. It refuses, with code invalid_argument, servers that are too old or
// may lose commits, schemas newer than this program, and roles without the rights that a store needs. A server that does not answer is the fault
// Unavailable.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	if err := cfg.normalize(); err != nil {
		return nil, err
	}
	if cfg.Kept == nil {
		cfg.Kept, _ = ctx.Value(keptKey{}).(*Kept)
	}
	s := newStore(url, cfg)
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.loadTexts(cfg.Schema); err != nil {
		return nil, err
	}
	if err := s.lookForPooler(ctx); err != nil {
		return nil, fault(unfit(err))
	}
	err := s.firstApart(ctx, func(conn *pgx.Conn) error {
		if err := s.inspect(ctx, conn); err != nil {
			return err
		}
		return s.settle(ctx, conn)
	})
	if err != nil {
		return nil, fault(unfit(err))
	}
	s.measure()
	if err := s.connect(ctx); err != nil {
		s.leaveProgram()
		return nil, fault(err)
	}
	if _, err := s.Now(ctx); err != nil {
		_ = s.Close()
		return nil, fault(unfit(err))
	}
	return s, nil
}

// lookForPooler detects a pooler if the configuration does not state one: a pooler reports a process id of its own to its clients. Behind a pooler
// the next transaction may run in another session, which does not know the statements prepared in this one; so the detection itself prepares
// nothing.
func (s *Store) lookForPooler(ctx context.Context) error {
	if s.cfg.pooled() {
		return nil
	}
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	defer s.leave(ctx, conn)
	var backend uint32
	if err := conn.QueryRow(ctx, s.cold["backend"], pgx.QueryExecModeExec).Scan(&backend); err != nil {
		return err
	}
	if s.cfg.Pooled = backend != conn.PgConn().PID(); s.cfg.Pooled {
		s.cfg.Logger.Warn("the store is behind a pooler and store-direct-url is not set: processes learn of each other's work by the poll alone")
	}
	return nil
}

func newStore(url string, cfg Config) *Store {
	return &Store{cfg: cfg, name: rand.Text(), url: url, impatient: milliseconds(cfg.LockWait), notes: quiet.New(cfg.Logger, cfg.Clock)}
}

// loadTexts reads the statements, for tables in that schema. Those of a search are planned for each query and not prepared.
func (s *Store) loadTexts(schema string) error {
	texts, err := sqltext.Load(files, "statements/*.sql")
	if err != nil {
		return err
	}
	if s.cold, err = sqltext.Load(files, "cold/*.sql"); err != nil {
		return err
	}
	s.schema = schema
	replacer := s.replacer()
	for _, list := range []map[string]string{texts, s.cold} {
		for name, text := range list {
			list[name] = replacer.Replace(text)
		}
	}
	s.keeps = make(map[string]bool, len(texts))
	filter := texts["filter"]
	delete(texts, "filter")
	for name, text := range texts {
		if strings.Contains(text, "{filter}") {
			texts[name] = strings.ReplaceAll(text, "{filter}", filter)
			continue
		}
		s.keeps[name] = true
	}
	if s.texts = texts; s.ages != "" {
		delete(s.cold, "incarnation")
		delete(s.cold, "incarnation_without_timeline")
	}
	return nil
}

// replacer inserts what is known of the database into the text of a statement: the schema of the tables, quoted, and the expression that names an
// incarnation.
func (s *Store) replacer() *strings.Replacer {
	known := []string{"{schema}", quoted(s.schema)}
	if s.ages != "" {
		known = append(known, "{incarnation}", s.ages)
	}
	return strings.NewReplacer(known...)
}

func quoted(schema string) string { return pgx.Identifier{schema}.Sanitize() }

// inspect checks the server and migrates.
func (s *Store) inspect(ctx context.Context, conn *pgx.Conn) (err error) {
	if err := s.checkServer(ctx, conn); err != nil {
		return err
	}
	if err := s.warnOfStandbys(ctx, conn); err != nil {
		return err
	}
	if err := s.nameIncarnations(ctx, conn); err != nil {
		return err
	}
	level, err := s.migrate(ctx, conn)
	if err != nil {
		return err
	}
	s.level.Store(int64(level))
	if err := s.enter(ctx, conn); err != nil {
		return err
	}
	return s.checkRights(ctx, conn)
}

// apart runs do on a connection of its own, without the short timeouts and the plan settings of the connections for trips.
func (s *Store) apart(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	defer s.leave(ctx, conn)
	if err := s.limit(ctx, conn); err != nil {
		return err
	}
	return do(conn)
}

// firstApart is apart for the first session of a store: it also finds out where a program from before schemas could be chosen has its tables, by
// the search path that the address sets. Sessions do not depend on it from then on.
//
// do is run again if the server has ended the session because this process, or its machine, stood still in a transaction.
func (s *Store) firstApart(ctx context.Context, do func(conn *pgx.Conn) error) (err error) {
	for range firstTries {
		if err = s.oneApart(ctx, do); !isCode(err, idleCode) {
			break
		}
	}
	return err
}

// firstTries is how often the first session of a store is tried.
const firstTries = 5

func (s *Store) oneApart(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	defer s.leave(ctx, conn)
	if err := conn.QueryRow(ctx, s.cold["older_place"]).Scan(&s.olderIn); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := s.limit(ctx, conn); err != nil {
		return err
	}
	return do(conn)
}

// session returns a connection that is used exclusively until leave.
func (s *Store) session(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.directConfig()
	if err != nil {
		return nil, err
	}
	if conn := s.cfg.Kept.conn(); conn != nil {
		return conn, nil
	}
	if s.cfg.Pool == nil || s.cfg.DirectURL != "" {
		return pgx.ConnectConfig(ctx, config)
	}
	return connectAs(ctx, s.cfg.Pool.Config(), config)
}

// connectAs makes a connection as a pool makes its own, with its hooks.
func connectAs(ctx context.Context, pool *pgxpool.Config, config *pgx.ConnConfig) (*pgx.Conn, error) {
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil || pool.AfterConnect == nil {
		return conn, err
	}
	if err := pool.AfterConnect(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// leave closes a session or keeps it. A session through a pooler does not belong to one server session and is not kept.
func (s *Store) leave(ctx context.Context, conn *pgx.Conn) {
	if s.cfg.pooled() && s.cfg.DirectURL == "" || !s.cfg.Kept.keepConn(conn) {
		if pool := s.cfg.Pool; pool != nil && s.cfg.DirectURL == "" && pool.Config().BeforeClose != nil {
			pool.Config().BeforeClose(conn)
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// longest bounds a statement on a separate connection: a migration step, or a scan of all rows.
const longest = 24 * time.Hour

// limit sets limits on an exclusive session. Through a pooler the session may change with the next transaction, so none are set.
func (s *Store) limit(ctx context.Context, conn *pgx.Conn) error {
	if s.cfg.pooled() && s.cfg.DirectURL == "" {
		return nil
	}
	_, err := conn.Exec(ctx, s.cold["limits"], milliseconds(longest), milliseconds(s.cfg.IdleLimit), false)
	return err
}

// inOne runs do in one transaction, outside of trips.
func (s *Store) inOne(ctx context.Context, conn *pgx.Conn, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.cold["limits"], milliseconds(longest), milliseconds(s.cfg.IdleLimit), true); err != nil {
			return err
		}
		return do(tx)
	})
}

// directConfig is the configuration of exclusive connections.
func (s *Store) directConfig() (*pgx.ConnConfig, error) {
	url := s.cfg.DirectURL
	if url == "" {
		url = s.url
	}
	var config *pgx.ConnConfig
	var err error
	if s.cfg.Pool != nil && s.cfg.DirectURL == "" {
		config = s.cfg.Pool.Config().ConnConfig
	} else {
		config, err = pgx.ParseConfig(url)
	}
	if err != nil {
		return nil, base.Invalid("store", "the address of the database cannot be read").WithHint("write postgres://user@host/database")
	}
	if s.cfg.pooled() && s.cfg.DirectURL == "" {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return config, nil
}

// checkServer refuses a server that cannot keep the store's guarantees.
func (s *Store) checkServer(ctx context.Context, conn *pgx.Conn) error {
	var version, most int
	var fsync, pages, commit string
	if err := conn.QueryRow(ctx, s.cold["server"]).Scan(&version, &s.info.Version, &fsync, &pages, &commit, &most); err != nil {
		return err
	}
	if version < oldestServer {
		return base.Invalid("store", "Postgres %s is too old", s.info.Version).With(store.CheckDetail, "version").WithHint("use Postgres 14 or newer")
	}
	service, err := s.serviceOf(ctx, conn)
	if err != nil {
		return err
	}
	s.service = service
	if off := risks(service, fsync, pages, commit); len(off) > 0 && !s.cfg.UnsafeDurability {
		return base.Invalid("store", "%s: this server may lose commits that were acknowledged", strings.Join(off, ", ")).
			With(store.CheckDetail, "durability").WithHint("switch it on, or say that you accept the loss")
	}
	if s.cfg.PoolSize > most/2 {
		s.cfg.Logger.Warn("the pool takes more than half of the connections that the server allows", "store_pool", s.cfg.PoolSize, "max_connections", most)
	}
	return nil
}

// trusted is how long a connection may have been idle and still be used without a liveness check. The poll of an idle process uses its connection
// every second and would check it each time (S71).
const trusted = 10 * time.Second

func (s *Store) connect(ctx context.Context) error {
	if s.cfg.Pool != nil {
		s.pool = s.cfg.Pool
		return s.checkSessions(ctx)
	}
	if s.pool = s.cfg.Kept.pool(&s.cfg); s.pool != nil {
		return nil
	}
	config, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return base.Invalid("store", "the address of the database cannot be read").WithHint("write postgres://user@host/database")
	}
	config.MaxConns = int32(s.cfg.PoolSize)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.StatementCacheCapacity, config.ConnConfig.DescriptionCacheCapacity = 0, 0
	config.AfterConnect = s.setUp
	config.ShouldPing = func(_ context.Context, c pgxpool.ShouldPingParams) bool { return c.IdleDuration > trusted }
	if s.cfg.Kept != nil {
		config.ConnConfig.BuildContextWatcherHandler = finishing
	}
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

// checkSessions refuses a pool of the user's whose sessions begin transactions in a way that the store's must not have: statements that are sent
// together without begin are such a transaction.
func (s *Store) checkSessions(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var isolation, readOnly string
	if err := conn.QueryRow(ctx, s.cold["session_defaults"], pgx.QueryExecModeExec).Scan(&isolation, &readOnly); err != nil {
		return err
	}
	if isolation != "read committed" || readOnly != "off" {
		return base.Invalid("pool", "the sessions of the pool have default_transaction_isolation %s and default_transaction_read_only %s", isolation, readOnly).
			WithHint("leave both at read committed and off, and choose another isolation in your own transactions")
	}
	return nil
}

// settle reads what does not change while the store is open, and creates log partitions.
func (s *Store) settle(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, s.cold["name_copy"]); err != nil {
		return err
	}
	var id, logID [16]byte
	var position, floor int64
	m := &memory{}
	if err := conn.QueryRow(ctx, s.cold["standing"]).Scan(&id, &logID, &floor, &position, &m.incarnation); err != nil {
		return err
	}
	s.info.Kind, s.info.Shared, s.info.Pool = "postgres", true, s.cfg.PoolSize
	s.info.Installation, s.info.Tables = id, s.schema
	s.logID.Store((*base.UUID)(&logID))
	m.log.known(max(floor, position))
	s.memory.Store(m)
	return s.makeRoom(ctx, conn)
}

// Info describes this store.
func (s *Store) Info() store.Info {
	info := s.info
	info.LogID, info.Schema = *s.logID.Load(), int(s.level.Load())
	return info
}

// Close closes the connections. Open transactions must be ended before.
func (s *Store) Close() error {
	if s.closed.Load() {
		return nil
	}
	s.leaveProgram()
	if !s.closed.Swap(true) && s.cfg.Pool == nil && !s.cfg.Kept.keepPool(&s.cfg, s.pool) {
		s.pool.Close()
	}
	return nil
}

var errClosed = errors.New("no connection: the store is closed")

// acquire takes a connection of the pool.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if s.outdated.Load() {
		return nil, &store.Fault{Kind: store.Unavailable, Err: errOutdated()}
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, &store.Fault{Kind: store.Unavailable, Err: fmt.Errorf("no connection: %w", err)}
	}
	if s.closed.Load() { // Close does not keep a pool with a connection in use; either Close sees this connection or acquire sees closed
		conn.Release()
		return nil, &store.Fault{Kind: store.Unavailable, Err: errClosed}
	}
	return conn, nil
}

// alone runs statements in one trip and one transaction of their own. It needs neither begin nor commit: statements that are sent together are a
// transaction.
func (s *Store) alone(ctx context.Context, add func(t *trip)) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := s.trip(conn)
	t.settings(s.impatient)
	add(t)
	return t.run(ctx)
}
