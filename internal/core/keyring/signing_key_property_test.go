package keyring

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// keeper plays random changes of a key set against a plain account of what each key is.
type keeper struct {
	t      *rapid.T
	now    base.Time
	set    KeySet
	how    Sealing
	keys   map[string]*keptKey
	tokens map[string][]Token // by kid, of the vector's waitpoint
	did    map[string]int
}

// keptKey is what the account says of a kid.
type keptKey struct {
	secret  byte // number of the secret, 0: the drawn one
	active  bool
	revoked bool
	until   base.Time
	purged  bool
}

func (k *keptKey) verifies(now base.Time) bool {
	return k != nil && !k.revoked && !k.purged && (k.active || now <= k.until)
}

func (k *keeper) activeKid() string {
	for kid, key := range k.keys {
		if key.active {
			return kid
		}
	}
	return ""
}

// command runs one change and looks at what every change must leave behind.
func (k *keeper) command(name string, run func(*keyLog) (outcome any, err error), want string) {
	fx, before := &keyLog{Now: k.now}, k.set
	text := string(before.Encode())
	outcome, err := run(fx)
	got := fmt.Sprintf("%+v", outcome)
	if err != nil {
		got = string(base.CodeOf(err))
	}
	if got != want {
		k.t.Fatalf("%s at %d: %s, want %s", name, k.now, got, want)
	}
	changed := string(k.set.Encode()) != text
	if changed != (k.set.Version == before.Version+1) || changed != (len(fx.Events) > 0) || !changed && k.set.Version != before.Version {
		k.t.Fatalf("%s: changed %v, version %d after %d, %d events", name, changed, k.set.Version, before.Version, len(fx.Events))
	}
	if string(before.Encode()) != text {
		k.t.Fatalf("%s: a copy of the set changed with it", name)
	}
	if changed {
		k.did[name]++
	}
}

func (k *keeper) drawKidAndSecret() (string, byte) {
	return fmt.Sprint("k", rapid.IntRange(0, 7).Draw(k.t, "kid")), byte(rapid.IntRange(1, 2).Draw(k.t, "secret"))
}

func (k *keeper) seed(*rapid.T) {
	kid, secret := k.drawKidAndSecret()
	known := k.keys[kid]
	want := fmt.Sprintf("%+v", SeedOutcome{Outcome: OutcomeSeeded, Kid: kid})
	switch {
	case known != nil:
		out := SeedOutcome{Outcome: OutcomeAlreadySeeded, Kid: kid, State: KeyExpired}
		held := !known.revoked && !known.purged
		out.SameSecret, out.OtherSecret = held && known.secret == secret, held && known.secret != secret
		switch {
		case known.revoked:
			out.State = KeyRevoked
		case known.active:
			out.State = KeyActive
		case known.verifies(k.now):
			out.State = KeyVerifyOnly
		}
		want = fmt.Sprintf("%+v", out)
	case k.activeKid() != "":
		want = string(base.CodeSeedConflict)
	default:
		k.keys[kid] = &keptKey{secret: secret, active: true}
	}
	k.command("seed", func(fx *keyLog) (any, error) { return k.set.Seed(fx, k.how, seedOf(k.t, kid, secret)) }, want)
}

func (k *keeper) rotate(*rapid.T) {
	kid, secret := k.drawKidAndSecret()
	if rapid.Bool().Draw(k.t, "left out") {
		secret = 0
	}
	grace := rapid.SampledFrom([]base.Millis{0, 1, 500, 3000}).Draw(k.t, "grace")
	want := k.rotated(kid, secret, grace)
	run := func(fx *keyLog) (any, error) { return k.set.Rotate(fx, k.how, rotationTo(k.t, kid, secret, grace)) }
	k.command("rotate", run, want)
	if strings.HasPrefix(want, "{") { // WI4: success means that the kid is active, and a repeat is a no-op
		if k.set.List(k.now, false).CurrentKid != kid {
			k.t.Fatalf("rotated to %s while another is active", kid)
		}
		k.command("repeat", run, fmt.Sprintf("%+v", RotateOutcome{Outcome: OutcomeNoop, Kid: kid}))
	}
}

// rotated enters a rotation into the account and says what it answers.
func (k *keeper) rotated(kid string, secret byte, grace base.Millis) string {
	known := k.keys[kid]
	switch {
	case known != nil && !known.verifies(k.now):
		return string(base.CodeKeyRetired)
	case known != nil && secret != 0 && known.secret != secret:
		return string(base.CodeRotationConflict)
	case known != nil && known.active:
		return fmt.Sprintf("%+v", RotateOutcome{Outcome: OutcomeNoop, Kid: kid})
	}
	out := RotateOutcome{Outcome: OutcomeRotated, NewKid: kid, PreviousKid: k.activeKid(), Reactivated: known != nil}
	if former := k.keys[out.PreviousKid]; former != nil {
		former.active, former.until = false, k.now.Add(grace)
	}
	if known == nil {
		known = &keptKey{secret: secret}
		k.keys[kid] = known
	}
	known.active = true
	out.PurgedCount = k.purgeKept()
	return fmt.Sprintf("%+v", out)
}

func (k *keeper) purgeKept() (n int) {
	for _, key := range k.keys {
		if !key.active && !key.revoked && !key.purged && key.until < k.now {
			key.purged = true
			n++
		}
	}
	return n
}

func (k *keeper) revoke(*rapid.T) {
	kid, _ := k.drawKidAndSecret()
	force := rapid.IntRange(0, 3).Draw(k.t, "force") == 0
	known := k.keys[kid]
	want := fmt.Sprintf("%+v", RevokeOutcome{Outcome: OutcomeRevoked, Kid: kid})
	switch {
	case known == nil:
		want = string(base.CodeKeyNotFound)
	case known.revoked:
		want = fmt.Sprintf("%+v", RevokeOutcome{Outcome: OutcomeNoop, Kid: kid})
	case known.active && !force:
		want = string(base.CodeKeyActive)
	default:
		known.revoked, known.active = true, false
	}
	k.command("revoke", func(fx *keyLog) (any, error) { return k.set.Revoke(fx, kid, force) }, want)
}

func (k *keeper) purge(*rapid.T) {
	want := fmt.Sprintf("%+v", k.purgeKept())
	k.command("purge", func(fx *keyLog) (any, error) { return len(k.set.Purge(fx)), nil }, want)
}

func (k *keeper) wait(*rapid.T) {
	k.now = k.now.Add(rapid.SampledFrom([]base.Millis{1, 499, 500, 501, 4000}).Draw(k.t, "wait"))
}

// check holds the set to the invariants, through its stored form.
func (k *keeper) check(t *rapid.T) {
	if k.set.Version == 0 {
		return // nothing was stored yet
	}
	read, err := DecodeKeySet(k.set.Encode())
	if err != nil || string(read.Encode()) != string(k.set.Encode()) {
		t.Fatalf("read back: %v", err)
	}
	active := 0
	for _, key := range read.Keys {
		if key.State == KeyActive {
			active++
		}
	}
	if current := read.List(k.now, true).CurrentKid; active > 1 || current != k.activeKid() || len(read.Keys) != len(k.keys) {
		t.Fatalf("%d active, current %q, want %q", active, current, k.activeKid())
	}
	ring, err := read.Open(k.how.Master)
	if err != nil {
		t.Fatal(err)
	}
	for kid, tokens := range k.tokens {
		for _, token := range tokens {
			if fault := verdict(t, ring, k.now, token, vectorWaitpoint); (fault == 0) != k.keys[kid].verifies(k.now) {
				t.Fatalf("at %d a token of %s, %+v: %q", k.now, kid, k.keys[kid], fault)
			}
		}
	}
	token, err := ring.Mint(vectorWaitpoint)
	if (err == nil) != (active == 1) {
		t.Fatalf("%d active, minted: %v", active, err)
	}
	if kid, _ := token.Split(); err == nil {
		k.tokens[kid] = append(k.tokens[kid][:min(len(k.tokens[kid]), 1)], token)
	}
}

func TestWI2_WI3_WI4_hold_after_every_change_of_a_key_set(t *testing.T) {
	t.Parallel()
	did := map[string]int{}
	life := func(t *rapid.T) {
		k := &keeper{t: t, now: 1000, keys: map[string]*keptKey{}, tokens: map[string][]Token{}, did: did}
		if rapid.Bool().Draw(t, "sealed") {
			k.how = Sealing{Master: masterNumber(1), Nonce: SealNonce{1}}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": k.check, "seed": k.seed, "rotate": k.rotate, "rotate more": k.rotate, "revoke": k.revoke, "purge": k.purge, "wait": k.wait,
		})
	}
	never := func() (names []string) {
		for _, name := range []string{"seed", "rotate", "revoke", "purge"} {
			if did[name] == 0 {
				names = append(names, name)
			}
		}
		return names
	}
	testseed.Rounds(t, 1, 20, never, life)
}
