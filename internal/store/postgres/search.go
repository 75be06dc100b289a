package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// separator separates the terms of one row on their way to the database. It occurs in none of them.
const separator = "\x1f"

// Terms of a search row, which are looked up by equality. The letter states the kind of the text.
func tagTerm(key string) string             { return term("t", key) }
func tagValueTerm(key, value string) string { return term("v", key+"="+value) }
func wordTerm(word string) string           { return term("w", word) }
func flowTerm(id base.UUID) string          { return term("f", id.String()) }
func parentTerm(id base.UUID) string        { return term("p", id.String()) }
func instanceTerm(id string) string         { return term("i", id) }
func creatorTerm(name string) string        { return term("c", name) }
func keyTerm(key string) string             { return term("k", key) }

// longestTerm is a length that fits into an index entry with room to spare.
const longestTerm = 1024

// term makes a text that the database accepts: truncated, without control characters, valid UTF-8. Terms that differ only in that match each other;
// the caller filters the results.
func term(kind, text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if len(clean) > longestTerm {
		clean = clean[:longestTerm]
	}
	return kind + strings.ToValidUTF8(clean, "?")
}

// mostTerms bounds the terms of a row: words of a long failure message beyond it are not found.
const mostTerms = 512

// termsOf returns all terms of an execution.
func termsOf(x *core.Execution) string {
	seen := map[string]bool{}
	var list []string
	add := func(t string) {
		if !seen[t] && len(list) < mostTerms {
			seen[t] = true
			list = append(list, t)
		}
	}
	if !x.FlowID.IsZero() {
		add(flowTerm(x.FlowID.UUID))
	}
	if !x.ParentID.IsZero() {
		add(parentTerm(x.ParentID.UUID))
	}
	if instance := x.LastInstance(); instance != "" {
		add(instanceTerm(instance))
	}
	if x.Creator != "" {
		add(creatorTerm(x.Creator))
	}
	if x.IdempotencyKey != "" {
		add(keyTerm(x.IdempotencyKey))
	}
	for key, value := range x.Tags {
		add(tagTerm(key))
		add(tagValueTerm(key, value))
	}
	for _, word := range x.SearchWords() {
		add(wordTerm(word))
	}
	return strings.Join(list, separator)
}

var errProjection = errors.New("the projection stands elsewhere")

// Project updates search rows and moves the projection in one transaction.
func (s *Store) Project(ctx context.Context, p store.Projection) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	t := &tx{s: s, lockWait: patient}
	defer func() { t.Rollback(ctx) }()
	opening, err := t.start(ctx)
	if err != nil {
		return err
	}
	moved := false
	if p.Incarnation != "" {
		opening.add("check_standing", nil, bigint(0), text(p.Incarnation))
	}
	opening.add("move_projection", func(row) error {
		moved = true
		return nil
	}, bigint(p.From), bigint(p.To))
	there := map[base.UUID]bool{}
	if len(p.Doubted) > 0 {
		opening.add("hold_executions", func(r row) error {
			there[r.uuid(0)] = true
			return nil
		}, uuidColumn(p.Doubted))
	}
	if err := opening.run(ctx); isCode(err, staleCode) {
		return &store.Fault{Kind: store.Stale, Err: errOther}
	} else if err != nil {
		return fault(err)
	}
	if !moved {
		return &store.Fault{Kind: store.Stale, Err: errProjection}
	}
	p = p.Without(func(id base.UUID) bool { return !there[id] })
	writing := s.trip(t.conn)
	if len(p.Rows) > 0 {
		writing.add("put_search", nil, searchColumns(p.Rows)...)
	}
	if len(p.Gone) > 0 {
		writing.add("remove_search", nil, uuidColumn(p.Gone))
	}
	writing.add("commit", nil)
	err = writing.run(ctx)
	return commitFault(err, writing.done+1 >= len(writing.asked))
}

func searchColumns(rows []*core.Execution) [][]byte {
	rows = sortedByID(rows)
	n := len(rows)
	id, created, completed, updated, class := uuids(n), bigints(n), bigints(n), bigints(n), ints(n)
	status, reason, next, priority, terms := smallints(n), smallints(n), smallints(n), smallints(n), texts(n)
	for i, x := range rows {
		if i > 0 && rows[i-1].ID.UUID == x.ID.UUID {
			continue // one statement may write a row only once
		}
		id.uuid(x.ID.UUID)
		created.time(x.CreatedAt)
		completed.time(x.CompletedAt)
		updated.time(x.LastMutationAt)
		class.int(x.Class.ID)
		status.smallint(int(x.Status))
		reason.smallint(int(x.Reason))
		next.smallint(int(x.Next))
		priority.smallint(x.Priority)
		terms.text(termsOf(x))
	}
	return arguments(id, created, completed, updated, class, status, reason, next, priority, terms)
}

// findStatements maps orders to statements.
var findStatements = map[store.Order]string{
	store.CreatedDesc: "find_created_desc", store.CreatedAsc: "find_created_asc",
	store.CompletedDesc: "find_completed_desc", store.IDAsc: "find_id_asc",
}

// Find returns search rows by filter and order.
func (s *Store) Find(ctx context.Context, q store.Query) ([]store.Hit, error) {
	var sortKey, id []byte
	if q.After != nil {
		sortKey, id = bigint(int64(q.After.Created)), q.After.ID[:]
		if q.Order == store.CompletedDesc {
			sortKey = bigint(int64(q.After.Completed))
		}
	}
	var hits []store.Hit
	err := s.ask(ctx, findStatements[q.Order], func(r row) error {
		hits = append(hits, store.Hit{ID: r.uuid(0), Created: r.time(1), Completed: r.time(2)})
		return nil
	}, append(filterColumns(&q), sortKey, id, integer(int32(q.Limit)))...)
	return hits, err
}

// Count returns how many rows match, counting up to limit.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	count := 0
	err := s.ask(ctx, "count", func(r row) error {
		count = int(r.bigint(0))
		return nil
	}, append(filterColumns(&q), bigint(int64(limit)))...)
	return count, err
}

// countStatements maps fields to statements.
var countStatements = map[store.Field]string{
	store.ByState: "count_by_state", store.ByLane: "count_by_lane", store.ByKind: "count_by_kind", store.ByTag: "count_by_term",
	store.ByInstance: "count_by_term", store.ByLaneStatus: "count_by_lane_status",
}

// CountBy counts the matching rows by value, up to limit.
func (s *Store) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) ([]store.Group, error) {
	if by.Field == store.ByTag {
		q.Tags = append(slices.Clip(q.Tags), store.TagTerm{Key: by.Tag})
	}
	values := append(filterColumns(&q), bigint(int64(limit)))
	switch by.Field {
	case store.ByTag:
		values = append(values, text(tagValueTerm(by.Tag, "")))
	case store.ByInstance:
		values = append(values, text(instanceTerm("")))
	}
	var groups []store.Group
	err := s.ask(ctx, countStatements[by.Field], func(r row) error {
		groups = append(groups, store.Group{
			Status: core.Status(r.smallint(0)), Reason: core.Reason(r.smallint(1)), Next: core.Next(r.smallint(2)), Text: r.text(3), Rows: int(r.bigint(4)),
		})
		return nil
	}, values...)
	return groups, err
}

// FirstOfLanes returns the rows of every lane that were created first.
func (s *Store) FirstOfLanes(ctx context.Context, q store.Query, each int) ([]store.LaneHit, error) {
	var hits []store.LaneHit
	err := s.ask(ctx, "find_first_of_lanes", func(r row) error {
		hits = append(hits, store.LaneHit{Hit: store.Hit{ID: r.uuid(0), Created: r.time(1), Completed: r.time(2)}, Lane: r.text(3)})
		return nil
	}, append(filterColumns(&q), integer(int32(q.Limit)), integer(int32(each)))...)
	return hits, err
}

// ask runs one statement without the planner settings of trips.
func (s *Store) ask(ctx context.Context, name string, read func(row) error, values ...[]byte) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := s.trip(conn)
	if !s.cfg.perTransaction() {
		t.add("free_planner", nil)
	}
	t.add(name, read, values...)
	return fault(t.run(ctx))
}

// filterColumns returns the arguments of the filter.
func filterColumns(q *store.Query) [][]byte {
	filter := append([][]byte{
		smallintColumn(q.Statuses), smallintColumn(q.Reasons), smallintColumn(q.Nexts),
		textFilter(q.Lanes, nil), textFilter(q.Kinds, nil), textFilter(q.Namespaces, nil),
		textFilter(tagTerms(q.Tags), nil), textFilter(q.Instances, instanceTerm), textFilter(q.Creators, creatorTerm), textFilter(q.Keys, keyTerm),
		uuidFilter(q.Flows, flowTerm), uuidFilter(q.Parents, parentTerm),
		bound(q.Created.From), bound(q.Created.To), bound(q.Completed.From), bound(q.Completed.To), bound(q.Updated.From), bound(q.Updated.To),
		priorityBound(q.PriorityMin), priorityBound(q.PriorityMax),
	}, meaningColumns(q.Text)...)
	return append(filter, smallintColumn(q.Later), classFilter(q.Classes))
}

// meaningColumns returns the arguments for the meanings of a free text. A null meaning never matches.
func meaningColumns(t *store.Text) [][]byte {
	if t == nil {
		return make([][]byte, 5)
	}
	low, high := prefixRange(t.IDPrefix)
	var key, words []string
	if t.Key != "" {
		key = []string{t.Key}
	}
	if len(t.Words) > 0 {
		words = t.Words
	}
	return [][]byte{boolean(true), low, high, textFilter(key, keyTerm), textFilter(words, wordTerm)}
}

// tagTerms returns the terms that must all be present; nil if none.
func tagTerms(tags []store.TagTerm) []string {
	var list []string
	for _, tag := range tags {
		if tag.Value == nil {
			list = append(list, tagTerm(tag.Key))
		} else {
			list = append(list, tagValueTerm(tag.Key, *tag.Value))
		}
	}
	return list
}

// textFilter returns null if there is nothing to filter by.
func textFilter(values []string, as func(string) string) []byte {
	if values == nil {
		return nil
	}
	column := texts(len(values))
	for _, v := range values {
		if as != nil {
			v = as(v)
		}
		column.text(v)
	}
	return column.argument()
}

func uuidFilter(ids []base.UUID, as func(base.UUID) string) []byte {
	if ids == nil {
		return nil
	}
	column := texts(len(ids))
	for _, id := range ids {
		column.text(as(id))
	}
	return column.argument()
}

// classFilter returns null if there is nothing to filter by.
func classFilter(classes []int32) []byte {
	if classes == nil {
		return nil
	}
	return intColumn(classes)
}

func bound(t base.Time) []byte {
	if t.IsZero() {
		return nil
	}
	return bigint(int64(t))
}

func priorityBound(p *int) []byte {
	if p == nil {
		return nil
	}
	return smallint(int16(min(max(*p, -1), 1<<15-1)))
}

// prefixRange returns the range of the UUIDs whose text begins with prefix; null bounds if there are none, or the prefix is empty.
func prefixRange(prefix string) (low, high []byte) {
	const lowest, highest = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if prefix == "" || len(prefix) > len(lowest) {
		return nil, nil
	}
	return rawUUID(prefix + lowest[len(prefix):]), rawUUID(prefix + highest[len(prefix):])
}

// rawUUID returns null for a text that is not a UUID.
func rawUUID(text string) []byte {
	id, ok := base.ParseUUID(text)
	if !ok {
		return nil
	}
	return id[:]
}
