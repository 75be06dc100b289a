package ops

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// longRead bounds a call that reads the whole store.
const longRead = time.Hour

// Admin is the interface of administrators. With an engine in this process it covers the whole store; with a server, the
// namespaces of the caller's API key, and what belongs to no namespace only with a key for all of them ("*").
type Admin struct{ via transport.Transport }

// APIKeys are the credentials of a server's callers.
func (a Admin) APIKeys() APIKeys { return APIKeys(a) }

// SigningKeys are the keys that sign tokens.
func (a Admin) SigningKeys() SigningKeys { return SigningKeys(a) }

// Namespaces are the tenants of the store.
func (a Admin) Namespaces() Namespaces { return Namespaces(a) }

// AdminAction holds the options of an administrator's change.
type AdminAction struct {
	Reason     string // at most 1024 bytes; recorded in the audit log
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Revision   *int64 // refuse with precondition_failed if the current revision differs; nil: do not compare
}

func (a AdminAction) wire() wire.AdminFields { return wire.AdminFields{Reason: a.Reason} }

// AuditFilter selects rows of the audit log: all given parts must hold. The zero value selects all rows, in pages of 100.
type AuditFilter struct {
	Namespace string // "": all that the caller may see; "*": rows that belong to no namespace
	Principal string
	Action    string
	Entity    string
	EntityID  string
	From      time.Time // at this moment or later
	To        time.Time // before this moment
	Limit     int       // of a page; 0: 100, above 1000 counts as 1000
	Cursor    string    // NextCursor of the page before, with the same filter
}

// Audit iterates over the audit log: by namespace in the order of their names, and within a namespace from the newest row to the
// oldest.
//
// Codes: invalid_cursor.
func (a Admin) Audit(ctx context.Context, o ...AuditFilter) iter.Seq2[api.AuditRow, error] {
	filter, err := transport.Single(o)
	return calls.Walk(err, filter.Cursor, func(cursor string) (api.Page[api.AuditRow], error) {
		filter.Cursor = cursor
		return a.AuditPage(ctx, filter)
	})
}

// AuditPage returns one page of the audit log. Codes: invalid_cursor.
func (a Admin) AuditPage(ctx context.Context, f AuditFilter) (api.Page[api.AuditRow], error) {
	request := &wire.AuditRequest{
		PageFields: calls.PageFields(f.Limit, f.Cursor), Principal: f.Principal, Action: f.Action, Entity: f.Entity, EntityID: f.EntityID,
		From: calls.Time(f.From), To: calls.Time(f.To),
	}
	return calls.Value(transport.Call(ctx, a.via, wire.ListAudit, request, transport.Options{Namespace: f.Namespace}))
}

// VerifyAudit recomputes the chain of a namespace ("": the client's own), or of "*", and finds the first row that was changed or
// is missing. In a store with a master key it also finds a chain that was rewritten, shortened or removed without that key.
//
// Codes: namespace_not_found, namespace_required, master_key_required, master_key_mismatch.
func (a Admin) VerifyAudit(ctx context.Context, namespace string) (api.AuditCheck, error) {
	request, how := &wire.VerifyAuditRequest{}, transport.Options{Namespace: namespace, Wait: longRead}
	if namespace == keyring.Everywhere {
		request.Shared, how.Namespace = true, ""
	}
	return calls.Value(transport.Call(ctx, a.via, wire.VerifyAudit, request, how))
}

// Info returns version, store, features and limits.
func (a Admin) Info(ctx context.Context) (api.Info, error) {
	return calls.Value(transport.Call(ctx, a.via, wire.GetInfo, &wire.None{}, transport.Options{}))
}

// Whoami returns the identity that the client acts as.
func (a Admin) Whoami(ctx context.Context) (api.Principal, error) {
	return calls.Value(transport.Call(ctx, a.via, wire.Whoami, &wire.None{}, transport.Options{}))
}

// Integrity recomputes counters and indexes from the records and returns those that differ. It reads the whole store, in parts.
func (a Admin) Integrity(ctx context.Context) (api.Integrity, error) {
	return calls.Value(transport.Call(ctx, a.via, wire.CheckIntegrity, &wire.None{}, transport.Options{Wait: longRead}))
}

// Doctor checks the store, the work in it and, with a server, the server. A check that cannot be carried out counts as failed.
func (a Admin) Doctor(ctx context.Context) (api.HealthReport, error) {
	return calls.Value(transport.Call(ctx, a.via, wire.RunDoctor, &wire.None{}, transport.Options{Wait: longRead}))
}

// AcknowledgeRollbacks records that an administrator is aware of acknowledged commits that the database lost in a failover or a
// restore: Doctor no longer fails because of them. It returns the losses that were not acknowledged before; none is not an error.
func (a Admin) AcknowledgeRollbacks(ctx context.Context, o ...AdminAction) ([]api.Rollback, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.AcknowledgeRollbacksRequest{}
	request.Body.AdminFields = options.wire()
	answer, err := calls.Value(transport.Call(ctx, a.via, wire.AcknowledgeRollbacks, request, transport.Options{Key: options.RequestKey}))
	return answer.Rollbacks, err
}

// Settings returns the settings in force and the source of each.
func (a Admin) Settings(ctx context.Context) ([]api.Setting, error) {
	answer, err := calls.Value(transport.Call(ctx, a.via, wire.GetSettings, &wire.None{}, transport.Options{}))
	return answer.Settings, err
}

// Backup writes a consistent copy of the whole store while it is in use: for SQLite, the database file. For Postgres it returns
// not_implemented, with the command to use as the hint.
func (a Admin) Backup(ctx context.Context, w io.Writer, o ...BackupOptions) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	return a.via.Do(ctx, wire.MakeBackup.Operation, &wire.None{}, &wire.Sink{To: w, Progress: options.Progress}, transport.Options{})
}

// BackupOptions are the options of Backup.
type BackupOptions struct {
	// Progress is called from time to time with the number of pages copied so far. It is called from other goroutines, one at a
	// time; may be nil.
	Progress func(pages, total int)
}
