package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

const vectorGrantKey = "pg:{fp:7}:0190f0c2-1111-7aaa-8bbb-0123456789ab:1767225605000:k1:5cd0d39b32d809f75e8b6f7d5a3f899252a6687886d2857b0a8ec448b11ddce1"

// vectorGrantEnd is when the grant of the vector ends.
const vectorGrantEnd base.Time = 1767225605000

// grantedVector is an execution under the grant of the vector.
func grantedVector(t tester) (*Execution, keyring.GrantKey, *keyring.Ring) {
	t.Helper()
	s := begin(t, `{}`)
	ring := storyKeys(t)
	s.x.ID = must[base.GivenID](t)(base.ParseID("{fp:7}:0190f0c2-1111-7aaa-8bbb-0123456789ab")).ID()
	key, err := s.x.IssueGrant(&Effects{Now: vectorGrantEnd - 5000}, ring, GrantCommand{WorkerID: "render", InstanceID: "render-1", TTL: 5 * base.Second})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s.x, key, ring
}

func TestS28_SC7_the_vector(t *testing.T) {
	t.Parallel()
	x, key, ring := grantedVector(t)
	if key.Reveal() != vectorGrantKey {
		t.Errorf("%s, want %s", key.Reveal(), vectorGrantKey)
	}
	wantCode(t, VerifyGrant(ring, vectorGrantEnd-1, keyring.GrantKeyOf(vectorGrantKey), x), "")
	if x.ID.Tag() != "{fp:7}" {
		t.Errorf("the tag is %s", x.ID.Tag())
	}
}

func TestS30_SC7_each_failure_alone_and_in_order_of_precedence(t *testing.T) {
	t.Parallel()
	const live = base.Time(1767225604999)
	otherDigits := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		edit func(text string) string
		now  base.Time
		want base.Code
	}{
		"good":                          {func(s string) string { return s }, live, ""},
		"nothing":                       {func(string) string { return "" }, live, base.CodeGrantMalformed},
		"another prefix":                {func(s string) string { return "pG" + s[2:] }, live, base.CodeGrantMalformed},
		"no prefix":                     {func(s string) string { return s[3:] }, live, base.CodeGrantMalformed},
		"too few parts":                 {func(string) string { return "pg:1:k1:aa" }, live, base.CodeGrantMalformed},
		"expiry no number":              {edited("1767225605000", "soon"), live, base.CodeGrantMalformed},
		"expiry beyond int64":           {edited("1767225605000", "9223372036854775808"), live, base.CodeGrantMalformed},
		"expiry with a sign":            {edited("1767225605000", "+1767225605000"), live, base.CodeGrantMalformed},
		"expiry with a zero":            {edited("1767225605000", "01767225605000"), live, base.CodeGrantMalformed},
		"no expiry":                     {edited("1767225605000", ""), live, base.CodeGrantMalformed},
		"over":                          {func(s string) string { return s }, live + 1, base.CodeGrantExpired},
		"over at the beginning of time": {edited("1767225605000", "0"), live, base.CodeGrantExpired},
		"over comes before its tag":     {edited("{fp:7}", "fp:7"), live + 1, base.CodeGrantExpired},
		"over comes before its kid":     {edited(":k1:", ":k9:"), live + 1, base.CodeGrantExpired},
		"no tag":                        {edited("{fp:7}:", ""), live, base.CodeGrantMalformed},
		"a tag with a leading zero":     {edited("{fp:7}", "{fp:07}"), live, base.CodeGrantMalformed},
		"a tag out of range":            {edited("{fp:7}", "{fp:256}"), live, base.CodeGrantMalformed},
		"an upper-case UUID":            {edited("7aaa", "7AAA"), live, base.CodeGrantMalformed},
		"a UUID cut short":              {edited("0190f0c2-", ""), live, base.CodeGrantMalformed},
		"malformed comes before kid":    {edited("{fp:7}", "fp:7", ":k1:", ":k9:"), live, base.CodeGrantMalformed},
		"unknown kid":                   {edited(":k1:", ":k2:"), live, base.CodeGrantUnknownKid},
		"no kid":                        {edited(":k1:", "::"), live, base.CodeGrantUnknownKid},
		"unknown kid before the grant":  {edited(":k1:", ":k2:", "{fp:7}", "{fp:8}"), live, base.CodeGrantUnknownKid},
		"another partition":             {edited("{fp:7}", "{fp:8}"), live, base.CodeGrantUnknown},
		"another execution":             {edited("0190f0c2-1111", "0190f0c2-1112"), live, base.CodeGrantUnknown},
		"unknown before the signature":  {edited("{fp:7}", "{fp:8}", vectorGrantKey[len(vectorGrantKey)-64:], otherDigits), live, base.CodeGrantUnknown},
		"another signature":             {edited(vectorGrantKey[len(vectorGrantKey)-64:], otherDigits), live, base.CodeGrantSignatureMismatch},
		"a signature in upper case":     {edited("5cd0d39b", "5CD0D39B"), live, base.CodeGrantSignatureMismatch},
		"a signature cut short":         {func(s string) string { return s[:len(s)-1] }, live, base.CodeGrantSignatureMismatch},
		"no signature":                  {func(s string) string { return s[:len(s)-64] }, live, base.CodeGrantSignatureMismatch},
		"a later expiry":                {edited("1767225605000", "1767225605001"), live, base.CodeGrantSignatureMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, key, ring := grantedVector(t)
			wantCode(t, VerifyGrant(ring, c.now, keyring.GrantKeyOf(c.edit(key.Reveal())), x), c.want)
		})
	}
}

// edited replaces each odd text by the one that follows it.
func edited(pairs ...string) func(string) string {
	return func(text string) string { return strings.NewReplacer(pairs...).Replace(text) }
}

func TestS30_a_well_signed_key_that_is_superseded_is_unknown(t *testing.T) {
	t.Parallel()
	x, key, ring := grantedVector(t)
	again := *x.Grant
	again.ExpiresAt++
	newer, _, err := ring.MintGrant(keyring.GrantFields{ExecutionID: x.ID, WorkerID: "render", InstanceID: "render-1", ExpiresAt: again.ExpiresAt})
	if err != nil {
		t.Fatal(err)
	}
	again.Hash = newer.Hash()
	x.Grant = &again
	wantCode(t, VerifyGrant(ring, 1, key, x), base.CodeGrantUnknown)
	x.Grant = nil
	wantCode(t, VerifyGrant(ring, 1, key, x), base.CodeGrantUnknown)
	wantCode(t, VerifyGrant(ring, 1, key, nil), base.CodeGrantUnknown)
}

func TestS30_SC7_a_retired_kid_verifies_inside_its_grace_only(t *testing.T) {
	t.Parallel()
	var set keyring.KeySet
	fx := func(now base.Time) *Effects { return &Effects{Now: now} }
	seed := must[keyring.SeedCommand](t)(keyring.NewSeed("k1", storySecret))
	if _, err := set.Seed(fx(1), keyring.Sealing{}, seed); err != nil {
		t.Fatal(err)
	}
	s := begin(t, `{}`)
	key, err := s.x.IssueGrant(s.effects(), must[*keyring.Ring](t)(set.Open(keyring.MasterKey{})), GrantCommand{WorkerID: "w", InstanceID: "w-1", TTL: base.Minute})
	if err != nil {
		t.Fatal(err)
	}
	grace := base.Second
	rotation := must[keyring.RotateCommand](t)(keyring.NewRotation("k2", nil, &grace, [32]byte{1}))
	if _, err := set.Rotate(fx(s.now), keyring.Sealing{}, rotation); err != nil {
		t.Fatal(err)
	}
	ring := must[*keyring.Ring](t)(set.Open(keyring.MasterKey{}))
	wantCode(t, VerifyGrant(ring, s.now.Add(base.Second), key, s.x), "")
	if same, ok := s.x.SameGrantKey(s.now.Add(base.Second), ring); !ok || same.Reveal() != key.Reveal() {
		t.Error("the key of a rotated kid is not made again")
	}
	wantCode(t, VerifyGrant(ring, s.now.Add(base.Second+1), key, s.x), base.CodeGrantUnknownKid)
	if _, ok := s.x.SameGrantKey(s.now.Add(base.Second+1), ring); ok {
		t.Error("a key is made again that no longer verifies")
	}
}

func TestS29_SI6_without_a_key_nothing_is_granted_and_nothing_verifies(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	before := s.x.Clone()
	key, err := s.x.IssueGrant(s.effects(), &keyring.Ring{}, GrantCommand{WorkerID: "w", InstanceID: "w-1", TTL: base.Second})
	wantCode(t, err, base.CodeSigningKeyMissing)
	if !key.IsZero() || s.x.Status != before.Status || s.x.Grant != nil {
		t.Errorf("%+v", s.x)
	}
	x, good, _ := grantedVector(t)
	wantCode(t, VerifyGrant(&keyring.Ring{}, 1, good, x), base.CodeGrantUnknownKid)
}

func TestSI6_any_changed_byte_makes_a_key_fail(t *testing.T) {
	t.Parallel()
	x, key, ring := grantedVector(t)
	text := []byte(key.Reveal())
	for at := range text {
		for _, bit := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
			changed := bytes.Clone(text)
			changed[at] ^= bit
			if VerifyGrant(ring, 1, keyring.GrantKeyOf(string(changed)), x) == nil {
				t.Fatalf("%q passes", changed)
			}
		}
	}
	for name, change := range map[string]func(g *Grant){
		"worker":   func(g *Grant) { g.WorkerID = "rendes" },
		"instance": func(g *Grant) { g.InstanceID = "render-2" },
		"both":     func(g *Grant) { g.WorkerID, g.InstanceID = "render-1", "render" },
	} {
		y := x.Clone()
		grant := *x.Grant
		change(&grant)
		y.Grant = &grant
		if wantCode(t, VerifyGrant(ring, 1, key, y), base.CodeGrantSignatureMismatch) == nil {
			t.Error(name)
		}
	}
	wantCode(t, VerifyGrant(ring, 1, key, x), "")
}

func TestSI6_no_text_but_the_key_verifies(t *testing.T) {
	t.Parallel()
	x, key, ring := grantedVector(t)
	testseed.Check(t, func(t *rapid.T) {
		text := key.Reveal()
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		to := rapid.IntRange(at, len(text)).Draw(t, "to")
		other := text[:at] + rapid.String().Draw(t, "in its place") + text[to:]
		if err := VerifyGrant(ring, 1, keyring.GrantKeyOf(other), x); (err == nil) != (other == text) {
			t.Fatalf("%q: %v", other, err)
		}
	})
}

func TestW29_a_grant_key_hides_itself_wherever_it_is_printed(t *testing.T) {
	t.Parallel()
	_, key, _ := grantedVector(t)
	shown, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(key), fmt.Sprintf("%s %v %+v %#v %q %x", key, key, key, key, key, key), string(shown), fmt.Sprintf("%d", key)} {
		if strings.Contains(text, "5cd0d39b") || strings.Contains(text, "35636430") {
			t.Errorf("%q", text)
		}
	}
}

func FuzzGrantKey(f *testing.F) {
	f.Add(vectorGrantKey)
	f.Add("pg:{fp:7}::1:k:")
	f.Add("pg:::::")
	f.Fuzz(func(t *testing.T, text string) {
		x, key, ring := grantedVector(t)
		if err := VerifyGrant(ring, 1, keyring.GrantKeyOf(text), x); (err == nil) != (text == key.Reveal()) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
