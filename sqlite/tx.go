package sqlite

import (
	"context"
	"database/sql"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// SubmitSQLTx submits inside the caller's own transaction on the file of the store: the execution exists iff that commits. A refusal
// leaves the transaction usable.
//
// SQLite has no notifications. The engine of this process looks for the work from this call on, first after a millisecond and then less and
// less often: the work starts within milliseconds of the commit of a short transaction, and at most an eighth of the time late for which
// a longer one was open, never more than a second. A client of Connect submits so too, and there the server finds the work
// within a second. In both cases Client.Nudge after the commit makes it start at once.
//
// SQLite has one writer: open the file with _txlock=immediate and a busy timeout, and keep the transaction short. A transaction that
// was begun without it waits for its turn here; if it has read before, and something else wrote since, SQLite lets it write no more:
// the code is store_unavailable, and the whole transaction must be run again.
//
// The execution it returns is what the commit will make, or, if the key or the id was used before, the one that exists, as it is.
//
// Codes: those of Client.Submit, and wrong_database when tx is not on the store's file.
func SubmitSQLTx(ctx context.Context, c *flowfabric.Client, tx *sql.Tx, s flowfabric.Submission) (*flowfabric.Execution, error) {
	return inprocess.SubmitTx(ctx, c, tx, s, externalTxs)
}

// CompleteSQLTx ends the work with a result inside a transaction of the handler's own, on the file of the store: the work has succeeded
// if and only if that commits. The handler then returns nil; what it returns besides is ignored. The result is encoded as by Kind;
// flowfabric.None{} is no result.
//
// If the lease was lost, revoked or ended, CompleteSQLTx refuses, and the transaction must be rolled back. A handler that returns nil
// although the transaction was not committed fails its attempt, with the category not_committed.
//
// SQLite has one writer: while the transaction is open, the engine writes nothing at all. Keep it as short as that of SubmitSQLTx, and
// begin it in the same way. How durable the commit is depends on the synchronous setting of the caller's own connection; the rows of the
// handler and the outcome are always lost or kept together.
//
// Codes: stale_lease, lease_revoked, execution_not_active, execution_not_found, payload_too_large, invalid_argument,
// store_unavailable, upgrade_pending, wrong_database.
func CompleteSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, result any) error {
	return t.CompleteIn(ctx, inprocess.LeaveTx(tx, externalTxs), result)
}

// StepSQLTx is flowfabric.Step inside a transaction of the handler's own, on the file of the store: what do writes in the transaction
// and the result of the step are committed together or not at all. Once they are, no later call of the handler in this run runs do
// again: its effects in the file happen exactly once. For a step that is stored already, StepSQLTx returns the result and writes nothing.
//
// The engine can write nothing while do runs: it uses the transaction and no call of the task. Several steps, and CompleteSQLTx or
// SuspendSQLTx after them, may share a transaction.
//
// Codes: those of flowfabric.Step, execution_not_found, upgrade_pending, wrong_database.
func StepSQLTx[T any](ctx context.Context, tx *sql.Tx, t *flowfabric.Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	return flowfabric.StepIn(ctx, t, inprocess.LeaveTx(tx, externalTxs), name, do)
}

// SuspendSQLTx is Task.TrySuspend inside a transaction of the handler's own, on the file of the store: the work waits if and only if
// that commits.
//
//   - It returns nil, nil: commit the transaction, then return flowfabric.ErrParked. The handler is called again when the wait is over.
//   - It returns a Resume if the wait is over, in an earlier call of the handler: nothing was written, and the handler continues with
//     what arrived.
//   - It refuses like CompleteSQLTx, and then the transaction must be rolled back.
//
// Signals that come before the commit count: the handler is then called again at once. Tokens of waitpoints are known before the commit
// if the waitpoints were made with Task.NewWaitpoint; a waitpoint that is made here cannot have an id of its own.
//
// Codes: those of Task.Suspend, execution_not_found, upgrade_pending, wrong_database.
func SuspendSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, s flowfabric.Suspension) (*flowfabric.Resume, error) {
	return t.SuspendIn(ctx, inprocess.LeaveTx(tx, externalTxs), s)
}

var externalTxs = inprocess.ExternalTxs{"sqlite": sqlite.NewExternalTx}
