package flowfabric

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/transport"
)

// SubmitTx submits inside the caller's own transaction: the execution exists iff that commits. A refusal leaves the transaction
// usable. The engine files the work within a second of the commit; Client.Nudge after the commit makes that immediate.
//
// A client of Connect submits so too: tx is on the database of the server's store, and the server adopts what it left there.
//
// The execution it returns is what the commit will make, or, if the key or the id was used before, the one that exists, as it is.
//
// Codes: those of Client.Submit, and wrong_database when tx is not on the store's database.
func SubmitTx(ctx context.Context, c Client, tx pgx.Tx, s Submission) (*Execution, error) {
	return c.seam().submitTx(ctx, tx, s)
}

// SubmitSQLTx is SubmitTx for database/sql: on Postgres, and on SQLite when the store is the caller's own file. SQLite has one
// writer: open such a file with _txlock=immediate and a busy timeout, and keep the transaction short. A transaction that was begun
// without it waits for its turn here; if it has read before, and somebody else wrote since, SQLite lets it write no more: the
// code is store_unavailable, and the whole transaction must be run again.
func SubmitSQLTx(ctx context.Context, c Client, tx *sql.Tx, s Submission) (*Execution, error) {
	return c.seam().submitTx(ctx, tx, s)
}

// submitTx hands the submission to the store through the caller's transaction.
func (e *embedded) submitTx(ctx context.Context, tx any, s Submission) (*Execution, error) {
	if s.ID == "" {
		s.ID = mintID(e.clock)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	x, err := e.service.SubmitTx(ctx, e.callerWith(ctx, transport.Options{}), tx, &s)
	return x, publicError(err)
}
