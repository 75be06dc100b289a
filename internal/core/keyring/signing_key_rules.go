package keyring

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Seed installs a key as the active one if there is none (W14). A kid that is known in any state changes nothing. While another key is active:
// seed_conflict. If a stored secret cannot be opened: the errors of StoredSecret.Open.
func (s *KeySet) Seed(fx KeyLog, how Sealing, c SeedCommand) (SeedOutcome, error) {
	if known := s.find(c.kid); known != nil {
		held, err := known.open(how.Master)
		if err != nil {
			return SeedOutcome{}, err
		}
		same := held.equal(c.secret)
		return SeedOutcome{
			Outcome: OutcomeAlreadySeeded, Kid: c.kid, State: known.StateAt(fx.KeyTime()),
			SameSecret: same, OtherSecret: !same && !held.IsZero(),
		}, nil
	}
	if active := s.active(); active != nil {
		return SeedOutcome{}, base.Errorf(base.CodeSeedConflict, "the key %s is active; rotate to have another", active.Kid).
			With("current_kid", active.Kid).WithHint("rotate to %s", c.kid)
	}
	s.edit()
	s.install(fx.KeyTime(), how, c.kid, c.secret)
	fx.EmitKey(KeyChange{Kind: "key.seeded", Kid: c.kid})
	return SeedOutcome{Outcome: OutcomeSeeded, Kid: c.kid}, nil
}

// Rotate makes a new key, or one that still verifies, the active one (W15). The former active key verifies for the grace of this call (W16).
// Expired keys are purged (W17). Rotating to the active key is a no-op and purges nothing. A kid that has expired or was revoked: key_retired. A
// secret that differs from the stored one: rotation_conflict. Also the errors of StoredSecret.Open.
func (s *KeySet) Rotate(fx KeyLog, how Sealing, c RotateCommand) (RotateOutcome, error) {
	known := s.find(c.kid)
	if known != nil {
		if err := known.mayActivate(fx.KeyTime(), how.Master, c); err != nil {
			return RotateOutcome{}, err
		}
		if known.State == KeyActive {
			return RotateOutcome{Outcome: OutcomeNoop, Kid: c.kid}, nil
		}
	}
	s.edit()
	out := RotateOutcome{Outcome: OutcomeRotated, NewKid: c.kid, Reactivated: known != nil}
	var until base.Time
	if former := s.active(); former != nil {
		until = fx.KeyTime().Add(c.grace)
		former.State, former.VerifyUntil = KeyVerifyOnly, until
		out.PreviousKid = former.Kid
	}
	if known == nil {
		s.install(fx.KeyTime(), how, c.kid, c.secret)
	} else {
		again := s.find(c.kid)
		again.State, again.VerifyUntil = KeyActive, 0
	}
	fx.EmitKey(KeyChange{Kind: "key.rotated", Kid: c.kid, PreviousKid: out.PreviousKid, VerifyUntil: until})
	out.PurgedCount = len(s.purge(fx))
	return out, nil
}

// mayActivate checks a rotation to a known kid by the table of W15.
func (k *SigningKey) mayActivate(now base.Time, master MasterKey, c RotateCommand) error {
	if state := k.StateAt(now); !state.verifies() {
		return base.Errorf(base.CodeKeyRetired, "the key %s is %s; its kid cannot be used again", k.Kid, state).With("state", state.String()).
			WithHint("rotate to a new kid")
	}
	if !c.given {
		return nil
	}
	held, err := k.open(master)
	if err == nil && !held.equal(c.secret) {
		err = base.Errorf(base.CodeRotationConflict, "another secret is held under the kid %s", k.Kid).
			WithHint("rotate to a new kid, or leave the secret out")
	}
	return err
}

// Revoke ends a key and erases its secret: all its tokens become invalid at once (W18). The active key can be revoked only with force, after which
// none is active; else key_active. Revoking a revoked key is a no-op. Errors: invalid_kid, key_not_found.
func (s *KeySet) Revoke(fx KeyLog, kid string, force bool) (RevokeOutcome, error) {
	if err := CheckKid(kid); err != nil {
		return RevokeOutcome{}, err
	}
	known := s.find(kid)
	switch {
	case known == nil:
		return RevokeOutcome{}, base.Errorf(base.CodeKeyNotFound, "there is no key %s", kid)
	case known.State == KeyRevoked:
		return RevokeOutcome{Outcome: OutcomeNoop, Kid: kid}, nil
	case known.State == KeyActive && !force:
		return RevokeOutcome{}, base.Errorf(base.CodeKeyActive, "the key %s is active", kid).WithField("force").
			WithHint("rotate first, or set `force`: then nothing is signed until the next seed or rotation")
	}
	s.edit()
	known = s.find(kid)
	known.State, known.RevokedAt = KeyRevoked, fx.KeyTime()
	known.Secret, known.VerifyUntil = StoredSecret{}, 0
	fx.EmitKey(KeyChange{Kind: "key.revoked", Kid: kid})
	return RevokeOutcome{Outcome: OutcomeRevoked, Kid: kid}, nil
}

// Purge erases the secrets of expired keys and returns their kids (W17). Their rows are kept.
func (s *KeySet) Purge(fx KeyLog) (kids []string) {
	if s.first(func(k *SigningKey) bool { return k.past(fx.KeyTime()) }) == nil {
		return nil
	}
	s.edit()
	return s.purge(fx)
}

// past reports whether the secret must be erased. At verify_until the key still verifies.
func (k *SigningKey) past(now base.Time) bool {
	return k.State == KeyVerifyOnly && k.VerifyUntil < now && !k.Secret.IsZero()
}

// purge is Purge on a set that is being edited.
func (s *KeySet) purge(fx KeyLog) (kids []string) {
	for i := range s.Keys {
		if k := &s.Keys[i]; k.past(fx.KeyTime()) {
			k.Secret = StoredSecret{}
			kids = append(kids, k.Kid)
			fx.EmitKey(KeyChange{Kind: "key.purged", Kid: k.Kid, VerifyUntil: k.VerifyUntil})
		}
	}
	return kids
}

// Reseal stores every secret in another way: sealed if it was in clear, or under another master key (W24). Each takes a nonce; there must be one
// for every key of the set and one for that of the audit log, else internal. Either all change or none. Also the errors of StoredSecret.Open.
func (s *KeySet) Reseal(from, to MasterKey, nonces []SealNonce) error {
	if len(nonces) <= len(s.Keys) {
		return base.Errorf(base.CodeInternal, "%d nonces for %d keys", len(nonces), len(s.Keys))
	}
	keys := slices.Clone(s.Keys)
	for i := range keys {
		k := &keys[i]
		secret, err := k.Secret.Reseal(from, Sealing{Master: to, Nonce: nonces[i]}, k.row())
		if err != nil {
			return err
		}
		k.Secret = secret
	}
	audit, err := s.Audit.Reseal(from, Sealing{Master: to, Nonce: nonces[len(keys)]}, auditKeyRow)
	if err != nil {
		return err
	}
	s.Keys, s.Audit = keys, audit
	s.Version++
	return nil
}

// Clear reports whether any secret is stored in clear: with a master key it must be sealed (W24).
func (s *KeySet) Clear() bool {
	return s.first(func(k *SigningKey) bool { return !k.Secret.IsZero() && !k.Secret.Sealed() }) != nil
}

// edit begins a change: it copies the keys, so that copies of the set are not changed.
func (s *KeySet) edit() {
	s.Keys = slices.Clone(s.Keys)
	s.Version++
}

// install adds the active key.
func (s *KeySet) install(now base.Time, how Sealing, kid string, secret KeySecret) {
	k := SigningKey{Kid: kid, State: KeyActive, CreatedAt: now}
	k.Secret = Seal(how, k.row(), secret.reveal())
	s.Keys = append(s.Keys, k)
}

// KeyLog receives the changes of the key set.
type KeyLog interface {
	KeyTime() base.Time
	EmitKey(c KeyChange)
}

// KeyChange is a change of the key set, for the event of it (W25). It names kids, never secrets.
type KeyChange struct {
	Kind        string // of the event
	Kid         string
	PreviousKid string
	VerifyUntil base.Time
}
