// Package migrated gives tests databases of a private Postgres that have FlowFabric's tables already. It starts nothing itself and
// knows no rule.
package migrated

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// Cluster is a cluster whose databases have the newest schema.
type Cluster struct {
	*pgtest.Cluster

	mu      sync.Mutex
	renewal string               // statements that make a database as new; "": not known yet
	free    []*Database          // that tests have given back
	used    map[string]*Database // by address: those that tests have
}

// New makes a cluster. Its server starts with the first database asked for.
func New() *Cluster {
	return &Cluster{Cluster: pgtest.New(func(ctx context.Context, url string) error {
		s, err := postgres.Open(ctx, url, postgres.Config{UnsafeDurability: true})
		if err != nil {
			return err
		}
		return s.Close()
	})}
}

// Around wraps the tests of a package, so that databases and server end with them.
func (c *Cluster) Around(m pgtest.Tests) pgtest.Tests { return c.Cluster.Around(around{c, m}) }

type around struct {
	cluster *Cluster
	tests   pgtest.Tests
}

// Run runs the tests and then drops the databases that wait for another test.
func (a around) Run() int {
	defer func() {
		for d := a.cluster.take(); d != nil; d = a.cluster.take() {
			_ = d.end() // no test is left that could fail
		}
	}()
	return a.tests.Run()
}

// Again is a database that may have been another test's: it is as new, and keeps the connections of stores that Database.Open opened. What a
// test leaves behind in it is removed when the test ends. If it failed, left sessions behind or changed the schema, the database is
// dropped. Tests that look at the server's own statistics or at the files of the database take Database in place of it.
func (c *Cluster) Again(tb testing.TB) *Database {
	tb.Helper()
	d := c.take()
	if d == nil {
		d = c.make(tb)
	}
	c.use(d)
	tb.Cleanup(func() {
		if err := c.giveBack(d, tb.Failed()); err != nil {
			tb.Errorf("migrated: %v", err)
		}
	})
	return d
}

func (c *Cluster) make(tb testing.TB) *Database {
	tb.Helper()
	url, drop := c.Lasting(tb)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := &Database{URL: url, drop: drop}
	err := d.begin(ctx)
	if err == nil {
		d.renewal, err = c.renewalOf(ctx, d)
	}
	if err != nil {
		_ = d.end()
		tb.Fatalf("migrated: %v", err)
	}
	return d
}

// renewalOf is the same for all databases, which are copies of one.
func (c *Cluster) renewalOf(ctx context.Context, d *Database) (text string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewal == "" {
		c.renewal, err = renewal(ctx, d.conn)
	}
	return c.renewal, err
}

// take removes a database from those that wait for a test; nil: there is none.
func (c *Cluster) take() *Database {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.free) - 1
	if last < 0 {
		return nil
	}
	d := c.free[last]
	c.free = c.free[:last]
	return d
}

func (c *Cluster) use(d *Database) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == nil {
		c.used = map[string]*Database{}
	}
	c.used[d.URL] = d
}

// Keeping is for stores that are opened by their address, with this context: where that is the address of a database that Again gave to a test,
// their connections are kept as those of Database.Open are.
func (c *Cluster) Keeping(ctx context.Context, url string) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.used[url]; d != nil {
		return postgres.WithKept(ctx, &d.kept)
	}
	return ctx
}

// giveBack makes a database ready for another test, or drops it.
func (c *Cluster) giveBack(d *Database, failed bool) error {
	c.mu.Lock()
	delete(c.used, d.URL)
	c.mu.Unlock()
	again, err := false, error(nil)
	if !failed {
		again, err = d.renew(context.Background())
	}
	if !again || err != nil {
		return errors.Join(err, d.end())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, d)
	return nil
}
