package postgres

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// logger commits events to the log of a store.
type logger struct {
	t *testing.T
	s *Store
	c *cycler
}

func newLogger(t *testing.T) (*logger, string) {
	s, url := open(t, Config{})
	return &logger{t, s, newCycler(t, s, "default")}, url
}

func (l *logger) commit() int64 {
	l.t.Helper()
	ch := &store.Changes{Events: []core.Event{l.c.event("execution.submitted", l.c.execution(1), 1)}}
	l.c.within(l.t, store.Want{}, func(*store.Loaded) *store.Changes { return ch })
	return ch.Seq
}

// expect expects that a reader gets up to this position.
func (l *logger) expect(position int64) {
	l.t.Helper()
	commits, err := l.s.Log(l.t.Context(), 0, 100)
	if err != nil {
		l.t.Fatal(err)
	}
	last := int64(0)
	for _, c := range commits {
		if c.Seq != last+1 {
			l.t.Fatalf("position %d follows %d", c.Seq, last)
		}
		last = c.Seq
	}
	if last != position {
		l.t.Fatalf("a reader gets to position %d, want %d", last, position)
	}
	answer, err := l.s.Poll(l.t.Context(), store.PollAsk{})
	if err != nil || answer.LogEnd != position {
		l.t.Fatalf("Poll: end %d, %v; want %d", answer.LogEnd, err, position)
	}
}

// expectSoon waits for transactions of the server's own to end: autovacuum has ids too.
func (l *logger) expectSoon(position int64) {
	l.t.Helper()
	for {
		answer, err := l.s.Poll(l.t.Context(), store.PollAsk{})
		if err != nil {
			l.t.Fatal(err)
		}
		if answer.LogEnd >= position {
			l.expect(position)
			return
		}
	}
}

// draw takes the next number of the log in an open transaction, as another process does.
func draw(t *testing.T, tx pgx.Tx) {
	t.Helper()
	execute(t, tx, "select pg_current_xact_id()")
	execute(t, tx, "insert into log values (nextval('log_seq'), 1, '')")
}

func TestE33_a_reader_waits_for_a_number_that_commits_late(t *testing.T) {
	t.Parallel()
	l, url := newLogger(t)
	l.commit()
	late := beginAt(t, url)
	draw(t, late)
	l.commit()
	l.expect(1)
	l.expect(1)
	if answer, err := l.s.Poll(t.Context(), store.PollAsk{}); err != nil || answer.LogNewest != 3 {
		t.Errorf("the newest commit is %d, %v; want 3", answer.LogNewest, err)
	}
	execute(t, late, "commit")
	l.expect(3)
}

func TestE33_a_reader_waits_for_the_number_of_the_last_transaction_that_began(t *testing.T) {
	t.Parallel()
	l, url := newLogger(t)
	first, last := beginAt(t, url), beginAt(t, url)
	execute(t, first, "select pg_current_xact_id()")
	execute(t, last, "select pg_current_xact_id()")
	execute(t, last, "select nextval('log_seq')")
	draw(t, first)
	execute(t, first, "commit")
	l.expect(0)
	l.expect(0)
	l.expect(0) // its id is above all that have ended, but it is there
	execute(t, last, "insert into log values (1, 1, '')")
	execute(t, last, "commit")
	l.expect(2)
}

func TestE33_a_number_lost_with_its_process_is_passed_as_soon_as_no_transaction_can_bring_it(t *testing.T) {
	t.Parallel()
	l, url := newLogger(t)
	bystander, lost := beginAt(t, url), beginAt(t, url)
	execute(t, bystander, "select pg_current_xact_id()")
	draw(t, lost)
	var pid int
	if err := lost.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	killer := connectAt(t, url)
	execute(t, killer, "select pg_terminate_backend($1)", pid)
	waitUntil(t, url, "select not exists (select from pg_stat_activity where pid = "+strconv.Itoa(pid)+")")
	l.commit()
	l.expect(0)
	l.expect(0) // the bystander might have drawn it
	execute(t, bystander, "commit")
	l.expectSoon(2)
}

func TestE33_a_writer_that_fails_after_drawing_fills_its_number(t *testing.T) {
	t.Parallel()
	l, url := newLogger(t)
	bystander, conn := beginAt(t, url), connectAt(t, url)
	execute(t, bystander, "select pg_current_xact_id()")
	execute(t, conn, `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`)
	execute(t, conn, "create constraint trigger refuse after insert on exec deferrable initially deferred for each row execute function refuse()")
	tx, got, err := l.s.Begin(t.Context(), store.Want{})
	if err != nil {
		t.Fatal(err)
	}
	x := l.c.execution(got.Now)
	err = tx.Commit(t.Context(), &store.Changes{Insert: []*core.Execution{x}, Events: []core.Event{l.c.event("execution.submitted", x, 1)}})
	if store.FaultOf(err) != store.Broken {
		t.Fatalf("a commit that is refused at its end: %v", err)
	}
	l.commit()
	l.expect(2) // although the bystander is still there
}

func TestE37_partitions_are_made_ahead_and_dropped_with_what_is_too_old(t *testing.T) {
	t.Parallel()
	l, url := newLogger(t)
	conn := connectAt(t, url)
	l.commit()
	// As if a whole partition had been written and read.
	execute(t, conn, "select setval('log_seq', $1)", int64(partitionRows-1))
	execute(t, conn, "update installation set log_floor = $1", int64(partitionRows-2))
	execute(t, conn, "insert into log values ($1, 5, '')", int64(partitionRows-1))
	if seq := l.commit(); seq != partitionRows {
		t.Fatalf("position %d, want %d", seq, partitionRows)
	}
	if err := l.s.Maintain(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	var partitions []string
	if err := conn.QueryRow(t.Context(), `select array_agg(inhrelid::regclass::text order by 1) from pg_inherits where inhparent = 'log'::regclass`).Scan(&partitions); err != nil {
		t.Fatal(err)
	}
	if len(partitions) != 3 || partitions[0] != partitionName(1) {
		t.Fatalf("partitions %v, want three from %s on", partitions, partitionName(1))
	}
	answer, err := l.s.Poll(t.Context(), store.PollAsk{})
	if err != nil || answer.LogStart != partitionRows-1 || answer.LogEnd != partitionRows {
		t.Fatalf("Poll: %+v, %v", answer, err)
	}
}
