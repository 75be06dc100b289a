package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// SubmitTx submits inside the caller's own transaction on the database of the store: the execution exists iff that commits. A refusal
// leaves the transaction usable. The engines hear of it with the commit and file the work at once; where they hear no notifications,
// because a pooler stands between, within a second.
//
// A client of Connect submits so too: the server takes over what it finds in its database.
//
// The execution it returns is what the commit will make, or, if the key or the id was used before, the one that exists, as it is.
//
// Codes: those of Client.Submit, and wrong_database when tx is not on the store's database.
func SubmitTx(ctx context.Context, c *flowfabric.Client, tx pgx.Tx, s flowfabric.Submission) (*flowfabric.Execution, error) {
	return inprocess.SubmitTx(ctx, c, tx, s, externalTxs)
}

// SubmitSQLTx is SubmitTx for database/sql.
func SubmitSQLTx(ctx context.Context, c *flowfabric.Client, tx *sql.Tx, s flowfabric.Submission) (*flowfabric.Execution, error) {
	return inprocess.SubmitTx(ctx, c, tx, s, externalTxs)
}

// CompleteTx ends the work with a result inside a transaction of the handler's own, on the database of the store: the work has
// succeeded if and only if that commits. The handler then returns nil; what it returns besides is ignored. The result is encoded as
// by Kind; flowfabric.None{} is no result.
//
// If the lease was lost, revoked or ended, CompleteTx refuses, and the transaction must be rolled back: what it has written must not
// be committed beside an outcome that does not count. If it is rolled back, or if its commit fails, the work has not ended: an error that
// the handler returns fails the attempt as usual. A handler that returns nil although the transaction was not committed fails its
// attempt too, with the category not_committed.
//
// Call it last, and commit at once. From the call on, the transaction holds the execution: nothing can happen to it, not even a
// renewal of its lease, and other calls of the task wait. After the commit nothing can undo the outcome: it counts as of the call,
// also if the lease lapses, the work is cancelled or the server dies right afterwards.
//
// A client of Connect does the same, if tx is on the database of its server. The transaction should be READ COMMITTED; at higher levels
// Postgres aborts it when the execution, such as its lease, was changed since it began, and it must be run again.
//
// Codes: stale_lease, lease_revoked, execution_not_active, execution_not_found, payload_too_large, invalid_argument,
// store_unavailable while another transaction holds the execution for long, upgrade_pending while programs may use the store that do not
// understand such outcomes, wrong_database.
func CompleteTx(ctx context.Context, tx pgx.Tx, t *flowfabric.Task, result any) error {
	return t.CompleteIn(ctx, inprocess.LeaveTx(tx, externalTxs), result)
}

// CompleteSQLTx is CompleteTx for database/sql.
func CompleteSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, result any) error {
	return t.CompleteIn(ctx, inprocess.LeaveTx(tx, externalTxs), result)
}

// StepTx is flowfabric.Step inside a transaction of the handler's own, on the database of the store: what do writes in the
// transaction and the result of the step are committed together or not at all. Once they are, no later call of the handler in this run
// runs do again: its effects in the database happen exactly once. For a step that is stored already, StepTx returns the result and
// writes nothing.
//
// It locks the execution before it runs do, as CompleteTx does. So do uses the transaction and no call of the task: such a call, with
// the ctx of do, is invalid_argument. Several steps, and CompleteTx or SuspendTx after them, may share a transaction.
//
// The commit of a step renews the lease. A transaction that stays open longer than the lease and is then rolled back loses it.
//
// Codes: those of flowfabric.Step, execution_not_found, store_unavailable, upgrade_pending, wrong_database.
func StepTx[T any](ctx context.Context, tx pgx.Tx, t *flowfabric.Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	return flowfabric.StepIn(ctx, t, inprocess.LeaveTx(tx, externalTxs), name, do)
}

// StepSQLTx is StepTx for database/sql.
func StepSQLTx[T any](ctx context.Context, tx *sql.Tx, t *flowfabric.Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	return flowfabric.StepIn(ctx, t, inprocess.LeaveTx(tx, externalTxs), name, do)
}

// SuspendTx is Task.TrySuspend inside a transaction of the handler's own, on the database of the store: the work waits if and only if
// that commits.
//
//   - It returns nil, nil: commit the transaction, then return flowfabric.ErrParked. The handler is called again when the wait is over.
//   - It returns a Resume if the wait is over, in an earlier call of the handler: nothing was written, and the handler continues with
//     what arrived.
//   - It refuses like CompleteTx, and then the transaction must be rolled back.
//
// The error is not ErrParked while the transaction is open, because functions that run transactions roll them back when they get an
// error. Signals that come before the commit count: the handler is then called again at once. Tokens of waitpoints are known before
// the commit if the waitpoints were made with Task.NewWaitpoint; a waitpoint that is made here cannot have an id of its own.
//
// Codes: those of Task.Suspend, execution_not_found, store_unavailable, upgrade_pending, wrong_database.
func SuspendTx(ctx context.Context, tx pgx.Tx, t *flowfabric.Task, s flowfabric.Suspension) (*flowfabric.Resume, error) {
	return t.SuspendIn(ctx, inprocess.LeaveTx(tx, externalTxs), s)
}

// SuspendSQLTx is SuspendTx for database/sql.
func SuspendSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, s flowfabric.Suspension) (*flowfabric.Resume, error) {
	return t.SuspendIn(ctx, inprocess.LeaveTx(tx, externalTxs), s)
}

var externalTxs = inprocess.ExternalTxs{"postgres": postgres.NewExternalTx}
