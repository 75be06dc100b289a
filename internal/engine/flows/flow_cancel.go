package flows

import (
	"cmp"
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxCancelWait bounds how long a cancel waits for its end (F53).
const maxCancelWait = 300 * time.Second

// cancelPage is how many members end in one transaction (F49).
const cancelPage = 256

// CancelFlow cancels a flow, and waits for its end if requested (section 9 of the flows). Codes: flow_not_found, invalid_argument.
func (e *Graphs) CancelFlow(ctx context.Context, c txn.Caller, r CancelFlowRequest) (CancelFlowAnswer, error) {
	cmd := &cancelFlow{caller: c, id: r.Flow, ask: core.FlowCancelCommand{Policy: r.Policy, Reason: r.Reason, By: c.Principal}}
	if err := cmd.ask.Check(); err != nil {
		return CancelFlowAnswer{}, err
	}
	if r.Wait < 0 || r.Wait > maxCancelWait {
		return CancelFlowAnswer{}, base.Invalid("wait_ms", "must be in 0..%d", maxCancelWait.Milliseconds())
	}
	if c.RequestKey != "" {
		cmd.request = txn.RequestRef(c, cmd.Name(), r.Flow.UUID.String(), c.RequestKey)
	}
	if err := e.pageOfMembers(ctx, cmd); err != nil {
		return CancelFlowAnswer{}, err
	}
	if err := e.DoAlone(ctx, cmd); err != nil {
		return CancelFlowAnswer{}, err
	}
	if r.Wait == 0 || cmd.answer.AlreadyTerminal || cmd.answer.Remaining == 0 {
		return cmd.answer, nil
	}
	return e.awaitCancel(ctx, c, r, cmd.answer)
}

// pageOfMembers finds members that the cancel may end in its own transaction.
func (e *Graphs) pageOfMembers(ctx context.Context, cmd *cancelFlow) error {
	loaded, err := e.Store.Read(ctx, store.Want{
		Docs: []store.DocRef{FlowRef(cmd.id.UUID)}, Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(cmd.id.UUID), Limit: cancelPage}},
	})
	if err != nil {
		return txn.PublicFault(err)
	}
	f, err := flowIn(loaded, cmd.caller, cmd.id)
	if err != nil {
		return err
	}
	cmd.space = f.Namespace
	cmd.members, err = memberIDs(loaded.Scanned[0])
	return err
}

// memberIDs are the executions that docs of members name, those that were deleted left out.
func memberIDs(docs []store.Doc) (ids []base.UUID, err error) {
	for i := range docs {
		m, err := readMember(&docs[i])
		if err != nil {
			return nil, err
		}
		if m.erased == nil {
			ids = append(ids, m.id.UUID)
		}
	}
	return ids, nil
}

func flowNotFound(id base.GivenID) error {
	return base.Errorf(base.CodeFlowNotFound, "there is no flow %s", id.UUID)
}

// cancelFlow is the command of CancelFlow: it writes what is asked for and ends the first members; the rest is follow-up work.
type cancelFlow struct {
	caller  txn.Caller
	id      base.GivenID
	ask     core.FlowCancelCommand
	space   string // namespace of the flow
	members []base.UUID
	request store.DocRef
	answer  CancelFlowAnswer
}

func (c *cancelFlow) Name() string { return "cancel_flow" }

func (c *cancelFlow) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, c.members...)
	w.SkipUnreadable = true
}

func (c *cancelFlow) Flows(*txn.Tx) []base.UUID { return []base.UUID{c.id.UUID} }

// By returns the caller.
func (c *cancelFlow) By() txn.Caller { return c.caller }

func (c *cancelFlow) Chains(*txn.Tx) []string { return flowChain(c.caller, c.space) }

// flowChain returns the audit chain of a caller's change of a flow, or none if the caller is not an operator.
func flowChain(c txn.Caller, namespace string) []string {
	if !admin.Audits(c) {
		return nil
	}
	return []string{namespace}
}

// auditFlow writes an audit row for what an operator did to a flow.
func auditFlow(u *txn.Tx, c txn.Caller, action string, f *core.Flow, reason string, before, after any) {
	if admin.Audits(c) {
		admin.Audit(u, c, core.AuditRow{Namespace: f.Namespace, Action: action, Entity: "flow", EntityID: f.ID.String(), Reason: reason}, before, after)
	}
}

// auditedCancel is the state of a cancelled flow in an audit row.
type auditedCancel struct {
	State  core.FlowState    `json:"state"`
	Policy core.CancelPolicy `json:"policy,omitempty"`
}

func auditedCancelOf(f *core.Flow) auditedCancel {
	audited := auditedCancel{State: f.State}
	if f.Cancel != nil {
		audited.Policy = f.Cancel.Policy
	}
	return audited
}

func (c *cancelFlow) Graph(ctx context.Context, u *txn.Tx) error {
	return lookForRequest(ctx, u, c.request)
}

func (c *cancelFlow) Decide(u *txn.Tx) error {
	f := flow(u, c.id.UUID)
	if f == nil || !c.caller.Sees(f.Namespace) {
		return flowNotFound(c.id)
	}
	fingerprint := txn.Fingerprint(c.ask.Policy, c.ask.Reason)
	if again, err := u.Repeated(c.caller, c.request, fingerprint, nil); again || err != nil {
		c.answer = cancelAnswer(f)
		return err
	}
	before := auditedCancelOf(f)
	cancelGraph(u, f, c.ask, u.Effects(c.caller), c.members)
	if after := auditedCancelOf(f); after != before {
		auditFlow(u, c.caller, c.Name(), f, c.ask.Reason, before, after)
	}
	c.answer = cancelAnswer(f)
	u.RecordRequest(c.request, fingerprint, nil)
	// The numbers are those of the commit, in which the ends of members are counted.
	u.After = append(u.After, func() { c.answer = cancelAnswer(f) })
	return nil
}

// cancelGraph writes the cancel of a flow that the transaction has locked, ends those of its members that the transaction has, and leaves the rest to
// follow-up work.
func cancelGraph(u *txn.Tx, f *core.Flow, ask core.FlowCancelCommand, fx *core.Effects, members []base.UUID) {
	from := f.State
	if !f.RequestCancel(fx, ask) {
		return
	}
	touchFlow(u, f)
	u.Keep(fx)
	if f.State.Terminal() && !from.Terminal() {
		flowEnded(u, f)
	}
	if ask.Policy == core.CancelFlowOnly || f.Open == 0 {
		return
	}
	for _, id := range members {
		if ent := u.Entries[id]; ent != nil {
			cancelMember(u, f, ent)
		}
	}
	u.AddTask(taskCancelFlow, taskArgs{Flow: f.ID.UUID})
}

// cancelMember ends a member if the cancel of its flow applies to it (F50).
func cancelMember(u *txn.Tx, f *core.Flow, ent *txn.Row) {
	u.Settle(ent)
	if !f.Cancel.Reaches(ent.Exec) {
		return
	}
	fx, held := u.EngineEffects(), ent.Exec.Holds
	fx.Now = max(fx.Now, ent.Exec.Latest())
	ent.Exec.CancelByFlow(fx, f.Cancel)
	u.Freed(held, ent.Exec.Holds)
	u.Touch(ent)
	u.Keep(fx)
}

func cancelAnswer(f *core.Flow) CancelFlowAnswer {
	if f.Cancel == nil {
		return CancelFlowAnswer{State: f.State, AlreadyTerminal: f.State.Terminal()}
	}
	return CancelFlowAnswer{
		State: f.State, Policy: f.Cancel.Policy, Reason: f.Cancel.Reason,
		Cancelled: f.Cancel.Cancelled, FinishedBefore: f.Cancel.Before, Remaining: f.Owed(),
	}
}

// awaitCancel waits until a cancel is complete, or the time is over (F53).
func (e *Graphs) awaitCancel(ctx context.Context, c txn.Caller, r CancelFlowRequest, answer CancelFlowAnswer) (CancelFlowAnswer, error) {
	until := e.Cfg.Clock.Now().Add(r.Wait)
	for answer.Remaining > 0 && ctx.Err() == nil && !e.Stopping() {
		left := until.Sub(e.Cfg.Clock.Now())
		if left <= 0 {
			break
		}
		var err error
		answer, err = txn.WaitFor(ctx, e.Engine, r.Flow.UUID, min(left, cancelLook), func(ctx context.Context) (CancelFlowAnswer, bool, error) {
			f, err := e.ReadFlow(ctx, c, r.Flow)
			if err != nil {
				return answer, false, err
			}
			return cancelAnswer(f), f.Owed() == 0, nil
		})
		if err != nil {
			return CancelFlowAnswer{}, err
		}
	}
	return answer, nil
}

// cancelLook is how often a call that waits for the end of a cancel reads its progress: only the end of a flow wakes it.
const cancelLook = time.Second

// cancelMembers ends the members of a cancelled flow, a page at a time.
func (e *Graphs) cancelMembers(ctx context.Context, t taskArgs) error {
	var unread error // it is tried again for those that cannot be read, when all others are done (S63)
	for after := ""; ; {
		loaded, err := e.Store.Read(ctx, store.Want{
			Docs: []store.DocRef{FlowRef(t.Flow)}, Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(t.Flow), After: after, Limit: cancelPage}},
		})
		if err != nil {
			return err
		}
		ids, err := memberIDs(loaded.Scanned[0])
		if err != nil {
			return err
		}
		open, into, bad, err := e.reachedBy(ctx, loaded, t.Flow, ids)
		if err != nil {
			return err
		}
		unread = cmp.Or(unread, bad, e.cancelWithin(ctx, into))
		if len(open) > 0 {
			if err := e.Do(ctx, &endMembers{flow: t.Flow, members: open}); err != nil {
				return err
			}
		}
		if len(ids) < cancelPage {
			return unread
		}
		after = loaded.Scanned[0][len(ids)-1].Key
	}
}

// reachedBy returns those of some members that the cancel of their flow ends, and those whose sub-flows are cancelled from within. unread is the
// error of one that cannot be read.
func (e *Graphs) reachedBy(ctx context.Context, loaded *store.Loaded, flow base.UUID, ids []base.UUID) (open []base.UUID, into []*core.Execution, unread, err error) {
	doc, ok := loaded.Docs[FlowRef(flow)]
	var f core.Flow
	if !ok || ReadDoc(&doc, &f) != nil || f.Cancel == nil {
		return nil, nil, nil, nil
	}
	rows, err := e.ReadIf(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, id := range ids {
		switch x := rows.Executions[id]; {
		case x == nil:
			unread = cmp.Or(unread, rows.Unreadable[id])
		case f.Cancel.Reaches(x):
			open = append(open, id)
		case f.Cancel.GoesInto(x):
			into = append(into, x)
		}
	}
	return open, into, unread, nil
}

// endMembers ends some members of a cancelled flow.
type endMembers struct {
	flow    base.UUID
	members []base.UUID
}

func (m *endMembers) Name() string { return "cancel_members" }

func (m *endMembers) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, m.members...) }

func (m *endMembers) Flows(*txn.Tx) []base.UUID { return []base.UUID{m.flow} }

func (m *endMembers) Decide(u *txn.Tx) error {
	f := flow(u, m.flow)
	if f == nil || f.Cancel == nil {
		return nil
	}
	for _, id := range m.members {
		if ent := u.Entries[id]; ent != nil {
			cancelMember(u, f, ent)
		}
	}
	return nil
}
