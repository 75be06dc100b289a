package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// operation is an operator's command on one execution (L107): what it is called, what came with it, what it does.
type operation struct {
	name   string
	op     Operator
	args   any // for the fingerprint of the request (W4)
	answer any // pointer to what is recorded and given again; nil: nothing but the fact
	fence  *core.Fence
	docs   []store.DocRef // small records that it looks at
	act    func(u *unit, x *core.Execution, fx *core.Effects) (changed bool, err error)
	after  func(u *unit, ent *entry) // sees the execution as the command left it
}

// operate runs an operator's command: a repeat of a recorded request gets the recorded answer, then `expect` is compared, then
// the command is judged (L76, L77, L118).
func (e *Engine) operate(ctx context.Context, c Caller, id core.GivenID, o operation) error {
	if err := core.CheckReason("reason", o.op.Reason); err != nil {
		return err
	}
	cmd := &operatorCommand{operation: o, e: e, caller: c, id: id}
	if o.op.RequestKey != "" {
		if err := core.CheckRequestKey(o.op.RequestKey); err != nil {
			return err
		}
		cmd.request = requestRef(c.Principal, o.name, id.UUID.String(), o.op.RequestKey)
		cmd.request.Owner = owner(id.UUID) // it goes with the execution (L141)
		cmd.fingerprint = fingerprint(o.args, o.op.Reason)
	}
	err := e.do(ctx, id.UUID, cmd)
	if core.CodeOf(err) == core.CodeExecutionNotFound && e.adoptedSome(ctx) {
		err = e.do(ctx, id.UUID, cmd)
	}
	return err
}

// operatorCommand is an operation on its way.
type operatorCommand struct {
	operation
	e           *Engine
	caller      Caller
	id          core.GivenID
	request     store.DocRef // zero: no request key
	fingerprint string
}

func (o *operatorCommand) name() string { return o.operation.name }

func (o *operatorCommand) want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, o.id.UUID)
	w.Docs = append(w.Docs, o.docs...)
	if o.request.Key != "" {
		w.Docs = append(w.Docs, o.request)
	}
}

func (o *operatorCommand) more(u *unit, w *store.Want) {
	if o.fence == nil {
		return
	}
	if ent, err := u.find(o.caller, o.id); err == nil && ent.x.NeedsRecord(*o.fence) {
		w.History = append(w.History, store.HistoryRef{ID: o.id.UUID, Epoch: o.fence.Epoch})
	}
}

func (o *operatorCommand) decide(u *unit) error {
	ent, err := u.find(o.caller, o.id)
	if err != nil {
		return err
	}
	u.settle(ent)
	if repeated, err := u.repeated(o.request, o.fingerprint, o.answer); repeated || err != nil {
		o.see(u, ent)
		return err
	}
	if err := ent.x.CheckExpect(o.op.Expect); err != nil {
		return err
	}
	err = u.apply(o.caller, ent, func(x *core.Execution, fx *core.Effects) (bool, error) { return o.act(u, x, fx) })
	if err != nil {
		return err
	}
	o.see(u, ent)
	if !ent.removed {
		u.recordRequest(o.request, o.fingerprint, o.answer)
	}
	return nil
}

func (o *operatorCommand) see(u *unit, ent *entry) {
	if o.after != nil {
		o.after(u, ent)
	}
}

// recordedRequest is how an answered request is kept (W4).
type recordedRequest struct {
	Fingerprint string          `json:"fingerprint"`
	Answer      json.RawMessage `json:"answer,omitempty"`
}

// requestRef names the record of a request: the same principal, operation, target and key (W4).
func requestRef(principal, operation, target, key string) store.DocRef {
	sum := sha256.New()
	for _, part := range []string{principal, operation, target, key} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return store.DocRef{Kind: docRequest, Key: hex.EncodeToString(sum.Sum(nil))}
}

// fingerprint is the digest of a request's arguments (W4).
func fingerprint(args ...any) string {
	text, _ := json.Marshal(args)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// repeated recognises a request that was answered before and fills in its answer.
func (u *unit) repeated(ref store.DocRef, print string, answer any) (bool, error) {
	if ref.Key == "" {
		return false, nil
	}
	doc := u.doc(ref)
	if doc == nil || doc.ExpiresAt <= u.now {
		return false, nil
	}
	var rec recordedRequest
	if err := json.Unmarshal(doc.Body, &rec); err != nil {
		return true, corrupt("recorded request", err)
	}
	if rec.Fingerprint != print {
		return true, core.Errorf(core.CodeIdempotencyConflict, "the request key was used for another request").WithField("request_key")
	}
	if answer != nil && len(rec.Answer) > 0 {
		if err := json.Unmarshal(rec.Answer, answer); err != nil {
			return true, corrupt("recorded request", err)
		}
	}
	return true, nil
}

// recordRequest keeps the answer for 24 h (L118).
func (u *unit) recordRequest(ref store.DocRef, print string, answer any) {
	if ref.Key == "" {
		return
	}
	rec := recordedRequest{Fingerprint: print}
	if answer != nil {
		rec.Answer, _ = json.Marshal(answer)
	}
	body, _ := json.Marshal(rec)
	expires := u.now.Add(requestWindow)
	u.putDoc(store.Doc{DocRef: ref, Body: body, ExpiresAt: expires})
	timer := u.timerAt(timerRequests, roundUp(expires, core.Minute))
	timer.Texts = append(timer.Texts, ref.Owner+ownerEnd+ref.Key)
}

func corrupt(record string, err error) error {
	return core.Errorf(core.CodeCorruption, "%s: %w", record, err).With("record", record)
}
