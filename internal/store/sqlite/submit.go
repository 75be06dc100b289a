package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SubmitTx leaves a submission in the inbox by the user's own transaction (L88). tx is a *sql.Tx on this very file.
func (s *Store) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.KeyRow, error) {
	own, ok := tx.(*sql.Tx)
	if !ok {
		return nil, core.Errorf(core.CodeWrongDatabase, "a %T is no transaction on the store's file", tx).
			WithHint("give the *sql.Tx of a database/sql connection to the same file")
	}
	if err := s.checkInstallation(ctx, own); err != nil {
		return nil, err
	}
	existing, err := s.existing(ctx, own, key, row.ID)
	if existing != nil || err != nil {
		return existing, fault(err)
	}
	if key != nil {
		_, err = own.ExecContext(ctx, s.statements["replace key"], int64(key.Space), key.Namespace, key.Text, key.Fingerprint, key.ID.UUID[:], int64(key.ID.N), int64(key.ExpiresAt))
	}
	if err == nil {
		_, err = own.ExecContext(ctx, s.statements["insert inbox"], row.ID.UUID[:], int64(row.ID.N), row.Body)
	}
	return nil, fault(err)
}

// checkInstallation refuses a transaction on another database. A copy of this one differs by the identity of its log.
func (s *Store) checkInstallation(ctx context.Context, own *sql.Tx) error {
	var id, logID []byte
	var schema int
	err := own.QueryRowContext(ctx, s.statements["read installation"]).Scan(&id, &logID, &schema)
	switch {
	case isBusy(err), ctx.Err() != nil:
		return fault(err)
	case err != nil:
		return core.Errorf(core.CodeWrongDatabase, "the transaction is not on the store's file: %w", err)
	case string(id) != string(s.info.Installation[:]) || string(logID) != string(s.info.LogID[:]):
		return core.Errorf(core.CodeWrongDatabase, "the transaction is on another store")
	}
	return nil
}

// existing finds what holds the key or the id already.
func (s *Store) existing(ctx context.Context, own *sql.Tx, key *store.KeyRow, id core.ID) (*store.KeyRow, error) {
	if key != nil {
		found := store.KeyRow{Key: key.Key}
		var uuid []byte
		err := own.QueryRowContext(ctx, s.statements["load key"], int64(key.Space), key.Namespace, key.Text).
			Scan(&found.Fingerprint, &uuid, &found.ID.N, (*int64)(&found.ExpiresAt))
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return nil, err
		case found.ExpiresAt > s.now(): // one whose window is over is taken over (L84)
			copy(found.ID.UUID[:], uuid)
			return &found, nil
		}
	}
	found := store.KeyRow{ID: core.ID{UUID: id.UUID}}
	err := own.QueryRowContext(ctx, s.statements["find id"], id.UUID[:]).Scan(&found.ID.N)
	if err == nil {
		return &found, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	return nil, nil
}
