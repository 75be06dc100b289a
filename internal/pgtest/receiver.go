package pgtest

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// ReceiverName is the name under which Receiver connects, for synchronous_standby_names.
const ReceiverName = "receiver"

// Receiver lets a receiver of the server's log connect, which counts as a standby, until the test ends. It keeps nothing and confirms everything.
// It speaks the protocol itself: not every package of Postgres has pg_receivewal.
func (s *Server) Receiver(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgconn.Connect(ctx, s.URL()+"&replication=true&application_name="+ReceiverName)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	living, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = receive(living, conn) // ends with the test, or with the server
		_ = conn.Close(context.Background())
	}()
	tb.Cleanup(func() {
		end()
		<-ended
	})
	if err := s.welcome(ctx, "select 1 / count(*) from pg_stat_replication where state = 'streaming'"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// receive asks for the log from where it ends, and confirms what comes.
func receive(ctx context.Context, conn *pgconn.PgConn) error {
	system, err := conn.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		return err
	}
	conn.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION PHYSICAL " + string(system[0].Rows[0][2])})
	if err := conn.Frontend().Flush(); err != nil {
		return err
	}
	var reached uint64
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok {
			continue
		}
		switch data.Data[0] {
		case 'w': // start of the data, end of the log, clock, data
			reached = max(reached, binary.BigEndian.Uint64(data.Data[1:])+uint64(len(data.Data)-25))
		case 'k': // end of the log, clock, whether an answer is wanted
			reached = max(reached, binary.BigEndian.Uint64(data.Data[1:]))
		}
		conn.Frontend().Send(&pgproto3.CopyData{Data: confirmation(reached)})
		if err := conn.Frontend().Flush(); err != nil {
			return err
		}
	}
}

// confirmation says that the log was written, flushed and applied up to there; the clock is not looked at, no answer is wanted.
func confirmation(reached uint64) []byte {
	message := []byte{'r'}
	for range 3 {
		message = binary.BigEndian.AppendUint64(message, reached)
	}
	return append(message, make([]byte, 9)...)
}
