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

// binaryFormat asks for every argument and every column in binary form.
var binaryFormat = []int16{1}

// preparedKey is where a connection keeps its prepared statements.
const preparedKey = "flowfabric.prepared"

// prepared are the statements that a connection knows, by name. Each is prepared in the trip that needs it first: most connections
// need few of them.
type prepared map[string]*pgconn.StatementDescription

// trip is one round trip: statements that are sent together and answered in order. After a failure the statements that follow
// are not executed.
type trip struct {
	s        *Store
	conn     *pgx.Conn
	prepared prepared // nil on connections that are not ours alone
	frame    *frame
	asked    []statement
	columns  []*column // whose bytes the statements have, to be used again after the trip
	done     int       // statements answered
}

// statement is one of a trip, and what is done with its answer.
type statement struct {
	name     string
	values   [][]byte
	row      func(row) error // nil: the rows are of no interest
	meter    *metrics.Statement
	prepares bool // this trip prepares it: its description comes before its answer
}

func (s *Store) trip(conn *pgxpool.Conn) *trip { return s.tripOn(conn.Conn()) }

func (s *Store) tripOn(conn *pgx.Conn) *trip {
	t := &trip{s: s, conn: conn, frame: frameOf(conn.PgConn())}
	t.prepared, _ = t.conn.PgConn().CustomData()[preparedKey].(prepared)
	return t
}

// add puts a statement into the trip, by its name. read gets each row of its answer; nil: the rows are of no interest.
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

// discard closes a connection whose context ended before the trip did, also if all answers had come by then. pgx interrupts reads by a
// deadline in the past and takes that back at the end of the trip, but a reader that it runs in the background while a write is slow may have
// met the deadline in between: it would fail the next trip of the connection.
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

// forget forgets the statements that the trip was to prepare and that a failure before them kept from it.
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

// settings puts the settings of a transaction in force. A connection of our own has had them since it was made, but for the
// patience; behind a pooler every transaction must bring them.
func (t *trip) settings(lockWait string) {
	switch {
	case t.s.cfg.pooled():
		t.add("settings", nil, text(lockWait), boolean(true), text(milliseconds(t.s.cfg.Timeout)), text(milliseconds(t.s.cfg.IdleLimit)))
	case lockWait != t.s.impatient:
		t.add("lock_wait", nil, text(lockWait))
	}
}

// setUp makes a new connection ready for trips, unless it is a pooler's and may be another one with every transaction.
func (s *Store) setUp(ctx context.Context, conn *pgx.Conn) error {
	if s.cfg.pooled() {
		return nil
	}
	conn.PgConn().CustomData()[preparedKey] = prepared{}
	t := s.tripOn(conn)
	t.add("settings", nil, text(s.impatient), boolean(false), text(milliseconds(s.cfg.Timeout)), text(milliseconds(s.cfg.IdleLimit)))
	return t.run(ctx)
}

// milliseconds is a span in the server's words. It is never 0, which would be no limit.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", max(1, d.Milliseconds())) }
