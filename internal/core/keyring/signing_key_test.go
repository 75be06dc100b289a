package keyring

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// keySecretHex is a secret that differs from those of other numbers.
func keySecretHex(n byte) string {
	var raw [keySecretSize]byte
	for i := range raw {
		raw[i] = 0xa0 + n*7 + byte(i)
	}
	return hex.EncodeToString(raw[:])
}

// drawnBytes are what rotations get that leave their secret out.
var drawnBytes = [keySecretSize]byte{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233}

func seedOf(t rapid.TB, kid string, n byte) SeedCommand {
	t.Helper()
	c, err := NewSeed(kid, keySecretHex(n))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rotationTo is a rotation with the secret of that number, without one for 0.
func rotationTo(t rapid.TB, kid string, n byte, grace base.Millis) RotateCommand {
	t.Helper()
	var given *string
	if n > 0 {
		text := keySecretHex(n)
		given = &text
	}
	c, err := NewRotation(kid, given, &grace, drawnBytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wornSet has an active key a, a key v that verifies until 10_000, a key e that verified until 9000 and has its secret yet, a
// purged p and a revoked r. The secrets are those of the numbers 1 to 5.
func wornSet(t rapid.TB) KeySet {
	t.Helper()
	var s KeySet
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(s.Seed(&keyLog{Now: 1000}, Sealing{}, seedOf(t, "p", 4)))
	do(s.Rotate(&keyLog{Now: 2000}, Sealing{}, rotationTo(t, "r", 5, 500)))
	do(s.Rotate(&keyLog{Now: 3000}, Sealing{}, rotationTo(t, "e", 3, 100_000))) // p is purged
	do(s.Revoke(&keyLog{Now: 3500}, "r", false))
	do(s.Rotate(&keyLog{Now: 4000}, Sealing{}, rotationTo(t, "v", 2, 5000)))
	do(s.Rotate(&keyLog{Now: 5000}, Sealing{}, rotationTo(t, "a", 1, 5000)))
	return s
}

// shownStates are the keys of the set and their states.
func shownStates(s *KeySet, now base.Time) string {
	var words []string
	for _, k := range s.List(now, true).Keys {
		words = append(words, k.Kid+" "+k.State.String())
	}
	return strings.Join(words, ", ")
}

// keyLog records changes of a key set.
type keyLog struct {
	Now    base.Time
	Events []KeyChange
}

func (l *keyLog) KeyTime() base.Time  { return l.Now }
func (l *keyLog) EmitKey(c KeyChange) { l.Events = append(l.Events, c) }

// toldKeys are the changes, one after another.
func toldKeys(log *keyLog) string {
	var words []string
	for _, c := range log.Events {
		text := c.Kind + " " + c.Kid
		if c.PreviousKid != "" {
			text += " after " + c.PreviousKid
		}
		if c.VerifyUntil != 0 {
			text += " until " + c.VerifyUntil.String()
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

func TestW13_kid_secret_and_grace_are_checked_in_this_order(t *testing.T) {
	t.Parallel()
	good, long := keySecretHex(1), maxKeyGrace+1
	rotation := func(kid string, secret *string, grace *base.Millis) error {
		_, err := NewRotation(kid, secret, grace, drawnBytes)
		return err
	}
	seed := func(kid, secret string) error { _, err := NewSeed(kid, secret); return err }
	empty := ""
	expect(t, seed("", ""), base.CodeInvalidKid, "kid")
	expect(t, seed("k", ""), base.CodeInvalidSecretHex, "secret_hex")
	expect(t, rotation("a:b", &empty, &long), base.CodeInvalidKid, "kid")
	expect(t, rotation("k", &empty, &long), base.CodeInvalidSecretHex, "secret_hex")
	expect(t, rotation("k", &good, &long), base.CodeInvalidGraceMS, "grace_ms")
	expect(t, rotation("k", nil, &long), base.CodeInvalidGraceMS, "grace_ms")
	expect(t, rotation("k", &good, nil), "", "")
}

func TestW13_seed_and_rotate_refuse_the_same_kids_and_secrets(t *testing.T) {
	t.Parallel()
	refused := func(kid, secret string, code base.Code) {
		t.Helper()
		_, err := NewSeed(kid, secret)
		expect(t, err, code, "")
		_, err = NewRotation(kid, &secret, nil, drawnBytes)
		expect(t, err, code, "")
		if secret != "" && strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("%v quotes the secret", err)
		}
	}
	good := keySecretHex(1)
	for _, kid := range []string{"", strings.Repeat("k", 65), "a:b", "a b", "a/b", "ä", "a\n", "a\x00", "a+b"} {
		refused(kid, good, base.CodeInvalidKid)
		_, err := (&KeySet{}).Revoke(&keyLog{Now: 1}, kid, false)
		expect(t, err, base.CodeInvalidKid, "kid")
	}
	for _, kid := range []string{"k", strings.Repeat("k", 64), "AZaz09._-"} {
		refused(kid, good, "")
		refused(kid, strings.ToUpper(good), "")
	}
	for _, secret := range []string{
		"", "00", good[:62], good[:63], good + "00", good[:63] + "g", " " + good[:63], strings.Repeat("00", 32), strings.Repeat("ff", 32), strings.Repeat("Ab", 32),
	} {
		refused("k", secret, base.CodeInvalidSecretHex)
	}
}

func TestW13_grace_has_bounds_and_a_default(t *testing.T) {
	t.Parallel()
	for grace, code := range map[base.Millis]base.Code{-1: base.CodeInvalidGraceMS, 0: "", 31_536_000_000: "", 31_536_000_001: base.CodeInvalidGraceMS} {
		_, err := NewRotation("k", nil, &grace, drawnBytes)
		expect(t, err, code, "")
	}
	if c, err := NewRotation("k", nil, nil, drawnBytes); err != nil || c.grace != 86_400_000 {
		t.Errorf("grace %d, %v", c.grace, err)
	}
}

func TestW13_random_bytes_that_are_none_make_no_secret(t *testing.T) {
	t.Parallel()
	_, err := NewRotation("k", nil, nil, [keySecretSize]byte{})
	expect(t, err, base.CodeInternal, "")
	_, err = AutoSeed([4]byte{}, [keySecretSize]byte{})
	expect(t, err, base.CodeInternal, "")
}

func TestW14_seed_row_by_row(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		kid    string
		secret byte
		want   SeedOutcome
	}{
		"active, same secret":        {"a", 1, SeedOutcome{SameSecret: true, State: KeyActive}},
		"active, other secret":       {"a", 9, SeedOutcome{OtherSecret: true, State: KeyActive}},
		"verify_only, same secret":   {"v", 2, SeedOutcome{SameSecret: true, State: KeyVerifyOnly}},
		"verify_only, other secret":  {"v", 9, SeedOutcome{OtherSecret: true, State: KeyVerifyOnly}},
		"expired and not yet purged": {"e", 3, SeedOutcome{SameSecret: true, State: KeyExpired}},
		"purged: no longer held":     {"p", 4, SeedOutcome{State: KeyExpired}},
		"revoked: no longer held":    {"r", 5, SeedOutcome{State: KeyRevoked}},
	} {
		s, fx := wornSet(t), &keyLog{Now: 10_000}
		before := s
		got, err := s.Seed(fx, Sealing{}, seedOf(t, row.kid, row.secret))
		row.want.Outcome, row.want.Kid = OutcomeAlreadySeeded, row.kid
		if err != nil || got != row.want || s.Version != before.Version || len(fx.Events) > 0 {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, row.want)
		}
	}
	s, fx := wornSet(t), &keyLog{Now: 10_000}
	_, err := s.Seed(fx, Sealing{}, seedOf(t, "new", 9))
	expect(t, err, base.CodeSeedConflict, "")
	if text := asError(t, err).Message; !strings.Contains(text, " a ") || !strings.Contains(text, "rotate") || len(fx.Events) > 0 {
		t.Errorf("%q, %d events", text, len(fx.Events))
	}
}

func TestW14_seed_installs_where_no_key_is_active(t *testing.T) {
	t.Parallel()
	forced := wornSet(t)
	if _, err := forced.Revoke(&keyLog{Now: 9000}, "a", true); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]KeySet{"an empty set": {}, "after the active one was revoked": forced} {
		fx, before := &keyLog{Now: 10_000}, s.Version
		got, err := s.Seed(fx, Sealing{}, seedOf(t, "new", 9))
		if want := (SeedOutcome{Outcome: OutcomeSeeded, Kid: "new"}); err != nil || got != want || s.Version != before+1 {
			t.Errorf("%s: %+v, %v, version %d", name, got, err, s.Version)
		}
		if k := s.find("new"); k.State != KeyActive || k.CreatedAt != 10_000 || k.VerifyUntil != 0 {
			t.Errorf("%s: %+v", name, k)
		}
		if told := toldKeys(fx); told != "key.seeded new" {
			t.Errorf("%s: %s", name, told)
		}
	}
}

func TestW15_rotate_row_by_row(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		kid    string
		secret byte
		code   base.Code
		want   RotateOutcome
		states string
	}{
		"active, equal":                      {kid: "a", secret: 1, want: RotateOutcome{Outcome: OutcomeNoop, Kid: "a"}},
		"active, left out":                   {kid: "a", want: RotateOutcome{Outcome: OutcomeNoop, Kid: "a"}},
		"active, different":                  {kid: "a", secret: 9, code: base.CodeRotationConflict},
		"verify_only, equal":                 {kid: "v", secret: 2, want: RotateOutcome{Outcome: OutcomeRotated, NewKid: "v", PreviousKid: "a", PurgedCount: 1, Reactivated: true}, states: "v active, a verify_only"},
		"verify_only, left out":              {kid: "v", want: RotateOutcome{Outcome: OutcomeRotated, NewKid: "v", PreviousKid: "a", PurgedCount: 1, Reactivated: true}, states: "v active, a verify_only"},
		"verify_only, different":             {kid: "v", secret: 9, code: base.CodeRotationConflict},
		"expired, equal":                     {kid: "e", secret: 3, code: base.CodeKeyRetired},
		"expired, left out":                  {kid: "e", code: base.CodeKeyRetired},
		"expired, different":                 {kid: "e", secret: 9, code: base.CodeKeyRetired},
		"expired and purged, as it was":      {kid: "p", secret: 4, code: base.CodeKeyRetired},
		"expired and purged, left out":       {kid: "p", code: base.CodeKeyRetired},
		"revoked, as it was":                 {kid: "r", secret: 5, code: base.CodeKeyRetired},
		"revoked, left out":                  {kid: "r", code: base.CodeKeyRetired},
		"unknown, with a secret":             {kid: "n", secret: 9, want: RotateOutcome{Outcome: OutcomeRotated, NewKid: "n", PreviousKid: "a", PurgedCount: 1}, states: "v verify_only, a verify_only, n active"},
		"unknown, left out":                  {kid: "n", want: RotateOutcome{Outcome: OutcomeRotated, NewKid: "n", PreviousKid: "a", PurgedCount: 1}, states: "v verify_only, a verify_only, n active"},
		"unknown, with a secret that exists": {kid: "n", secret: 1, want: RotateOutcome{Outcome: OutcomeRotated, NewKid: "n", PreviousKid: "a", PurgedCount: 1}, states: "v verify_only, a verify_only, n active"},
	} {
		s, fx := wornSet(t), &keyLog{Now: 10_000}
		before := string(s.Encode())
		got, err := s.Rotate(fx, Sealing{}, rotationTo(t, row.kid, row.secret, 777))
		if base.CodeOf(err) != row.code || got != row.want {
			t.Errorf("%s: %+v, %v; want %+v %s", name, got, err, row.want, row.code)
		}
		if row.states == "" { // nothing happened
			if string(s.Encode()) != before || len(fx.Events) > 0 {
				t.Errorf("%s: the set changed, or %q was told", name, toldKeys(fx))
			}
			continue
		}
		if states := shownStates(&s, 10_000); states != "p expired, r revoked, e expired, "+row.states {
			t.Errorf("%s: %s", name, states)
		}
		want := "key.rotated " + row.kid + " after a until 1970-01-01T00:00:10.777Z; key.purged e until 1970-01-01T00:00:09.000Z"
		if told := toldKeys(fx); told != want {
			t.Errorf("%s: %s", name, told)
		}
		if k := s.find(row.kid); k.VerifyUntil != 0 {
			t.Errorf("%s: the active key ends at %s", name, k.VerifyUntil)
		}
	}
}

func TestW16_on_an_empty_set_a_rotation_has_no_predecessor(t *testing.T) {
	t.Parallel()
	var s KeySet
	fx := &keyLog{Now: 5000}
	got, err := s.Rotate(fx, Sealing{}, rotationTo(t, "n", 0, 0))
	if want := (RotateOutcome{Outcome: OutcomeRotated, NewKid: "n"}); err != nil || got != want || s.Version != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if told := toldKeys(fx); told != "key.rotated n" {
		t.Error(told)
	}
	if secret, err := s.find("n").open(MasterKey{}); err != nil || string(secret.reveal()) != string(drawnBytes[:]) {
		t.Errorf("the secret is not the drawn one: %v", err)
	}
}

func TestW16_each_key_keeps_its_own_deadline(t *testing.T) {
	t.Parallel()
	var s KeySet
	for i, grace := range []base.Millis{0, 50_000, 100, 9000} { // key i is demoted by the call with grace i+1
		if _, err := s.Rotate(&keyLog{Now: base.Time(1000 + i)}, Sealing{}, rotationTo(t, fmt.Sprint("k", i), 0, grace)); err != nil {
			t.Fatal(err)
		}
	}
	for kid, until := range map[string]base.Time{"k0": 51_001, "k1": 1102, "k2": 10_003, "k3": 0} {
		if got := s.find(kid).VerifyUntil; got != until {
			t.Errorf("%s verifies until %d, want %d", kid, got, until)
		}
	}
}

func TestW17_purge_takes_the_secret_after_verify_until_and_leaves_the_row(t *testing.T) {
	t.Parallel()
	s := wornSet(t)
	purged := func(now base.Time) string {
		fx, before := &keyLog{Now: now}, s.Version
		kids := strings.Join(s.Purge(fx), " ")
		if changed := kids != ""; (s.Version == before+1) != changed || (len(fx.Events) > 0) != changed {
			t.Errorf("at %d: version %d after %d, told %q", now, s.Version, before, toldKeys(fx))
		}
		return kids
	}
	if got := purged(9000) + "|" + purged(9001) + "|" + purged(9999) + "|" + purged(10_000); got != "|e||" {
		t.Errorf("purged %s", got)
	}
	copied := s
	if got := purged(10_001); got != "v" {
		t.Errorf("purged %s", got)
	}
	if k := s.find("v"); !k.Secret.IsZero() || k.State != KeyVerifyOnly {
		t.Errorf("%+v", k)
	}
	if copied.find("v").Secret.IsZero() {
		t.Error("the copy lost its secret, too")
	}
	if again := purged(20_000); again != "" {
		t.Errorf("purged %s again", again)
	}
	if _, err := s.Rotate(&keyLog{Now: 9000}, Sealing{}, rotationTo(t, "v", 2, 0)); base.CodeOf(err) != base.CodeKeyRetired {
		t.Errorf("after the clock was set back a purged key is used again: %v", err)
	}
}

func TestW18_revoke_row_by_row(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		kid     string
		force   bool
		code    base.Code
		outcome string
	}{
		"verify_only":           {kid: "v", outcome: OutcomeRevoked},
		"verify_only, by force": {kid: "v", force: true, outcome: OutcomeRevoked},
		"expired":               {kid: "p", outcome: OutcomeRevoked},
		"active":                {kid: "a", code: base.CodeKeyActive},
		"active, by force":      {kid: "a", force: true, outcome: OutcomeRevoked},
		"revoked":               {kid: "r", outcome: OutcomeNoop},
		"unknown":               {kid: "x", force: true, code: base.CodeKeyNotFound},
	} {
		s, fx := wornSet(t), &keyLog{Now: 10_000}
		before := string(s.Encode())
		got, err := s.Revoke(fx, row.kid, row.force)
		if base.CodeOf(err) != row.code || got.Outcome != row.outcome {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if row.outcome != OutcomeRevoked {
			if string(s.Encode()) != before || len(fx.Events) > 0 {
				t.Errorf("%s: the set changed, or %q was told", name, toldKeys(fx))
			}
			continue
		}
		if k := s.find(row.kid); k.State != KeyRevoked || !k.Secret.IsZero() || k.RevokedAt != 10_000 || k.VerifyUntil != 0 {
			t.Errorf("%s: %+v", name, k)
		}
		if told := toldKeys(fx); told != "key.revoked "+row.kid {
			t.Errorf("%s: %s", name, told)
		}
	}
}

func TestW20_the_list_shows_what_verifies_and_on_demand_what_is_retired(t *testing.T) {
	t.Parallel()
	s := wornSet(t)
	v := KeyView{Kid: "v", State: KeyVerifyOnly, CreatedAt: 4000, VerifyUntil: 10_000}
	a := KeyView{Kid: "a", State: KeyActive, CreatedAt: 5000}
	past := v
	past.State = KeyExpired
	retired := []KeyView{
		{Kid: "p", State: KeyExpired, CreatedAt: 1000, VerifyUntil: 2500},
		{Kid: "r", State: KeyRevoked, CreatedAt: 2000, RevokedAt: 3500},
		{Kid: "e", State: KeyExpired, CreatedAt: 3000, VerifyUntil: 9000},
	}
	for _, row := range []struct {
		now  base.Time
		all  bool
		want []KeyView
	}{
		{10_000, false, []KeyView{v, a}},
		{10_001, false, []KeyView{a}},
		{10_000, true, append(retired[:3:3], v, a)},
		{10_001, true, append(retired[:3:3], past, a)},
	} {
		if diff := cmp.Diff(KeyList{CurrentKid: "a", Keys: row.want}, s.List(row.now, row.all)); diff != "" {
			t.Errorf("at %d, all %v: %s", row.now, row.all, diff)
		}
	}
	if _, err := s.Revoke(&keyLog{Now: 10_000}, "a", true); err != nil {
		t.Fatal(err)
	}
	if none := (&KeySet{}).List(1, true); s.List(10_000, false).CurrentKid != "" || none.CurrentKid != "" || none.Keys == nil {
		t.Error("a kid is current though no key is active")
	}
}

func TestW23_an_automatic_key_has_its_kid_and_loses_against_one_that_is_there(t *testing.T) {
	t.Parallel()
	first, err := AutoSeed([4]byte{0xde, 0xad, 0, 1}, drawnBytes)
	expect(t, err, "", "")
	var s KeySet
	if got, err := s.Seed(&keyLog{Now: 1}, Sealing{}, first); err != nil || got.Kid != "auto-dead0001" {
		t.Errorf("%+v, %v", got, err)
	}
	second, err := AutoSeed([4]byte{1}, [keySecretSize]byte{1})
	expect(t, err, "", "")
	_, err = s.Seed(&keyLog{Now: 1}, Sealing{}, second)
	expect(t, err, base.CodeSeedConflict, "")
}

func TestW21_the_stored_set_is_read_back_and_passes_over_what_is_new(t *testing.T) {
	t.Parallel()
	s := wornSet(t)
	text := string(s.Encode())
	read, err := DecodeKeySet([]byte(strings.ReplaceAll(text, `{"kid"`, `{"later":{"x":[1]},"kid"`)))
	if err != nil || string(read.Encode()) != text || shownStates(&read, 10_000) != shownStates(&s, 10_000) {
		t.Errorf("%v: read %s, wrote %s", err, read.Encode(), text)
	}
	if empty, err := DecodeKeySet(nil); err != nil || empty.Version != 0 || empty.Keys != nil {
		t.Errorf("%+v, %v", empty, err)
	}
}

func TestW10_a_stored_set_that_cannot_be_is_corruption_and_is_not_quoted(t *testing.T) {
	t.Parallel()
	key := func(kid, state, more string) string {
		return `{"kid":"` + kid + `","state":"` + state + `"` + more + `}`
	}
	secret := `,"secret":"clear:` + keySecretHex(1) + `"`
	for name, keys := range map[string]string{
		"no kid":                  key("", "active", secret),
		"a kid with a colon":      key("a:b", "active", secret),
		"one kid twice":           key("a", "active", secret) + "," + key("a", "revoked", ""),
		"two active":              key("a", "active", secret) + "," + key("b", "active", secret),
		"active without a secret": key("a", "active", ""),
		"no end":                  key("a", "verify_only", secret),
		"revoked with a secret":   key("a", "revoked", secret),
		"no state":                `{"kid":"a"}`,
		"an unknown state":        key("a", "asleep", secret),
		"a state that is shown":   key("a", "expired", secret),
		"a secret of no form":     key("a", "active", `,"secret":"`+keySecretHex(1)+`"`),
		"a redacted secret":       key("a", "active", `,"secret":"<redacted>"`),
		"a wrong moment":          key("a", "active", secret+`,"created_at":"`+keySecretHex(1)+`"`),
		"no JSON":                 "{",
	} {
		_, err := DecodeKeySet([]byte(`{"version":1,"keys":[` + keys + `]}`))
		expect(t, err, base.CodeCorruption, "")
		if strings.Contains(fmt.Sprintf("%+v", asError(t, err)), keySecretHex(1)[:16]) {
			t.Errorf("%s: %v quotes the secret", name, err)
		}
	}
	for _, text := range []string{"null", "{}", `{"version":0,"keys":[]}`, "[]"} {
		_, err := DecodeKeySet([]byte(text))
		expect(t, err, base.CodeCorruption, "")
	}
}

func TestKeyStatesAreReadByTheirWords(t *testing.T) {
	t.Parallel()
	for state := KeyActive; state <= KeyExpired; state++ {
		var read KeyState
		if err := read.UnmarshalText([]byte(state.String())); err != nil || read != state {
			t.Errorf("%s is read as %s, %v", state, read, err)
		}
	}
	expect(t, new(KeyState).UnmarshalText([]byte("")), base.CodeInvalidArgument, "state")
}
