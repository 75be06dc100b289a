package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqltext"
)

// externalTx accepts submissions and outcomes through a transaction of the user.
type externalTx struct {
	statements map[string]string
	policies   store.Policies
	info       store.Info
	now        func() base.Time
	patience   time.Duration // for other writers
}

// externalTxPatience is the patience of an externalTx that does not know the store's own.
const externalTxPatience = 5 * time.Second

// NewExternalTx returns the ExternalTx of a store that another process has open; info is the Info of that store. The file is on this host, and so is its
// clock.
func NewExternalTx(info store.Info) (store.ExternalTx, error) {
	statements, err := sqltext.Load(statementFiles, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	host := clock.System()
	return &externalTx{statements: statements, info: info, now: func() base.Time { return base.TimeOf(host.Now()) }, patience: externalTxPatience}, nil
}

// outcomesSince is the first schema of files that programs refuse which do not understand outcomes.
const outcomesSince = 3

// enter checks the user's transaction and gives it the right to write.
func (g *externalTx) enter(ctx context.Context, tx any) (own *sql.Tx, schema int, err error) {
	own, ok := tx.(*sql.Tx)
	if !ok {
		return nil, 0, base.Errorf(base.CodeWrongDatabase, "a %T is no transaction on the store's file", tx).
			WithHint("give the *sql.Tx of a database/sql connection to the same file")
	}
	if err := g.takeTurn(ctx, own); err != nil {
		return nil, 0, err
	}
	schema, err = g.checkInstallation(ctx, own)
	return own, schema, err
}

// Glance reads clock, lane and a small record.
func (g *externalTx) Glance(ctx context.Context, tx any, lane string, ref store.DocRef) (store.Glance, error) {
	own, _, err := g.enter(ctx, tx)
	if err != nil {
		return store.Glance{}, err
	}
	seen := store.Glance{Now: g.now()}
	var settings string
	switch err := own.QueryRowContext(ctx, g.statements["lane settings"], lane).Scan(&settings); {
	case err == nil:
		seen.Lane = &core.LaneSettings{}
		if err := json.Unmarshal([]byte(settings), seen.Lane); err != nil {
			return store.Glance{}, base.Errorf(base.CodeCorruption, "the stored settings of lane %s cannot be read: %w", lane, err)
		}
	case !errors.Is(err, sql.ErrNoRows):
		return store.Glance{}, fault(err)
	}
	doc := store.Doc{DocRef: ref}
	switch err := own.QueryRowContext(ctx, g.statements["load doc"], "", int64(ref.Kind), ref.Key).Scan(&doc.Body, &doc.Data, (*int64)(&doc.ExpiresAt)); {
	case err == nil:
		doc = doc.Unsealed()
		seen.Doc = &doc
	case !errors.Is(err, sql.ErrNoRows):
		return store.Glance{}, fault(err)
	}
	return seen, nil
}
