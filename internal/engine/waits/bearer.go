package waits

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// tokenCommand is a command of a caller that proves its right by a token, regardless of its namespaces (W33). The target of the token may not exist: the
// command then does the same work as for one that exists, and gets the same answer as for a wrong token.
type tokenCommand struct {
	op          string
	caller      txn.Caller
	id          base.GivenID // of the execution
	given       *base.GivenID
	token       keyring.Token
	proved      base.ID      // the execution, if the token is valid according to the cache
	request     store.DocRef // zero: no request key
	keyed       error        // what is wrong with the request key; returned only after the token is verified
	fingerprint string
	answer      any
	// fields returns what the token must match; nil: the target does not exist.
	fields func(d *core.WaitState) keyring.TokenFields
	// refusal is the one answer to every token that is not good.
	refusal func(err error) error
	check   func() error // of the arguments, after the token (W57)
	act     func(d *core.WaitState, x *core.Execution, fx *core.Effects) (changed bool, err error)
	audited func(d *core.WaitState) (who txn.Caller, t admin.AuditedChange) // the content of the audit row; nil: none
}

// withToken runs a tokenCommand's command on what ref finds. The token is checked before anything is locked, and again inside: a caller without a valid token
// blocks no other command, and learns nothing of the state of the target.
func (e *Waits) withToken(ctx context.Context, ref store.DocRef, b *tokenCommand, args any) error {
	id, proved := b.proved, b.proved != base.ID{}
	if !proved {
		rows, err := e.readBorne(ctx, ref)
		if err != nil {
			return err
		}
		if err := e.judge(rows, b); err != nil {
			return err
		}
		id = rows.at.ExecutionID
	}
	b.id = id.Given()
	b.caller.Namespaces = nil
	if b.keyed = base.CheckRequestKey(b.caller.RequestKey); b.keyed == nil && b.caller.RequestKey != "" {
		b.request = txn.RequestRef(b.caller, b.op, ref.Key, b.caller.RequestKey)
		b.request.Owner = txn.Owner(b.id.UUID) // it is removed with the execution (L141)
		b.fingerprint = txn.Fingerprint(args)
	}
	return e.Do(ctx, b)
}

// tokenTarget are what a token is judged by: where the thing is that it was sent for, the records of that execution and the keys.
type tokenTarget struct {
	*store.Loaded
	at waitLocator // zero: there is no such thing
}

// readBorne reads them without a lock, records and keys in one snapshot. For a target that does not exist the store is asked for just as much, so
// that the time does not reveal it (W33). What cannot be read does not exist for a caller whose token is not verified.
func (e *Waits) readBorne(ctx context.Context, ref store.DocRef) (rows tokenTarget, err error) {
	at, _, err := e.whereIs(ctx, ref)
	switch {
	case base.CodeOf(err) == base.CodeCorruption:
		e.QuietLog.Error("what a token was sent for cannot be found", "row", ref.Key, "error", err)
		at = waitLocator{}
	case err != nil:
		return rows, err
	}
	want := store.Want{SkipUnreadable: true}
	WantWaiting(&want, at.ExecutionID.UUID)
	admin.WantKeys(&want)
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return rows, txn.PublicFault(err)
	}
	return tokenTarget{loaded, at}, nil
}

// verified are the records that tokens vouch for, as far as they can be read.
func (r *tokenTarget) verified() *core.WaitState {
	d := &core.WaitState{}
	for _, doc := range r.Owned[WaitStateKey(r.at.ExecutionID.UUID)] {
		if doc.Key != "" && (doc.Key[0] == WaitpointLetter || doc.Key[0] == LinkLetter) {
			_ = readWait(d, &doc) // the error is returned after the token is verified
		}
	}
	return d
}

// judge reports whether the token is good for what it was sent for. One that is not is counted: nothing else remembers it (W34).
func (e *Waits) judge(rows tokenTarget, b *tokenCommand) error {
	ring, err := e.Signing.Open(loadedKeySet(rows.Loaded))
	if err != nil {
		return err
	}
	fault, err := ring.Verify(rows.Now, b.token, b.fields(rows.verified()))
	if err == nil && b.given != nil && !b.given.Names(rows.at.ExecutionID) {
		fault, err = keyring.TokenWrongExecution, keyring.InvalidToken()
	}
	if err != nil {
		e.countRefused(fault)
		return b.refusal(err)
	}
	return nil
}

func (b *tokenCommand) Name() string { return b.op }

func (b *tokenCommand) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, b.id.UUID)
	wantWaitState(w, b.id.UUID)
	admin.WantKeys(w)
	if b.request.Key != "" {
		w.Docs = append(w.Docs, b.request)
	}
}

// verified reports whether the token is good for what it was sent for; if not, ent is nil.
func (b *tokenCommand) verified(u *txn.Tx) (ent *txn.Row, d *core.WaitState, fault keyring.TokenFault, err error) {
	ring, err := admin.Ring(u)
	if err != nil {
		return nil, nil, 0, err
	}
	if ent, err = u.Find(b.caller, b.id); base.CodeOf(err) == base.CodeCorruption {
		return nil, nil, 0, err
	}
	var fields keyring.TokenFields
	if ent != nil {
		if d, err = StateOf(u, ent); err != nil {
			return nil, nil, 0, err
		}
		fields = b.fields(d)
	}
	fault, err = ring.Verify(u.Now, b.token, fields)
	if err == nil && b.given != nil && !b.given.Names(ent.Exec.ID) {
		fault, err = keyring.TokenWrongExecution, keyring.InvalidToken()
	}
	if err != nil {
		return nil, nil, fault, b.refusal(err)
	}
	return ent, d, 0, nil
}

// By returns the caller.
func (b *tokenCommand) By() txn.Caller { return b.caller }

// Chains names a chain only if the token is verified: no other caller causes the trip that locks it.
func (b *tokenCommand) Chains(u *txn.Tx) []string {
	if b.audited == nil {
		return nil
	}
	ent, _, _, err := b.verified(u)
	if err != nil {
		return nil
	}
	return []string{ent.Exec.Class.Namespace}
}

func (b *tokenCommand) Decide(u *txn.Tx) error {
	ent, d, fault, err := b.verified(u)
	if err != nil {
		tokenRefused(u, fault)
		return err
	}
	if err := cmp.Or(b.keyed, b.check()); err != nil {
		return err
	}
	u.Settle(ent)
	if repeated, err := u.Repeated(b.caller, b.request, b.fingerprint, b.answer); repeated || err != nil {
		return err
	}
	changed := false
	err = u.Apply(b.caller, ent, func(x *core.Execution, fx *core.Effects) (_ bool, err error) {
		changed, err = b.act(d, x, fx)
		return changed, err
	})
	if err != nil {
		return err
	}
	if changed && b.audited != nil {
		who, audited := b.audited(d)
		admin.AuditPart(u, who, b.op, "", ent.Exec, audited)
	}
	u.RecordRequest(b.request, b.fingerprint, b.answer)
	return nil
}

// tokenRefused counts a token that was not valid: nothing else remembers it (W34).
func tokenRefused(u *txn.Tx, fault keyring.TokenFault) {
	u.After = append(u.After, func() { txn.Room[Waits](u.Engine, waitSlot).countRefused(fault) })
}

// Signal delivers a signal to the waitpoint of a token (section 6). id, if given, must be the waitpoint's execution (W33).
func (e *Waits) Signal(ctx context.Context, c txn.Caller, id *base.GivenID, token keyring.Token, cmd core.SignalCommand) (core.SignalAnswer, error) {
	if token.Reveal() == "" {
		_, err := (&keyring.Ring{}).Verify(0, token, nil)
		return core.SignalAnswer{}, err
	}
	args := cmd
	cmd.MintedID = e.Mint()
	cmd.TokenKid, cmd.TokenFingerprint = token.Split()
	var answer core.SignalAnswer
	err := e.withToken(ctx, waitpointAtRef(cmd.WaitpointID), &tokenCommand{
		op: "signal", caller: c, given: id, token: token, proved: e.proved(cmd.WaitpointID, token), answer: &answer,
		fields: func(d *core.WaitState) keyring.TokenFields {
			if w := d.Waitpoint(cmd.WaitpointID); w != nil {
				return w.TokenFields()
			}
			return nil
		},
		refusal: func(err error) error { return err },
		check:   cmd.Check,
		act: func(d *core.WaitState, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer, err = x.Deliver(fx, d, cmd)
			return !answer.Duplicate, err
		},
	}, args)
	return txn.Answered(&answer, err)
}

// Decide takes the decision of the holder of a link (W71, W72).
func (e *Waits) Decide(ctx context.Context, c txn.Caller, token keyring.Token, cmd core.DecideCommand) (core.DecideAnswer, error) {
	args := cmd
	cmd.MintedID = e.Mint()
	var answer core.DecideAnswer
	err := e.withToken(ctx, linkAtRef(cmd.LinkID), &tokenCommand{
		op: "decide", caller: c, token: token, answer: &answer,
		fields:  func(d *core.WaitState) keyring.TokenFields { return linkFields(d, d.Link(cmd.LinkID)) },
		refusal: func(error) error { return noLink() },
		check:   func() error { return nil }, // a link that is decided or closed says so first
		act: func(d *core.WaitState, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			fx.Actor = core.Actor{Type: "approver", ID: d.Link(cmd.LinkID).Approver}
			answer, err = x.Decide(fx, d, cmd)
			return !answer.Already, err
		},
		audited: func(d *core.WaitState) (txn.Caller, admin.AuditedChange) {
			who := c
			who.Principal = d.Link(cmd.LinkID).Approver
			return who, admin.AuditedChange{Entity: "approval_link", ID: cmd.LinkID.String(), After: map[string]any{
				"decision": cmd.Decision, "signal_id": answer.End.SignalID,
			}}
		},
	}, args)
	return txn.Answered(&answer, err)
}
