package postgres

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

// guest accepts submissions and outcomes through a transaction of the user.
type guest struct {
	cold         map[string]string
	installation base.UUID
	policies     store.Policies
	now          func() base.Time // replaces the database's clock; nil: nothing does
	clock        clock.Clock      // measures pauses
}

// NewGuest returns the guest of a store that another process has open; info is the Info of that store.
func NewGuest(info store.Info) (store.Guest, error) {
	cold, err := sqltext.Load(files, "cold/*.sql")
	if err != nil {
		return nil, err
	}
	return &guest{cold: cold, installation: info.Installation, clock: clock.System()}, nil
}

// guest returns what accepts submissions and outcomes for this store.
func (s *Store) guest() *guest {
	return &guest{cold: s.cold, installation: s.info.Installation, now: s.cfg.Now, clock: s.cfg.Clock}
}

// guestTimeout bounds each operation of a guest.
const guestTimeout = 30 * time.Second

// enter wraps the user's transaction.
func (g *guest) enter(ctx context.Context, tx any) (ownTx, error) {
	own, err := ownTxOf(tx)
	if err != nil {
		return ownTx{}, err
	}
	return own, g.checkDatabase(ctx, own)
}

// checkDatabase refuses a transaction on another database. It checks whether the table exists before it reads it, because reading a missing table
// would abort the user's transaction.
func (g *guest) checkDatabase(ctx context.Context, tx ownTx) error {
	wrong := base.Errorf(base.CodeWrongDatabase, "the transaction belongs to another database than this store")
	var exists bool
	var id string
	err := tx.query(ctx, g.cold["installation_exists"]).Scan(&exists)
	if err == nil && exists {
		err = tx.query(ctx, g.cold["installation"]).Scan(&id)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && id != g.installation.String():
		return wrong
	case err != nil:
		return fault(err)
	}
	return nil
}

// Glance reads clock, lane and a small record.
func (g *guest) Glance(ctx context.Context, tx any, lane string, ref store.DocRef) (store.Glance, error) {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	own, err := g.enter(ctx, tx)
	if err != nil {
		return store.Glance{}, err
	}
	var seen store.Glance
	var settings sql.NullString
	var body []byte
	err = own.query(ctx, g.cold["glance"], lane, int16(ref.Kind), []byte(ref.Key)).Scan((*int64)(&seen.Now), &settings, &body)
	if err != nil {
		return store.Glance{}, fault(err)
	}
	if body != nil {
		doc := store.Doc{DocRef: ref, Body: body}.UnsealedBody()
		seen.Doc = &doc
	}
	if settings.Valid {
		seen.Lane = &core.LaneSettings{}
		if err := json.Unmarshal([]byte(settings.String), seen.Lane); err != nil {
			return store.Glance{}, base.Errorf(base.CodeCorruption, "the stored settings of lane %s cannot be read: %w", lane, err)
		}
	}
	return seen, nil
}

// SubmitTx inserts a key and a submission, like that of an open store.
func (g *guest) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	own, err := g.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	var now base.Time
	if err := own.query(ctx, g.cold["glance"], "", int16(0), []byte{}).Scan((*int64)(&now), new(sql.NullString), new([]byte)); err != nil {
		return nil, fault(err)
	}
	return g.submit(ctx, own, now, key, row)
}
