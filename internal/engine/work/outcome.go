package work

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A handler may end its lease, or store a step, inside its own transaction on the store's database. The transaction locks the execution, checks
// whether the command would be accepted, and leaves the command beside the execution; txn/outcomes.go explains why nothing can come in between. Engines
// apply it as the command that it is, at the time at which it was checked (outcome_apply.go).

// OutcomeOp is what a user's own transaction does under a lease. Values are stored.
type OutcomeOp string

// The commands that a user's own transaction may leave.
const (
	OutcomeComplete OutcomeOp = "complete"
	OutcomeStep     OutcomeOp = "step"
	OutcomeSuspend  OutcomeOp = "suspend"
)

// TxOutcome is a worker's command inside the user's own transaction.
type TxOutcome struct {
	ID      base.GivenID
	Fence   core.Fence
	Op      OutcomeOp
	Step    string               // name of a step
	Result  *core.Payload        // of complete, nil: none; of a step
	Suspend *core.SuspendCommand // of suspend
	Look    bool                 // step: only look for a stored result
}

// TxOutcomeAnswer is the answer to a command inside the user's own transaction. Unless it says otherwise, the command takes effect with the commit.
type TxOutcomeAnswer struct {
	Step *core.StepRecord // the step is stored already: nothing was written
	Over base.UUID        // the wait is over, this was its suspension: nothing was written
}

// leftOutcome is a command as it waits to be applied. Its payload stands in the data of the doc, at its place.
type leftOutcome struct {
	Op          OutcomeOp    `json:"op"`
	At          base.Time    `json:"at"` // when it was accepted, by the store's clock under the lock of the row
	Fence       core.Fence   `json:"fence"`
	Caller      txn.Caller   `json:"caller"`
	Step        string       `json:"step,omitempty"`
	Size        *int         `json:"size,omitempty"` // of the payload; nil: none
	ContentType string       `json:"content_type,omitempty"`
	Suspend     *leftSuspend `json:"suspend,omitempty"`

	data []byte
}

// leftSuspend is a suspend without fence; its continuation is the payload.
type leftSuspend struct {
	Waitpoints     []leftBinding   `json:"waitpoints,omitempty"`
	Condition      json.RawMessage `json:"condition"`
	ReasonCode     string          `json:"reason_code,omitempty"`
	TimeoutAt      base.Time       `json:"timeout_at,omitempty"`
	TimeoutMS      *base.Millis    `json:"timeout_ms,omitempty"`
	Behavior       string          `json:"behavior,omitempty"`
	ResumeDelayMS  base.Millis     `json:"resume_delay_ms,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	SuspensionID   base.UUID       `json:"suspension_id"`
}

type leftBinding struct {
	UsePending bool      `json:"use_pending,omitempty"`
	ID         base.UUID `json:"id"`
	Key        *string   `json:"key,omitempty"`
}

var errMalformed = errors.New("malformed")

func outcomesRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docOutcomes, Owner: txn.Owner(id)}
}

// encodeOutcomes makes the doc of what an execution carries.
func encodeOutcomes(id base.UUID, left []leftOutcome) (store.Doc, error) {
	body, err := json.Marshal(left)
	if err != nil {
		return store.Doc{}, base.Errorf(base.CodeInternal, "the outcome cannot be written down: %w", err)
	}
	doc := store.Doc{DocRef: outcomesRef(id), Body: body}
	for i := range left {
		doc.Data = append(doc.Data, left[i].data...)
	}
	return doc, nil
}

// decodeOutcomes reads what encodeOutcomes made. Codes: corruption.
func decodeOutcomes(doc *store.Doc) ([]leftOutcome, error) {
	if err := doc.Whole(); err != nil {
		return nil, err
	}
	var left []leftOutcome
	if err := json.Unmarshal(doc.Body, &left); err != nil {
		return nil, txn.Corrupt("outcomes", err)
	}
	rest := doc.Data
	for i := range left {
		if left[i].Size == nil {
			continue
		}
		n := *left[i].Size
		if n < 0 || n > len(rest) {
			return nil, txn.Corrupt("outcomes", errMalformed)
		}
		left[i].data, rest = rest[:n:n], rest[n:]
	}
	return left, nil
}

// payload returns the payload of a command, nil if it has none.
func (l *leftOutcome) payload() *core.Payload {
	if l.Size == nil {
		return nil
	}
	data := l.data
	if data == nil {
		data = []byte{}
	}
	return &core.Payload{ContentType: l.ContentType, Data: data, Size: len(data)}
}

func (l *leftOutcome) carry(p *core.Payload) {
	if p == nil {
		return
	}
	n := len(p.Data)
	l.Size, l.ContentType, l.data = &n, p.ContentType, p.Data
}

func leftSuspendOf(c *core.SuspendCommand) *leftSuspend {
	left := &leftSuspend{
		Condition: c.Condition.Canonical(), ReasonCode: c.ReasonCode, TimeoutAt: c.TimeoutAt, TimeoutMS: c.TimeoutMS, Behavior: c.Behavior,
		ResumeDelayMS: c.ResumeDelayMS, IdempotencyKey: c.IdempotencyKey, SuspensionID: c.SuspensionID,
	}
	for _, b := range c.Waitpoints {
		left.Waitpoints = append(left.Waitpoints, leftBinding{b.UsePending, b.ID, b.Key})
	}
	return left
}

func (l *leftOutcome) suspend() (core.SuspendCommand, error) {
	s := l.Suspend
	if s == nil {
		return core.SuspendCommand{}, txn.Corrupt("outcomes", errMalformed)
	}
	until, err := condition.Decode(s.Condition)
	if err != nil {
		return core.SuspendCommand{}, err
	}
	cmd := core.SuspendCommand{
		Fence: l.Fence, Condition: until, ReasonCode: s.ReasonCode, TimeoutAt: s.TimeoutAt, TimeoutMS: s.TimeoutMS, Behavior: s.Behavior,
		ResumeDelayMS: s.ResumeDelayMS, IdempotencyKey: s.IdempotencyKey, SuspensionID: s.SuspensionID, Continuation: l.payload(),
	}
	for _, b := range s.Waitpoints {
		cmd.Waitpoints = append(cmd.Waitpoints, core.Binding{UsePending: b.UsePending, ID: b.ID, Key: b.Key})
	}
	return cmd, nil
}

// LeaveTx leaves a worker's command in the user's own transaction: it takes effect if and only if that commits.
func (e *Work) LeaveTx(ctx context.Context, c txn.Caller, tx any, o TxOutcome) (TxOutcomeAnswer, error) {
	to, ok := e.Store.(store.TxOutcomes)
	if !ok {
		return TxOutcomeAnswer{}, base.Errorf(base.CodeNotImplemented, "this store takes no part in other transactions")
	}
	return LeaveInTx(ctx, to, c, e.Cfg.Limits, tx, o)
}

// LeaveInTx is LeaveTx on a store whose engine may run elsewhere.
func LeaveInTx(ctx context.Context, to store.TxOutcomes, c txn.Caller, most base.Limits, tx any, o TxOutcome) (TxOutcomeAnswer, error) {
	if err := o.check(most); err != nil {
		return TxOutcomeAnswer{}, err
	}
	l := &leaving{to: to, tx: tx, caller: c, o: &o}
	if err := l.lock(ctx); err != nil {
		return TxOutcomeAnswer{}, err
	}
	answer, err := l.judge(ctx)
	if err != nil || o.Look || answer != (TxOutcomeAnswer{}) {
		return answer, err
	}
	return answer, l.write(ctx)
}

// check checks the arguments.
func (o *TxOutcome) check(most base.Limits) error {
	if err := o.Fence.Validate(); err != nil {
		return err
	}
	switch o.Op {
	case OutcomeComplete:
		return o.checkResult(most)
	case OutcomeStep:
		if o.Result == nil {
			o.Result = &core.Payload{}
		}
		if err := core.CheckStepArguments(o.Step, o.Result.Data); err != nil {
			return err
		}
		return o.checkResult(base.Limits{MaxPayload: len(o.Result.Data)})
	case OutcomeSuspend:
		return o.checkSuspend()
	default:
		return base.Invalid("op", "%q cannot be done inside a transaction", o.Op)
	}
}

func (o *TxOutcome) checkResult(most base.Limits) error {
	if o.Result == nil {
		return nil
	}
	result := *o.Result
	txn.SetDefault(&result.ContentType, base.DefaultContentType)
	o.Result = &result
	if err := base.CheckContentType("result_content_type", result.ContentType); err != nil {
		return err
	}
	return most.CheckPayload("result", len(result.Data))
}

// checkSuspend refuses also what cannot be decided inside the transaction: ids of new waitpoints may belong to those of other executions.
func (o *TxOutcome) checkSuspend() error {
	if o.Suspend == nil {
		return base.Invalid("suspension", "is required")
	}
	o.Suspend.Fence = o.Fence
	if err := o.Suspend.Check(); err != nil {
		return err
	}
	for i := range o.Suspend.Waitpoints {
		if b := &o.Suspend.Waitpoints[i]; !b.UsePending && !b.ID.IsZero() {
			return base.Invalid(base.Element("waitpoints", i), "a waitpoint that is made inside a transaction cannot have an id of the caller's").
				WithHint("leave its id out, or make it before with NewWaitpoint")
		}
	}
	if len(o.Suspend.Usage) > 0 {
		return base.Invalid("usage", "cannot be booked inside a transaction")
	}
	return nil
}

// leaving is a command on its way into the user's own transaction.
type leaving struct {
	to     store.TxOutcomes
	tx     any
	caller txn.Caller
	o      *TxOutcome

	at      base.Time
	locked  *store.LockedTx
	then    *core.Execution // the execution as its timers leave it at that time
	earlier []leftOutcome   // what it carries already
}

// lock locks the execution and checks the fence.
func (l *leaving) lock(ctx context.Context) error {
	id := l.o.ID.UUID
	docs := []store.DocRef{outcomesRef(id)}
	var owned []store.Owned
	switch l.o.Op {
	case OutcomeStep:
		docs = append(docs, StepsRef(id), stepRef(id, 0, l.o.Step))
	case OutcomeSuspend:
		owned = append(owned, waits.WaitStateKey(id))
	}
	var err error
	if l.locked, err = l.to.LockTx(ctx, l.tx, id, docs, owned); err != nil {
		return txn.PublicFault(err)
	}
	if l.locked == nil || !l.o.ID.Names(l.locked.Execution.ID) || !l.caller.Sees(l.locked.Execution.Class.Namespace) {
		return txn.NotFound(l.o.ID)
	}
	x := l.locked.Execution
	if err := l.caller.WorksIn(x.Class.Lane); err != nil {
		return err
	}
	l.at = max(l.locked.Now, x.Latest())
	if l.then, err = x.SettledCopy(l.at); err != nil {
		return err
	}
	if doc, found := l.locked.Docs[outcomesRef(id)]; found && store.Carries(x.Version) {
		if l.earlier, err = decodeOutcomes(&doc); err != nil {
			return err
		}
	}
	_, err = l.then.CheckKeep(nil, l.o.Fence)
	return err
}

// judge decides the command as the engine will when it applies it. Timers that become due until then do not count.
func (l *leaving) judge(ctx context.Context) (TxOutcomeAnswer, error) {
	for i := range l.earlier {
		if l.earlier[i].Op != OutcomeStep {
			return TxOutcomeAnswer{}, l.then.NotActive().WithHint("the lease was ended in a transaction before: roll this one back")
		}
	}
	switch l.o.Op {
	case OutcomeStep:
		record, err := l.step(ctx)
		return TxOutcomeAnswer{Step: record}, err
	case OutcomeSuspend:
		docs := l.locked.Owned[waits.WaitStateKey(l.o.ID.UUID)]
		over, err := waits.CheckLeftSuspend(l.then, l.at, docs, *l.o.Suspend, l.mint())
		return TxOutcomeAnswer{Over: over}, err
	}
	return TxOutcomeAnswer{}, nil
}

// mint makes ids for what is only checked.
func (l *leaving) mint() func() base.UUID {
	n := byte(0)
	return func() base.UUID {
		n++
		return base.MintUUID(l.at, [10]byte{n})
	}
}

// step returns the record of the step, nil if it is not stored yet.
func (l *leaving) step(ctx context.Context) (*core.StepRecord, error) {
	id, fresh := l.o.ID.UUID, 0
	for i := range l.earlier {
		if left := &l.earlier[i]; left.Step == l.o.Step {
			return left.stepRecord(l.locked.Execution), nil
		}
		fresh++
	}
	var steps *store.Doc
	if doc, found := l.locked.Docs[StepsRef(id)]; found {
		steps = &doc
	}
	index, err := decodeStepIndex(steps)
	if err != nil {
		return nil, err
	}
	run := l.locked.Execution.RunIndex()
	docs := l.locked.Docs
	if run > 0 {
		var refs []store.DocRef
		for r := index.first(run); r <= run; r++ {
			refs = append(refs, stepRef(id, r, l.o.Step))
		}
		again, err := l.to.LockTx(ctx, l.tx, id, refs, nil)
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		if again == nil {
			return nil, txn.NotFound(l.o.ID)
		}
		docs = again.Docs
	}
	for r := index.first(run); r <= run; r++ {
		if doc, found := docs[stepRef(id, r, l.o.Step)]; found {
			record, err := decodeStep(&doc)
			return &record, err
		}
	}
	return nil, core.CheckStepCount(index.Count + fresh)
}

// stepRecord shows a step that is not applied yet.
func (l *leftOutcome) stepRecord(x *core.Execution) *core.StepRecord {
	record := &core.StepRecord{
		ExecutionID: x.ID, RunIndex: x.RunIndex(), Name: l.Step, LeaseEpoch: l.Fence.Epoch, CreatedAt: l.At, ContentType: l.ContentType, Result: l.data,
	}
	if x.Attempt != nil {
		record.AttemptIndex = x.Attempt.Index
	}
	return record
}

// write leaves the command.
func (l *leaving) write(ctx context.Context) error {
	left := leftOutcome{Op: l.o.Op, At: l.at, Fence: l.o.Fence, Caller: l.caller, Step: l.o.Step}
	left.carry(l.o.Result)
	if l.o.Op == OutcomeSuspend {
		left.Suspend = leftSuspendOf(l.o.Suspend)
		left.carry(l.o.Suspend.Continuation)
	}
	doc, err := encodeOutcomes(l.o.ID.UUID, append(l.earlier, left))
	if err != nil {
		return err
	}
	if err := l.to.LeaveTx(ctx, l.tx, l.locked.Execution.ID, doc); err != nil {
		return txn.PublicFault(err)
	}
	return nil
}
