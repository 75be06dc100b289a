package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// dictionary is all lanes and classes after some commit. It is immutable. Because no other process writes to the file, the
// newest one is always the truth, and nobody needs to read it from the file.
type dictionary struct {
	version int64
	lanes   map[int32]core.Lane
	classes map[int32]*core.Class
	list    *store.Dictionary
}

// Dictionary answers all lanes and classes.
func (s *Store) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	return s.dictionary.Load().list, nil
}

// loadDictionary reads all lanes and classes as the transaction on c sees them. Classes that before knows keep their pointer.
func loadDictionary(c *conn, before *dictionary) (*dictionary, error) {
	d := &dictionary{lanes: map[int32]core.Lane{}, classes: map[int32]*core.Class{}, list: &store.Dictionary{}}
	err := c.each("dictionary version", func(r row) error { d.version = r.Int(0); return nil })
	if err != nil {
		return nil, err
	}
	err = c.each("load lanes", func(r row) error {
		lane, err := laneOf(r)
		d.lanes[lane.ID] = lane
		d.list.Lanes = append(d.list.Lanes, lane)
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
		if before != nil && before.classes[class.ID] != nil {
			class = before.classes[class.ID]
		}
		d.classes[class.ID] = class
		d.list.Classes = append(d.list.Classes, class)
		if since := r.time(6); since != 0 {
			d.list.Retired = append(d.list.Retired, store.RetiredClass{ID: class.ID, Since: since})
		}
		return nil
	})
	d.list.Version = d.version
	return d, err
}

func laneOf(r row) (core.Lane, error) {
	lane := core.Lane{
		ID: int32(r.Int(0)), Name: r.Text(1), Revision: r.Int(3), Since: r.time(4), Counting: r.Int(5) != 0, RegisteredBy: r.Text(6),
	}
	if err := json.Unmarshal([]byte(r.Text(2)), &lane.Settings); err != nil {
		return lane, core.Errorf(core.CodeCorruption, "the stored settings of lane %s cannot be read: %w", lane.Name, err)
	}
	return lane, nil
}

func classOf(r row) (*core.Class, error) {
	class := &core.Class{ID: int32(r.Int(0)), Namespace: r.Text(1), Lane: r.Text(2), Kind: r.Text(3), FairnessKey: r.Text(5)}
	if err := json.Unmarshal([]byte(r.Text(4)), &class.Capabilities); err != nil {
		return nil, core.Errorf(core.CodeCorruption, "the stored capabilities of class %d cannot be read: %w", class.ID, err)
	}
	return class, nil
}

// class finds a class by its number. A reader whose snapshot is older than the end of a class still finds it in its snapshot.
func (s *Store) class(c *conn, id int32) (*core.Class, error) {
	if class := s.dictionary.Load().classes[id]; class != nil {
		return class, nil
	}
	var class *core.Class
	err := c.each("load class", func(r row) (err error) {
		class, err = classOf(r)
		return err
	}, int64(id))
	if err == nil && class == nil {
		err = core.Errorf(core.CodeCorruption, "an execution has class %d, which is not there", id)
	}
	return class, err
}

// Register adds the lanes and classes that are not there yet.
func (s *Store) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) ([]core.Lane, []*core.Class, error) {
	c, err := s.beginWriting(ctx, durably, s.cfg.BusyTimeout)
	if err != nil {
		return nil, nil, err
	}
	next, err := s.register(c, lanes, classes)
	if err != nil {
		s.abort(c)
		return nil, nil, fault(err)
	}
	if next == s.dictionary.Load() {
		s.abort(c) // nothing was added
	} else if err := s.commit(c, next); err != nil {
		return nil, nil, err
	}
	return next.named(lanes, classes)
}

// register adds what is missing and returns the dictionary after that.
func (s *Store) register(c *conn, lanes []core.Lane, classes []core.Class) (*dictionary, error) {
	var added int64
	for _, lane := range lanes {
		n, err := c.change("insert lane", lane.Name, string(core.EncodeLaneSettings(lane.Settings)), lane.Revision, int64(lane.Since), flag(lane.Counting), lane.RegisteredBy)
		if err != nil {
			return nil, err
		}
		added += n
	}
	for i := range classes {
		class := &classes[i]
		for _, how := range [...]string{"insert class", "revive class"} {
			n, err := c.change(how, class.Namespace, class.Lane, class.Kind, encodeCapabilities(class.Capabilities), class.FairnessKey)
			if err != nil {
				return nil, err
			}
			added += n
		}
	}
	if added == 0 {
		return s.dictionary.Load(), nil
	}
	return s.raise(c)
}

// UnusedClasses looks for classes that no execution has. It may take long, so the end of ctx interrupts it.
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

// named finds what Register was asked for, in the order given.
func (d *dictionary) named(lanes []core.Lane, classes []core.Class) ([]core.Lane, []*core.Class, error) {
	foundLanes := make([]core.Lane, len(lanes))
	for i, lane := range lanes {
		at := slices.IndexFunc(d.list.Lanes, func(l core.Lane) bool { return l.Name == lane.Name })
		if at < 0 {
			return nil, nil, fmt.Errorf("lane %q was registered and is not there", lane.Name)
		}
		foundLanes[i] = d.list.Lanes[at]
	}
	foundClasses := make([]*core.Class, len(classes))
	for i := range classes {
		at := slices.IndexFunc(d.list.Classes, func(c *core.Class) bool { return sameClass(c, &classes[i]) })
		if at < 0 {
			return nil, nil, fmt.Errorf("class %+v was registered and is not there", classes[i])
		}
		foundClasses[i] = d.list.Classes[at]
	}
	return foundLanes, foundClasses, nil
}

// sameClass compares everything but the number (S13).
func sameClass(a, b *core.Class) bool {
	return a.Namespace == b.Namespace && a.Lane == b.Lane && a.Kind == b.Kind && a.FairnessKey == b.FairnessKey &&
		slices.Equal(a.Capabilities, b.Capabilities)
}
