package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The results of submit_to_inbox.
const (
	submitWritten = 0
	submitFound   = 1
	submitHeld    = 2
)

// ownTx is the user's transaction, from either library.
type ownTx struct {
	query func(ctx context.Context, sql string, values ...any) scanner // one row of one statement
	each  func(ctx context.Context, read func(scanner) error, sql string, values ...any) error
}

type scanner interface{ Scan(values ...any) error }

func ownTxOf(tx any) (ownTx, error) {
	switch tx := tx.(type) {
	case pgx.Tx:
		return ofPgx(tx), nil
	case *sql.Tx:
		return ofSQL(tx), nil
	default:
		return ownTx{}, base.Invalid("tx", "%T is no transaction that this store can use", tx).WithHint("pass a pgx.Tx or a *sql.Tx")
	}
}

// ofPgx leaves no prepared statements on a connection that belongs to the user.
func ofPgx(tx pgx.Tx) ownTx {
	with := func(values []any) []any { return append([]any{pgx.QueryExecModeExec}, values...) }
	return ownTx{
		query: func(ctx context.Context, sql string, values ...any) scanner {
			return tx.QueryRow(ctx, sql, with(values)...)
		},
		each: func(ctx context.Context, read func(scanner) error, sql string, values ...any) error {
			rows, err := tx.Query(ctx, sql, with(values)...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				if err := read(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		},
	}
}

func ofSQL(tx *sql.Tx) ownTx {
	return ownTx{
		query: func(ctx context.Context, sql string, values ...any) scanner {
			return tx.QueryRowContext(ctx, sql, values...)
		},
		each: func(ctx context.Context, read func(scanner) error, sql string, values ...any) error {
			rows, err := tx.QueryContext(ctx, sql, values...)
			if err != nil {
				return err
			}
			defer rows.Close() //nolint:errcheck // Err has it
			for rows.Next() {
				if err := read(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		},
	}
}

// SubmitTx inserts a key and a submission in the user's own transaction. Codes: invalid_argument (unsupported type of transaction), wrong_database,
// idempotency_in_progress (another open transaction holds the key or the id). After a refusal the user's transaction can continue.
func (s *Store) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	now, _, _, err := s.carried(ctx)
	if err != nil {
		return nil, err
	}
	v, err := s.externalTx().enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	return v.submit(ctx, now, key, row)
}

// submit inserts a key and a submission.
func (v *visit) submit(ctx context.Context, now base.Time, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	var space, keyText, fingerprint, expires, body any
	namespace := ""
	if key != nil {
		space, namespace, keyText, fingerprint, expires = int16(key.Space), key.Namespace, key.Text, blob(key.Fingerprint), int64(key.ExpiresAt)
	}
	if row.Body != nil {
		body = row.Body
	}
	var outcome int
	var foundID sql.NullString
	var foundN sql.NullInt16
	var foundFingerprint, foundBody []byte
	var foundExpires sql.NullInt64
	err := v.query(ctx, v.texts["submit"], space, namespace, keyText, fingerprint, expires,
		row.ID.UUID.String(), int16(row.ID.N), body, int64(now), v.channel(), commitNote()).
		Scan(&outcome, &foundID, &foundN, &foundFingerprint, &foundExpires, &foundBody, new(sql.NullString))
	switch {
	case err != nil:
		return nil, fault(err)
	case outcome == submitWritten:
		return nil, nil
	case outcome == submitHeld:
		return nil, base.Errorf(base.CodeIdempotencyInProgress, "another open transaction submits the same key or id")
	}
	found := &store.Existing{}
	if len(foundBody) > 0 { // otherwise its execution carries outcomes
		found.Body = foundBody
	}
	found.Fingerprint, found.ExpiresAt = foundFingerprint, base.Time(foundExpires.Int64)
	if foundFingerprint != nil {
		found.Key = key.Key
	}
	found.ID.UUID, _ = base.ParseUUID(foundID.String)
	found.ID.N = uint8(foundN.Int16)
	return found, nil
}
