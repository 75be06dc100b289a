package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

var (
	_ store.Examiner = (*Store)(nil)
	_ store.Checker  = (*Store)(nil)
	_ store.Scrubber = (*Store)(nil)
)

// Examine inspects the file and its disk.
func (s *Store) Examine(ctx context.Context, now base.Time) (*store.Condition, error) {
	found := &store.Condition{Place: filepath.Dir(s.path)}
	if s.cfg.UnsafeDurability {
		found.Risks = []string{neverSynced}
	}
	free, err := freeBytes(found.Place)
	if err != nil {
		return nil, unavailable(err)
	}
	found.Free = free
	err = s.read(ctx, func(c *conn) error {
		pages := func(r row) error {
			all, unused := r.Int(0), r.Int(1)
			found.Size = all * r.Int(2)
			found.Tables = []store.Table{{Name: "the file", Live: all - unused, Dead: unused}}
			return nil
		}
		timers := func(r row) error {
			found.Overdue, found.OldestDue = int(r.Int(0)), r.time(1)
			return nil
		}
		return errors.Join(c.each("file pages", pages), c.each("overdue timers", timers, int64(now), int64(store.OverdueBound)))
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Check lets SQLite verify its own pages and indexes, on a connection of its own, so that no reader connection is occupied.
func (s *Store) Check(ctx context.Context) (damage []string, err error) {
	c, err := connect(s.path, s.statements, "query_only = on")
	if err != nil {
		return nil, fault(err)
	}
	err = c.search(ctx, s.statements["look for damage"], func(r row) error {
		if text := r.Text(0); text != "ok" {
			damage = append(damage, text)
		}
		return nil
	}, nil)
	if damaged(err) { // too badly to report where
		damage, err = append(damage, err.Error()), nil
	}
	return damage, fault(errors.Join(err, c.close()))
}

// Scrub reads everything, on a connection of its own, so that no reader connection is occupied.
func (s *Store) Scrub(ctx context.Context, damaged func(what error)) error {
	c, err := connect(s.path, s.statements, s.patience(), "query_only = on")
	if err != nil {
		return fault(err)
	}
	fault := func(err error) error {
		if err != nil {
			damaged(err)
		}
		return nil
	}
	for name, read := range map[string]func(row) error{
		"scrub executions": func(r row) error {
			p := packedOf(r)
			p.Input = r.Show(10)
			_, err := p.Execution(&core.Class{ID: p.Class}, &s.policies)
			return fault(err)
		},
		"scrub leases": func(r row) error {
			id := r.uuid(10)
			_, err := leaseOf(id, r).Record(base.ID{UUID: id})
			return fault(err)
		},
		"scrub docs": func(r row) error {
			doc := ownedDocOf(r)
			return fault(doc.Whole())
		},
		"scrub log": func(r row) error {
			_, err := store.DecodeCommit(r.Show(2))
			if err != nil {
				err = fmt.Errorf("commit %d: %w", r.Int(0), err)
			}
			return fault(err)
		},
	} {
		err = errors.Join(err, c.search(ctx, s.statements[name], read, nil))
	}
	return fault(errors.Join(err, c.close()))
}
