package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// dictionary holds all lanes, classes and rules after some commit. It is immutable. No other process writes to the file, so the newest one is
// always current and need not be read from the file. Lanes and classes are sorted by number.
type dictionary store.Dictionary

// lane returns a lane by its number, or nil.
func (d *dictionary) lane(id int32) *core.Lane {
	at, found := slices.BinarySearchFunc(d.Lanes, id, func(lane core.Lane, id int32) int { return cmp.Compare(lane.ID, id) })
	if !found {
		return nil
	}
	return &d.Lanes[at]
}

// class returns a class by its number, or nil.
func (d *dictionary) class(id int32) *core.Class {
	at, found := slices.BinarySearchFunc(d.Classes, id, func(class *core.Class, id int32) int { return cmp.Compare(class.ID, id) })
	if !found {
		return nil
	}
	return d.Classes[at]
}

// with returns the next dictionary, with the additions. Numbers only grow, so additions come last; the lists share their memory with those of d,
// which end before them.
func (d *dictionary) with(lanes []core.Lane, classes []*core.Class) *dictionary {
	next := *d
	next.Version++
	next.Lanes, next.Classes = append(next.Lanes, lanes...), append(next.Classes, classes...)
	return &next
}

// Dictionary returns all lanes, classes and rules.
func (s *Store) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	known := store.Dictionary(*s.dictionary.Load())
	known.Incarnation = s.incarnation
	known.Lanes, known.Classes = slices.Clip(known.Lanes), slices.Clip(known.Classes) // the memory after the end of the lists does not belong to the caller
	return &known, nil
}

// loadDictionary reads all lanes, classes and rules as the transaction on c sees them. Classes that are in before keep their pointer.
func loadDictionary(c *conn, before *dictionary) (*dictionary, error) {
	d := &dictionary{}
	err := c.each("dictionary version", func(r row) error { d.Version = r.Int(0); return nil })
	if err != nil {
		return nil, err
	}
	err = c.each("load lanes", func(r row) error {
		lane, err := laneOf(r)
		d.Lanes = append(d.Lanes, lane)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = c.each("load classes", func(r row) error {
		class, err := classOf(r)
		if err != nil {
			return err
		}
		if known := before.class(class.ID); known != nil {
			class = known
		}
		d.Classes = append(d.Classes, class)
		if since := r.time(7); since != 0 {
			d.Retired = append(d.Retired, store.RetiredClass{ID: class.ID, Since: since})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = c.each("load rules", func(r row) error {
		d.Rules = append(d.Rules, store.Doc{
			DocRef: store.DocRef{Kind: store.DocKind(r.Int(0)), Key: r.Text(1)}, Body: r.Bytes(2), Data: r.Bytes(3), ExpiresAt: r.time(4),
		}.Unsealed())
		return nil
	}, int64(store.FirstRule))
	return d, err
}

func laneOf(r row) (core.Lane, error) {
	lane := core.Lane{
		ID: int32(r.Int(0)), Name: r.Text(1), Revision: r.Int(3), Since: r.time(4), Counting: r.Int(5) != 0, RegisteredBy: r.Text(6),
	}
	return lane, lane.ReadSettings([]byte(r.Text(2)))
}

func classOf(r row) (*core.Class, error) {
	class := &core.Class{ID: int32(r.Int(0)), Namespace: r.Text(1), Lane: r.Text(2), Kind: r.Text(3), FairnessKey: r.Text(5), Needs: r.Text(6)}
	if err := json.Unmarshal([]byte(r.Text(4)), &class.Capabilities); err != nil {
		return nil, base.Errorf(base.CodeCorruption, "the stored capabilities of class %d cannot be read: %w", class.ID, err)
	}
	return class, nil
}

// class returns a class by its number. A reader whose snapshot is older than the removal of a class finds it in its snapshot.
func (s *Store) class(c *conn, id int32) (*core.Class, error) {
	if class := s.dictionary.Load().class(id); class != nil {
		return class, nil
	}
	var class *core.Class
	err := c.each("load class", func(r row) (err error) {
		class, err = classOf(r)
		return err
	}, int64(id))
	if err == nil && class == nil {
		err = base.Errorf(base.CodeCorruption, "an execution has class %d, which is not there", id)
	}
	return class, err
}

// Register adds the missing lanes and classes.
func (s *Store) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (store.Registered, error) {
	c, err := s.beginWriting(ctx, s.cfg.BusyTimeout)
	if err != nil {
		return store.Registered{}, err
	}
	r := registration{c: c, before: s.dictionary.Load()}
	r.Incarnation = s.incarnation
	if err := s.doWriting(c, func(*conn) error { return r.run(lanes, classes) }); err != nil {
		s.abort(c)
		return store.Registered{}, fault(err)
	}
	if r.Version == 0 {
		s.abort(c) // nothing was added
	} else if err := s.commitDurably(c, r.after, nil); err != nil {
		return store.Registered{}, err
	}
	return r.Registered, nil
}

// registration is a Register in progress.
type registration struct {
	c             *conn
	before, after *dictionary
	newLanes      []core.Lane
	newClasses    []*core.Class
	revived       bool
	store.Registered
}

// run adds what is missing. Its cost depends on the number of names given, not on the size of the dictionary, unless a retired class becomes active
// again.
func (r *registration) run(lanes []core.Lane, classes []core.Class) error {
	for i := range lanes {
		if err := r.lane(lanes[i]); err != nil {
			return err
		}
	}
	for i := range classes {
		if err := r.class(classes[i]); err != nil {
			return err
		}
	}
	if len(r.newLanes)+len(r.newClasses) == 0 && !r.revived {
		return nil
	}
	if err := r.c.run("raise dictionary"); err != nil {
		return err
	}
	r.after = r.before.with(r.newLanes, r.newClasses)
	if r.revived {
		var err error
		if r.after, err = loadDictionary(r.c, r.after); err != nil {
			return err
		}
	}
	r.Version = r.after.Version
	return nil
}

func (r *registration) lane(lane core.Lane) error {
	n, err := r.c.change("insert lane", lane.Name, string(core.EncodeLaneSettings(lane.Settings)), lane.Revision, int64(lane.Since), flag(lane.Counting), lane.RegisteredBy)
	if err != nil {
		return err
	}
	found := fmt.Errorf("lane %q was registered and is not there", lane.Name)
	err = r.c.each("find lane", func(row row) error { lane, found = laneOf(row); return found }, lane.Name)
	if err := cmp.Or(err, found); err != nil {
		return err
	}
	if n > 0 {
		r.newLanes = append(r.newLanes, lane)
	}
	r.Lanes = append(r.Lanes, lane)
	return nil
}

func (r *registration) class(class core.Class) error {
	name := []any{class.Namespace, class.Lane, class.Kind, encodeCapabilities(class.Capabilities), class.FairnessKey, class.Needs}
	n, err := r.c.change("insert class", name...)
	if err != nil {
		return err
	}
	if n > 0 {
		class.ID = int32(r.c.raw.LastInsertID())
		r.newClasses = append(r.newClasses, &class)
		r.Classes = append(r.Classes, &class)
		return nil
	}
	if n, err = r.c.change("revive class", name...); err != nil {
		return err
	}
	r.revived = r.revived || n > 0
	return r.known(name)
}

// known returns a class that existed before, or that this registration has already named.
func (r *registration) known(name []any) error {
	var id int32
	if err := r.c.each("find class", func(row row) error { id = int32(row.Int(0)); return nil }, name...); err != nil {
		return err
	}
	class := cmp.Or(r.before.class(id), (&dictionary{Classes: r.newClasses}).class(id))
	if class == nil {
		return fmt.Errorf("class %v was registered and is not there", name)
	}
	r.Classes = append(r.Classes, class)
	return nil
}

// UnusedClasses returns the classes that no execution has. It may take long, so the end of ctx interrupts it.
func (s *Store) UnusedClasses(ctx context.Context) (ids []int32, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.search(ctx, s.statements["unused classes"], func(r row) error {
			ids = append(ids, int32(r.Int(0)))
			return nil
		}, nil)
	})
	return ids, err
}

// raise gives the dictionary that the transaction on c changed a new version.
func (s *Store) raise(c *conn) (*dictionary, error) {
	if err := c.run("raise dictionary"); err != nil {
		return nil, err
	}
	return loadDictionary(c, s.dictionary.Load())
}

func encodeCapabilities(tokens []string) string {
	if len(tokens) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(tokens) // texts always marshal
	return string(text)
}
