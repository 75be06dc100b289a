package engine_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// keyHex is a secret of a signing key that differs from those of other numbers.
func keyHex(n byte) string {
	var raw [32]byte
	for i := range raw {
		raw[i] = 0xa0 + n*7 + byte(i)
	}
	return hex.EncodeToString(raw[:])
}

// seeding is the key that an engine of these tests is configured with.
func seeding(kid string, n byte) *keyring.SeedCommand {
	c, err := keyring.NewSeed(kid, keyHex(n))
	if err != nil {
		panic(err)
	}
	return &c
}

// withKey lets engines begin with the key a, of the first secret.
var withKey = engine.Config{SigningKey: seeding("a", 1)}

// signed are the fields of a token that tests mint.
var signed = keyring.WaitpointFields{Namespace: "default", Key: "k", MintedAt: 1}

func (w *world) seedKey(kid string, n byte) (keyring.SeedOutcome, error) {
	return w.e.SeedSigningKey(w.ctx(), admin, kid, keyHex(n), engine.AdminAction{})
}

// rotate goes to a key with the secret of that number, without one for 0.
func (w *world) rotateKey(kid string, n byte, grace base.Millis) (keyring.RotateOutcome, error) {
	r := engine.Rotation{Kid: kid, GraceMS: &grace}
	if n > 0 {
		r.SecretHex = ptr(keyHex(n))
	}
	return w.e.RotateSigningKey(w.ctx(), admin, r, engine.AdminAction{})
}

func (w *world) revokeKey(kid string, force bool) (keyring.RevokeOutcome, error) {
	return w.e.RevokeSigningKey(w.ctx(), admin, kid, force, engine.AdminAction{})
}

// keyStates are the keys and their states, in order.
func (w *world) keyStates() string {
	w.t.Helper()
	var words []string
	for _, k := range must(w.e.SigningKeys(w.ctx(), true))(w.t).Keys {
		words = append(words, k.Kid+" "+k.State.String())
	}
	return strings.Join(words, ", ")
}

// token is one that the active key of an engine has signed.
func token(t *testing.T, e *engine.Engine) keyring.Token {
	t.Helper()
	ring, _, err := ringOf(t.Context(), e)
	ok(t, err)
	return must(ring.Mint(signed))(t)
}

// fault is what an engine says of a token in a transaction of now.
func fault(t *testing.T, e *engine.Engine, token keyring.Token) string {
	t.Helper()
	ring, now, err := ringOf(t.Context(), e)
	ok(t, err)
	found, _ := ring.Verify(now, token, signed)
	return found.String()
}

// worn makes the keys of every state: a is active, v verifies for a minute, e is past its time and has its secret yet, p is
// purged, r revoked. Secrets have the numbers 1 to 5. The engine began with p.
func (w *world) worn() {
	w.t.Helper()
	must(w.rotateKey("r", 5, 0))(w.t)
	w.turn(1)
	must(w.rotateKey("e", 3, 10_000))(w.t) // p is purged
	must(w.revokeKey("r", false))(w.t)
	must(w.rotateKey("v", 2, 50))(w.t)
	must(w.rotateKey("a", 1, 61_000))(w.t)
	w.turn(1000)
	same(w.t, "states", w.keyStates(), "p expired, r revoked, e expired, v verify_only, a active")
}

var wornKeys = engine.Config{SigningKey: seeding("p", 4), Clock: turned}

func TestW14_seed_row_by_row_in_the_store(t *testing.T) {
	t.Parallel()
	onStoresWith(t, wornKeys, func(t *testing.T, w *world) {
		w.worn()
		for name, row := range map[string]struct {
			kid    string
			secret byte
			want   keyring.SeedOutcome
		}{
			"active, same secret":        {"a", 1, keyring.SeedOutcome{SameSecret: true, State: keyring.KeyActive}},
			"active, other secret":       {"a", 9, keyring.SeedOutcome{OtherSecret: true, State: keyring.KeyActive}},
			"verify_only, same secret":   {"v", 2, keyring.SeedOutcome{SameSecret: true, State: keyring.KeyVerifyOnly}},
			"verify_only, other secret":  {"v", 9, keyring.SeedOutcome{OtherSecret: true, State: keyring.KeyVerifyOnly}},
			"expired and not yet purged": {"e", 3, keyring.SeedOutcome{SameSecret: true, State: keyring.KeyExpired}},
			"purged: no longer held":     {"p", 4, keyring.SeedOutcome{State: keyring.KeyExpired}},
			"revoked: no longer held":    {"r", 5, keyring.SeedOutcome{State: keyring.KeyRevoked}},
		} {
			row.want.Outcome, row.want.Kid = keyring.OutcomeAlreadySeeded, row.kid
			same(t, name, must(w.seedKey(row.kid, row.secret))(t), row.want)
		}
		_, err := w.seedKey("new", 9)
		same(t, "names the active one", refused(t, err, base.CodeSeedConflict).Details["current_kid"], any("a"))
		must(w.revokeKey("a", true))(t)
		same(t, "none is active", must(w.e.SigningKeys(w.ctx(), false))(t).CurrentKid, "")
		same(t, "seeded", must(w.seedKey("new", 9))(t), keyring.SeedOutcome{Outcome: keyring.OutcomeSeeded, Kid: "new"})
		same(t, "states", w.keyStates(), "p expired, r revoked, e expired, v verify_only, a revoked, new active")
	})
}

func TestW15_rotate_row_by_row_in_the_store(t *testing.T) {
	t.Parallel()
	onStoresWith(t, wornKeys, func(t *testing.T, w *world) {
		w.worn()
		noop := keyring.RotateOutcome{Outcome: keyring.OutcomeNoop, Kid: "a"}
		same(t, "active, equal", must(w.rotateKey("a", 1, 0))(t), noop)
		same(t, "active, left out", must(w.rotateKey("a", 0, 0))(t), noop)
		for name, row := range map[string]struct {
			kid    string
			secret byte
			code   base.Code
		}{
			"active, different":      {"a", 9, base.CodeRotationConflict},
			"verify_only, different": {"v", 9, base.CodeRotationConflict},
			"expired":                {"e", 3, base.CodeKeyRetired},
			"expired, left out":      {"e", 0, base.CodeKeyRetired},
			"expired, different":     {"e", 9, base.CodeKeyRetired},
			"purged":                 {"p", 4, base.CodeKeyRetired},
			"revoked":                {"r", 5, base.CodeKeyRetired},
		} {
			_, err := w.rotateKey(row.kid, row.secret, 0)
			if base.CodeOf(err) != row.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		same(t, "states", w.keyStates(), "p expired, r revoked, e expired, v verify_only, a active")
		same(t, "verify_only, equal", must(w.rotateKey("v", 2, 5000))(t),
			keyring.RotateOutcome{Outcome: keyring.OutcomeRotated, NewKid: "v", PreviousKid: "a", Reactivated: true, PurgedCount: 1})
		same(t, "verify_only, left out", must(w.rotateKey("a", 0, 5000))(t),
			keyring.RotateOutcome{Outcome: keyring.OutcomeRotated, NewKid: "a", PreviousKid: "v", Reactivated: true})
		same(t, "unknown", must(w.rotateKey("n", 6, 5000))(t), keyring.RotateOutcome{Outcome: keyring.OutcomeRotated, NewKid: "n", PreviousKid: "a"})
		same(t, "unknown, left out", must(w.rotateKey("m", 0, 5000))(t), keyring.RotateOutcome{Outcome: keyring.OutcomeRotated, NewKid: "m", PreviousKid: "n"})
		must(w.revokeKey("m", true))(t)
		same(t, "none is active", must(w.rotateKey("o", 0, 5000))(t), keyring.RotateOutcome{Outcome: keyring.OutcomeRotated, NewKid: "o"})
	})
}

func TestW18_revoke_row_by_row_in_the_store(t *testing.T) {
	t.Parallel()
	onStoresWith(t, wornKeys, func(t *testing.T, w *world) {
		w.worn()
		of := token(t, w.e)
		for _, kid := range []string{"v", "e", "p"} {
			same(t, kid, must(w.revokeKey(kid, false))(t), keyring.RevokeOutcome{Outcome: keyring.OutcomeRevoked, Kid: kid})
		}
		same(t, "revoked", must(w.revokeKey("v", false))(t), keyring.RevokeOutcome{Outcome: keyring.OutcomeNoop, Kid: "v"})
		_, err := w.revokeKey("a", false)
		refused(t, err, base.CodeKeyActive)
		_, err = w.revokeKey("missing", true)
		refused(t, err, base.CodeKeyNotFound)
		_, err = w.revokeKey("a:b", true)
		refused(t, err, base.CodeInvalidKid)
		same(t, "yet", fault(t, w.e, of), "")
		same(t, "by force", must(w.revokeKey("a", true))(t), keyring.RevokeOutcome{Outcome: keyring.OutcomeRevoked, Kid: "a"})
		same(t, "dead at once", fault(t, w.e, of), "revoked_kid")
		ring, _, err := ringOf(t.Context(), w.e)
		ok(t, err)
		_, err = ring.Mint(signed)
		refused(t, err, base.CodeSigningKeyMissing) // W22
		list := must(w.e.SigningKeys(w.ctx(), false))(t)
		same(t, "list", []any{list.CurrentKid, len(list.Keys)}, []any{"", 0})
	})
}

func TestW17_a_key_verifies_to_the_last_moment_of_its_grace_and_not_after(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1), Clock: turned}, func(t *testing.T, w *world) {
		of := token(t, w.e)
		until := w.now().Add(10_000)
		must(w.rotateKey("b", 2, 10_000))(t)
		shown := func() string {
			t.Helper()
			list := must(w.e.SigningKeys(w.ctx(), false))(t)
			words := []string{list.CurrentKid}
			for _, k := range list.Keys {
				words = append(words, fmt.Sprint(k.Kid, " ", k.State, " ", k.VerifyUntil == until))
			}
			return strings.Join(words, ", ")
		}
		for _, row := range []struct {
			after base.Millis
			fault string
			list  string
		}{
			{-1, "", "b, a verify_only true, b active false"},
			{0, "", "b, a verify_only true, b active false"},
			{1, "expired_kid", "b, b active false"},
		} {
			w.turnTo(until.Add(row.after))
			same(t, fmt.Sprintf("verify_until %+d ms", row.after), []string{fault(t, w.e, of), shown()}, []string{row.fault, row.list})
		}
		_, err := w.rotateKey("a", 1, 0)
		refused(t, err, base.CodeKeyRetired)
	})
}

func TestW17_the_sweep_erases_secrets_and_keeps_the_kids(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1)}, func(t *testing.T, w *world) {
		must(w.rotateKey("b", 2, 10_000))(t)
		must(w.rotateKey("c", 3, 20_000))(t)
		purged := func() string {
			var kids []string
			for _, ev := range w.events(engine.EventFilter{Kinds: []string{"key.purged"}}) {
				kids = append(kids, fmt.Sprint(data(t, ev)["kid"]))
			}
			return strings.Join(kids, " ")
		}
		w.turn(base.Minute)
		eventually(t, "both are purged", func() bool { return purged() == "a b" })
		same(t, "no secret", heldKids(t, w), []string{"c"})
		for kid, n := range map[string]byte{"a": 1, "b": 2} {
			same(t, kid, must(w.seedKey(kid, n))(t), keyring.SeedOutcome{Outcome: keyring.OutcomeAlreadySeeded, Kid: kid, State: keyring.KeyExpired})
			_, err := w.rotateKey(kid, n, 0)
			refused(t, err, base.CodeKeyRetired)
		}
	})
}

// storedKeys is the key set as it is stored.
func storedKeys(t *testing.T, w *world) *keyring.KeySet {
	t.Helper()
	ref := store.DocRef{Kind: 14, Key: "signing_keys"}
	loaded, err := w.store.Read(t.Context(), store.Want{Docs: []store.DocRef{ref}})
	ok(t, err)
	set := must(keyring.DecodeKeySet(loaded.Docs[ref].Body))(t)
	return &set
}

// heldKids are the kids whose secret is stored.
func heldKids(t *testing.T, w *world) (kids []string) {
	t.Helper()
	for _, k := range storedKeys(t, w).Keys {
		if !k.Secret.IsZero() {
			kids = append(kids, k.Kid)
		}
	}
	return kids
}

func TestW19_concurrent_rotations_all_succeed_and_each_names_its_true_predecessor(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e}
		if w.url != "" {
			engines = append(engines, w.another(), w.another())
		}
		const rotations = 24
		var mu sync.Mutex
		before := map[string]string{} // new kid -> previous kid
		var all sync.WaitGroup
		for i := range rotations {
			all.Go(func() {
				out, err := engines[i%len(engines)].RotateSigningKey(w.ctx(), admin, engine.Rotation{Kid: fmt.Sprint("k", i)}, engine.AdminAction{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("rotation %d: %v", i, err)
				}
				before[out.NewKid] = out.PreviousKid
			})
		}
		all.Wait()
		kid, steps := must(w.e.SigningKeys(w.ctx(), false))(t).CurrentKid, 0
		for ; kid != "a" && steps <= rotations; steps++ {
			kid = before[kid]
		}
		same(t, "one row of predecessors", []any{kid, steps}, []any{"a", rotations})
		set := storedKeys(t, w) // which could not be read with two active keys
		same(t, "changes", set.Version, int64(rotations+1))
	})
}

func TestW21_what_one_process_does_to_the_keys_the_others_see_at_once(t *testing.T) {
	t.Parallel()
	onShared(t, withKey, func(t *testing.T, w *world) {
		other := w.another()
		of := token(t, w.e)
		same(t, "one set of keys", fault(t, other, of), "")
		must(w.rotateKey("b", 2, base.Hour))(t)
		later := token(t, other)
		kid, _ := later.Split()
		same(t, "the new key signs", kid, "b")
		same(t, "the old one verifies", fault(t, other, of), "")
		must(w.revokeKey("a", false))(t)
		same(t, "revoked", fault(t, other, of), "revoked_kid")
		must(other.RotateSigningKey(w.ctx(), admin, engine.Rotation{Kid: "c", GraceMS: ptr(base.Millis(0))}, engine.AdminAction{}))(t)
		same(t, "at its last moment", fault(t, w.e, later), "")
		w.turn(1)
		same(t, "past its time", fault(t, w.e, later), "expired_kid")
	})
}

func TestW21_a_ring_is_opened_once_for_every_version(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		first, _, err := ringOf(w.ctx(), w.e)
		ok(t, err)
		again, _, err := ringOf(w.ctx(), w.e)
		ok(t, err)
		must(w.rotateKey("b", 2, 0))(t)
		third, _, err := ringOf(w.ctx(), w.e)
		ok(t, err)
		same(t, "rings", []any{first == again, first == third, first.Version(), third.Version()}, []any{true, false, int64(1), int64(2)})
		refused(t, unloadedRing(w.ctx(), w.e), base.CodeInternal)
	})
}

func TestW25_U131_changes_of_keys_are_told_with_kids_alone(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		how := func(key string) engine.AdminAction { return engine.AdminAction{Reason: "because", RequestKey: key} }
		r := engine.Rotation{Kid: "b", SecretHex: ptr(keyHex(2)), GraceMS: ptr(base.Millis(1000))}
		first := must(w.e.RotateSigningKey(w.ctx(), admin, r, how("1")))(t)
		w.turn(500)
		same(t, "a repeat", must(w.e.RotateSigningKey(w.ctx(), admin, r, how("1")))(t), first) // U13: not the no-op that it would be
		r.SecretHex = ptr(keyHex(3))
		_, err := w.e.RotateSigningKey(w.ctx(), admin, r, how("1"))
		refused(t, err, base.CodeIdempotencyConflict)
		must(w.e.RevokeSigningKey(w.ctx(), admin, "a", false, how("2")))(t)
		must(w.e.RevokeSigningKey(w.ctx(), admin, "a", false, how("3")))(t) // changes nothing
		must(w.e.RevokeSigningKey(w.ctx(), admin, "b", true, how("4")))(t)
		must(w.e.SeedSigningKey(w.ctx(), admin, "c", keyHex(3), how("5")))(t)
		must(w.e.SeedSigningKey(w.ctx(), admin, "c", keyHex(3), how("5")))(t)

		var told []string
		for _, ev := range w.events(engine.EventFilter{Kinds: []string{"key."}}) {
			told = append(told, fmt.Sprint(ev.Kind, " ", data(t, ev)["kid"], " ", ev.Actor.ID))
		}
		same(t, "events", told, []string{"key.seeded a engine", "key.rotated b root", "key.revoked a root", "key.revoked b root", "key.seeded c root"})
		rows := w.told(admin, core.AuditFilter{Namespace: "*"})
		var audited []string
		for _, row := range rows {
			audited = append(audited, row.Action+" "+row.Entity+" "+row.EntityID+" "+row.Reason)
		}
		same(t, "audit", audited, []string{
			"seed_signing_key signing_key c because", "revoke_signing_key signing_key b because", "revoke_signing_key signing_key a because",
			"rotate_signing_key signing_key b because",
		})
		same(t, "what changed", []string{string(rows[1].Before), string(rows[0].After)}, []string{
			fmt.Sprintf(`{"current_kid":"b","key":{"kid":"b","state":"active","created_at":%q},"version":3}`, start.Format("2006-01-02T15:04:05.000Z")),
			fmt.Sprintf(`{"current_kid":"c","key":{"kid":"c","state":"active","created_at":%q},"version":5}`, w.time().Format("2006-01-02T15:04:05.000Z")),
		})
		w.verified("*", 4)
	})
}

func TestW13_arguments_of_key_commands_are_checked_before_anything_is_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		ok(t, w.store.Close())
		_, err := w.seedKey("a:b", 1)
		refused(t, err, base.CodeInvalidKid)
		_, err = w.e.SeedSigningKey(w.ctx(), admin, "a", "00", engine.AdminAction{})
		refused(t, err, base.CodeInvalidSecretHex)
		_, err = w.rotateKey("a", 1, -1)
		refused(t, err, base.CodeInvalidGraceMS)
		_, err = w.revokeKey("", false)
		refused(t, err, base.CodeInvalidKid)
		_, err = w.e.RewrapSigningKeys(w.ctx(), admin, keyring.MasterKey{}, engine.AdminAction{})
		refused(t, err, base.CodeInvalidArgument)
	})
}
