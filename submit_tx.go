package flowfabric

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
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

// submitTx hands the submission to the store through the caller's transaction. Its outcome is the caller's commit, so nothing is
// repeated here.
func (e *embedded) submitTx(ctx context.Context, tx any, s Submission) (*Execution, error) {
	if s.ID == "" {
		s.ID = e.mintID()
	}
	home, err := e.home(ctx)
	if err != nil {
		return nil, err
	}
	sub, err := s.core(home)
	if err != nil {
		return nil, err
	}
	sub.Trace = e.traceOf(ctx)
	answer, err := e.engine.SubmitTx(ctx, e.asClient(ctx), tx, sub)
	if err != nil {
		return nil, s.asGiven(publicError(err))
	}
	return txExecution(answer, &sub), nil
}

// txExecution shows what a transactional submit found or made.
func txExecution(answer engine.TxAnswer, sub *core.Submission) *Execution {
	if answer.View.Execution == nil { // of an old key nothing is left but the id
		return &Execution{
			ID: idOf(answer.ID), Partition: int(answer.ID.N), Namespace: sub.Namespace, Kind: sub.Kind, Lane: cmp.Or(sub.Lane, core.DefaultLane),
			IdempotencyKey: sub.IdempotencyKey,
		}
	}
	return service.ExecutionOf(answer.View)
}
