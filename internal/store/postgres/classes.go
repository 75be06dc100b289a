package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core"
)

// classCache holds the classes seen so far. A class never changes, and its number is never used again in one incarnation, so nothing
// here grows old.
type classCache struct {
	known sync.Map // of *core.Class by number
}

func (c *classCache) get(id int32) *core.Class {
	class, _ := c.known.Load(id)
	known, _ := class.(*core.Class)
	return known
}

// add keeps classes, and puts in place of each the one that is kept: one pointer a class.
func (c *classCache) add(classes []*core.Class) {
	for i, class := range classes {
		kept, _ := c.known.LoadOrStore(class.ID, class)
		classes[i] = kept.(*core.Class)
	}
}

// classOf reads the columns of a class.
func classOf(r row) (*core.Class, error) {
	capabilities, err := r.texts(4)
	return &core.Class{
		ID: r.int(0), Namespace: r.text(1), Lane: r.text(2), Kind: r.text(3), Capabilities: capabilities, FairnessKey: r.text(5), Needs: r.text(6),
	}, err
}

// learn loads classes that were registered elsewhere. It uses the connection at hand: waiting for another one while holding
// this could wait for ever.
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
