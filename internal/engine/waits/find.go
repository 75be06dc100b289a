package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// whereIs finds the execution that has a waitpoint or a link. Which one that is never changes, so it is read without a lock.
func (e *Waits) whereIs(ctx context.Context, ref store.DocRef) (at waitLocator, found bool, err error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return at, false, txn.PublicFault(err)
	}
	doc, found := loaded.Docs[ref]
	if !found {
		return at, false, nil
	}
	at, err = DecodeLocator(&doc)
	return at, err == nil, err
}

// operateAt runs a command on what is found by the id of a waitpoint or a link. missing is the answer when there is none, or none that
// the caller may see (W5).
func (e *Waits) operateAt(ctx context.Context, c txn.Caller, ref store.DocRef, missing error, o admin.Operation) error {
	if err := admin.Check(&o.Op); err != nil {
		return err
	}
	at, found, err := e.whereIs(ctx, ref)
	if err != nil {
		return err
	}
	if !found || !c.Sees(at.Namespace) {
		return missing
	}
	o.Wants, o.Target = wantWaits, ref.Key
	err = e.Operate(ctx, c, at.ExecutionID.Given(), o)
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
func waitsOf(u *txn.Tx, x *core.Execution) (*core.WaitState, *keyring.Ring, error) {
	d, err := StateOf(u, u.Entries[x.ID.UUID])
	if err != nil {
		return nil, nil, err
	}
	ring, err := admin.Ring(u)
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
