package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	rightCode    = "42501" // a right is missing
	databaseCode = "3D000" // there is no such database
	entryClass   = "28"    // the role may not log in
)

// checkRights refuses a role that cannot read and write all tables or cannot create log partitions: otherwise it would fail in the middle of its
// work.
func (s *Store) checkRights(ctx context.Context, conn *pgx.Conn) error {
	var role, owner string
	var missing []string
	if err := conn.QueryRow(ctx, s.cold["missing_rights"]).Scan(&role, &owner, &missing); err != nil || len(missing) == 0 {
		return err
	}
	refused := base.Invalid("store", "the role %s lacks the right %s", role, strings.Join(missing, ", "))
	if role == owner { // a right was revoked
		return refused.WithHint("as superuser: GRANT ALL ON SCHEMA …, GRANT ALL ON ALL TABLES IN SCHEMA …, GRANT ALL ON ALL SEQUENCES IN SCHEMA … TO %s", role)
	}
	return refused.WithHint("let it act for the role that owns the tables: GRANT %s TO %s", owner, role)
}

// unfit explains why a database does not let this role log in, or do what opening a store requires. Other errors are returned unchanged.
func unfit(err error) error {
	var reply *pgconn.PgError
	var known *base.Error
	if errors.As(err, &known) || !errors.As(err, &reply) {
		return err
	}
	switch {
	case reply.Code == rightCode:
		return base.Invalid("store", "the role lacks a right: %w", err).WithHint(grantHint)
	case reply.Code == databaseCode:
		return base.Invalid("store", "there is no such database: %w", err).WithHint("create it, or name another in the address")
	case strings.HasPrefix(reply.Code, entryClass):
		return base.Invalid("store", "the server does not let the role in: %w", err).WithHint("check role and password of the address, and pg_hba.conf")
	default:
		return err
	}
}

const grantHint = "let the role own the tables of the store, or be a member of the role that does, and revoke nothing from it"

// lacksRight is the error of a statement whose right was revoked while the store is open. Only commands that need the right are refused: the others
// of a batch are found by splitting it.
func lacksRight(err error) error {
	return &store.Fault{
		Kind: store.Broken,
		Err:  base.Errorf(base.CodeStoreUnavailable, "the role of the store lacks a right: %w", err).WithRetryAfter(1000).WithHint(grantHint),
	}
}
