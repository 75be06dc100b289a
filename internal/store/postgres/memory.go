package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flowfabric/flowfabric/internal/store"
)

// memory is what this process caches of one incarnation of the database (R1). It is never used for another: a trip that meets an incarnation other
// than that of its memory is repeated with another memory.
type memory struct {
	incarnation string
	carry       carriedClock
	classes     classCache
	log         logReader
}

// name returns an incarnation as text, without a copy if it is the known one.
func (m *memory) name(incarnation []byte) string {
	if string(incarnation) == m.incarnation {
		return m.incarnation
	}
	return string(incarnation)
}

// remembered returns the memory of an incarnation: the one in use if it belongs to it, else a new one that replaces it.
func (s *Store) remembered(incarnation string) *memory {
	known := s.memory.Load()
	for known.incarnation != incarnation {
		fresh := &memory{incarnation: incarnation}
		if s.memory.CompareAndSwap(known, fresh) {
			return fresh
		}
		known = s.memory.Load()
	}
	return known
}

// meetings is how often a trip that meets another incarnation is repeated.
const meetings = 3

// errMet ends a trip that has read with the memory of another incarnation.
var errMet = &store.Fault{Kind: store.Retry, Err: errors.New("the database has another incarnation than before")}

// again runs a trip, and repeats it if it meets another incarnation.
func again(do func() error) (err error) {
	for range meetings {
		if err = do(); !errors.Is(err, errMet) {
			return err
		}
	}
	return err
}

// nameIncarnations inserts the expression that names an incarnation into the statements. Every promotion and every restore of a backup begins a new
// timeline; a server that was set back in any other way was at least restarted. Both values are readable from the server's shared memory by any
// role. If a service does not expose the timeline, only the start time is used.
func (s *Store) nameIncarnations(ctx context.Context, conn *pgx.Conn) error {
	var name string
	err := conn.QueryRow(ctx, "select "+s.cold["incarnation"]).Scan(&name)
	expression := s.cold["incarnation"]
	if lacksFunction(err) {
		expression, err = s.cold["incarnation_without_timeline"], nil
	}
	if err != nil {
		return err
	}
	s.ages = expression
	return s.loadTexts(s.schema)
}

// lacksFunction reports whether the server does not have a function or does not let this role use it.
func lacksFunction(err error) bool {
	var reply *pgconn.PgError
	return errors.As(err, &reply) && (reply.Code == "0A000" || reply.Code == "42883" || reply.Code == rightCode)
}
