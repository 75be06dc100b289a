package flowfabric

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
)

// SubmitTx submits inside the caller's own transaction: the execution exists iff that commits. A refusal leaves the transaction
// usable. The engine files the work within a second of the commit; Client.Nudge after the commit makes that immediate.
//
// The execution it returns is what the commit will make; of a duplicate it is the one that exists, as far as it is known.
//
// Codes: those of Client.Submit, and wrong_database when tx is not on the store's database.
func SubmitTx(ctx context.Context, c Client, tx pgx.Tx, s Submission) (*Execution, error) {
	return c.seam().submitTx(ctx, tx, s)
}

// SubmitSQLTx is SubmitTx for database/sql: on Postgres, and on SQLite when the store is the caller's own file. SQLite has one
// writer: open such a file with _txlock=immediate and a busy timeout, and keep the transaction short.
func SubmitSQLTx(ctx context.Context, c Client, tx *sql.Tx, s Submission) (*Execution, error) {
	return c.seam().submitTx(ctx, tx, s)
}

// submitTx hands the submission to the store through the caller's transaction. Its outcome is the caller's commit, so nothing is
// repeated here.
func (e *embedded) submitTx(ctx context.Context, tx any, s Submission) (*Execution, error) {
	if s.ID == "" {
		s.ID = e.mintID()
	}
	sub, err := s.core(e.namespace)
	if err != nil {
		return nil, err
	}
	answer, err := e.engine.SubmitTx(ctx, e.client, tx, sub)
	if err != nil {
		return nil, publicError(err)
	}
	lane := s.Lane
	if lane == "" {
		lane = core.DefaultLane
	}
	return &Execution{
		ID: idOf(answer.ID), Namespace: e.namespace, Kind: s.Kind, Lane: lane, PublicState: answer.PublicState, Priority: answer.Priority,
		Tags: s.Tags, Creator: e.client.Principal, IdempotencyKey: s.IdempotencyKey, DeadlineAt: s.Deadline,
		Input: s.Input, InputSize: len(s.Input.Data),
	}, nil
}
