package admin

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// AdminCommand changes one record that no execution owns, such as an API key, a namespace or the signing keys, and writes an audit row for it.
type AdminCommand struct {
	Op          string
	Caller      txn.Caller
	How         AdminAction
	Ref         store.DocRef
	Beside      []store.DocRef // others that act looks at
	request     store.DocRef   // zero: no request key
	fingerprint string
	Answer      any // pointer to what is recorded and given again; nil: only that it was done
	// Where returns the chains that may get a row, once the record is loaded.
	Where func(doc *store.Doc) ([]string, error)
	// Act returns what the record becomes.
	Act func(u *txn.Tx, doc *store.Doc) (AdminChange, error)
}

// AdminAction holds the options of every change by an administrator.
type AdminAction struct {
	Reason     string
	RequestKey string // recorded for 24 h (U13)
	Revision   *int64 // refuse with precondition_failed when the record has another (U17)
}

// AdminChange is what becomes of a record, and what the audit row contains. The zero value means that nothing changed.
type AdminChange struct {
	Body          []byte // nil: the record goes
	Made          bool   // it was not there before
	Chain         string
	Entity, ID    string
	Before, After any
}

// Administer runs a change by an administrator. A repeat is recognised by args.
func (e *Admin) Administer(ctx context.Context, cmd *AdminCommand, target string, args any) error {
	if err := base.CheckReason("reason", cmd.How.Reason); err != nil {
		return err
	}
	if err := base.CheckRequestKey(cmd.How.RequestKey); err != nil {
		return err
	}
	if cmd.How.RequestKey != "" {
		cmd.request = txn.RequestRef(cmd.Caller, cmd.Op, target, cmd.How.RequestKey)
		cmd.fingerprint = txn.Fingerprint(args, cmd.How.Reason, cmd.Caller.Namespaces)
	}
	return e.Do(ctx, cmd)
}

// Name returns the name of the operation.
func (a *AdminCommand) Name() string { return a.Op }

// Want adds the record, locked, and what belongs to it.
func (a *AdminCommand) Want(w *store.Want, _ bool) {
	w.Docs = append(append(w.Docs, a.Ref), a.Beside...)
	w.LockDocs = true
	if a.request.Key != "" {
		w.Docs = append(w.Docs, a.request)
	}
}

// By returns the caller.
func (a *AdminCommand) By() txn.Caller { return a.Caller }

// Chains returns the audit chains that may get a row.
func (a *AdminCommand) Chains(u *txn.Tx) []string {
	if !Audits(a.Caller) {
		return nil
	}
	names, err := a.Where(u.Doc(a.Ref))
	if err != nil {
		return nil // and decide refuses the command for the same reason
	}
	return names
}

// Decide changes the record, or answers a repeat.
func (a *AdminCommand) Decide(u *txn.Tx) error {
	if repeated, err := u.Repeated(a.Caller, a.request, a.fingerprint, a.Answer); repeated || err != nil {
		return err
	}
	change, err := a.Act(u, u.Doc(a.Ref))
	if err != nil {
		return err
	}
	if change.Entity != "" {
		a.write(u, change)
	}
	u.RecordRequest(a.request, a.fingerprint, a.Answer)
	return nil
}

func (a *AdminCommand) write(u *txn.Tx, change AdminChange) {
	switch doc := (store.Doc{DocRef: a.Ref, Body: change.Body}); {
	case change.Body == nil:
		u.DropDoc(a.Ref)
	case change.Made: // if another transaction inserts it first, the commit fails with Conflict
		txn.SetIn(&u.Docs, a.Ref, &doc)
		u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
	default:
		u.PutDoc(doc)
	}
	if !Audits(a.Caller) { // the engine itself
		return
	}
	Audit(u, a.Caller, core.AuditRow{
		Namespace: change.Chain, Action: a.Op, Entity: change.Entity, EntityID: change.ID, Reason: a.How.Reason,
	}, change.Before, change.After)
}

// Limits are the bounds that this engine was set up with.
func (e *Admin) Limits() base.Limits { return e.Cfg.Limits }

// Config returns the configuration of this engine, with the defaults filled in.
func (e *Admin) Config() txn.Config { return e.Cfg }

// Backup writes a consistent copy of the whole store to a new file, or returns not_implemented if the store cannot. It reports progress in pages.
func (e *Admin) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	backuper, ok := e.Store.(store.Backuper)
	if !ok {
		return base.Errorf(base.CodeNotImplemented, "a server does not back up Postgres").
			WithHint("run this where pg_dump is installed: flowfabric backup FILE --store postgres://…")
	}
	if err := backuper.Backup(ctx, path, progress); err != nil {
		return txn.PublicFault(err)
	}
	return nil
}

// ChangesRules reports whether the record is a rule.
func (a *AdminCommand) ChangesRules() bool { return a.Ref.Kind.Rule() }
