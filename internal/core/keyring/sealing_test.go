package keyring

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func masterNumber(n byte) MasterKey { return NewMasterKey([masterKeySize]byte{0: n, 31: 0xe7}) }

func TestW24_what_is_sealed_opens_under_its_master_key_in_its_row_alone(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "secret")
		how := Sealing{Master: masterNumber(1), Nonce: SealNonce(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "nonce"))}
		sealed, err := ParseStoredSecret(Seal(how, "row/1", secret).Stored())
		if err != nil || !sealed.Sealed() || len(secret) > 4 && strings.Contains(sealed.Stored(), hex.EncodeToString(secret)) {
			t.Fatalf("%q, %v", sealed.Stored(), err)
		}
		if got, err := sealed.Open(how.Master, "row/1"); err != nil || !bytes.Equal(got, secret) {
			t.Fatalf("opened %x, %v", got, err)
		}
		box := []byte(sealed.Stored())
		at := rapid.IntRange(len(sealedMark), len(box)-1).Draw(t, "at")
		box[at] = rapid.SampledFrom([]byte("ABab01+/")).Filter(func(c byte) bool { return c != box[at] }).Draw(t, "byte")
		if altered, err := ParseStoredSecret(string(box)); err == nil {
			if got, err := altered.Open(how.Master, "row/1"); base.CodeOf(err) != base.CodeMasterKeyMismatch {
				t.Fatalf("an altered box opens: %x, %v", got, err)
			}
		}
		for _, wrong := range []struct {
			master MasterKey
			row    string
			code   base.Code
		}{
			{MasterKey{}, "row/1", base.CodeMasterKeyRequired},
			{masterNumber(2), "row/1", base.CodeMasterKeyMismatch},
			{how.Master, "row/2", base.CodeMasterKeyMismatch},
			{how.Master, "", base.CodeMasterKeyMismatch},
		} {
			if got, err := sealed.Open(wrong.master, wrong.row); base.CodeOf(err) != wrong.code || got != nil {
				t.Fatalf("row %q: opened %x, %v; want %s", wrong.row, got, err, wrong.code)
			}
		}
	})
}

func TestW24_without_a_master_key_secrets_are_clear_and_open_with_any(t *testing.T) {
	t.Parallel()
	clear := Seal(Sealing{}, "row", []byte("secret"))
	if clear.Sealed() || clear.Stored() != "clear:736563726574" {
		t.Errorf("%q", clear.Stored())
	}
	for _, master := range []MasterKey{{}, masterNumber(1)} {
		if got, err := clear.Open(master, "other row"); err != nil || string(got) != "secret" {
			t.Errorf("%q, %v", got, err)
		}
	}
	none, err := ParseStoredSecret("")
	if got, openErr := none.Open(MasterKey{}, "row"); err != nil || openErr != nil || got != nil || !none.IsZero() || none.Stored() != "" {
		t.Errorf("what is no longer held opens to %q, %v", got, openErr)
	}
	for _, text := range []string{"x", "clear:", "clear:xy", "clear:0", "sealed:", "sealed:AAAA", "sealed:!", "736563726574", "Clear:00"} {
		if _, err := ParseStoredSecret(text); text != "clear:" && base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestW24_a_key_set_is_sealed_in_place_and_rewrapped(t *testing.T) {
	t.Parallel()
	s := wornSet(t)
	one, two := masterNumber(1), masterNumber(2)
	nonces := func(n byte) (all []SealNonce) {
		for i := range len(s.Keys) + 1 {
			all = append(all, SealNonce{n, byte(i)})
		}
		return all
	}
	fields := WaitpointFields{Namespace: "acme", Key: "k"}
	minted := mintUnder(t, &s, MasterKey{}, fields)
	expect(t, s.Reseal(MasterKey{}, one, nonces(1)[1:]), base.CodeInternal, "")
	if !s.Clear() {
		t.Fatal("clear secrets are not recognised")
	}
	for i, step := range []struct{ from, to MasterKey }{{MasterKey{}, one}, {one, one}, {one, two}} {
		before := s
		expect(t, s.Reseal(step.from, step.to, nonces(byte(i))), "", "")
		if s.Clear() || s.Version != before.Version+1 || string(s.Encode()) == string(before.Encode()) {
			t.Errorf("step %d: version %d, clear %v", i, s.Version, s.Clear())
		}
		if bytes.Contains(s.Encode(), []byte(keySecretHex(1))) {
			t.Errorf("step %d: the stored set shows a secret", i)
		}
		read, err := DecodeKeySet(s.Encode())
		expect(t, err, "", "")
		if got := mintUnder(t, &read, step.to, fields); got.Reveal() != minted.Reveal() {
			t.Errorf("step %d: another token", i)
		}
	}
	before := string(s.Encode())
	for master, code := range map[MasterKey]base.Code{{}: base.CodeMasterKeyRequired, one: base.CodeMasterKeyMismatch} {
		_, err := s.Open(master)
		expect(t, err, code, "")
		expect(t, s.Reseal(master, one, nonces(9)), code, "")
		_, err = s.Rotate(&keyLog{Now: 10_000}, Sealing{Master: master}, rotationTo(t, "v", 2, 0))
		expect(t, err, code, "")
		_, err = s.Seed(&keyLog{Now: 10_000}, Sealing{Master: master}, seedOf(t, "v", 2))
		expect(t, err, code, "")
	}
	if string(s.Encode()) != before {
		t.Error("a refused change changed the set")
	}
	if out, err := s.Rotate(&keyLog{Now: 10_000}, Sealing{Master: two, Nonce: SealNonce{8}}, rotationTo(t, "n", 9, 0)); err != nil || s.Clear() {
		t.Errorf("%+v, %v: clear %v", out, err, s.Clear())
	}
}

func TestW24_a_sealed_secret_cannot_be_given_to_another_kid(t *testing.T) {
	t.Parallel()
	var s KeySet
	how := Sealing{Master: masterNumber(1)}
	if _, err := s.Seed(&keyLog{Now: 1}, how, seedOf(t, "a", 1)); err != nil {
		t.Fatal(err)
	}
	s.Keys[0].Kid = "b"
	_, err := s.Open(how.Master)
	expect(t, err, base.CodeMasterKeyMismatch, "")
}

func TestW10_a_stored_secret_of_another_size_signs_nothing(t *testing.T) {
	t.Parallel()
	s := KeySet{Version: 1, Keys: []SigningKey{{Kid: "a", State: KeyActive, Secret: Seal(Sealing{}, "", []byte("short"))}}}
	_, err := s.Open(MasterKey{})
	expect(t, err, base.CodeCorruption, "")
}

func TestU187_a_master_key_is_read_as_hex_or_base64(t *testing.T) {
	t.Parallel()
	raw := [masterKeySize]byte{0: 0xfb, 1: 0xff, 2: 0xbf, 31: 7}
	for _, text := range []string{
		hex.EncodeToString(raw[:]), strings.ToUpper(hex.EncodeToString(raw[:])) + "\n", base64.StdEncoding.EncodeToString(raw[:]),
		" " + base64.RawStdEncoding.EncodeToString(raw[:]), base64.URLEncoding.EncodeToString(raw[:]), base64.RawURLEncoding.EncodeToString(raw[:]),
	} {
		if m, err := ParseMasterKey(text); err != nil || !bytes.Equal(m.reveal(), raw[:]) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "passphrase", hex.EncodeToString(raw[:31]), hex.EncodeToString(raw[:]) + "00", base64.StdEncoding.EncodeToString(raw[:31])} {
		_, err := ParseMasterKey(text)
		expect(t, err, base.CodeInvalidArgument, "master_key")
		if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%v quotes the key", err)
		}
	}
}
