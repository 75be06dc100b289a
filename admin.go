package flowfabric

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// longRead is how long a call may take that reads everything.
const longRead = time.Hour

// Admin is what administrators do. An engine in this process administers its whole store; a caller of a server the namespaces that
// its API key is for, and what belongs to none only with a key for all of them ("*").
type Admin struct{ via transport.Transport }

// APIKeys are the credentials of a server's callers.
func (a Admin) APIKeys() APIKeys { return APIKeys(a) }

// SigningKeys are the keys that sign tokens.
func (a Admin) SigningKeys() SigningKeys { return SigningKeys(a) }

// Namespaces are the tenants of the store.
func (a Admin) Namespaces() Namespaces { return Namespaces(a) }

// AdminAction is what an administrator's change may carry.
type AdminAction struct {
	Reason     string // at most 1024 bytes; stands in the audit log
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Revision   *int64 // refuse with precondition_failed when it is another; nil: whatever it is
}

func (a AdminAction) wire() wire.AdminFields { return wire.AdminFields{Reason: a.Reason} }

// AuditFilter selects rows of the audit log: all given parts must hold. The zero value: all rows, in pages of 100.
type AuditFilter struct {
	Namespace string // "": all that the caller sees; "*": what belongs to none
	Principal string
	Action    string
	Entity    string
	EntityID  string
	From      time.Time // at this moment or later
	To        time.Time // before this moment
	Limit     int       // of a page; 0: 100, above 1000 counts as 1000
	Cursor    string    // NextCursor of the page before, with the same filter
}

// AuditRow is one row of the audit log: a change made with the role operate or admin, or a refusal. Rows of a namespace form a
// chain: each has the hash of the one before.
type AuditRow = api.AuditRow

// AuditCheck is the outcome of VerifyAudit.
type AuditCheck = api.AuditCheck

// Refusal is a call that a valid credential may not make.
type Refusal struct {
	Namespace string // "": that of the caller
	Action    string // that was asked for, as AuditRow calls it
	Entity    string
	EntityID  string
	Code      string // role_required, namespace_forbidden
}

// Info is what a client runs on.
type Info = api.Info

// StoreInfo is what a store is.
type StoreInfo = api.StoreInfo

// Identity is who a client acts for.
type Identity = api.Principal

// IntegrityReport is the outcome of Integrity.
type IntegrityReport = api.Integrity

// Difference is something that does not agree with the records.
type Difference = api.Difference

// Audit iterates over the audit log: namespace by namespace in order of their names, in each the newest row first.
//
// Codes: invalid_cursor.
func (a Admin) Audit(ctx context.Context, o ...AuditFilter) iter.Seq2[AuditRow, error] {
	filter, err := transport.Single(o)
	return walk(err, filter.Cursor, func(cursor string) (Page[AuditRow], error) {
		filter.Cursor = cursor
		return a.AuditPage(ctx, filter)
	})
}

// AuditPage returns one page of the audit log. Codes: invalid_cursor.
func (a Admin) AuditPage(ctx context.Context, f AuditFilter) (Page[AuditRow], error) {
	request := &wire.AuditRequest{
		PageFields: pageFields(f.Limit, f.Cursor), Principal: f.Principal, Action: f.Action, Entity: f.Entity, EntityID: f.EntityID,
		From: wireTime(f.From), To: wireTime(f.To),
	}
	return value(transport.Call(ctx, a.via, wire.ListAudit, request, transport.Options{Namespace: f.Namespace}))
}

// VerifyAudit recomputes the chain of a namespace ("": the client's own), or of "*", and finds the first row that was changed or
// is missing. In a store with a master key it also finds a chain that was rewritten, shortened or removed by somebody without it.
//
// Codes: namespace_not_found, namespace_required, master_key_required, master_key_mismatch.
func (a Admin) VerifyAudit(ctx context.Context, namespace string) (AuditCheck, error) {
	request, how := &wire.VerifyAuditRequest{}, transport.Options{Namespace: namespace, Wait: longRead}
	if namespace == keyring.Everywhere {
		request.Shared, how.Namespace = true, ""
	}
	return value(transport.Call(ctx, a.via, wire.VerifyAudit, request, how))
}

// RecordRefusal writes into the audit log that a valid credential was refused. Servers do so; Connect clients cannot:
// not_implemented.
func (a Admin) RecordRefusal(ctx context.Context, r Refusal) error {
	request := wire.RecordRefusalRequest(r)
	_, err := transport.Call(ctx, a.via, wire.RecordRefusal, &request, transport.Options{})
	return err
}

// OnlyNamespace reports whether there is no other namespace than this one: none that was set up, that a key is for, that a live
// worker serves or that has executions, flows or budgets. Servers ask; Connect clients cannot: not_implemented.
func (a Admin) OnlyNamespace(ctx context.Context, name string) (bool, error) {
	return value(transport.Call(ctx, a.via, wire.OnlyNamespace, &wire.ByNamespace{Name: name}, transport.Options{}))
}

// Info returns version, store, features and limits.
func (a Admin) Info(ctx context.Context) (Info, error) {
	return value(transport.Call(ctx, a.via, wire.GetInfo, &wire.None{}, transport.Options{}))
}

// Whoami returns for whom the client acts.
func (a Admin) Whoami(ctx context.Context) (Identity, error) {
	return value(transport.Call(ctx, a.via, wire.Whoami, &wire.None{}, transport.Options{}))
}

// Integrity recounts what is counted and filed twice, and returns what does not agree. It reads everything, in parts.
func (a Admin) Integrity(ctx context.Context) (IntegrityReport, error) {
	return value(transport.Call(ctx, a.via, wire.CheckIntegrity, &wire.None{}, transport.Options{Wait: longRead}))
}

// Doctor looks at the store, at the work in it and, through a server, at the server, and returns what is not as it should be. What
// cannot be looked at is a check that failed.
func (a Admin) Doctor(ctx context.Context) (Checkup, error) {
	return value(transport.Call(ctx, a.via, wire.RunDoctor, &wire.None{}, transport.Options{Wait: longRead}))
}

// AcknowledgeRollbacks states that an administrator knows of acknowledged commits that the database came back without, after a
// failover or a restore: Doctor fails no more on their account. It returns those that were open; none is no error.
func (a Admin) AcknowledgeRollbacks(ctx context.Context, o ...AdminAction) ([]Rollback, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.AcknowledgeRollbacksRequest{}
	request.Body.AdminFields = options.wire()
	answer, err := value(transport.Call(ctx, a.via, wire.AcknowledgeRollbacks, request, transport.Options{Key: options.RequestKey}))
	return answer.Rollbacks, err
}

// Settings returns the settings in force and where each came from.
func (a Admin) Settings(ctx context.Context) ([]Setting, error) {
	answer, err := value(transport.Call(ctx, a.via, wire.GetSettings, &wire.None{}, transport.Options{}))
	return answer.Settings, err
}

// Backup writes a consistent copy of the whole store while it is in use: of SQLite the file. Postgres has its own means:
// not_implemented, with the command as hint.
func (a Admin) Backup(ctx context.Context, w io.Writer, o ...BackupOptions) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	return a.via.Do(ctx, wire.MakeBackup.Operation, &wire.None{}, &wire.Sink{To: w, Progress: options.Progress}, transport.Options{})
}
