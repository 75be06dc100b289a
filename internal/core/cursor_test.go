package core

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestL134_a_cursor_comes_back_as_it_was_made(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		scope := rapid.String().Draw(t, "scope")
		p := Position{At: base.Time(rapid.Int64().Draw(t, "at"))}
		copy(p.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if back, err := ParsePosition(scope, p.Cursor(scope)); err != nil || back != p {
			t.Fatalf("%+v, %v", back, err)
		}
	})
}

func TestL134_a_cursor_is_bound_to_filter_and_order(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	f := Filter{Lane: []string{"a", "b"}, Tags: []TagFilter{{"x", nil}, {"y", text("1")}}}
	p := Position{At: noon, ID: base.UUID{1}}
	cursor := p.Cursor(f.Scope(OrderCreatedDesc))

	same := Filter{Lane: []string{"b", "a", "b"}, Tags: []TagFilter{{"y", text("1")}, {"x", nil}}}
	if _, err := ParsePosition(same.Scope(OrderCreatedDesc), cursor); err != nil {
		t.Errorf("the same filter in other words: %v", err)
	}
	for name, scope := range map[string]string{
		"order":  f.Scope(OrderCreatedAsc),
		"filter": (&Filter{Lane: []string{"a"}}).Scope(OrderCreatedDesc),
		"none":   (&Filter{}).Scope(OrderCreatedDesc),
		"moved":  (&Filter{Kind: f.Lane, Tags: f.Tags}).Scope(OrderCreatedDesc),
	} {
		if _, err := ParsePosition(scope, cursor); base.CodeOf(err) != base.CodeInvalidCursor {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Lane[0] != "a" || f.Tags[0].Key != "x" {
		t.Error("making a scope changed the filter")
	}
}

func TestL134_garbage_is_an_invalid_cursor(t *testing.T) {
	t.Parallel()
	good := Position{At: 1, ID: base.UUID{2}}.Cursor("s")
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	damaged := func(at int) string {
		changed := append([]byte(nil), raw...)
		changed[at] ^= 1
		return base64.RawURLEncoding.EncodeToString(changed)
	}
	garbage := []string{"", "x", "!!!!", good[1:], good[:len(good)-1], good + "A", good + "=", strings.Repeat("A", 5000), EncodeCursor("s", []byte("short"))}
	for at := range raw {
		garbage = append(garbage, damaged(at))
	}
	for _, cursor := range garbage {
		if _, err := ParsePosition("s", cursor); base.CodeOf(err) != base.CodeInvalidCursor {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func TestL133_orders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "created_desc", "created_desc": "created_desc", "created_asc": "created_asc", "completed_desc": "completed_desc", "id_asc": "id_asc",
	} {
		if got, err := ParseOrder(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"id_desc", "CREATED_ASC", "\xff"} {
		_, err := ParseOrder(text)
		expect(t, err, base.CodeInvalidArgument, "order")
	}
}

func TestL134_page_limits(t *testing.T) {
	t.Parallel()
	if got, err := PageLimit(nil); got != 100 || err != nil {
		t.Errorf("absent: %d, %v", got, err)
	}
	for given, want := range map[int]int{0: 0, 1: 1, 999: 999, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		if got, err := PageLimit(&given); got != want || err != nil {
			t.Errorf("%d: %d, %v", given, got, err)
		}
	}
	negative := -1
	_, err := PageLimit(&negative)
	expect(t, err, base.CodeInvalidArgument, "limit")
}

func FuzzCursor(f *testing.F) {
	f.Add("scope", Position{At: 1, ID: base.UUID{2}}.Cursor("scope"))
	f.Add("scope", EncodeCursor("scope", nil))
	f.Add("", "AQ")
	f.Add("scope", "Aa0sZUxYliXTAAAAAAAAAA\rECAAAAAAAAAAAAAAAAAAAA") // a decoder of base64 skips line ends
	f.Fuzz(func(t *testing.T, scope, cursor string) {
		key, err := DecodeCursor(scope, cursor)
		if err == nil && EncodeCursor(scope, key) != cursor {
			t.Fatalf("%q is a second spelling", cursor)
		}
		position, err := ParsePosition(scope, cursor)
		if err == nil && position.Cursor(scope) != cursor || err != nil && base.CodeOf(err) != base.CodeInvalidCursor {
			t.Fatalf("%q: %+v, %v", cursor, position, err)
		}
	})
}

func TestL134_a_cursor_has_only_numbers_that_a_place_can_have(t *testing.T) {
	t.Parallel()
	var a, b int64
	if err := DecodeNumbers("list", EncodeNumbers("list", 3, 0), &a, &b); err != nil || a != 3 || b != 0 {
		t.Errorf("%d %d %v", a, b, err)
	}
	for what, cursor := range map[string]string{
		"a negative number": EncodeNumbers("list", 0, -1), "a large one": EncodeNumbers("list", 0, 1<<31), "too few": EncodeNumbers("list", 0),
		"too many": EncodeNumbers("list", 0, 0, 0), "none": EncodeCursor("list", nil), "another list": EncodeNumbers("others", 0, 0),
		"a number without an end": EncodeCursor("list", []byte{0, 0x80}),
	} {
		if err := DecodeNumbers("list", cursor, &a, &b); base.CodeOf(err) != base.CodeInvalidCursor {
			t.Errorf("%s: %v", what, err)
		}
	}
}
