package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func mustID(text string) base.ID {
	given, err := base.ParseID(text)
	if err != nil {
		panic(err)
	}
	return given.ID()
}

func mustUUID(text string) base.UUID {
	u, ok := base.ParseUUID(text)
	if !ok {
		panic(text)
	}
	return u
}

// The vectors of W26 and S28.
var (
	vectorWaitpoint = WaitpointFields{
		Namespace: "acme", ExecutionID: mustID("{fp:7}:0190f0c2-1111-7aaa-8bbb-0123456789ab"),
		WaitpointID: mustUUID("0190f0c2-2222-7aaa-8bbb-0123456789ab"), Key: "approve", MintedAt: 1767225600000,
	}
	vectorLink = LinkFields{
		Namespace: "acme", ExecutionID: vectorWaitpoint.ExecutionID, WaitpointID: vectorWaitpoint.WaitpointID,
		LinkID: mustUUID("0190f0c2-3333-7aaa-8bbb-0123456789ab"), Approver: "ann@example.com", ExpiresAt: 1767830400000, MintedAt: 1767225600000,
	}
	vectorGrant = GrantFields{ExecutionID: vectorWaitpoint.ExecutionID, WorkerID: "render", InstanceID: "render-1", ExpiresAt: 1767225605000}
)

const vectorSecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// ringOf has one active key.
func ringOf(t rapid.TB, kid, secretHex string) *Ring {
	t.Helper()
	seed, err := NewSeed(kid, secretHex)
	if err != nil {
		t.Fatal(err)
	}
	var s KeySet
	if _, err := s.Seed(&keyLog{Now: 1}, Sealing{}, seed); err != nil {
		t.Fatal(err)
	}
	return opened(t, &s)
}

func opened(t rapid.TB, s *KeySet) *Ring {
	t.Helper()
	r, err := s.Open(MasterKey{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mintUnder(t rapid.TB, s *KeySet, master MasterKey, f TokenFields) Token {
	t.Helper()
	r, err := s.Open(master)
	if err != nil {
		t.Fatal(err)
	}
	return minted(t, r, f)
}

func minted(t rapid.TB, r *Ring, f TokenFields) Token {
	t.Helper()
	token, err := r.Mint(f)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestW26_S28_the_vectors(t *testing.T) {
	t.Parallel()
	r := ringOf(t, "k1", vectorSecret)
	for want, f := range map[string]TokenFields{
		"k1:0785694b52f16d4e6f556c9d7a5fb11f2f177e98e714d19b5c9a33ec1ad3de01": vectorWaitpoint,
		"k1:59ba701fa24d3f186a372f3648ef79c9b9adbe73e112219e0cf606827c4f432a": vectorLink,
		"k1:5cd0d39b32d809f75e8b6f7d5a3f899252a6687886d2857b0a8ec448b11ddce1": vectorGrant,
	} {
		if got := minted(t, r, f).Reveal(); got != want {
			t.Errorf("%s: %s, want %s", f.purpose(), got, want)
		}
	}
}

// plainHMAC is RFC 2104 written out.
func plainHMAC(key, message []byte) []byte {
	inner, outer := bytes.Repeat([]byte{0x36}, 64), bytes.Repeat([]byte{0x5c}, 64)
	for i, b := range key {
		inner[i] ^= b
		outer[i] ^= b
	}
	first := sha256.Sum256(append(inner, message...))
	second := sha256.Sum256(append(outer, first[:]...))
	return second[:]
}

// plainToken is W26 written out, without anything that the code under test uses but SHA-256.
func plainToken(secret []byte, kid, purpose string, fields ...string) string {
	extracted := plainHMAC(make([]byte, 32), secret)
	derived := plainHMAC(extracted, []byte("flowfabric/"+purpose+"\x01"))
	var message []byte
	for _, f := range append([]string{"ff1", purpose, kid}, fields...) {
		n := len(f)
		message = append(message, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		message = append(message, f...)
	}
	return fmt.Sprintf("%s:%x", kid, plainHMAC(derived, message))
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
}

func drawUUID(t *rapid.T, label string) base.UUID {
	return base.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
}

func drawWaitpoint(t *rapid.T) WaitpointFields {
	return WaitpointFields{
		Namespace: rapid.String().Draw(t, "namespace"), ExecutionID: base.ID{N: rapid.Byte().Draw(t, "n"), UUID: drawUUID(t, "execution")},
		WaitpointID: drawUUID(t, "waitpoint"), Key: drawText(t), MintedAt: base.Time(rapid.Int64Min(0).Draw(t, "minted")),
	}
}

func drawLink(t *rapid.T) LinkFields {
	w := drawWaitpoint(t)
	return LinkFields{
		Namespace: w.Namespace, ExecutionID: w.ExecutionID, WaitpointID: w.WaitpointID, MintedAt: w.MintedAt, LinkID: drawUUID(t, "link"),
		Approver: drawText(t), ExpiresAt: base.Time(rapid.Int64Min(0).Draw(t, "expires")),
	}
}

func drawKid(t *rapid.T) string { return rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "kid") }

func drawSecret(t *rapid.T) []byte {
	return rapid.SliceOfN(rapid.Byte(), 32, 32).Filter(func(b []byte) bool { return !allEqual(b) }).Draw(t, "secret")
}

func TestW26_a_thousand_random_tokens_are_those_of_an_independent_implementation(t *testing.T) {
	t.Parallel()
	seen := 0
	check := func(t *rapid.T) {
		kid, secret := drawKid(t), drawSecret(t)
		r := ringOf(t, kid, hex.EncodeToString(secret))
		w, l := drawWaitpoint(t), drawLink(t)
		number := func(at base.Time) string { return fmt.Sprintf("%d", int64(at)) }
		for want, f := range map[string]TokenFields{
			plainToken(secret, kid, "waitpoint", w.Namespace, w.ExecutionID.Full(), w.WaitpointID.String(), w.Key, number(w.MintedAt)): w,
			plainToken(secret, kid, "approval_link", l.Namespace, l.ExecutionID.Full(), l.WaitpointID.String(), l.LinkID.String(),
				l.Approver, number(l.ExpiresAt), number(l.MintedAt)): l,
		} {
			if got := minted(t, r, f); got.Reveal() != want {
				t.Fatalf("%s: %s, want %s", f.purpose(), got.Reveal(), want)
			}
			seen++
		}
	}
	missing := func() []string {
		if seen < 1000 {
			return []string{"a thousand tokens"}
		}
		return nil
	}
	testseed.Rounds(t, 1, 20, missing, check)
}

// verdict is the fault, after a look at the one answer that everybody gets.
func verdict(t rapid.TB, r *Ring, now base.Time, token Token, row TokenFields) TokenFault {
	t.Helper()
	fault, err := r.Verify(now, token, row)
	if (fault == 0) != (err == nil) {
		t.Fatalf("fault %s and %v", fault, err)
	}
	if err != nil && allOf(err) != allOf(InvalidToken()) {
		t.Fatalf("%s is answered %s", fault, allOf(err))
	}
	return fault
}

// allOf is everything that an error says.
func allOf(err error) string {
	var e *base.Error
	if !errors.As(err, &e) {
		return "not an error of ours"
	}
	return fmt.Sprintf("%#v", *e)
}

// mutations are the fields with one byte of one of them changed.
func mutations(t *rapid.T, w WaitpointFields) []WaitpointFields {
	var all []WaitpointFields
	change := func(do func(*WaitpointFields)) {
		other := w
		do(&other)
		all = append(all, other)
	}
	flip := byte(rapid.IntRange(1, 255).Draw(t, "flip"))
	at := rapid.IntRange(0, 15).Draw(t, "at")
	change(func(o *WaitpointFields) { o.Namespace = oneByteOther(t, o.Namespace, flip) })
	change(func(o *WaitpointFields) { o.Key = oneByteOther(t, o.Key, flip) })
	change(func(o *WaitpointFields) { o.ExecutionID.N ^= flip })
	change(func(o *WaitpointFields) { o.ExecutionID.UUID[at] ^= flip })
	change(func(o *WaitpointFields) { o.WaitpointID[at] ^= flip })
	change(func(o *WaitpointFields) { o.MintedAt ^= base.Time(flip) << (8 * (at % 8)) })
	return all
}

func oneByteOther(t *rapid.T, text string, flip byte) string {
	if text == "" {
		return string(rune(flip))
	}
	changed := []byte(text)
	changed[rapid.IntRange(0, len(changed)-1).Draw(t, "place")] ^= flip
	return string(changed)
}

func TestWI1_a_minted_token_verifies_and_with_any_byte_changed_it_does_not(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		r := ringOf(t, drawKid(t), hex.EncodeToString(drawSecret(t)))
		w := drawWaitpoint(t)
		token := minted(t, r, w)
		if fault := verdict(t, r, 5, token, w); fault != 0 {
			t.Fatalf("refused: %s", fault)
		}
		for _, other := range mutations(t, w) {
			if fault := verdict(t, r, 5, token, other); fault != TokenMismatch {
				t.Fatalf("%q for %+v: %s", token.Reveal(), other, fault)
			}
		}
		for at := range len(token.Reveal()) {
			text := []byte(token.Reveal())
			text[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
			if fault := verdict(t, r, 5, TokenOf(string(text)), w); fault == 0 {
				t.Fatalf("%q passes as %q", text, token.Reveal())
			}
		}
	})
}

func TestWI1_a_link_verifies_for_its_own_fields_only(t *testing.T) {
	t.Parallel()
	r := ringOf(t, "k1", vectorSecret)
	token := minted(t, r, vectorLink)
	for name, change := range map[string]func(*LinkFields){
		"namespace": func(f *LinkFields) { f.Namespace = "acmf" }, "execution": func(f *LinkFields) { f.ExecutionID.N = 8 },
		"waitpoint": func(f *LinkFields) { f.WaitpointID[0]++ }, "link": func(f *LinkFields) { f.LinkID[15]++ },
		"approver": func(f *LinkFields) { f.Approver = "bob@example.com" }, "expiry": func(f *LinkFields) { f.ExpiresAt++ },
		"minted": func(f *LinkFields) { f.MintedAt++ },
	} {
		other := vectorLink
		change(&other)
		if fault := verdict(t, r, 5, token, other); fault != TokenMismatch {
			t.Errorf("%s: %s", name, fault)
		}
	}
	if fault := verdict(t, r, 5, token, vectorLink); fault != 0 {
		t.Error(fault)
	}
}

func TestWI1_a_token_of_one_purpose_is_none_of_another(t *testing.T) {
	t.Parallel()
	r := ringOf(t, "k1", vectorSecret)
	all := []TokenFields{
		vectorWaitpoint, vectorLink, vectorGrant,
		// The same number of fields, with the same bytes wherever they can be.
		GrantFields{ExecutionID: vectorWaitpoint.ExecutionID, WorkerID: vectorWaitpoint.Namespace, InstanceID: vectorWaitpoint.Key, ExpiresAt: vectorWaitpoint.MintedAt},
	}
	for i, minting := range all {
		for j, checking := range all {
			fault := verdict(t, r, 5, minted(t, r, minting), checking)
			if want := i == j; (fault == 0) != want {
				t.Errorf("a %s passes as a %s: %v, %s", minting.purpose(), checking.purpose(), !want, fault)
			}
		}
	}
}

func TestWI1_the_purpose_alone_makes_another_key_and_another_message(t *testing.T) {
	t.Parallel()
	w := vectorWaitpoint.fields()
	secret, _ := hex.DecodeString(vectorSecret)
	if plainToken(secret, "k1", "waitpoint", w...) == plainToken(secret, "k1", "approval_link", w...) {
		t.Error("equal fields sign equally for two purposes")
	}
}

func TestWI1_fields_do_not_run_into_each_other(t *testing.T) {
	t.Parallel()
	r := ringOf(t, "k1", vectorSecret)
	a, b := vectorLink, vectorLink
	a.Approver, a.ExpiresAt = "ann1", 23
	b.Approver, b.ExpiresAt = "ann", 123
	if fault := verdict(t, r, 5, minted(t, r, a), b); fault != TokenMismatch {
		t.Error(fault)
	}
}

func TestWI1_a_token_of_one_kid_is_none_of_another_with_the_same_secret(t *testing.T) {
	t.Parallel()
	var s KeySet
	if _, err := s.Seed(&keyLog{Now: 1}, Sealing{}, seedOf(t, "k1", 1)); err != nil {
		t.Fatal(err)
	}
	token := minted(t, opened(t, &s), vectorWaitpoint)
	if _, err := s.Rotate(&keyLog{Now: 2}, Sealing{}, rotationTo(t, "k2", 1, base.Day)); err != nil {
		t.Fatal(err)
	}
	moved := TokenOf("k2" + strings.TrimPrefix(token.Reveal(), "k1"))
	if fault := verdict(t, opened(t, &s), 3, moved, vectorWaitpoint); fault != TokenMismatch {
		t.Error(fault)
	}
}

func TestWI2_a_token_verifies_up_to_and_including_verify_until(t *testing.T) {
	t.Parallel()
	var s KeySet
	if _, err := s.Seed(&keyLog{Now: 1000}, Sealing{}, seedOf(t, "k1", 1)); err != nil {
		t.Fatal(err)
	}
	token := minted(t, opened(t, &s), vectorWaitpoint)
	if _, err := s.Rotate(&keyLog{Now: 2000}, Sealing{}, rotationTo(t, "k2", 2, 500)); err != nil {
		t.Fatal(err)
	}
	for moment, want := range map[base.Time]TokenFault{2000: 0, 2499: 0, 2500: 0, 2501: TokenExpiredKid} {
		if fault := verdict(t, opened(t, &s), moment, token, vectorWaitpoint); fault != want {
			t.Errorf("at %d: %q, want %q", moment, fault, want)
		}
	}
	if _, err := s.Revoke(&keyLog{Now: 2100}, "k1", false); err != nil {
		t.Fatal(err)
	}
	if fault := verdict(t, opened(t, &s), 2100, token, vectorWaitpoint); fault != TokenRevokedKid {
		t.Errorf("after the revoke: %q", fault)
	}
}

func TestW22_without_an_active_key_nothing_is_signed(t *testing.T) {
	t.Parallel()
	revoked := wornSet(t)
	if _, err := revoked.Revoke(&keyLog{Now: 10_000}, "a", true); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Ring{{}, opened(t, &KeySet{}), opened(t, &revoked)} {
		token, err := r.Mint(vectorWaitpoint)
		expect(t, err, base.CodeSigningKeyMissing, "")
		_, err = r.ActiveKid()
		expect(t, err, base.CodeSigningKeyMissing, "")
		if token.Reveal() != "" {
			t.Error("an unsigned token was issued")
		}
	}
}

func TestW33_every_cause_is_told_to_the_metric_and_none_to_the_caller(t *testing.T) {
	t.Parallel()
	s := wornSet(t)
	r := opened(t, &s)
	good := minted(t, r, vectorWaitpoint)
	digest := strings.TrimPrefix(good.Reveal(), "a:")
	for text, causes := range map[string][2]TokenFault{ // with and without a row
		good.Reveal():                          {0, TokenUnknownTarget},
		"a:" + strings.Repeat("0", 64):         {TokenMismatch, TokenUnknownTarget},
		"v:" + digest:                          {TokenMismatch, TokenUnknownTarget},
		"x:" + digest:                          {TokenUnknownKid, TokenUnknownKid},
		"e:" + digest:                          {TokenExpiredKid, TokenExpiredKid},
		"p:" + digest:                          {TokenExpiredKid, TokenExpiredKid},
		"r:" + digest:                          {TokenRevokedKid, TokenRevokedKid},
		digest:                                 {TokenShape, TokenShape},
		":" + digest:                           {TokenShape, TokenShape},
		"a:":                                   {TokenShape, TokenShape},
		"a:" + digest[:63]:                     {TokenShape, TokenShape},
		"a:" + digest + "0":                    {TokenShape, TokenShape},
		"a:" + strings.ToUpper(digest):         {TokenShape, TokenShape},
		"a:" + digest[:63] + "g":               {TokenShape, TokenShape},
		"a::" + digest[1:]:                     {TokenShape, TokenShape},
		"a:b:" + digest:                        {TokenShape, TokenShape},
		" a:" + digest:                         {TokenShape, TokenShape},
		"a:" + digest + "\n":                   {TokenShape, TokenShape},
		strings.Repeat("k", 65) + ":" + digest: {TokenShape, TokenShape},
		" ":                                    {TokenShape, TokenShape},
		strings.Repeat("x", 1<<20) + ":" + digest: {TokenShape, TokenShape},
	} {
		for i, row := range []TokenFields{vectorWaitpoint, nil} {
			if fault := verdict(t, r, 10_000, TokenOf(text), row); fault != causes[i] {
				t.Errorf("%.80q, row %v: %q, want %q", text, row != nil, fault, causes[i])
			}
		}
	}
}

func TestW33_only_an_empty_token_is_missing(t *testing.T) {
	t.Parallel()
	for _, r := range []*Ring{{}, ringOf(t, "k1", vectorSecret)} {
		for _, row := range []TokenFields{vectorWaitpoint, nil} {
			for _, token := range []Token{{}, TokenOf("")} {
				fault, err := r.Verify(1, token, row)
				expect(t, err, base.CodeMissingToken, "")
				if fault != 0 {
					t.Errorf("a missing token counts as %s", fault)
				}
			}
		}
	}
	expect(t, InvalidToken(), base.CodeInvalidToken, "")
}

func TestW33_a_placeholder_opens_nothing(t *testing.T) {
	t.Parallel()
	secret, fields := placeholderKey()
	r := ringOf(t, "k1", vectorSecret)
	for _, kid := range []string{"k1", "k2"} {
		token := TokenOf(kid + ":" + hex.EncodeToString(secret.mac(kid, fields)))
		for _, row := range []TokenFields{fields, nil} {
			if fault := verdict(t, r, 1, token, row); fault == 0 {
				t.Errorf("the placeholder under %s is a token", kid)
			}
		}
	}
}

func TestW34_the_causes_have_their_words(t *testing.T) {
	t.Parallel()
	var words []string
	for f := TokenShape; f <= TokenWrongExecution; f++ {
		words = append(words, f.String())
	}
	if got := strings.Join(words, ", "); got != "shape, unknown_kid, expired_kid, revoked_kid, unknown_target, mismatch, wrong_execution" {
		t.Error(got)
	}
}

func TestW28_a_token_splits_into_kid_and_fingerprint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		minted(t, ringOf(t, "k1", vectorSecret), vectorWaitpoint).Reveal(): {"k1", "0785694b52f16d4e"},
		"":         {},
		"abc":      {},
		":":        {},
		":abc":     {},
		"k1:":      {},
		"k1:ab:cd": {"k1", "ab:cd"},
	} {
		if kid, print := TokenOf(text).Split(); [2]string{kid, print} != want {
			t.Errorf("%q: %q %q, want %q", text, kid, print, want)
		}
	}
}

func FuzzTokenSplit(f *testing.F) {
	for _, text := range []string{"", ":", "k1:", ":ab", "k1:0785694b52f16d4e6f556c9d7a5fb11f2f177e98e714d19b5c9a33ec1ad3de01", "a:b:c", "k\xff:\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token := TokenOf(text)
		kid, print := token.Split()
		if (kid == "") != (print == "") || len(print) > 16 || strings.Contains(kid, ":") {
			t.Fatalf("%q: %q %q", text, kid, print)
		}
		if kid != "" && !strings.HasPrefix(text, kid+":"+print) || token.Reveal() != text {
			t.Fatalf("%q: %q %q", text, kid, print)
		}
		formed, _, ok := token.parse()
		if ok && (formed != kid || len(text) != len(kid)+1+64) {
			t.Fatalf("%q is a token of %q", text, formed)
		}
		if want := map[bool]string{true: kid + ":<redacted>", false: "<redacted>"}[ok]; token.String() != want {
			t.Fatalf("%q shows as %q", text, token.String())
		}
	})
}
