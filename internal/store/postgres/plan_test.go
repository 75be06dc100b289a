package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// hot are the statements of every commit, claim and sweep.
var hot = []string{
	"lock_keys", "lock_free_keys", "read_keys", "lock_executions", "lock_free_executions", "read_executions", "existing_executions", "results",
	"pick", "read_queue", "blocks", "history", "lock_counters", "lock_docs", "lock_free_docs", "read_docs", "scan_docs", "scan_all_docs", "owned_docs", "take_inbox",
	"replace_keys", "drop_keys", "update_executions", "update_locked_executions", "update_remembered", "assume_empty", "assume_docs", "hold_executions", "patch_history",
	"drop_history", "dequeue", "dequeue_picked", "drop_timers", "drop_counters",
	"drop_docs", "drop_inbox", "remove_executions", "remove_history", "remove_docs", "strip_docs", "remove_search", "take_due", "take_due_now", "hide_timers", "hide_timers_now", "poll", "read_log", "all_rules",
	"some_classes", "register", "registered_classes",
}

// big are the tables that grow.
var big = []string{"exec", "queue", "lease", "timer", "idem", "doc", "counter", "inbox", "search", "lane", "class"}

// looked are those whose rows are always looked up by their key.
var looked = map[string]bool{"exec": true, "queue": true, "lease": true, "idem": true, "doc": true, "counter": true, "lane": true, "class": true}

// plan is a node of an EXPLAIN.
type plan struct {
	Node      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Condition string  `json:"Index Cond"`
	Rows      float64 `json:"Actual Rows"` // of one loop; 0 unless the statement was run
	Loops     float64 `json:"Actual Loops"`
	Plans     []plan  `json:"Plans"`
}

// read counts the rows of a table that were read when the statement was run.
func (p *plan) read(relation string) float64 {
	var sum float64
	if p.Relation == relation {
		sum = p.Rows * p.Loops
	}
	for i := range p.Plans {
		sum += p.Plans[i].read(relation)
	}
	return sum
}

// complaints lists what must not be in a hot plan: scans of a big table or of a whole index.
func (p *plan) complaints() (list []string) {
	growing := slices.Contains(big, p.Relation) || strings.HasPrefix(p.Relation, "log_p")
	switch {
	case growing && p.Node == "Seq Scan":
		list = append(list, "scans "+p.Relation)
	case looked[p.Relation] && strings.HasPrefix(p.Node, "Index") && p.Condition == "":
		list = append(list, "reads the whole index of "+p.Relation)
	}
	for i := range p.Plans {
		list = append(list, p.Plans[i].complaints()...)
	}
	return list
}

// planOf is the plan that a prepared statement keeps.
func planOf(t *testing.T, tx pgx.Tx, s *Store, name string) *plan {
	t.Helper()
	execute(t, tx, "prepare p as "+s.texts[name])
	var count int
	if err := tx.QueryRow(t.Context(), "select cardinality(parameter_types) from pg_prepared_statements where name = 'p'").Scan(&count); err != nil {
		t.Fatal(err)
	}
	call := "p"
	if count > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("null,", count), ",") + ")"
	}
	var text []byte
	if err := tx.QueryRow(t.Context(), "explain (format json) execute "+call).Scan(&text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	execute(t, tx, "deallocate p")
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return &plans[0].Plan
}

// beginOn begins a transaction on a connection of the store. It is given back when the test ends, also by a failure: the store waits for it
// when it is closed.
func beginOn(t *testing.T, s *Store) pgx.Tx {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// rollBack ends a transaction.
func rollBack(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkPlans looks at the plans that a connection of the store makes, and at those of a transaction behind a pooler, which
// brings its settings itself.
func checkPlans(t *testing.T, s *Store, url, when string) {
	t.Helper()
	own, pooled := beginOn(t, s), beginAt(t, url)
	execute(t, pooled, s.texts["settings"], s.impatient, true, milliseconds(s.cfg.Timeout), milliseconds(s.cfg.IdleLimit))
	for way, tx := range map[string]pgx.Tx{"on a connection of the store": own, "behind a pooler": pooled} {
		for _, name := range hot {
			p := planOf(t, tx, s, name)
			if list := p.complaints(); list != nil {
				text, _ := json.MarshalIndent(p, "", " ")
				t.Errorf("%s, %s, %s: %v\n%s", name, way, when, list, text)
			}
		}
		rollBack(t, tx)
	}
}

func TestHot_statements_use_an_index_on_an_empty_and_on_a_full_table(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	checkPlans(t, s, url, "never analyzed")
	conn := connectAt(t, url)
	execute(t, conn, "analyze")
	checkPlans(t, s, url, "analyzed when empty")
	c := newCycler(t, s, "default")
	for range 20 {
		c.cycle(t, 200)
		c.submit(t, 50)
	}
	checkPlans(t, s, url, "full and analyzed when empty")
	execute(t, conn, "analyze")
	checkPlans(t, s, url, "full and analyzed")
}

func TestS46_thousands_of_rows_blocked_on_one_key_cost_one_step(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	conn := connectAt(t, url)
	execute(t, conn, "insert into queue select class, block, n, gen_random_uuid() from generate_series(1, 3) class, unnest(array[0, 1, 77, 78]) block, generate_series(1, 10000) n")
	for _, step := range []string{"select", "analyze queue", "vacuum queue"} {
		execute(t, conn, step)
		own := beginOn(t, s)
		execute(t, own, "prepare p as "+s.texts["blocks"])
		var text []byte
		if err := own.QueryRow(t.Context(), "explain (analyze, format json) execute p('{1, 3, 4}')").Scan(&text); err != nil {
			t.Fatal(err)
		}
		execute(t, own, "deallocate p")
		rollBack(t, own)
		var plans []struct{ Plan plan }
		if err := json.Unmarshal(text, &plans); err != nil {
			t.Fatal(err)
		}
		if p := &plans[0].Plan; p.Rows != 6 || p.read("queue") > 9 { // and one step for the end of each class
			t.Errorf("after %s: %v numbers found, and %v rows read for them\n%s", step, p.Rows, p.read("queue"), text)
		}
	}
}

func TestEvery_statement_is_understood_by_the_server(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	conn := connectAt(t, url)
	for name, text := range s.texts {
		if _, err := conn.Prepare(t.Context(), name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range s.cold {
		if strings.Contains(text, "{") || strings.HasPrefix(text, "create") {
			continue // run by the tests of maintenance and migration
		}
		if _, err := conn.Prepare(t.Context(), "cold_"+name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPerformance9_claims_and_completions_are_HOT_updates(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	for range 20 {
		c.cycle(t, 100)
	}
	if err := s.Close(); err != nil { // what a connection has counted is shown when it ends; before version 15 an idle one shows nothing
		t.Fatal(err)
	}
	conn := connectAt(t, url)
	var updates, inPlace int
	const query = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'exec' and n_tup_upd >= 4000"
	waitUntil(t, url, fmt.Sprintf("select exists (%s)", query))
	if err := conn.QueryRow(t.Context(), query).Scan(&updates, &inPlace); err != nil {
		t.Fatal(err)
	}
	if inPlace*2 < updates {
		t.Fatalf("%d of %d updates stayed on their page, want most", inPlace, updates)
	}
}
