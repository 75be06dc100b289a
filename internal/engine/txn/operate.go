package txn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Operation is an operator's command on one execution (L107): what it is called, what came with it, what it does.
type Operation struct {
	Name   string
	Op     Operator
	Args   any   // for the fingerprint of the request (W4)
	Answer any   // pointer to what is recorded and given again; nil: nothing but the fact, or the view
	View   *View // shows the execution as the command left it, and a repeat of the command the same (L117)
	Fence  *core.Fence
	Held   *core.Fence                       // of a command that keeps the lease
	Docs   []store.DocRef                    // small records that it looks at
	Wants  func(w *store.Want, id base.UUID) // adds further rows that it looks at; nil: none
	Also   []base.UUID                       // further executions that it concerns
	Locks  []base.UUID                       // flows that it concerns, locked behind those; such a command has its transaction to itself
	Target string                            // what it is about, where that is not the execution: a request key is good for one target (W4)
	// Repeat completes the recorded answer with what is never recorded; nil: nothing is missing.
	Repeat func(u *Tx, x *core.Execution) error
	// Told is what the audit row contains; nil: how the execution changed.
	Told func(u *Tx, x *core.Execution) ToldChange
	// Shows reports that the command is audited although it changes nothing.
	Shows bool
	// Removes reports that the execution no longer exists afterwards: a repeat is then recognised without it.
	Removes bool
	// Behind adds rows that it needs, once the execution is known; nil: none.
	Behind func(u *Tx, w *store.Want, x *core.Execution)
	Act    func(u *Tx, x *core.Execution, fx *core.Effects) (changed bool, err error)
	After  func(u *Tx, ent *Row) // does what follows from the command
}

// Operate runs an operator's command: a repeat of a recorded request gets the recorded answer, then `expect` is compared, then
// the command is judged (L76, L77, L118).
func (e *Engine) Operate(ctx context.Context, c Caller, id base.GivenID, o Operation) error {
	if err := o.Op.Check(); err != nil {
		return err
	}
	cmd := &operatorCommand{Operation: o, e: e, caller: c, id: id}
	if o.Op.RequestKey != "" {
		cmd.request = RequestRef(c, o.Name, cmp.Or(o.Target, id.UUID.String()), o.Op.RequestKey)
		cmd.request.Owner = Owner(id.UUID) // it goes with the execution (L141)
		cmd.fingerprint = Fingerprint(o.Args, o.Op.Reason, o.Op.Expect)
		if o.Removes {
			cmd.request.Owner = "" // the answer outlives the execution
		}
	}
	if len(o.Locks) > 0 {
		return e.DoAlone(ctx, cmd)
	}
	err := e.Do(ctx, cmd)
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.Appeared(ctx, id.UUID) {
		err = e.Do(ctx, cmd)
	}
	return err
}

// Check checks the arguments that every operator command has.
func (op *Operator) Check() error {
	if err := base.CheckReason("reason", op.Reason); err != nil {
		return err
	}
	return base.CheckRequestKey(op.RequestKey)
}

// operatorCommand is an operation on its way.
type operatorCommand struct {
	Operation
	e           *Engine
	caller      Caller
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

func (o *operatorCommand) Flows(u *Tx) []base.UUID {
	if o.Removes {
		return append(u.FlowsBelow(o.id.UUID), o.Locks...)
	}
	return o.Locks
}

func (o *operatorCommand) More(u *Tx, w *store.Want) {
	if ent := u.Entries[o.id.UUID]; ent != nil && ent.Exec.Member != nil && ent.Exec.Status.Terminal() {
		w.Docs = append(w.Docs, FlowRef(ent.Exec.FlowID.UUID)) // is it gone?
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

func (o *operatorCommand) Decide(u *Tx) error {
	ent, err := u.Find(o.caller, o.id)
	if err == nil && ent.Exec.Member != nil && ent.Ended && u.Engine.Graphs.Locked(u, ent.Exec.FlowID.UUID) == nil && u.Doc(FlowRef(ent.Exec.FlowID.UUID)) == nil {
		err = NotFound(o.id) // its flow is removed, and its own rows will follow (L141)
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
func (o *operatorCommand) show(u *Tx, ent *Row, before core.AuditedExecution, changed bool) {
	if (changed || o.Shows) && o.caller.Audits() {
		o.audit(u, ent, before)
	}
	if o.View != nil {
		*o.View = View{Execution: ent.Exec.Clone(), Lane: u.LaneState(ent.Exec)}
	}
	if o.request.Key != "" {
		u.RecordRequest(o.request, o.fingerprint, o.toRecord())
	}
}

func (o *operatorCommand) Chains(u *Tx) []string { return u.ExecutionChain(o.caller, o.id) }

// ToldChange is the content of an audit row about something that belongs to an execution.
type ToldChange struct {
	Entity, ID    string
	Before, After any
}

// audit writes the change to the audit log (U131).
func (o *operatorCommand) audit(u *Tx, ent *Row, before core.AuditedExecution) {
	if o.Told != nil {
		u.AuditPart(o.caller, o.Operation.Name, o.Op.Reason, ent.Exec, o.Told(u, ent.Exec))
		return
	}
	var after any
	if !ent.Removed {
		after = ent.Exec.Audited()
	}
	u.AuditExecution(o.caller, o.Operation.Name, o.Op.Reason, ent.Exec, before, after)
}

// gone answers a command whose execution does not exist: success when the same request removed it.
func (o *operatorCommand) gone(u *Tx, notFound error) error {
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
		return RecordedViewOf(o.View)
	}
	return o.Answer
}

// again gives the recorded answer.
func (o *operatorCommand) again(u *Tx, x *core.Execution, doc *recordedRequest, err error) error {
	if err != nil {
		return err
	}
	o.caller.Again()
	switch {
	case o.View != nil:
		*o.View, err = doc.view(x)
	case o.Answer != nil:
		err = doc.Into(o.Answer)
	}
	if err == nil && o.Repeat != nil {
		err = o.Repeat(u, x)
	}
	return err
}

// recordedRequest is how an answered request is kept (W4).
type recordedRequest struct {
	Fingerprint string          `json:"fingerprint"`
	Answer      json.RawMessage `json:"answer,omitempty"`
}

// Into reads the recorded answer.
func (r *recordedRequest) Into(answer any) error {
	if err := json.Unmarshal(r.Answer, answer); err != nil {
		return Corrupt("recorded request", err)
	}
	return nil
}

// view reads a recorded view. x is the execution as it is now.
func (r *recordedRequest) view(x *core.Execution) (View, error) {
	var rec RecordedView
	if err := r.Into(&rec); err != nil {
		return View{}, err
	}
	return rec.Of(x)
}

// RecordedView is how the answer of a command is kept that shows the execution: of the record only what may change, in the
// form in which stores keep it. Identity, input and policy stand fast (L10), and payloads are no part of the answer.
type RecordedView struct {
	Status core.Status    `json:"status"`
	Reason core.Reason    `json:"reason"`
	Next   core.Next      `json:"next"`
	Order  int64          `json:"order"`
	State  []byte         `json:"state"`
	Lane   core.LaneState `json:"lane"`
}

// RecordedViewOf returns what is recorded of an answer that shows an execution.
func RecordedViewOf(v *View) RecordedView {
	row := store.ChangedRowOf(v.Execution)
	return RecordedView{Status: row.Status, Reason: row.Reason, Next: row.Next, Order: row.Order, State: row.State, Lane: v.Lane}
}

// Of puts the view together again for the execution that it showed.
func (r *RecordedView) Of(x *core.Execution) (View, error) {
	row := store.RowOf(x)
	row.Status, row.Reason, row.Next, row.Order, row.State = r.Status, r.Reason, r.Next, r.Order, r.State
	then, err := row.Execution(x.Class, nil)
	return View{Execution: then, Lane: r.Lane}, err
}

// RequestRef names the record of a request: the same principal, operation, target and key (W4). Principals are distinguished by their API keys,
// since names are not unique, and by the namespaces that they act in.
func RequestRef(c Caller, operation, target, key string) store.DocRef {
	sum := sha256.New()
	for _, part := range []string{c.Registrant().Credential(), strings.Join(c.Namespaces, " "), operation, target, key} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return store.DocRef{Kind: docRequest, Key: hex.EncodeToString(sum.Sum(nil))}
}

// Fingerprint is the digest of a request's arguments (W4).
func Fingerprint(args ...any) string {
	text, _ := json.Marshal(args)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Repeated recognises a request that was answered before and fills in its answer.
func (u *Tx) Repeated(c Caller, ref store.DocRef, print string, answer any) (bool, error) {
	rec, err := u.RecordedRequest(ref, print)
	switch {
	case err != nil:
		return true, err
	case rec == nil:
		return false, nil
	}
	c.Again()
	if answer == nil {
		return true, nil
	}
	return true, rec.Into(answer)
}

// Prepare does what comes before the transaction of a command, unless its request was answered before: a repeat may find nothing any more, and
// needs nothing. If do fails, the first try of the same request may have been under way until now, and be the cause: the record is checked again.
func (e *Engine) Prepare(ctx context.Context, request store.DocRef, do func() error) error {
	if known, err := e.Answered(ctx, request); known || err != nil {
		return err
	}
	err := do()
	if err != nil {
		if known, _ := e.Answered(ctx, request); known {
			return nil
		}
	}
	return err
}

// Answered reports whether a request was answered before. One without a name never was.
func (e *Engine) Answered(ctx context.Context, request store.DocRef) (bool, error) {
	if request.Key == "" {
		return false, nil
	}
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{request}})
	if err != nil {
		return false, PublicFault(err)
	}
	doc, ok := loaded.Docs[request]
	return ok && doc.ExpiresAt > loaded.Now, nil
}

// RecordedRequest finds a request that was answered before; nil if there is none.
func (u *Tx) RecordedRequest(ref store.DocRef, print string) (*recordedRequest, error) {
	if ref.Key == "" {
		return nil, nil
	}
	doc := u.Doc(ref)
	if doc == nil || doc.ExpiresAt <= u.Now {
		return nil, nil
	}
	var rec recordedRequest
	if err := json.Unmarshal(doc.Body, &rec); err != nil {
		return nil, Corrupt("recorded request", err)
	}
	if rec.Fingerprint != print {
		return nil, base.Errorf(base.CodeIdempotencyConflict, "the request key was used for another request").WithField("request_key")
	}
	return &rec, nil
}

// RecordRequest keeps the answer for 24 h (L118).
func (u *Tx) RecordRequest(ref store.DocRef, print string, answer any) {
	if ref.Key == "" {
		return
	}
	rec := recordedRequest{Fingerprint: print}
	if answer != nil {
		rec.Answer, _ = json.Marshal(answer)
	}
	body, _ := json.Marshal(rec)
	expires := u.Now.Add(requestWindow)
	u.PutOrAdd(store.Doc{DocRef: ref, Body: body, ExpiresAt: expires}) // if another process was faster it is Conflict
	timer := u.TimerAt(timerRequests, RoundUp(expires, base.Minute))
	timer.Texts = append(timer.Texts, ref.Owner+ownerEnd+ref.Key)
}

// Corrupt returns the error of a record that cannot be read. Code: corruption.
func Corrupt(record string, err error) error {
	return base.Errorf(base.CodeCorruption, "%s: %w", record, err).With("record", record)
}
