package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Project updates search rows. It need not survive a power loss: the position is stored with the rows, and the log is still there.
func (s *Store) Project(ctx context.Context, p store.Projection) error {
	if p.Incarnation != "" && p.Incarnation != s.incarnation {
		return s.reborn(p.Incarnation)
	}
	return s.write(ctx, eventually, func(c *conn) error {
		moved, err := c.change("move projection", p.To, p.From)
		if err != nil {
			return err
		}
		if moved != 1 {
			return &store.Fault{Kind: store.Stale, Err: fmt.Errorf("the projection does not stand at %d", p.From)}
		}
		there := map[base.UUID]bool{}
		for i := range p.Doubted {
			err := c.each("execution is there", func(row) error {
				there[p.Doubted[i]] = true
				return nil
			}, p.Doubted[i][:])
			if err != nil {
				return err
			}
		}
		p := p.Without(func(id base.UUID) bool { return !there[id] })
		for _, x := range p.Rows {
			if err := putSearch(c, x); err != nil {
				return err
			}
		}
		for i := range p.Gone {
			if err := errors.Join(c.run("remove search", p.Gone[i][:]), c.run("remove search tags", p.Gone[i][:])); err != nil {
				return err
			}
		}
		return nil
	})
}

func putSearch(c *conn, x *core.Execution) error {
	err := c.run("put search", x.ID.UUID[:], int64(x.Class.ID), x.Class.Namespace, x.Class.Lane, x.Class.Kind, x.Creator, optionalText(x.IdempotencyKey),
		optional(&x.FlowID.UUID), optional(&x.ParentID.UUID), int64(x.CreatedAt), int64(x.Status), int64(x.Reason), int64(x.Next),
		int64(x.Priority), optionalText(x.LastInstance()), int64(x.CompletedAt), int64(x.LastMutationAt), fenced(x.SearchWords()))
	if err != nil {
		return err
	}
	if err := c.run("remove search tags", x.ID.UUID[:]); err != nil {
		return err
	}
	for key, value := range x.Tags {
		if err := c.run("put search tag", key, value, x.ID.UUID[:]); err != nil {
			return err
		}
	}
	return nil
}

// fenced puts a space around every word, so that whole words are matched.
func fenced(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ") + " "
}

// Find returns search rows by filter and order.
func (s *Store) Find(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	f := s.finding("find")
	f.filter(&q)
	f.page(&q)
	err = s.search(ctx, f, func(r row) error {
		hits = append(hits, store.Hit{ID: r.uuid(0), Created: r.time(1), Completed: r.time(2)})
		return nil
	})
	return hits, err
}

// Count counts the matching rows, up to limit.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (n int, err error) {
	f := s.finding("count")
	f.filter(&q)
	f.add("count end", int64(limit))
	err = s.search(ctx, f, func(r row) error { n = int(r.Int(0)); return nil })
	return n, err
}

// CountBy counts the matching rows by value, up to limit.
func (s *Store) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) (groups []store.Group, err error) {
	err = s.search(ctx, s.counting(&q, by, limit), func(r row) error {
		groups = append(groups, store.Group{
			Status: core.Status(r.Int(0)), Reason: core.Reason(r.Int(1)), Next: core.Next(r.Int(2)), Text: r.Text(3), Rows: int(r.Int(4)),
		})
		return nil
	})
	return groups, err
}

// FirstOfLanes returns the rows of every lane that were created first.
func (s *Store) FirstOfLanes(ctx context.Context, q store.Query, each int) (hits []store.LaneHit, err error) {
	err = s.search(ctx, s.firstOfLanes(&q, each), func(r row) error {
		hits = append(hits, store.LaneHit{Hit: store.Hit{ID: r.uuid(0), Created: r.time(1), Completed: r.time(2)}, Lane: r.Text(3)})
		return nil
	})
	return hits, err
}

// firstOfLanes builds the statement that reads the first rows of lanes.
func (s *Store) firstOfLanes(q *store.Query, each int) *finding {
	f := s.finding("find first of lanes")
	f.filter(q)
	f.add("order created asc")
	f.add("find first of lanes end", int64(q.Limit), int64(each))
	return f
}

// counting builds the statement that counts by value.
func (s *Store) counting(q *store.Query, by store.GroupBy, limit int) *finding {
	begin := [...]string{store.ByState: "count by state", store.ByLane: "count by lane", store.ByKind: "count by kind", store.ByTag: "count by tag", store.ByInstance: "count by instance", store.ByLaneStatus: "count by lane status"}[by.Field]
	end, args := "count by value end", []any{}
	switch by.Field {
	case store.ByState:
		end = "count by state end"
	case store.ByLaneStatus:
		end = "count by lane status end"
	case store.ByTag:
		args = append(args, by.Tag)
	}
	f := &finding{name: begin, pieces: s.statements}
	f.add(begin, args...)
	f.filter(q)
	f.add(end, int64(limit))
	return f
}

// search runs a built statement. It may take long, so the end of ctx interrupts it.
func (s *Store) search(ctx context.Context, f *finding, read func(row) error) error {
	return s.read(ctx, func(c *conn) error {
		meter := c.meter.Of(f.name)
		began := meter.Begin()
		defer func() { meter.End(began) }()
		return c.search(ctx, f.text.String(), read, f.args)
	})
}

// finding builds a statement from the pieces in search.sql.
type finding struct {
	name   string // of the first piece
	pieces map[string]string
	text   strings.Builder
	args   []any
}

func (s *Store) finding(begin string) *finding {
	f := &finding{name: begin, pieces: s.statements}
	f.add(begin)
	return f
}

func (f *finding) add(piece string, args ...any) {
	f.text.WriteString(f.pieces[piece])
	f.text.WriteByte('\n')
	f.args = append(f.args, args...)
}

// among adds a condition on a list of values; nil means any, an empty list none.
func among[T any](f *finding, piece string, values []T, value func(T) any) {
	switch {
	case values == nil:
		return
	case len(values) == 0:
		f.add("where nothing")
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = value(v)
	}
	f.add(piece, args...)
	f.text.WriteString("(?" + strings.Repeat(", ?", len(values)-1) + ")\n")
}

func number[T ~uint8](v T) any { return int64(v) }
func text(v string) any        { return v }
func raw(v base.UUID) any      { return v[:] }

// span adds the conditions on [from, to).
func (f *finding) span(piece string, r store.Range) {
	if r.From != 0 {
		f.add(piece+" from", int64(r.From))
	}
	if r.To != 0 {
		f.add(piece+" to", int64(r.To))
	}
}

func (f *finding) filter(q *store.Query) {
	among(f, "where status", q.Statuses, number)
	among(f, "where reason", q.Reasons, number)
	among(f, "where next", q.Nexts, number)
	among(f, "where lane", q.Lanes, text)
	among(f, "where kind", q.Kinds, text)
	among(f, "where namespace", q.Namespaces, text)
	if q.Classes != nil {
		f.add("where class", numbersOf(q.Classes)) // they may be many
	}
	among(f, "where instance", q.Instances, text)
	among(f, "where creator", q.Creators, text)
	among(f, "where key", q.Keys, text)
	for _, tag := range q.Tags {
		if tag.Value == nil {
			f.add("where tag", tag.Key)
		} else {
			f.add("where tag value", tag.Key, *tag.Value)
		}
	}
	f.span("where created", q.Created)
	updated := q.Updated
	if updated.From != 0 && len(q.Later) > 0 {
		f.add("where updated later", int64(updated.From), numbersOf(q.Later))
		updated.From = 0
	}
	f.span("where updated", updated)
	f.span("where completed", q.Completed)
	if (q.Completed != store.Range{}) || q.Order == store.CompletedDesc {
		f.add("where completed")
	}
	f.rest(q)
}

func (f *finding) rest(q *store.Query) {
	among(f, "where flow", q.Flows, raw)
	among(f, "where parent", q.Parents, raw)
	if q.PriorityMin != nil {
		f.add("where priority from", int64(*q.PriorityMin))
	}
	if q.PriorityMax != nil {
		f.add("where priority to", int64(*q.PriorityMax))
	}
	if q.Text != nil {
		f.anyMeaning(q.Text)
	}
}

// anyMeaning adds the condition that one of the meanings of a free text holds.
func (f *finding) anyMeaning(t *store.Text) {
	f.add("where any")
	if low, high, ok := idsWith(t.IDPrefix); ok {
		f.add("or id", low, high)
	}
	if t.Key != "" {
		f.add("or key", t.Key)
	}
	if len(t.Words) > 0 {
		f.add("or words")
		for _, word := range t.Words {
			f.add("and word", fenced([]string{word}))
		}
		f.add("end words")
	}
	f.add("end any")
}

// idsWith returns the lowest and the highest id whose text begins with prefix; ok is false if there are none, or prefix is empty.
func idsWith(prefix string) (low, high []byte, ok bool) {
	const least, most = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if prefix == "" || len(prefix) > len(least) {
		return nil, nil, false
	}
	first, ok := base.ParseUUID(prefix + least[len(prefix):])
	last, _ := base.ParseUUID(prefix + most[len(prefix):])
	return first[:], last[:], ok
}

// page adds the start position, the order and the limit.
func (f *finding) page(q *store.Query) {
	order := [...]string{store.CreatedDesc: "created desc", store.CreatedAsc: "created asc", store.CompletedDesc: "completed desc", store.IDAsc: "id asc"}[q.Order]
	if after := q.After; after != nil {
		switch q.Order {
		case store.CompletedDesc:
			f.add("after "+order, int64(after.Completed), after.ID[:])
		case store.IDAsc:
			f.add("after "+order, after.ID[:])
		default:
			f.add("after "+order, int64(after.Created), after.ID[:])
		}
	}
	f.add("order " + order)
	f.add("find end", int64(q.Limit))
}
