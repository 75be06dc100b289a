package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// binaryFormat requests every argument and every column in binary form.
var binaryFormat = []int16{1}

// preparedKey is the key under which a connection keeps its prepared statements.
const preparedKey = "flowfabric.prepared"

// prepared holds the statements that a connection has prepared, by name. Each is prepared in the trip that first needs it: most connections need
// few of them.
type prepared map[string]*pgconn.StatementDescription

// trip is one round trip: statements that are sent together and answered in order. The statements after a failed one are not executed.
type trip struct {
	s        *Store
	conn     *pgx.Conn
	prepared prepared // nil on connections that are shared through a pooler
	frame    *frame
	asked    []statement
	columns  []*column // whose bytes the statements use, reused after the trip
	done     int       // statements answered
}

// statement is one statement of a trip, with the handling of its result.
type statement struct {
	name     string
	values   [][]byte
	row      func(row) error // nil: the rows are ignored
	meter    *metrics.Statement
	prepares bool // this trip prepares it: its description comes before its answer
}

func (s *Store) trip(conn *pgxpool.Conn) *trip { return s.tripOn(conn.Conn()) }

func (s *Store) tripOn(conn *pgx.Conn) *trip {
	t := &trip{s: s, conn: conn, frame: frameOf(conn.PgConn())}
	t.prepared, _ = t.conn.PgConn().CustomData()[preparedKey].(prepared)
	return t
}

// add adds a statement to the trip by its name. read is called for each row of its result; nil ignores the rows.
func (t *trip) add(name string, read func(row) error, values ...[]byte) {
	t.asked = append(t.asked, statement{name: name, values: values, row: read, meter: t.s.meter.Of(name)})
}

// run sends the statements and reads their answers.
func (t *trip) run(ctx context.Context) error {
	pipeline := t.conn.PgConn().StartPipeline(ctx)
	err := t.send(pipeline)
	t.frame.spare.keep(t.columns)
	var failed error
	began := t.s.meter.Now()
	for err == nil && t.done < len(t.asked) {
		asked := &t.asked[t.done]
		var reader *pgconn.ResultReader
		if reader, err = t.answer(pipeline, asked); err != nil {
			break
		}
		for reader.NextRow() {
			if asked.row != nil && failed == nil {
				failed = asked.row(reader.Values())
			}
		}
		if _, err = reader.Close(); err != nil {
			break
		}
		answered := t.s.meter.Now()
		asked.meter.Took(answered - began)
		began = answered
		t.done++
	}
	if closing := pipeline.Close(); err == nil && t.done < len(t.asked) {
		err = closing
	}
	if ctx.Err() != nil {
		t.discard(ctx)
	}
	if err != nil {
		t.forget()
		return err
	}
	return failed
}

// discard closes a connection whose context ended before the trip did, even if all answers had arrived by then. pgx interrupts reads by a deadline
// in the past and resets it at the end of the trip, but its background reader, which runs while a write is slow, may have hit the deadline in
// between: it would fail the next trip of the connection.
func (t *trip) discard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	_ = t.conn.Close(ctx)
}

// send encodes the statements into one message and sends it.
func (t *trip) send(pipeline *pgconn.Pipeline) error {
	t.frame.open()
	for i := range t.asked {
		asked := &t.asked[i]
		switch description, known := t.prepared[asked.name]; {
		case t.prepared == nil || !t.s.keeps[asked.name]:
			pipeline.SendQueryParams(t.s.texts[asked.name], asked.values, nil, binaryFormat, binaryFormat)
		case description != nil:
			pipeline.SendQueryStatement(description, asked.values, binaryFormat, binaryFormat)
		default:
			if asked.prepares = !known; asked.prepares {
				t.prepared[asked.name] = nil
				pipeline.SendPrepare(asked.name, t.s.texts[asked.name], nil)
			}
			pipeline.SendQueryPrepared(asked.name, asked.values, binaryFormat, binaryFormat)
		}
	}
	pipeline.SendPipelineSync()
	t.frame.keep()
	return pipeline.Flush()
}

// answer waits for the answer to a statement.
func (t *trip) answer(pipeline *pgconn.Pipeline, asked *statement) (*pgconn.ResultReader, error) {
	if asked.prepares {
		description, err := next[*pgconn.StatementDescription](pipeline)
		if err != nil {
			return nil, fmt.Errorf("statement %s: %w", asked.name, err)
		}
		description.Name = asked.name
		t.prepared[asked.name] = description
	}
	return next[*pgconn.ResultReader](pipeline)
}

// forget removes the statements that the trip was to prepare but did not because of an earlier failure.
func (t *trip) forget() {
	for _, asked := range t.asked {
		if asked.prepares && t.prepared[asked.name] == nil {
			delete(t.prepared, asked.name)
		}
	}
}

func next[A any](pipeline *pgconn.Pipeline) (answer A, err error) {
	result, err := pipeline.GetResults()
	if err != nil {
		return answer, err
	}
	answer, ok := result.(A)
	if !ok {
		return answer, fmt.Errorf("unexpected answer %T", result)
	}
	return answer, nil
}

// settings applies the settings of a transaction. A direct connection has had them since it was made, except for the lock timeout; behind a pooler
// every transaction must set them.
func (t *trip) settings(lockWait string) {
	switch {
	case t.s.cfg.perTransaction():
		t.add("settings", nil, text(lockWait), boolean(true), text(milliseconds(t.s.cfg.Timeout)), text(milliseconds(t.s.cfg.IdleLimit)))
	case lockWait != t.s.impatient:
		t.add("lock_wait", nil, text(lockWait))
	}
}

// setUp prepares a new connection for trips, unless it goes through a pooler and may reach another session with every transaction.
func (s *Store) setUp(ctx context.Context, conn *pgx.Conn) error {
	if s.cfg.pooled() {
		return nil
	}
	conn.PgConn().CustomData()[preparedKey] = prepared{}
	t := s.tripOn(conn)
	t.add("settings", nil, text(s.impatient), boolean(false), text(milliseconds(s.cfg.Timeout)), text(milliseconds(s.cfg.IdleLimit)))
	return t.run(ctx)
}

// milliseconds formats a duration in the server's syntax. It is never 0, which would mean no limit.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", max(1, d.Milliseconds())) }
