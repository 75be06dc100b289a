package postgres

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core"
)

// classCache holds the classes seen so far. A class never changes and its number is never used again, so nothing here grows
// old.
type classCache struct {
	known atomic.Pointer[map[int32]*core.Class]
}

func (c *classCache) get(id int32) *core.Class {
	if known := c.known.Load(); known != nil {
		return (*known)[id]
	}
	return nil
}

// add keeps classes, and returns for each the one that is kept: one pointer a class.
func (c *classCache) add(classes []*core.Class) {
	for {
		old := c.known.Load()
		grown := map[int32]*core.Class{}
		if old != nil {
			for id, class := range *old {
				grown[id] = class
			}
		}
		for i, class := range classes {
			if kept := grown[class.ID]; kept != nil {
				classes[i] = kept
				continue
			}
			grown[class.ID] = class
		}
		if c.known.CompareAndSwap(old, &grown) {
			return
		}
	}
}

// classOf reads the columns of a class.
func classOf(r row) (*core.Class, error) {
	capabilities, err := r.texts(4)
	return &core.Class{
		ID: r.int(0), Namespace: r.text(1), Lane: r.text(2), Kind: r.text(3), Capabilities: capabilities, FairnessKey: r.text(5),
	}, err
}

// learn loads classes that were registered elsewhere. It uses the connection at hand: waiting for another one while holding
// this could wait for ever.
func (s *Store) learn(ctx context.Context, conn *pgxpool.Conn, ids []int32) error {
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
	s.classes.add(found)
	return nil
}
