package jsonx

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

// anyMixture draws bytes that are plain for the most part.
func anyMixture(t *rapid.T) []byte {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.ByteRange('a', 'z'), rapid.ByteRange('a', 'z'), rapid.ByteRange('a', 'z'), rapid.SampledFrom([]byte("\"\\\x00\x1f !#[]\x7f\x80\xff")), rapid.Byte(),
	), 0, 40).Draw(t, "bytes")
}

func TestU5_what_cannot_stand_in_a_string_is_found_eight_bytes_at_a_time(t *testing.T) {
	t.Parallel()
	special := func(c byte) bool { return c < ' ' || c == '"' || c == '\\' }
	testseed.Check(t, func(t *rapid.T) {
		text := anyMixture(t)
		want := slices.IndexFunc(text, special)
		if want < 0 {
			want = len(text)
		}
		if got := plainBytes(text); got != want {
			t.Fatalf("%q: %d plain bytes, want %d", text, got, want)
		}
		ascii := !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf })
		if got := plainASCII(text); got != (ascii && want == len(text)) {
			t.Fatalf("%q is plain: %t", text, got)
		}
	})
}

func TestU5_strings_that_were_read_stay_as_they_are_and_keep_little_memory(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		k := keeper{total: rapid.SampledFrom([]int{10, 300, 1 << 20}).Draw(t, "total")}
		given := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 2*ownMemory), 0, 60).Draw(t, "strings")
		kept := make([]string, len(given))
		for i, chars := range given {
			scratch := bytes.Clone(chars)
			kept[i] = k.keep(scratch)
			clear(scratch)
			if k.piece.Cap() > pieceSize {
				t.Fatalf("a piece of %d bytes", k.piece.Cap())
			}
		}
		for i, chars := range given {
			if kept[i] != string(chars) {
				t.Fatalf("%q became %q", chars, kept[i])
			}
		}
	})
}

func TestU6_the_usual_form_of_an_instant_is_read_as_any_other(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(19[67][0-9]|[0-9]{4})-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\.[0-9]{3}Z`).Draw(t, "text")
		got, ok := readForm(text)
		want, err := readRFC3339(text)
		if ok != (err == nil) || ok && got != want {
			t.Fatalf("%s is %s, %t; want %s, %v", text, got, ok, want, err)
		}
		if ok && got.Format(timeLayout) != string(appendForm(nil, got)) {
			t.Fatalf("%s is written as %s", got, appendForm(nil, got))
		}
	})
}

func TestU5_a_control_character_in_a_name_is_told_as_in_any_string(t *testing.T) {
	t.Parallel()
	const want = "invalid_json: line 1, column 3: a control character stands in a string without an escape"
	for _, text := range []string{"{\"\x01\":1}", "{\"\x01\\u0041\":1}"} {
		if err := Decode([]byte(text), new(outer)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
		if err := DecodeLenient([]byte(text), new(inner)); err == nil || err.Error() != want {
			t.Errorf("%q in an answer: %v", text, err)
		}
	}
}
