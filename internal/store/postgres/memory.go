package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flowfabric/flowfabric/internal/store"
)

// memory is what this process remembers of one incarnation of the database (R1). It is never that of another: a trip that meets another
// incarnation than that of the memory it began with is done again, with another memory.
type memory struct {
	incarnation string
	carry       carriedClock
	classes     classCache
	log         logReader
}

// name is an incarnation as text, without a copy of the one that is known.
func (m *memory) name(incarnation []byte) string {
	if string(incarnation) == m.incarnation {
		return m.incarnation
	}
	return string(incarnation)
}

// remembered is the memory of an incarnation: that in use if it is of this one, else a new one that takes its place.
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

// meetings is how often a trip is done again that meets another incarnation.
const meetings = 3

// errMet ends a trip that has read by the memory of another incarnation.
var errMet = &store.Fault{Kind: store.Retry, Err: errors.New("the database has another incarnation than before")}

// again does a trip, and does it again if it meets another incarnation.
func again(do func() error) (err error) {
	for range meetings {
		if err = do(); !errors.Is(err, errMet) {
			return err
		}
	}
	return err
}

// nameIncarnations puts what names an incarnation into the statements. A timeline begins with every promotion and every restore of a
// backup; a server that was set back in any other way was at least started anew. Both are read from memory that the server shares, by
// any role. Where a service does not tell the timeline, the start alone must do.
func (s *Store) nameIncarnations(ctx context.Context, conn *pgx.Conn) error {
	var name string
	err := conn.QueryRow(ctx, "select "+s.cold["incarnation"]).Scan(&name)
	expression := s.cold["incarnation"]
	if lacksFunction(err) {
		expression, err = s.cold["incarnation_without_timeline"], nil
	}
	delete(s.cold, "incarnation")
	delete(s.cold, "incarnation_without_timeline")
	for _, texts := range []map[string]string{s.texts, s.cold} {
		for statement, text := range texts {
			texts[statement] = strings.ReplaceAll(text, "{incarnation}", expression)
		}
	}
	return err
}

// lacksFunction reports whether the server does not have, or does not let this role use, a function.
func lacksFunction(err error) bool {
	var reply *pgconn.PgError
	return errors.As(err, &reply) && (reply.Code == "0A000" || reply.Code == "42883" || reply.Code == rightCode)
}
