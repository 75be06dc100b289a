package postgres

import (
	"context"
	"sync"
	"unique"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core"
)

// classCache holds the classes seen so far. A class never changes, and its number is never reused within an incarnation, so entries never become
// stale. There may be hundreds of thousands: a plain map takes a quarter of the space of a sync.Map.
type classCache struct {
	mu    sync.RWMutex
	known map[int32]*core.Class // by number
}

func (c *classCache) get(id int32) *core.Class {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[id]
}

// add caches classes and replaces each by the cached one, so that there is one pointer per class.
func (c *classCache) add(classes []*core.Class) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[int32]*core.Class, len(classes))
	}
	for i, class := range classes {
		if kept := c.known[class.ID]; kept != nil {
			classes[i] = kept
		} else {
			c.known[class.ID] = class
		}
	}
}

// classOf reads the columns of a class.
func classOf(r row) (*core.Class, error) {
	capabilities, err := r.texts(4)
	shared := func(column int) string { return unique.Make(r.text(column)).Value() } // many classes differ in one key only
	return &core.Class{
		ID: r.int(0), Namespace: shared(1), Lane: shared(2), Kind: shared(3), Capabilities: capabilities, FairnessKey: r.text(5), Needs: r.text(6),
	}, err
}

// learn loads classes that were registered by other processes. It uses the given connection: waiting for a second one while holding this one could
// deadlock.
func (s *Store) learn(ctx context.Context, conn *pgxpool.Conn, m *memory, ids []int32) error {
	var found []*core.Class
	t := s.trip(conn)
	t.add("some_classes", func(r row) error {
		class, err := classOf(r)
		found = append(found, class)
		return err
	}, intColumn(ids))
	if err := t.run(ctx); err != nil {
		return err
	}
	m.classes.add(found)
	return nil
}
