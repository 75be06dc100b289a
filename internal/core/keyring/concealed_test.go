package keyring

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// tellTales are pieces of bytes in every form in which something could print them.
func tellTales(raw []byte) []string {
	digits := hex.EncodeToString(raw[:8])
	spaced := fmt.Sprint(raw[:4]) // [1 2 3 4]
	return []string{
		digits, strings.ToUpper(digits), spaced[1 : len(spaced)-1], strings.ReplaceAll(spaced[1:len(spaced)-1], " ", ","),
		strings.TrimSuffix(fmt.Sprintf("%#v", raw[:4])[len("[]byte{"):], "}"), string(raw[:8]), strings.Trim(fmt.Sprintf("%q", raw[:8]), `"`),
		base64.StdEncoding.EncodeToString(raw[:6]), hex.EncodeToString([]byte(digits)), base64.StdEncoding.EncodeToString([]byte(digits[:6])),
	}
}

// allForms is everything that is printed, encoded or logged of a value.
func allForms(value any) map[string]string {
	forms := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%c", "%t", "%U"} {
		forms[verb] = fmt.Sprintf(verb, value)
	}
	text, err := json.Marshal(value)
	forms["JSON"] = fmt.Sprint(string(text), err)
	var lines bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&lines, nil), slog.NewJSONHandler(&lines, nil)} {
		slog.New(h).Info("it is so", "value", value, slog.Group("group", "value", value))
	}
	forms["slog"] = lines.String()
	if e, ok := value.(*base.Error); ok {
		forms["error"] = fmt.Sprint(e.Error(), e.Hint, e.Details, e.Unwrap())
	}
	return forms
}

// hiders keeps what must be hidden where fmt does not ask for methods.
type hiders struct {
	token  Token
	tokens []Token
	byKid  map[string]Token
	secret KeySecret
	stored *StoredSecret
	master any
	set    KeySet
	ring   *Ring
}

func TestW25_W29_nothing_that_is_printed_shows_a_secret_or_a_digest(t *testing.T) {
	t.Parallel()
	raw, err := hex.DecodeString(keySecretHex(1))
	expect(t, err, "", "")
	var masterRaw [masterKeySize]byte
	copy(masterRaw[:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	master := NewMasterKey(masterRaw)

	var set KeySet
	fx := &keyLog{Now: 1000}
	seed, rotation := seedOf(t, "k1", 1), rotationTo(t, "k2", 1, 0)
	seeded, err := set.Seed(fx, Sealing{}, seed)
	expect(t, err, "", "")
	ring := opened(t, &set)
	token := minted(t, ring, vectorWaitpoint)
	digest, err := hex.DecodeString(strings.TrimPrefix(token.Reveal(), "k1:"))
	expect(t, err, "", "")
	again, err := set.Seed(fx, Sealing{}, seed)
	expect(t, err, "", "")
	_, seedErr := set.Seed(fx, Sealing{}, seedOf(t, "k9", 1))
	_, rotateErr := set.Rotate(fx, Sealing{}, rotationTo(t, "k1", 9, 0))
	rotated, err := set.Rotate(fx, Sealing{}, rotation)
	expect(t, err, "", "")
	_, verifyErr := ring.Verify(1, token, vectorLink)
	_, parseErr := ParseKeySecret(keySecretHex(1) + "0")
	_, masterErr := ParseMasterKey(hex.EncodeToString(masterRaw[:]) + "0")
	_, openErr := Seal(Sealing{Master: master}, "row", raw).Open(masterNumber(2), "row")
	secret, stored := seed.secret, set.Keys[0].Secret

	values := []any{
		token, &token,
		[]Token{token},
		map[string]Token{"k1": token},
		TokenOf("oops:" + hex.EncodeToString(digest) + " "), secret, &secret, stored, &stored,
		master, &master,
		Sealing{Master: master},
		set, &set, set.Keys, set.Keys[0], &set.Keys[0], *ring, ring, seed, &seed, rotation, &rotation,
		seeded, again, rotated, set.List(1000, true), fx, fx.Events, seedErr, rotateErr, verifyErr, parseErr, masterErr, openErr,
		hiders{token, []Token{token}, map[string]Token{"k1": token}, secret, &stored, master, set, ring},
		&hiders{token, []Token{token}, map[string]Token{"k1": token}, secret, &stored, &master, set, ring},
	}
	var needles []string
	for _, bytes := range [][]byte{raw, masterRaw[:], digest} {
		needles = append(needles, tellTales(bytes)...)
	}
	for _, value := range values {
		for form, shown := range allForms(value) {
			for _, needle := range needles {
				if strings.Contains(shown, needle) {
					t.Errorf("%T as %s shows %q: %s", value, form, needle, shown)
				}
			}
		}
	}
}

// The test above would pass if its needles could not be found.
func TestW29_a_secret_that_is_printed_is_found(t *testing.T) {
	t.Parallel()
	raw, err := hex.DecodeString(keySecretHex(1))
	expect(t, err, "", "")
	type open struct{ bytes []byte }
	for _, value := range []any{raw, string(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), open{raw}, &open{raw}, base64.StdEncoding.EncodeToString(raw)} {
		found := false
		for _, shown := range allForms(value) {
			for _, needle := range tellTales(raw) {
				found = found || strings.Contains(shown, needle)
			}
		}
		if !found {
			t.Errorf("%T is not found", value)
		}
	}
}

func TestW29_a_token_shows_its_kid_alone(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"k1:" + digest: "k1:<redacted>", "": "<redacted>", "k1": "<redacted>", "k1:abc": "<redacted>", ":" + digest: "<redacted>",
		"my secret:" + digest: "<redacted>", digest: "<redacted>",
	} {
		token := TokenOf(text)
		if got := fmt.Sprintf("%v %+v %#v %s %d", token, token, token, token, token); got != strings.Join([]string{want, want, want, want, want}, " ") {
			t.Errorf("%q shows as %q", text, got)
		}
		var read string
		if shown, err := json.Marshal(token); err != nil || json.Unmarshal(shown, &read) != nil || read != want {
			t.Errorf("%q is %s in JSON, %v", text, shown, err)
		}
		if token.Reveal() != text {
			t.Errorf("%q is revealed as %q", text, token.Reveal())
		}
	}
}
