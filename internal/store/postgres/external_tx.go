package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqltext"
)

// externalTx accepts submissions and outcomes through a transaction of the user.
type externalTx struct {
	tables       string // the schema of the database that has them; "": where the search path of the transaction finds them
	installation base.UUID
	cold         map[string]string
	policies     store.Policies
	now          func() base.Time // replaces the database's clock; nil: nothing does
	clock        clock.Clock      // measures pauses
}

// NewExternalTx returns the ExternalTx of a store that another process has open; info is the Info of that store.
func NewExternalTx(info store.Info) (store.ExternalTx, error) {
	return newExternalTx(info.Tables, info.Installation)
}

// newExternalTx makes an externalTx. Nothing that it does depends on the search path of the user's transaction.
func newExternalTx(tables string, installation base.UUID) (*externalTx, error) {
	cold, err := sqltext.Load(files, "cold/submit.sql")
	if err != nil {
		return nil, err
	}
	g := &externalTx{tables: tables, installation: installation, cold: cold, clock: clock.System()}
	if tables != "" {
		g.cold = g.in(tables)
	}
	return g, nil
}

// externalTx returns what accepts submissions and outcomes for this store.
func (s *Store) externalTx() *externalTx {
	return &externalTx{tables: s.schema, cold: s.cold, installation: s.info.Installation, now: s.cfg.Now, clock: s.cfg.Clock}
}

// in returns the statements for tables in that schema.
func (g *externalTx) in(schema string) map[string]string {
	texts := make(map[string]string, len(g.cold))
	for name, text := range g.cold {
		texts[name] = strings.ReplaceAll(text, "{schema}", quoted(schema))
	}
	return texts
}

// externalTxTimeout bounds each operation of an externalTx.
const externalTxTimeout = 30 * time.Second

// visit is an externalTx in one transaction.
type visit struct {
	*externalTx
	ownTx
	texts    map[string]string
	outcomes bool // every program on the store understands outcomes
}

// enter wraps the user's transaction.
func (g *externalTx) enter(ctx context.Context, tx any) (*visit, error) {
	own, err := ownTxOf(tx)
	if err != nil {
		return nil, err
	}
	v := &visit{externalTx: g, ownTx: own, texts: g.cold}
	schema := g.tables
	if schema == "" {
		if err := own.query(ctx, g.cold["find_installation"]).Scan(&schema); err != nil {
			return nil, absent(err)
		}
		v.texts = g.in(schema)
	}
	return v, v.checkDatabase(ctx, schema)
}

// checkDatabase refuses a transaction on another database. It checks whether the table exists and may be read before it reads it, because a failing
// statement would abort the user's transaction.
func (v *visit) checkDatabase(ctx context.Context, schema string) error {
	var may, exists bool
	var id string
	if err := v.query(ctx, v.texts["installation_exists"], schema).Scan(&may, &exists); err != nil {
		return absent(err)
	}
	switch {
	case !exists:
		return wrongDatabase()
	case !may:
		return base.Invalid("tx", "the role of the transaction lacks the right USAGE on schema %s", schema).
			WithHint("as owner of the schema: GRANT USAGE ON SCHEMA %s TO the role, and the rights on its tables", quoted(schema))
	}
	if err := v.query(ctx, v.texts["installation"]).Scan(&id, &v.outcomes); err != nil {
		return absent(err)
	}
	if id != v.installation.String() {
		return wrongDatabase()
	}
	return nil
}

// checkOutcomes refuses to leave outcomes in a store that programs may use which do not understand them.
func (v *visit) checkOutcomes() error {
	if v.outcomes {
		return nil
	}
	return store.UpgradePending()
}

func wrongDatabase() error {
	return base.Errorf(base.CodeWrongDatabase, "the transaction belongs to another database than this store")
}

// absent is the error of a lookup: without a row there is no store.
func absent(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return wrongDatabase()
	}
	return fault(err)
}

// Glance reads clock, lane and a small record.
func (g *externalTx) Glance(ctx context.Context, tx any, lane string, ref store.DocRef) (store.Glance, error) {
	ctx, cancel := context.WithTimeout(ctx, externalTxTimeout)
	defer cancel()
	v, err := g.enter(ctx, tx)
	if err != nil {
		return store.Glance{}, err
	}
	var seen store.Glance
	var settings sql.NullString
	var body []byte
	err = v.query(ctx, v.texts["glance"], lane, int16(ref.Kind), []byte(ref.Key)).Scan((*int64)(&seen.Now), &settings, &body)
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
func (g *externalTx) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (*store.Existing, error) {
	ctx, cancel := context.WithTimeout(ctx, externalTxTimeout)
	defer cancel()
	v, err := g.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	var now base.Time
	if err := v.query(ctx, v.texts["glance"], "", int16(0), []byte{}).Scan((*int64)(&now), new(sql.NullString), new([]byte)); err != nil {
		return nil, fault(err)
	}
	return v.submit(ctx, now, key, row)
}
