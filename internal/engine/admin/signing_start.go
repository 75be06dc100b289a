package admin

import (
	"context"
	crand "crypto/rand"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// startKeys makes the signing keys and that of the audit log ready when the engine starts (W23, W24, U131). A master key that does not open what is stored, and a
// configured key that cannot be the one, stop the start. An engine that only submits and reads takes the keys as they are.
func (e *Admin) startKeys(ctx context.Context) error {
	if e.Cfg.NoTimers {
		return nil
	}
	loaded, set, err := e.ReadKeySet(ctx)
	if err != nil {
		return err
	}
	if _, err := e.Signing.Open(loaded.Docs[KeySetRef].Body); err != nil {
		return err
	}
	if set.Clear() && !e.Cfg.MasterKey.IsZero() {
		if err := e.sealKeys(ctx); err != nil {
			return err
		}
	}
	switch {
	case e.Cfg.SigningKey != nil:
		err = e.seedConfigured(ctx)
	case len(set.Keys) == 0:
		err = e.seedRandom(ctx)
	}
	if err != nil {
		return err
	}
	if err := e.startDataKey(ctx); err != nil {
		return err
	}
	return e.startAudit(ctx)
}

// sealKeys seals secrets that an engine without a master key has left in clear.
func (e *Admin) sealKeys(ctx context.Context) error {
	sealed := 0
	err := e.startChange(ctx, "seal_signing_keys", func(_ *core.Effects, set *keyring.KeySet) error {
		if sealed = 0; !set.Clear() { // another engine that started was faster
			return nil
		}
		sealed = heldSecrets(set)
		return set.Reseal(e.Cfg.MasterKey, e.Cfg.MasterKey, nonces(len(set.Keys)+1))
	})
	if err == nil && sealed > 0 {
		e.Cfg.Logger.Info("secrets of signing keys that were stored in clear are sealed", "count", sealed)
	}
	return err
}

// seedConfigured installs the key of the configuration, unless it is there.
func (e *Admin) seedConfigured(ctx context.Context) error {
	var outcome keyring.SeedOutcome
	err := e.startChange(ctx, "seed_signing_key", func(fx *core.Effects, set *keyring.KeySet) (err error) {
		outcome, err = set.Seed(fx, e.sealing(), *e.Cfg.SigningKey)
		return err
	})
	switch {
	case err != nil:
		return err
	case outcome.OtherSecret:
		return base.Errorf(base.CodeSeedConflict, "the configured signing key %s is stored with another secret", outcome.Kid).
			WithHint("configure the secret that it was seeded with, or another kid")
	}
	e.logSeeded(outcome)
	return nil
}

// seedRandom creates the first key if none was configured. Of several engines that start together one wins, and all use its key.
func (e *Admin) seedRandom(ctx context.Context) error {
	var name [4]byte
	var secret [32]byte
	crand.Read(name[:]) // never fails
	crand.Read(secret[:])
	seed, err := keyring.AutoSeed(name, secret)
	if err != nil {
		return err
	}
	var outcome keyring.SeedOutcome
	err = e.startChange(ctx, "seed_signing_key", func(fx *core.Effects, set *keyring.KeySet) (err error) {
		if outcome = (keyring.SeedOutcome{}); len(set.Keys) > 0 {
			return nil
		}
		outcome, err = set.Seed(fx, e.sealing(), seed)
		return err
	})
	e.logSeeded(outcome)
	return err
}

func (e *Admin) logSeeded(outcome keyring.SeedOutcome) {
	if outcome.Outcome == keyring.OutcomeSeeded {
		e.Cfg.Logger.Info("a signing key was seeded", "key_id", outcome.Kid)
	}
}

// startChange is a change of the key set by the engine itself, without an audit row.
func (e *Admin) startChange(ctx context.Context, op string, change func(fx *core.Effects, set *keyring.KeySet) error) error {
	return e.onKeySet(txn.OwnWork(ctx), &keySetChange{op: op, caller: txn.EngineCaller, change: change}, nil)
}
