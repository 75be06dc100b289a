package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
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
	act func(u *unit, doc *store.Doc) (adminChange, error)
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
	if err := core.CheckReason("reason", cmd.how.Reason); err != nil {
		return err
	}
	if err := core.CheckRequestKey(cmd.how.RequestKey); err != nil {
		return err
	}
	if cmd.how.RequestKey != "" {
		cmd.request = requestRef(cmd.caller, cmd.op, target, cmd.how.RequestKey)
		cmd.fingerprint = fingerprint(args, cmd.how.Reason, cmd.caller.Namespaces)
	}
	return e.do(ctx, cmd)
}

func (a *adminCommand) name() string { return a.op }

func (a *adminCommand) want(w *store.Want, _ bool) {
	w.Docs = append(append(w.Docs, a.ref), a.beside...)
	w.LockDocs = true
	if a.mark != nil {
		w.Docs = append(w.Docs, removalRef(a.mark.key))
	}
	if a.request.Key != "" {
		w.Docs = append(w.Docs, a.request)
	}
}

func (a *adminCommand) chains(u *unit) []string {
	if !a.caller.audits() {
		return nil
	}
	names, err := a.where(u.doc(a.ref))
	if err != nil {
		return nil // and decide refuses the command for the same reason
	}
	return names
}

func (a *adminCommand) decide(u *unit) error {
	if repeated, err := u.repeated(a.caller, a.request, a.fingerprint, a.answer); repeated || err != nil {
		return err
	}
	change, err := a.act(u, u.doc(a.ref))
	if err != nil {
		return err
	}
	if change.entity != "" {
		a.write(u, change)
	}
	u.recordRequest(a.request, a.fingerprint, a.answer)
	return nil
}

func (a *adminCommand) write(u *unit, change adminChange) {
	switch doc := (store.Doc{DocRef: a.ref, Body: change.body}); {
	case change.body == nil:
		u.dropDoc(a.ref)
	case change.made: // if another transaction inserts it first, the commit fails with Conflict
		setIn(&u.docs, a.ref, &doc)
		u.ch.NewDocs = append(u.ch.NewDocs, doc)
	default:
		u.putDoc(doc)
	}
	if !a.caller.audits() { // the engine itself
		return
	}
	u.audit(a.caller, core.AuditRow{
		Namespace: change.chain, Action: a.op, Entity: change.entity, EntityID: change.id, Reason: a.how.Reason,
	}, change.before, change.after)
}

// Limits are the bounds that this engine was set up with.
func (e *Engine) Limits() core.Limits { return e.cfg.Limits }

// Config returns the configuration of this engine, with the defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Backup writes a consistent copy of the whole store to a new file, or returns not_implemented if the store cannot. It reports progress in pages.
func (e *Engine) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	backuper, ok := e.store.(store.Backuper)
	if !ok {
		refusal := core.Errorf(core.CodeNotImplemented, "this store is copied by its own tools")
		if dumper, ok := e.store.(store.Dumper); ok {
			refusal = refusal.WithHint("run: %s (the password comes from PGPASSWORD or ~/.pgpass)", dumper.DumpLine())
		}
		return refusal
	}
	if err := backuper.Backup(ctx, path, progress); err != nil {
		return publicFault(err)
	}
	return nil
}
