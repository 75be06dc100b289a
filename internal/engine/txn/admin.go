package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// adminCommand changes one record that no execution owns, such as an API key, a namespace or the signing keys, and writes an audit row for it.
type adminCommand struct {
	op          string
	caller      Caller
	how         AdminAction
	ref         store.DocRef
	mark        *removalMark   // that goes with the record; nil: none
	beside      []store.DocRef // others that act looks at
	request     store.DocRef   // zero: no request key
	fingerprint string
	answer      any // pointer to what is recorded and given again
	// where returns the chains that may get a row, once the record is loaded.
	where func(doc *store.Doc) ([]string, error)
	// act returns what the record becomes.
	act func(u *Tx, doc *store.Doc) (adminChange, error)
}

// AdminAction holds the options of every change by an administrator.
type AdminAction struct {
	Reason     string
	RequestKey string // recorded for 24 h (U13)
	Revision   *int64 // refuse with precondition_failed when the record has another (U17)
}

// adminChange is what becomes of a record, and what the audit row contains. The zero value means that nothing changed.
type adminChange struct {
	body          []byte // nil: the record goes
	made          bool   // it was not there before
	chain         string
	entity, id    string
	before, after any
}

// administer runs a change by an administrator. A repeat is recognised by args.
func (e *Engine) administer(ctx context.Context, cmd *adminCommand, target string, args any) error {
	if err := base.CheckReason("reason", cmd.how.Reason); err != nil {
		return err
	}
	if err := base.CheckRequestKey(cmd.how.RequestKey); err != nil {
		return err
	}
	if cmd.how.RequestKey != "" {
		cmd.request = RequestRef(cmd.caller, cmd.op, target, cmd.how.RequestKey)
		cmd.fingerprint = Fingerprint(args, cmd.how.Reason, cmd.caller.Namespaces)
	}
	return e.Do(ctx, cmd)
}

func (a *adminCommand) Name() string { return a.op }

func (a *adminCommand) Want(w *store.Want, _ bool) {
	w.Docs = append(append(w.Docs, a.ref), a.beside...)
	w.LockDocs = true
	if a.mark != nil {
		w.Docs = append(w.Docs, removalRef(a.mark.key))
	}
	if a.request.Key != "" {
		w.Docs = append(w.Docs, a.request)
	}
}

func (a *adminCommand) Chains(u *Tx) []string {
	if !a.caller.Audits() {
		return nil
	}
	names, err := a.where(u.Doc(a.ref))
	if err != nil {
		return nil // and decide refuses the command for the same reason
	}
	return names
}

func (a *adminCommand) Decide(u *Tx) error {
	if repeated, err := u.Repeated(a.caller, a.request, a.fingerprint, a.answer); repeated || err != nil {
		return err
	}
	change, err := a.act(u, u.Doc(a.ref))
	if err != nil {
		return err
	}
	if change.entity != "" {
		a.write(u, change)
	}
	u.RecordRequest(a.request, a.fingerprint, a.answer)
	return nil
}

func (a *adminCommand) write(u *Tx, change adminChange) {
	switch doc := (store.Doc{DocRef: a.ref, Body: change.body}); {
	case change.body == nil:
		u.dropDoc(a.ref)
	case change.made: // if another transaction inserts it first, the commit fails with Conflict
		SetIn(&u.docs, a.ref, &doc)
		u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
	default:
		u.PutDoc(doc)
	}
	if !a.caller.Audits() { // the engine itself
		return
	}
	u.Audit(a.caller, core.AuditRow{
		Namespace: change.chain, Action: a.op, Entity: change.entity, EntityID: change.id, Reason: a.how.Reason,
	}, change.before, change.after)
}

// Limits are the bounds that this engine was set up with.
func (e *Engine) Limits() base.Limits { return e.Cfg.Limits }

// Config returns the configuration of this engine, with the defaults filled in.
func (e *Engine) Config() Config { return e.Cfg }

// Backup writes a consistent copy of the whole store to a new file, or returns not_implemented if the store cannot. It reports progress in pages.
func (e *Engine) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	backuper, ok := e.Store.(store.Backuper)
	if !ok {
		refusal := base.Errorf(base.CodeNotImplemented, "this store is copied by its own tools")
		if dumper, ok := e.Store.(store.Dumper); ok {
			refusal = refusal.WithHint("run: %s (the password comes from PGPASSWORD or ~/.pgpass)", dumper.DumpLine())
		}
		return refusal
	}
	if err := backuper.Backup(ctx, path, progress); err != nil {
		return PublicFault(err)
	}
	return nil
}
