package txn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// RecordedRequest is how an answered request is kept (W4).
type RecordedRequest struct {
	Fingerprint string          `json:"fingerprint"`
	Answer      json.RawMessage `json:"answer,omitempty"`
}

// Into reads the recorded answer.
func (r *RecordedRequest) Into(answer any) error {
	if err := json.Unmarshal(r.Answer, answer); err != nil {
		return Corrupt("recorded request", err)
	}
	return nil
}

// View reads a recorded view. x is the execution as it is now.
func (r *RecordedRequest) View(x *core.Execution) (View, error) {
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
	return store.DocRef{Kind: DocRequest, Key: hex.EncodeToString(sum.Sum(nil))}
}

// Fingerprint is the digest of a request's arguments (W4).
func Fingerprint(args ...any) string {
	text, _ := json.Marshal(args)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Repeated recognises a request that was answered before and fills in its answer.
func (u *Tx) Repeated(c Caller, ref store.DocRef, fingerprint string, answer any) (bool, error) {
	rec, err := u.RecordedRequest(ref, fingerprint)
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
func (u *Tx) RecordedRequest(ref store.DocRef, fingerprint string) (*RecordedRequest, error) {
	if ref.Key == "" {
		return nil, nil
	}
	doc := u.Doc(ref)
	if doc == nil || doc.ExpiresAt <= u.Now {
		return nil, nil
	}
	var rec RecordedRequest
	if err := json.Unmarshal(doc.Body, &rec); err != nil {
		return nil, Corrupt("recorded request", err)
	}
	if rec.Fingerprint != fingerprint {
		return nil, base.Errorf(base.CodeIdempotencyConflict, "the request key was used for another request").WithField("request_key")
	}
	return &rec, nil
}

// RecordRequest keeps the answer for 24 h (L118).
func (u *Tx) RecordRequest(ref store.DocRef, fingerprint string, answer any) {
	if ref.Key == "" {
		return
	}
	rec := RecordedRequest{Fingerprint: fingerprint}
	if answer != nil {
		rec.Answer, _ = json.Marshal(answer)
	}
	body, _ := json.Marshal(rec)
	expires := u.Now.Add(RequestWindow)
	u.PutOrAdd(store.Doc{DocRef: ref, Body: body, ExpiresAt: expires}) // if another process was faster it is Conflict
	timer := u.TimerAt(timerRequests, RoundUp(expires, base.Minute))
	timer.Texts = append(timer.Texts, ref.Owner+ownerEnd+ref.Key)
}

// Corrupt returns the error of a record that cannot be read. Code: corruption.
func Corrupt(record string, err error) error {
	return base.Errorf(base.CodeCorruption, "%s: %w", record, err).With("record", record)
}
