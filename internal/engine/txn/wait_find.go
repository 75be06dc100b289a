package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

// whereIs finds the execution that has a waitpoint or a link. Which one that is never changes, so it is read without a lock.
func (e *Engine) whereIs(ctx context.Context, ref store.DocRef) (at whereabouts, found bool, err error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return at, false, PublicFault(err)
	}
	doc, found := loaded.Docs[ref]
	if !found {
		return at, false, nil
	}
	at, err = DecodeWhereabouts(&doc)
	return at, err == nil, err
}

// operateAt runs a command on what is found by the id of a waitpoint or a link. missing is the answer when there is none, or none that
// the caller may see (W5).
func (e *Engine) operateAt(ctx context.Context, c Caller, ref store.DocRef, missing error, o operation) error {
	if err := o.op.check(); err != nil {
		return err
	}
	at, found, err := e.whereIs(ctx, ref)
	if err != nil {
		return err
	}
	if !found || !c.Sees(at.Namespace) {
		return missing
	}
	o.waits, o.target = true, ref.Key
	err = e.operate(ctx, c, at.ExecutionID.Given(), o)
	if base.CodeOf(err) == base.CodeExecutionNotFound { // it was removed since
		return missing
	}
	return err
}

func noWaitpoint() error {
	return base.Errorf(base.CodeWaitpointNotFound, "there is no such waitpoint").WithField("waitpoint_id")
}

func noLink() error { return base.Errorf(base.CodeLinkNotFound, "there is no such link") }

// waitsOf is what commands on the waits of an execution look at. Codes: corruption, those of KeySet.Open.
func (u *Tx) waitsOf(x *core.Execution) (*core.Dossier, *keyring.Ring, error) {
	d, err := u.Dossier(u.Entries[x.ID.UUID])
	if err != nil {
		return nil, nil, err
	}
	ring, err := u.ring()
	return d, ring, err
}

// tokenFor makes the token of a row; there is none when no key is active (W27).
func tokenFor(ring *keyring.Ring, f keyring.TokenFields) keyring.Token {
	token, err := ring.Mint(f)
	if err != nil {
		return keyring.Token{}
	}
	return token
}
