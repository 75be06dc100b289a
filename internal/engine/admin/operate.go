package admin

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Operation is an operator's command on one execution (L107): what it is called, what came with it, what it does.
type Operation struct {
	Name   string
	Op     txn.Operator
	Args   any       // for the fingerprint of the request (W4)
	Answer any       // pointer to what is recorded and given again; nil: nothing but the fact, or the view
	View   *txn.View // shows the execution as the command left it, and a repeat of the command the same (L117)
	Fence  *core.Fence
	Held   *core.Fence                       // of a command that keeps the lease
	Docs   []store.DocRef                    // small records that it looks at
	Wants  func(w *store.Want, id base.UUID) // adds further rows that it looks at; nil: none
	Also   []base.UUID                       // further executions that it concerns
	Locks  []base.UUID                       // flows that it concerns, locked behind those; such a command has its transaction to itself
	Target string                            // what it is about, where that is not the execution: a request key is good for one target (W4)
	// Repeat completes the recorded answer with what is never recorded; nil: nothing is missing.
	Repeat func(u *txn.Tx, x *core.Execution) error
	// Audited is what the audit row contains; nil: how the execution changed.
	Audited func(u *txn.Tx, x *core.Execution) AuditedChange
	// Shows reports that the command is audited although it changes nothing.
	Shows bool
	// Removes reports that the execution no longer exists afterwards: a repeat is then recognised without it.
	Removes bool
	// Behind adds rows that it needs, once the execution is known; nil: none.
	Behind func(u *txn.Tx, w *store.Want, x *core.Execution)
	Act    func(u *txn.Tx, x *core.Execution, fx *core.Effects) (changed bool, err error)
	After  func(u *txn.Tx, ent *txn.Row) // does what follows from the command
}

// Operate runs an operator's command: a repeat of a recorded request gets the recorded answer, then `expect` is compared, then
// the command is judged (L76, L77, L118).
func (e *Admin) Operate(ctx context.Context, c txn.Caller, id base.GivenID, o Operation) error {
	if err := Check(&o.Op); err != nil {
		return err
	}
	cmd := e.NewOperation(c, id, o)
	if len(o.Locks) > 0 {
		return e.DoAlone(ctx, cmd)
	}
	err := e.Do(ctx, cmd)
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.Appeared(ctx, id.UUID) {
		err = e.Do(ctx, cmd)
	}
	return err
}

// NewOperation makes the command of Operate, whose arguments are checked.
func (e *Admin) NewOperation(c txn.Caller, id base.GivenID, o Operation) txn.Command {
	cmd := &operatorCommand{Operation: o, e: e, caller: c, id: id}
	if o.Op.RequestKey != "" {
		cmd.request = txn.RequestRef(c, o.Name, cmp.Or(o.Target, id.UUID.String()), o.Op.RequestKey)
		cmd.request.Owner = txn.Owner(id.UUID) // it goes with the execution (L141)
		cmd.fingerprint = txn.Fingerprint(o.Args, o.Op.Reason, o.Op.Expect)
		if o.Removes {
			cmd.request.Owner = "" // the answer outlives the execution
		}
	}
	return cmd
}

// Check checks the arguments that every operator command has.
func Check(op *txn.Operator) error {
	if err := base.CheckReason("reason", op.Reason); err != nil {
		return err
	}
	return base.CheckRequestKey(op.RequestKey)
}

// operatorCommand is an operation on its way.
type operatorCommand struct {
	Operation
	e           *Admin
	caller      txn.Caller
	id          base.GivenID
	request     store.DocRef // zero: no request key
	fingerprint string
}

func (o *operatorCommand) Name() string { return o.Operation.Name }

// Carried is the lease under which the command is sent; nil: none.
func (o *operatorCommand) Carried() *core.Fence { return cmp.Or(o.Held, o.Fence) }

// Subject is the execution that the command is about.
func (o *operatorCommand) Subject() base.UUID { return o.id.UUID }

func (o *operatorCommand) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, o.id.UUID)
	w.Executions = append(w.Executions, o.Also...)
	w.Docs = append(w.Docs, o.Docs...)
	if o.Wants != nil {
		o.Wants(w, o.id.UUID)
	}
	if o.request.Key != "" {
		w.Docs = append(w.Docs, o.request)
	}
}

// Flows are the graphs that it locks.
func (o *operatorCommand) Flows(*txn.Tx) []base.UUID { return o.Locks }

// Removing is the execution that it removes, with what is below it.
func (o *operatorCommand) Removing() (id base.UUID, removes bool) { return o.id.UUID, o.Removes }

func (o *operatorCommand) More(u *txn.Tx, w *store.Want) {
	if ent := u.Entries[o.id.UUID]; ent != nil {
		u.WantVanished(w, ent)
	}
	if o.Removes {
		u.WantRemovable(w, o.id.UUID)
	}
	if ent, err := u.Find(o.caller, o.id); o.Behind != nil && err == nil {
		o.Behind(u, w, ent.Exec)
	}
	if o.Fence == nil {
		return
	}
	if ent, err := u.Find(o.caller, o.id); err == nil && ent.Exec.NeedsRecord(*o.Fence) {
		w.History = append(w.History, store.HistoryRef{ID: o.id.UUID, Epoch: o.Fence.Epoch})
	}
}

func (o *operatorCommand) Decide(u *txn.Tx) error {
	ent, err := u.Find(o.caller, o.id)
	if err == nil && u.Vanished(ent) {
		err = txn.NotFound(o.id) // its own rows will follow (L141)
	}
	if err != nil {
		return o.gone(u, err)
	}
	u.Settle(ent)
	if doc, err := u.RecordedRequest(o.request, o.fingerprint); doc != nil || err != nil {
		return o.again(u, ent.Exec, doc, err)
	}
	if err := ent.Exec.CheckExpect(o.Op.Expect); err != nil {
		return err
	}
	before, changed := ent.Exec.Audited(), false
	err = u.Apply(o.caller, ent, func(x *core.Execution, fx *core.Effects) (_ bool, err error) {
		changed, err = o.Act(u, x, fx)
		return changed, err
	})
	if err != nil {
		return err
	}
	if o.After != nil {
		o.After(u, ent)
	}
	show := func() { o.show(u, ent, before, changed) }
	if len(o.Locks) > 0 {
		u.Advanced = append(u.Advanced, show) // its flow may say more of it
		return nil
	}
	show()
	return nil
}

// show records how the command left the execution, and writes the audit row.
func (o *operatorCommand) show(u *txn.Tx, ent *txn.Row, before core.AuditedExecution, changed bool) {
	if (changed || o.Shows) && Audits(o.caller) {
		o.audit(u, ent, before)
	}
	if o.View != nil {
		*o.View = txn.View{Execution: ent.Exec.Clone(), Lane: u.LaneState(ent.Exec)}
	}
	if o.request.Key != "" {
		u.RecordRequest(o.request, o.fingerprint, o.toRecord())
	}
}

// By returns the caller.
func (o *operatorCommand) By() txn.Caller { return o.caller }

func (o *operatorCommand) Chains(u *txn.Tx) []string { return ExecutionChain(u, o.caller, o.id) }

// audit writes the change to the audit log (U131).
func (o *operatorCommand) audit(u *txn.Tx, ent *txn.Row, before core.AuditedExecution) {
	if o.Audited != nil {
		AuditPart(u, o.caller, o.Operation.Name, o.Op.Reason, ent.Exec, o.Audited(u, ent.Exec))
		return
	}
	var after any
	if !ent.Removed {
		after = ent.Exec.Audited()
	}
	AuditExecution(u, o.caller, o.Operation.Name, o.Op.Reason, ent.Exec, before, after)
}

// gone answers a command whose execution does not exist: success when the same request removed it.
func (o *operatorCommand) gone(u *txn.Tx, notFound error) error {
	if !o.Removes {
		return notFound
	}
	if doc, err := u.RecordedRequest(o.request, o.fingerprint); doc == nil || err != nil {
		return cmp.Or(err, notFound)
	}
	o.caller.Again()
	return nil
}

// toRecord is what a repeat is answered by.
func (o *operatorCommand) toRecord() any {
	if o.View != nil {
		return txn.RecordedViewOf(o.View)
	}
	return o.Answer
}

// again gives the recorded answer.
func (o *operatorCommand) again(u *txn.Tx, x *core.Execution, doc *txn.RecordedRequest, err error) error {
	if err != nil {
		return err
	}
	o.caller.Again()
	switch {
	case o.View != nil:
		*o.View, err = doc.View(x)
	case o.Answer != nil:
		err = doc.Into(o.Answer)
	}
	if err == nil && o.Repeat != nil {
		err = o.Repeat(u, x)
	}
	return err
}

// AuditedChange is the content of an audit row about something that belongs to an execution.
type AuditedChange struct {
	Entity, ID    string
	Before, After any
}
