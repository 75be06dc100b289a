package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SubmitTx inserts a submission into the inbox in the user's own transaction (L88). tx is a *sql.Tx on this very file. Codes: wrong_database,
// store_unavailable (the transaction may not write now, and perhaps never).
func (s *Store) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	existing, err := s.externalTx().SubmitTx(ctx, tx, key, row)
	switch {
	case err != nil:
	case existing != nil:
		err = s.settled(ctx) // the user's connection sees commits that are not durable yet
	case row.Body != nil:
		s.await(row.ID.UUID)
	}
	return existing, err
}

// externalTx returns what accepts submissions and outcomes for this store.
func (s *Store) externalTx() *externalTx {
	return &externalTx{statements: s.statements, info: s.Info(), now: s.now, patience: s.cfg.BusyTimeout}
}

// SubmitTx inserts a submission into the inbox, like that of an open store.
func (g *externalTx) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	own, _, err := g.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	existing, err := g.existing(ctx, own, key, row.ID)
	if existing != nil || err != nil || row.Body == nil {
		return existing, fault(err)
	}
	if key != nil {
		_, err = own.ExecContext(ctx, g.statements["replace key"], int64(key.Space), key.Namespace, key.Text, key.Fingerprint, key.ID.UUID[:], int64(key.ID.N), int64(key.ExpiresAt))
	}
	if err == nil {
		_, err = own.ExecContext(ctx, g.statements["insert inbox"], row.ID.UUID[:], int64(row.ID.N), row.Body)
	}
	if err == nil { // every submit checks ids there
		_, err = own.ExecContext(ctx, g.statements["take id"], row.ID.UUID[:], int64(row.ID.N))
	}
	return nil, fault(err)
}

// takeTurn gives the user's transaction the right to write before it reads anything: a transaction that has read, and wants to write after another
// one has written, is refused by SQLite permanently. It waits for another writing transaction. Any other failure is left to the following
// statements.
func (g *externalTx) takeTurn(ctx context.Context, own *sql.Tx) error {
	enough := time.NewTimer(g.patience)
	defer enough.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, retryPause) {
		_, err := own.ExecContext(ctx, g.statements["take turn"])
		switch {
		case !isLocked(err):
			return nil
		case codeOf(err) == sqlite3.SQLITE_BUSY_SNAPSHOT:
			return base.Errorf(base.CodeStoreUnavailable, "the transaction has read what another one has changed since, so that it may not write: %w", err).
				WithHint("roll back and run the whole transaction again; begun with _txlock=immediate in the data source name it takes its turn before it reads")
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			continue
		case <-ctx.Done():
		case <-enough.C:
		}
		again.Stop()
		return base.Errorf(base.CodeStoreUnavailable, "another transaction writes to the store's file: %w", err).WithRetryAfter(retryPause.Milliseconds()).
			WithHint("the transaction can go on: try again, or begin it with _txlock=immediate and a busy timeout in the data source name, so that it waits for its turn")
	}
}

// isLocked reports whether another connection holds the lock. Not every driver exposes SQLite's code; all expose its text.
func isLocked(err error) bool {
	return err != nil && (isBusy(err) || strings.Contains(err.Error(), "database is locked"))
}

// checkInstallation refuses a transaction on another database, and returns its schema. A copy of this one differs in the identity of its log.
func (g *externalTx) checkInstallation(ctx context.Context, own *sql.Tx) (schema int, err error) {
	var id, logID []byte
	err = own.QueryRowContext(ctx, g.statements["read installation"]).Scan(&id, &logID, &schema)
	switch {
	case ctx.Err() != nil:
		return 0, fault(err)
	case err != nil:
		return 0, base.Errorf(base.CodeWrongDatabase, "the transaction is not on the store's file: %w", err)
	case string(id) != string(g.info.Installation[:]) || string(logID) != string(g.info.LogID[:]):
		return 0, base.Errorf(base.CodeWrongDatabase, "the transaction is on another store")
	}
	return schema, nil
}

// existing returns what already has the key or, failing that, the id (L80).
func (g *externalTx) existing(ctx context.Context, own *sql.Tx, key *store.KeyRow, id base.ID) (*store.Existing, error) {
	found, err := g.existingKey(ctx, own, key)
	if found == nil && err == nil {
		found, err = g.existingID(ctx, own, id)
	}
	if found == nil || err != nil {
		return nil, err
	}
	err = own.QueryRowContext(ctx, g.statements["submission of"], found.ID.UUID[:]).Scan(&found.Body)
	if len(found.Body) == 0 { // there is none, or its execution carries outcomes
		found.Body = nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return found, err
}

func (g *externalTx) existingKey(ctx context.Context, own *sql.Tx, key *store.KeyRow) (*store.Existing, error) {
	if key == nil {
		return nil, nil
	}
	found := store.Existing{KeyRow: store.KeyRow{Key: key.Key}}
	var uuid []byte
	err := own.QueryRowContext(ctx, g.statements["load key"], int64(key.Space), key.Namespace, key.Text).
		Scan(&found.Fingerprint, &uuid, &found.ID.N, (*int64)(&found.ExpiresAt))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case found.ExpiresAt <= g.now(): // a key whose window has ended is taken over (L84)
		return nil, nil
	}
	copy(found.ID.UUID[:], uuid)
	return &found, nil
}

func (g *externalTx) existingID(ctx context.Context, own *sql.Tx, id base.ID) (*store.Existing, error) {
	found := store.Existing{KeyRow: store.KeyRow{ID: base.ID{UUID: id.UUID}}}
	err := own.QueryRowContext(ctx, g.statements["find id"], id.UUID[:]).Scan(&found.ID.N)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &found, nil
}
