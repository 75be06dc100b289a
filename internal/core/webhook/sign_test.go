package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// wantCode fails unless err has the code and the field.
func wantCode(t *testing.T, err error, code base.Code, field string) {
	t.Helper()
	var e *base.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field || e.Hint == "" {
		t.Fatalf("got %v, want %s of %q with a hint", err, code, field)
	}
}

func parsed(t *testing.T, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestE40_the_vector_of_the_specification(t *testing.T) {
	t.Parallel()
	secret := parsed(t, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	at := time.Unix(1767225600, 999_999_999)
	got := Sign([]Secret{secret}, "0190f0c2-4444-7aaa-8bbb-0123456789ab", at, []byte(`{"type":"execution.completed"}`))
	if want := "v1,aJYo0HdLIbtL1PUBCzAaDf6LqKc7VF7nWWOS5Xnn6AA="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Timestamp(at); got != "1767225600" {
		t.Errorf("timestamp %s: it is in whole seconds", got)
	}
}

func TestE40_overlapping_secrets_sign_in_their_order_separated_by_a_space(t *testing.T) {
	t.Parallel()
	a, b := NewSecret(bytes.Repeat([]byte{1}, 32)), NewSecret(bytes.Repeat([]byte{2}, 32))
	at, body := time.Unix(5, 0), []byte("{}")
	alone := func(s Secret) string { return Sign([]Secret{s}, "id", at, body) }
	if got, want := Sign([]Secret{a, {}, b}, "id", at, body), alone(a)+" "+alone(b); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for what, other := range map[string]string{
		"the id":     Sign([]Secret{a}, "ie", at, body),
		"the second": Sign([]Secret{a}, "id", at.Add(time.Second), body),
		"the body":   Sign([]Secret{a}, "id", at, []byte("{} ")),
		"the secret": alone(b),
	} {
		if other == alone(a) {
			t.Errorf("%s is not signed", what)
		}
	}
}

func TestE40_the_body_has_type_timestamp_and_data_and_copies_the_envelope(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 19, 8, 7, 6, 5_000_000, time.FixedZone("", 3600))
	envelope := `{"kind":"execution.completed","n":12345678901234567890,"text":"<&>\u2028"}`
	got := string(Body("execution.completed", at, []byte(envelope)))
	if want := `{"type":"execution.completed","timestamp":"2026-11-19T07:07:06.005Z","data":` + envelope + `}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if odd := Body("a\"\n", at, []byte("{}")); !json.Valid(odd) {
		t.Errorf("no JSON: %s", odd)
	}
}

func TestE41_a_secret_is_whsec_and_base64_of_24_to_64_bytes(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n)) }
	for n := MinSecret; n <= MaxSecret; n++ {
		if s := parsed(t, of(n)); s.Text() != of(n) || len(s.Bytes()) != n || s.IsZero() {
			t.Errorf("a secret of %d bytes came back as another", n)
		}
	}
	for why, text := range map[string]string{
		"too short": of(MinSecret - 1), "too long": of(MaxSecret + 1), "much too long": of(1 << 16), "empty": "", "nothing after the prefix": "whsec_",
		"no prefix": strings.TrimPrefix(of(32), "whsec_"), "another prefix": "WHSEC_" + of(32)[6:], "without padding": strings.TrimRight(of(32), "="),
		"for URLs": strings.ReplaceAll(of(24), "+", "-"), "a line end": of(32) + "\n", "a space": of(32) + " ", "a line end inside": of(24)[:12] + "\n" + of(24)[12:],
		"bits left over": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
	} {
		_, err := ParseSecret(text)
		wantCode(t, err, base.CodeInvalidSecret, "secret")
		if rest := strings.TrimPrefix(text, "whsec_"); len(rest) > 8 && strings.Contains(err.Error(), rest[:8]) {
			t.Errorf("%s: the error shows the secret: %v", why, err)
		}
	}
}

func TestEI12_a_secret_does_not_print_itself(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte("k"), 32)
	s := NewSecret(raw)
	holder := struct {
		Secret Secret
		hidden Secret
		List   []Secret
	}{s, s, []Secret{s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		fmt.Fprintf(&out, verb+"\n"+verb+"\n"+verb+"\n", s, &s, holder)
	}
	text, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", s, "in", holder, "list", []Secret{s})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "in", holder, "list", []Secret{s})
	for what, shown := range map[string]string{
		"text": "kkkk", "base64": s.Text()[6:20], "numbers": "107 107", "hexadecimal": "6b6b6b", "hexadecimal bytes": "0x6b", "JSON": base64.StdEncoding.EncodeToString(raw)[:8],
	} {
		if strings.Contains(out.String(), shown) {
			t.Errorf("%s of the secret is shown in\n%s", what, out.String())
		}
	}
}

func TestE41_the_zero_secret_is_none(t *testing.T) {
	t.Parallel()
	var none Secret
	if !none.IsZero() || none.Text() != "" || none.Bytes() != nil || Sign([]Secret{none}, "id", time.Unix(1, 0), nil) != "" {
		t.Error("the zero secret signs")
	}
}
