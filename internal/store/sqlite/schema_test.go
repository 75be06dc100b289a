package sqlite

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestEvery_statement_prepares_on_a_migrated_file(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	err := s.read(t.Context(), func(c *conn) error {
		for name := range s.statements {
			if isPiece(name) {
				continue
			}
			if _, err := c.statement(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, text := range searches(s) {
			if p, err := c.raw.Prepare(text); err != nil {
				t.Errorf("%s: %v", text, err)
			} else {
				p.Close()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isPiece reports whether a text of search.sql is only a part of a statement.
func isPiece(name string) bool {
	first, _, _ := strings.Cut(name, " ")
	return slices.Contains([]string{"find", "count", "where", "or", "and", "end", "after", "order"}, first) && name != "find id"
}

// searches puts together statements that use every piece.
func searches(s *Store) []string {
	value, one := "v", 1
	id := base.UUID{1}
	span := store.Range{From: 1, To: 2}
	q := store.Query{
		Statuses: core.Statuses(), Reasons: []core.Reason{1}, Nexts: []core.Next{1}, Lanes: []string{"a", "b"}, Kinds: []string{"k"},
		Namespaces: []string{"n"}, Classes: []int32{1, 2}, Tags: []store.TagTerm{{Key: "k"}, {Key: "k", Value: &value}}, Created: span, Completed: span, Updated: span,
		Flows: []base.UUID{id}, Parents: []base.UUID{id}, Instances: []string{"i"}, Creators: []string{"c"}, Keys: []string{"k"},
		PriorityMin: &one, PriorityMax: &one, Text: &store.Text{IDPrefix: "0", Key: "k", Words: []string{"w", "v"}}, After: &store.Hit{ID: id}, Limit: 1,
	}
	var texts []string
	for q.Order = store.CreatedDesc; q.Order <= store.IDAsc; q.Order++ {
		f := s.finding("find")
		f.filter(&q)
		f.page(&q)
		texts = append(texts, f.text.String())
	}
	f := s.finding("count")
	f.filter(&store.Query{Namespaces: []string{}})
	f.add("count end", int64(1))
	for field := store.ByState; field <= store.ByLaneStatus; field++ {
		texts = append(texts, s.counting(&q, store.GroupBy{Field: field, Tag: "k"}, 1).text.String())
	}
	return append(texts, f.text.String(), s.firstOfLanes(&q, 1).text.String())
}

// hot are the statements that run in every transaction, with the index that each must walk.
var hot = map[string]string{
	"update execution": "SEARCH ff_exec USING PRIMARY KEY (id=?)",

	"load executions":             "SEARCH e USING PRIMARY KEY (id=?)",
	"load executions with inputs": "SEARCH e USING PRIMARY KEY (id=?)",
	"patch lease":                 "SEARCH ff_lease USING PRIMARY KEY (id=? AND epoch=?)",
	"load lease":                  "SEARCH l USING PRIMARY KEY (id=? AND epoch=?)",
	"load leases above":           "SEARCH l USING PRIMARY KEY (id=? AND epoch>?)",
	"pick":                        "SEARCH ff_queue USING PRIMARY KEY (class=? AND block=? AND order_key>?)",
	"load blocks":                 "SEARCH q USING PRIMARY KEY (class=? AND block>?)",
	"load rules":                  "SEARCH ff_doc USING PRIMARY KEY (owner=? AND kind>?)",
	"dequeue":                     "SEARCH ff_queue USING PRIMARY KEY (class=? AND block=? AND order_key=? AND id=?)",
	"due timers":                  "SEARCH ff_timer USING INDEX ff_timer_by_at (at<?)",
	"any due timer":               "SEARCH ff_timer USING INDEX ff_timer_by_at (at<?)",
	"hide timer":                  "SEARCH ff_timer USING INTEGER PRIMARY KEY (rowid=?)",
	"keep timer hidden":           "SEARCH ff_timer USING INTEGER PRIMARY KEY (rowid=?)",
	"drop timer":                  "SEARCH ff_timer USING INTEGER PRIMARY KEY (rowid=?)",
	"load key":                    "SEARCH ff_idem USING PRIMARY KEY (space=? AND namespace=? AND key=?)",
	"load doc":                    "SEARCH ff_doc USING PRIMARY KEY (owner=? AND kind=? AND key=?)",
	"scan docs":                   "SEARCH ff_doc USING PRIMARY KEY (owner=? AND kind=? AND key>? AND key<?)",
	"load owned docs":             "SEARCH d USING PRIMARY KEY (owner=? AND kind=?)",
	"load counter":                "SEARCH ff_counter USING PRIMARY KEY (key=?)",
	"read log":                    "SEARCH ff_log USING INTEGER PRIMARY KEY (rowid>?)",
	"poll":                        "SEARCH q USING PRIMARY KEY (class=? AND block=? AND order_key<?)",
	"remove from queues":          "SEARCH ff_queue USING PRIMARY KEY (class=? AND block=? AND order_key=? AND id=?)",
	"remove leases":               "SEARCH ff_lease USING PRIMARY KEY (id=?)",
	"remove docs":                 "SEARCH ff_doc USING PRIMARY KEY (owner=?)",
	"strip docs":                  "SEARCH ff_doc USING PRIMARY KEY (owner=?)",
	"remove search tags":          "SEARCH ff_search_tag USING COVERING INDEX ff_search_tag_by_id (id=?)",
}

func TestHot_statements_walk_an_index(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	for name, want := range hot {
		plan := planOf(t, s, s.statements[name])
		if !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s: %s\nwant %s", name, plan, want)
		}
		for _, table := range []string{"ff_exec", "ff_queue", "ff_lease", "ff_timer", "ff_idem", "ff_doc", "ff_log", "SCAN e", "SCAN q", "SCAN l"} {
			if strings.Contains(plan, "SCAN "+table) || strings.Contains(plan, table) && strings.HasPrefix(table, "SCAN") {
				t.Errorf("%s reads all of a table: %s", name, plan)
			}
		}
	}
}

func TestLists_by_one_value_walk_an_index_in_order(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	for want, q := range map[string]store.Query{
		"ff_search_by_created":   {},
		"ff_search_by_completed": {Order: store.CompletedDesc},
		"ff_search_by_status":    {Statuses: []core.Status{core.Failed}},
		"ff_search_by_namespace": {Namespaces: []string{"default"}},
		"ff_search_by_lane":      {Lanes: []string{"default"}},
		"ff_search_by_kind":      {Kinds: []string{"mail"}},
		"ff_search_by_key":       {Keys: []string{"key"}},
		"ff_search_by_flow":      {Flows: []base.UUID{{1}}},
		"ff_search_by_parent":    {Parents: []base.UUID{{1}}},
		"ff_search_by_instance":  {Instances: []string{"w-1"}},
	} {
		f := s.finding("find")
		f.filter(&q)
		f.page(&q)
		if plan := planOf(t, s, f.text.String()); !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s", want, plan)
		}
	}
}

// planOf is what SQLite would do for a statement.
func planOf(t *testing.T, s *Store, text string) string {
	t.Helper()
	var steps []string
	err := s.read(t.Context(), func(c *conn) error {
		return c.search(t.Context(), "explain query plan "+text, func(r row) error { steps = append(steps, r.Text(3)); return nil }, nil)
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Join(steps, "; ")
}

func TestL13_only_what_the_tables_allow_can_be_stored(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	err := s.write(t.Context(), durably, func(c *conn) error {
		for status := range core.Status(14) {
			for reason := range core.Reason(40) {
				for next := range core.Next(8) {
					checkStatus(t, c, x, status, reason, next)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkStatus(t *testing.T, c *conn, x *core.Execution, status core.Status, reason core.Reason, next core.Next) {
	t.Helper()
	y := x.Clone()
	y.Status, y.Reason, y.Next = status, reason, next
	open := slices.Contains(core.Statuses(), status) && status != core.Running && !status.Terminal()
	allowed := slices.Contains(core.ReasonsOf(status), reason) && next <= core.NextResume && (next != core.NextNone) == open
	taken := status == 0 && reason == 0 && next == 0 // an id that waits for its execution
	err := updateExecution(c, y, 0)
	if (err == nil) != (allowed || taken) {
		t.Fatalf("status %d, reason %d, next %d: allowed %v, %v", status, reason, next, allowed, err)
	}
	if err != nil && store.FaultOf(fault(err)) != store.Broken {
		t.Fatal(err)
	}
}

func TestEnumerated_columns_refuse_other_values(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	id := x.ID.UUID
	for what, do := range map[string]func(c *conn) error{
		"end of a lease": func(c *conn) error {
			return c.run("insert lease", id[:], int64(1), id[:], int64(1), int64(14), []byte{}, nil)
		},
		"no end of a lease": func(c *conn) error {
			return c.run("insert lease", id[:], int64(1), id[:], int64(1), int64(0), []byte{}, nil)
		},
		"state of an attempt": func(c *conn) error {
			return errors.Join(c.run("insert lease", id[:], int64(1), id[:], int64(1), int64(1), []byte{}, nil), c.run("patch lease", int64(7), []byte{}, id[:], int64(1)))
		},
		"space of a key": func(c *conn) error {
			return c.run("insert key", int64(3), "n", "k", []byte{}, id[:], int64(0), int64(0))
		},
		"state of a lane": func(c *conn) error {
			return c.run("insert lane", "other", `{"state":"open"}`, int64(1), int64(1), int64(0), "submit")
		},
		"a text in a column of numbers": func(c *conn) error {
			return c.run("update execution", int64(0), "soon", int64(0), int64(0), int64(0), []byte{}, id[:])
		},
	} {
		err := s.write(t.Context(), durably, do)
		if store.FaultOf(err) != store.Broken || err == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestL141_nothing_is_left_of_an_execution_that_is_removed(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	y := queued(s, x.Class)
	y.Input.Data = make([]byte, 10*longInput)
	y.Input.Size = len(y.Input.Data)
	y.Tags = base.Tags{"a": "1"}
	id := y.ID.UUID
	commit(t, s, store.Want{}, &store.Changes{
		Insert: []*core.Execution{y}, Enqueue: []store.QueueRow{{Class: y.Class.ID, Block: 7, Order: y.OrderKey, ID: id}},
		History: []core.LeaseRecord{{ExecutionID: y.ID, Epoch: 1, End: core.EndRelease}, {ExecutionID: y.ID, Epoch: 2, End: core.EndRelease}},
		PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 1, Owner: id.String(), Key: "step"}}},
	})
	if err := s.Project(t.Context(), store.Projection{Rows: []*core.Execution{x, y}}); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Read(t.Context(), store.Want{Executions: []base.UUID{id}, Inputs: true})
	if err != nil || len(loaded.Executions[id].Input.Data) != 10*longInput {
		t.Fatalf("a long input: %v", err)
	}
	commit(t, s, store.Want{}, &store.Changes{Remove: []base.UUID{id}})
	want := map[string]int64{"ff_exec": 1, "ff_queue": 1, "ff_search": 1, "ff_input": 0, "ff_lease": 0, "ff_doc": 0, "ff_search_tag": 0}
	for table, left := range want {
		if n := countOf(t, s, table); n != left {
			t.Errorf("%s has %d rows, want %d", table, n, left)
		}
	}
}

func countOf(t *testing.T, s *Store, table string) (n int64) {
	t.Helper()
	err := s.read(t.Context(), func(c *conn) error {
		return c.search(t.Context(), "select count(*) from "+table, func(r row) error { n = r.Int(0); return nil }, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
