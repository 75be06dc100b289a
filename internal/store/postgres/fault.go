package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// fault classifies a failure of a transaction whose commit was not sent yet: nothing was written.
func fault(err error) error {
	if err == nil {
		return nil
	}
	var already *store.Fault
	var refused *base.Error
	if errors.As(err, &already) || errors.As(err, &refused) {
		return err
	}
	switch {
	case isCode(err, rightCode):
		return lacksRight(err)
	case isCode(err, goneTableCode), isCode(err, goneSchemaCode):
		return &store.Fault{Kind: store.Broken, Err: base.Errorf(base.CodeStoreUnavailable, "the tables of the store are not where they were: %w", err).
			WithHint("they were moved to another schema or removed; restart this program")}
	case isCode(err, fullCode):
		return store.NoRoom(err)
	case isCode(err, "XX001"), isCode(err, "XX002"):
		return &store.Fault{Kind: store.Broken, Err: base.Errorf(base.CodeCorruption, "the database is damaged: %w", err).WithHint("go back to a backup")}
	}
	return &store.Fault{Kind: kindOf(err), Err: err}
}

// commitFault is fault for a trip that ends with the commit. If the server did not answer, or reported its shutdown at the commit, it is unknown
// whether it had committed before. reached reports whether everything before the commit was answered.
func commitFault(err error, reached bool) error {
	if err == nil {
		return nil
	}
	if answered(err, reached) || pgconn.SafeToRetry(err) {
		return fault(err)
	}
	return &store.Fault{Kind: store.Unknown, Err: err}
}

// answered reports whether the server itself reported that the transaction failed. Class 08 is reported by a pooler that has lost the server.
func answered(err error, reached bool) bool {
	var reply *pgconn.PgError
	if !errors.As(err, &reply) || strings.HasPrefix(reply.Code, "08") {
		return false
	}
	return reply.SeverityUnlocalized == "ERROR" || reply.Code == idleCode || !reached && strings.HasPrefix(reply.Code, "57P")
}

// kindOf maps SQLSTATEs to kinds of fault.
func kindOf(err error) store.FaultKind {
	var reply *pgconn.PgError
	if !errors.As(err, &reply) {
		// No answer: the connection was lost or could not be made, or the deadline was exceeded.
		return store.Unavailable
	}
	switch {
	case reply.Code == "23505":
		return store.Conflict
	case reply.Code == busyCode:
		return store.Busy
	case reply.Code == "40001", reply.Code == deadlockCode, reply.Code == idleCode:
		return store.Retry
	case reply.Code == "57014", // cancelled: a timeout
		reply.Code == "25006", // a read-only server: a standby after a failover
		reply.Code == "55000", // the same, when asked for its timeline
		strings.HasPrefix(reply.Code, "08"), strings.HasPrefix(reply.Code, "53"), strings.HasPrefix(reply.Code, "57P"):
		return store.Unavailable
	default:
		return store.Broken
	}
}

const (
	deadlockCode   = "40P01"
	busyCode       = "55P03" // a lock was not acquired in time
	idleCode       = "25P03" // the session was ended because it was idle in a transaction, so it had not committed
	goneTableCode  = "42P01"
	goneSchemaCode = "3F000"
	fullCode       = "53100" // the disk is full
	staleCode      = "22012" // how check_dictionary fails
	mistakenCode   = "2201E" // how update_remembered fails
)

// isCode reports whether the server answered with this SQLSTATE.
func isCode(err error, code string) bool {
	var reply *pgconn.PgError
	return errors.As(err, &reply) && reply.Code == code
}

// bounded adds the deadline that every call has.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Timeout)
}
