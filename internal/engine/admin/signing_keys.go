package admin

import (
	"context"
	crand "crypto/rand"
	"log/slog"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SeedSigningKey installs the first signing key (W14). Codes: invalid_kid, invalid_secret_hex, seed_conflict.
func (e *Admin) SeedSigningKey(ctx context.Context, c txn.Caller, kid, secretHex string, how AdminAction) (keyring.SeedOutcome, error) {
	seed, err := keyring.NewSeed(kid, secretHex)
	if err != nil {
		return keyring.SeedOutcome{}, err
	}
	var answer keyring.SeedOutcome
	err = e.onKeySet(ctx, &keySetChange{
		op: "seed_signing_key", caller: c, how: how, kid: kid, answer: &answer,
		change: func(fx *core.Effects, set *keyring.KeySet) (err error) {
			answer, err = set.Seed(fx, e.sealing(), seed)
			return err
		},
	}, secretHex)
	return txn.Answered(&answer, err)
}

// Rotation makes another signing key the active one.
type Rotation struct {
	Kid       string
	SecretHex *string      // nil: that of the key, or a random one for a new key
	GraceMS   *base.Millis // how long the former one verifies; nil: a day
}

// RotateSigningKey makes another key the active one (W15). Codes: invalid_kid, invalid_secret_hex, invalid_grace_ms,
// rotation_conflict, key_retired.
func (e *Admin) RotateSigningKey(ctx context.Context, c txn.Caller, r Rotation, how AdminAction) (keyring.RotateOutcome, error) {
	var drawn [32]byte
	crand.Read(drawn[:]) // never fails
	rotation, err := keyring.NewRotation(r.Kid, r.SecretHex, r.GraceMS, drawn)
	if err != nil {
		return keyring.RotateOutcome{}, err
	}
	var answer keyring.RotateOutcome
	err = e.onKeySet(ctx, &keySetChange{
		op: "rotate_signing_key", caller: c, how: how, kid: r.Kid, answer: &answer,
		change: func(fx *core.Effects, set *keyring.KeySet) (err error) {
			answer, err = set.Rotate(fx, e.sealing(), rotation)
			return err
		},
	}, r)
	return txn.Answered(&answer, err)
}

// RevokeSigningKey ends a key and every token of it (W18). Codes: invalid_kid, key_not_found, key_active.
func (e *Admin) RevokeSigningKey(ctx context.Context, c txn.Caller, kid string, force bool, how AdminAction) (keyring.RevokeOutcome, error) {
	if err := keyring.CheckKid(kid); err != nil {
		return keyring.RevokeOutcome{}, err
	}
	var answer keyring.RevokeOutcome
	err := e.onKeySet(ctx, &keySetChange{
		op: "revoke_signing_key", caller: c, how: how, kid: kid, answer: &answer, erases: true,
		change: func(fx *core.Effects, set *keyring.KeySet) (err error) {
			answer, err = set.Revoke(fx, kid, force)
			return err
		},
	}, force)
	return txn.Answered(&answer, err)
}

// RewrapSigningKeys replaces the master key, in one transaction, and returns how many secrets are sealed under the new one (W24). This engine
// continues with it; others on the same store sign nothing until they are started with it. Codes: invalid_argument, master_key_required,
// master_key_mismatch.
func (e *Admin) RewrapSigningKeys(ctx context.Context, c txn.Caller, to keyring.MasterKey, how AdminAction) (int, error) {
	if to.IsZero() {
		return 0, base.Invalid("master_key", "there must be a new one")
	}
	sealed := 0
	err := e.onKeySet(ctx, &keySetChange{
		op: "rewrap_signing_keys", caller: c, how: how, kid: "*", answer: &sealed,
		change: func(_ *core.Effects, set *keyring.KeySet) error {
			sealed = heldSecrets(set)
			return set.Reseal(e.Signing.MasterKey(), to, nonces(len(set.Keys)+1))
		},
		also: func(u *txn.Tx) error {
			if u.Doc(dataKeyRef) != nil {
				sealed++
			}
			return resealDataKey(u, e.Signing.MasterKey(), to)
		},
		beside: []store.DocRef{dataKeyRef},
		after:  func() { e.Signing.exchanged(to) },
	}, nil)
	if err != nil {
		return 0, err
	}
	return sealed, e.goOnWith(ctx, to)
}

// goOnWith takes a master key into use if what is stored opens under it. After a repeat of a recorded rewrap that is not sure.
func (e *Admin) goOnWith(ctx context.Context, master keyring.MasterKey) error {
	_, set, err := e.ReadKeySet(ctx)
	if err != nil {
		return err
	}
	if _, err := set.Open(master); err != nil {
		return err
	}
	e.Signing.exchanged(master)
	return nil
}

func heldSecrets(set *keyring.KeySet) (n int) {
	if !set.Audit.IsZero() {
		n++
	}
	for i := range set.Keys {
		if !set.Keys[i].Secret.IsZero() {
			n++
		}
	}
	return n
}

// SigningKeys shows the keys that verify now, and with retired the others too (W20).
func (e *Admin) SigningKeys(ctx context.Context, retired bool) (keyring.KeyList, error) {
	loaded, set, err := e.ReadKeySet(ctx)
	if err != nil {
		return keyring.KeyList{}, err
	}
	return set.List(loaded.Now, retired), nil
}

// ReadKeySet reads the key set as it is now.
func (e *Admin) ReadKeySet(ctx context.Context) (*store.Loaded, keyring.KeySet, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{KeySetRef}})
	if err != nil {
		return nil, keyring.KeySet{}, txn.PublicFault(err)
	}
	set, err := keyring.DecodeKeySet(loaded.Docs[KeySetRef].Body)
	return loaded, set, err
}

// keySetChange is one change of the key set on its way.
type keySetChange struct {
	op     string
	caller txn.Caller
	how    AdminAction
	kid    string // "*": it concerns all keys
	answer any
	erases bool // it puts no secret in place: the others need not be open to it
	change func(fx *core.Effects, set *keyring.KeySet) error
	after  func() // once it is committed; nil: nothing
	// also changes records beside the key set, in the same transaction; nil: there are none.
	also   func(u *txn.Tx) error
	beside []store.DocRef
}

// onKeySet changes the key set under its lock and records it in the event log (W25) and the audit log.
func (e *Admin) onKeySet(ctx context.Context, k *keySetChange, args any) error {
	return e.Administer(ctx, &AdminCommand{
		Op: k.op, Caller: k.caller, How: k.how, Ref: KeySetRef, Beside: k.beside, Answer: k.answer,
		Where: func(*store.Doc) ([]string, error) { return []string{keyring.Everywhere}, nil },
		Act:   k.act,
	}, k.kid, args)
}

func (k *keySetChange) act(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
	set, err := keyring.DecodeKeySet(keySetText(doc))
	if err != nil {
		return AdminChange{}, err
	}
	if !k.erases { // under a wrong master key no secret may join those of the right one
		if _, err := Of(u).Signing.Open(keySetText(doc)); err != nil {
			return AdminChange{}, err
		}
	}
	before, fx := set, u.Effects(k.caller)
	if err := k.change(fx, &set); err != nil {
		return AdminChange{}, err
	}
	if set.Version == before.Version {
		return AdminChange{}, nil
	}
	if k.also != nil {
		if err := k.also(u); err != nil {
			return AdminChange{}, err
		}
	}
	u.Keep(fx)
	armPurge(u, &before, &set)
	if k.after != nil {
		u.After = append(u.After, k.after)
	}
	change := AdminChange{
		Body: set.Encode(), Made: doc == nil, Chain: keyring.Everywhere, Entity: "signing_key", ID: k.kid,
		Before: auditedKeys(&before, k.kid), After: auditedKeys(&set, k.kid),
	}
	return change, nil
}

// auditedKeySet is the key set in an audit row: which key signs, and the key that the change was about.
type auditedKeySet struct {
	Version    int64            `json:"version"`
	CurrentKid string           `json:"current_kid"`
	Key        *keyring.KeyView `json:"key,omitempty"`
}

func auditedKeys(set *keyring.KeySet, kid string) auditedKeySet {
	list := set.List(0, true) // states as they are stored
	audited := auditedKeySet{Version: set.Version, CurrentKid: list.CurrentKid}
	for i := range list.Keys {
		if list.Keys[i].Kid == kid {
			audited.Key = &list.Keys[i]
		}
	}
	return audited
}

// armPurge lets the sweep erase secrets when their time is over (W17): each key whose end is new has a timer of its own.
func armPurge(u *txn.Tx, before, after *keyring.KeySet) {
	ends := map[string]base.Time{}
	for i := range before.Keys {
		ends[before.Keys[i].Kid] = before.Keys[i].VerifyUntil
	}
	for i := range after.Keys {
		k := &after.Keys[i]
		if k.State == keyring.KeyVerifyOnly && !k.Secret.IsZero() && ends[k.Kid] != k.VerifyUntil {
			timer := u.TimerAt(timerSigningKeys, txn.RoundUp(k.VerifyUntil.Add(1), base.Minute))
			timer.Texts = append(timer.Texts, k.Kid)
		}
	}
}

// sweepSigningKeys erases the secrets of keys that are past their time (W17).
func (e *Admin) sweepSigningKeys(ctx context.Context, _ store.Timer) error {
	return e.OnRefs(ctx, []store.DocRef{KeySetRef}, func(u *txn.Tx, doc *store.Doc) error {
		set, err := keyring.DecodeKeySet(doc.Body)
		if err != nil {
			return err
		}
		fx := u.EngineEffects()
		if kids := set.Purge(fx); len(kids) > 0 {
			u.Keep(fx)
			u.PutDoc(store.Doc{DocRef: KeySetRef, Body: set.Encode()})
			u.Safe.Then(func(err error) {
				if err == nil {
					logPurged(e.Cfg.Logger, kids)
				}
			})
		}
		return nil
	})
}

func logPurged(log *slog.Logger, kids []string) {
	for _, kid := range kids {
		log.Info("a signing key is past its time, its secret is gone", "key_id", kid)
	}
}

// sealing says how a new secret is kept.
func (e *Admin) sealing() keyring.Sealing {
	return keyring.Sealing{Master: e.Signing.MasterKey(), Nonce: nonces(1)[0]}
}

func nonces(n int) []keyring.SealNonce {
	all := make([]keyring.SealNonce, n)
	for i := range all {
		crand.Read(all[i][:]) // never fails
	}
	return all
}
