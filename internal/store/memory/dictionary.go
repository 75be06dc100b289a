package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// copyLane separates the settings of a lane from those of a caller.
func copyLane(l core.Lane) core.Lane {
	l.Settings.FairnessWeights = maps.Clone(l.Settings.FairnessWeights)
	return l
}

// Dictionary returns all lanes, classes and rules.
func (s *Store) Dictionary(ctx context.Context) (d *store.Dictionary, err error) {
	err = s.during(ctx, func() error {
		m := s.d.rows
		s.logID = m.logID
		if m.dictionary == nil || m.dictionary.Version != m.version {
			m.dictionary = m.allWords()
		}
		d = m.dictionary
		return nil
	})
	return d, err
}

func (m *image) allWords() *store.Dictionary {
	d := &store.Dictionary{Version: m.version, Incarnation: m.name(), Classes: slices.Clone(m.classes)}
	for i := range m.lanes {
		d.Lanes = append(d.Lanes, copyLane(m.lanes[i]))
	}
	for _, class := range m.classes {
		if since, retired := m.retired[class.ID]; retired {
			d.Retired = append(d.Retired, store.RetiredClass{ID: class.ID, Since: since})
		}
	}
	for whose, docs := range m.docs {
		for i := range docs {
			if whose.Owner == "" && whose.Kind.Rule() {
				d.Rules = append(d.Rules, copyDoc(&docs[i]))
			}
		}
	}
	slices.SortFunc(d.Rules, func(a, b store.Doc) int { return compareRefs(a.DocRef, b.DocRef) })
	return d
}

// raise gives the dictionary a new version.
func (m *image) raise() {
	m.version++
	m.dictionary = nil
}

// Register adds the missing lanes and classes.
func (s *Store) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (r store.Registered, err error) {
	err = s.during(ctx, func() error {
		m := s.d.rows
		changed := false
		for _, lane := range lanes {
			r.Lanes = append(r.Lanes, m.register(lane, &changed))
		}
		for i := range classes {
			r.Classes = append(r.Classes, m.registerClass(classes[i], &changed))
		}
		if changed {
			m.raise()
			r.Version, s.carried = m.version, reading{}
		}
		r.Incarnation = m.name()
		return nil
	})
	return r, err
}

func (m *image) register(lane core.Lane, changed *bool) core.Lane {
	for i := range m.lanes {
		if m.lanes[i].Name == lane.Name {
			return copyLane(m.lanes[i])
		}
	}
	lane.ID = int32(len(m.lanes)) + 1
	m.lanes = append(m.lanes, copyLane(lane))
	*changed = true
	return lane
}

func (m *image) registerClass(class core.Class, changed *bool) *core.Class {
	for _, known := range m.classes {
		if !sameClass(known, &class) {
			continue
		}
		if _, retired := m.retired[known.ID]; retired {
			delete(m.retired, known.ID)
			*changed = true
		}
		return known
	}
	m.lastClass++
	class.ID, class.Capabilities = m.lastClass, slices.Clone(class.Capabilities)
	m.classes = append(m.classes, &class)
	*changed = true
	return &class
}

func sameClass(a, b *core.Class) bool {
	return a.Namespace == b.Namespace && a.Lane == b.Lane && a.Kind == b.Kind && a.FairnessKey == b.FairnessKey && a.Needs == b.Needs &&
		slices.Equal(a.Capabilities, b.Capabilities)
}

// UnusedClasses returns the classes that no execution has.
func (s *Store) UnusedClasses(ctx context.Context) (ids []int32, err error) {
	err = s.during(ctx, func() error {
		used := map[int32]bool{}
		for _, row := range s.d.rows.executions {
			used[row.Class] = true
		}
		for _, class := range s.d.rows.classes {
			if !used[class.ID] {
				ids = append(ids, class.ID)
			}
		}
		slices.SortFunc(ids, cmp.Compare)
		return nil
	})
	return ids, err
}

func (m *image) applyDictionary(ch *store.Changes) {
	for i := range ch.Lanes {
		m.lanes[ch.Lanes[i].ID-1] = copyLane(ch.Lanes[i])
	}
	for _, class := range ch.RetireClasses {
		if _, retired := m.retired[class.ID]; !retired && m.class(class.ID) != nil {
			m.retired[class.ID] = class.Since
		}
	}
	for _, class := range ch.DropClasses {
		if since, retired := m.retired[class.ID]; retired && since == class.Since {
			delete(m.retired, class.ID)
			m.classes = slices.DeleteFunc(slices.Clone(m.classes), func(c *core.Class) bool { return c.ID == class.ID })
		}
	}
	if ch.NewLogID != (base.UUID{}) {
		m.logID = ch.NewLogID
	}
	if ch.RaisesDictionary() {
		m.raise()
	}
}
