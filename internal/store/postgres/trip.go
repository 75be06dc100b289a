package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// binaryFormat asks for every argument and every column in binary form.
var binaryFormat = []int16{1}

// preparedKey is where a connection keeps the descriptions of its prepared statements.
const preparedKey = "flowfabric.prepared"

// trip is one round trip: statements that are sent together and answered in order. After a failure the statements that follow
// are not executed.
type trip struct {
	s        *Store
	conn     *pgx.Conn
	prepared map[string]*pgconn.StatementDescription // nil behind a pooler
	frame    *frame
	asked    []statement
	columns  []*column // whose bytes the statements have, to be used again after the trip
	done     int       // statements answered
}

// statement is one of a trip, and what is done with its answer.
type statement struct {
	name   string
	values [][]byte
	row    func(row) error // nil: the rows are of no interest
	meter  *metrics.Statement
}

func (s *Store) trip(conn *pgxpool.Conn) *trip { return s.tripOn(conn.Conn()) }

func (s *Store) tripOn(conn *pgx.Conn) *trip {
	t := &trip{s: s, conn: conn, frame: frameOf(conn.PgConn())}
	t.prepared, _ = t.conn.PgConn().CustomData()[preparedKey].(map[string]*pgconn.StatementDescription)
	return t
}

// add puts a statement into the trip, by its name. read gets each row of its answer; nil: the rows are of no interest.
func (t *trip) add(name string, read func(row) error, values ...[]byte) {
	t.asked = append(t.asked, statement{name, values, read, t.s.meter.Of(name)})
}

// run sends the statements and reads their answers.
func (t *trip) run(ctx context.Context) error {
	pipeline := t.conn.PgConn().StartPipeline(ctx)
	err := t.send(pipeline)
	t.frame.spare.keep(t.columns)
	var failed error
	began := t.s.meter.Now()
	for err == nil && t.done < len(t.asked) {
		var reader *pgconn.ResultReader
		if reader, err = nextResult(pipeline); err != nil {
			break
		}
		asked := &t.asked[t.done]
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
	if err != nil {
		return err
	}
	return failed
}

// send encodes the statements into one message and sends it.
func (t *trip) send(pipeline *pgconn.Pipeline) error {
	t.frame.open()
	for i := range t.asked {
		asked := &t.asked[i]
		if description := t.prepared[asked.name]; description != nil {
			pipeline.SendQueryStatement(description, asked.values, binaryFormat, binaryFormat)
		} else {
			pipeline.SendQueryParams(t.s.texts[asked.name], asked.values, nil, binaryFormat, binaryFormat)
		}
	}
	pipeline.SendPipelineSync()
	t.frame.keep()
	return pipeline.Flush()
}

func nextResult(pipeline *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	result, err := pipeline.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("unexpected answer %T", result)
	}
	return reader, nil
}

// settings puts the settings of a transaction in force. A connection of our own has had them since it was made, but for the
// patience; behind a pooler every transaction must bring them.
func (t *trip) settings(lockWait string) {
	switch {
	case t.s.cfg.pooled():
		t.add("settings", nil, text(lockWait), boolean(true))
	case lockWait != impatient:
		t.add("lock_wait", nil, text(lockWait))
	}
}

// setUp makes a new connection ready for trips, unless it is a pooler's and may be another one with every transaction.
func (s *Store) setUp(ctx context.Context, conn *pgx.Conn) error {
	if s.cfg.pooled() {
		return nil
	}
	if err := s.prepare(ctx, conn); err != nil {
		return err
	}
	t := s.tripOn(conn)
	t.add("settings", nil, text(impatient), boolean(false))
	return t.run(ctx)
}

// prepare makes every statement known to a new connection, in one round trip.
func (s *Store) prepare(ctx context.Context, conn *pgx.Conn) error {
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, name := range s.names {
		pipeline.SendPrepare(name, s.texts[name], nil)
	}
	if err := pipeline.Sync(); err != nil {
		_ = pipeline.Close()
		return err
	}
	prepared := make(map[string]*pgconn.StatementDescription, len(s.names))
	for _, name := range s.names {
		result, err := pipeline.GetResults()
		if err != nil {
			_ = pipeline.Close()
			return fmt.Errorf("statement %s: %w", name, err)
		}
		description, ok := result.(*pgconn.StatementDescription)
		if !ok {
			_ = pipeline.Close()
			return fmt.Errorf("statement %s: unexpected answer %T", name, result)
		}
		description.Name = name
		prepared[name] = description
	}
	conn.PgConn().CustomData()[preparedKey] = prepared
	return pipeline.Close()
}
