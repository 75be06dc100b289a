package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestS10_each_breach_of_the_grammar_is_named_with_its_side(t *testing.T) {
	t.Parallel()
	numbered := func(n int) []string {
		var tokens []string
		for i := range n {
			tokens = append(tokens, fmt.Sprintf("t%d", i))
		}
		return tokens
	}
	long := func(n int) []string { return []string{strings.Repeat("a", n-2), "b"} }
	cases := []struct {
		name   string
		tokens []string
		why    string // "" when it is a capability set
	}{
		{"none", nil, ""},
		{"empty list", []string{}, ""},
		{"one", []string{"gpu"}, ""},
		{"any characters", []string{"größe=XL;v:1.2/3"}, ""},
		{"empty token", []string{"a", ""}, "empty_token"},
		{"comma", []string{"a,b"}, "comma"},
		{"space", []string{"a b"}, "whitespace_or_control"},
		{"no-break space", []string{"a\u00a0b"}, "whitespace_or_control"},
		{"tab", []string{"a\tb"}, "whitespace_or_control"},
		{"zero byte", []string{"a\x00"}, "whitespace_or_control"},
		{"delete", []string{"a\x7f"}, "whitespace_or_control"},
		{"next line", []string{"a\u0085"}, "whitespace_or_control"},
		{"invalid utf-8", []string{"a\xff"}, "invalid_utf8"},
		{"256 tokens", numbered(256), ""},
		{"257 tokens", numbered(257), "too_many_tokens"},
		{"256 tokens, one twice", append(numbered(256), "t0"), ""},
		{"4095 bytes", long(4095), ""},
		{"4096 bytes", long(4096), ""},
		{"4097 bytes", long(4097), "too_many_bytes"},
	}
	for _, side := range []string{SideRequired, SideWorker} {
		for _, c := range cases {
			t.Run(side+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				set, err := ParseCapabilities(side, c.tokens)
				if c.why == "" {
					expect(t, err, "", "")
					return
				}
				expect(t, err, base.CodeInvalidCapabilities, "")
				if d := asError(t, err).Details; set != nil || d["side"] != side || d["why"] != c.why {
					t.Errorf("details %v, want why %s", d, c.why)
				}
			})
		}
	}
}

func TestS10_sets_are_sorted_and_unique_and_the_given_list_is_left_alone(t *testing.T) {
	t.Parallel()
	given := []string{"b", "a", "B", "a"}
	set, err := ParseCapabilities(SideWorker, given)
	expect(t, err, "", "")
	if !slices.Equal(set, []string{"B", "a", "b"}) || !slices.Equal(given, []string{"b", "a", "B", "a"}) {
		t.Errorf("set %v, given %v", set, given)
	}
}

func TestS11_matching_is_exact_and_case_sensitive(t *testing.T) {
	t.Parallel()
	cases := []struct {
		required, have []string
		missing        []string
	}{
		{nil, nil, nil},
		{nil, []string{"a"}, nil},
		{[]string{"a"}, []string{"a"}, nil},
		{[]string{"a"}, []string{"a", "b"}, nil},
		{[]string{"b"}, []string{"a", "b"}, nil},
		{[]string{"a", "b"}, []string{"a"}, []string{"b"}},
		{[]string{"a", "b"}, []string{"b"}, []string{"a"}},
		{[]string{"a", "b"}, nil, []string{"a", "b"}},
		{[]string{"A"}, []string{"a"}, []string{"A"}},
		{[]string{"ab"}, []string{"a", "b"}, []string{"ab"}},
		{[]string{"x"}, []string{"a", "b"}, []string{"x"}},
	}
	for _, c := range cases {
		if got := MissingCapabilities(c.required, c.have); !slices.Equal(got, c.missing) {
			t.Errorf("%v of %v: missing %v, want %v", c.required, c.have, got, c.missing)
		}
		if got := Matches(c.required, c.have); got != (len(c.missing) == 0) {
			t.Errorf("%v of %v: match %v", c.required, c.have, got)
		}
	}
}

func TestS11_matching_is_the_subset_relation(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}))
		required, _ := ParseCapabilities(SideRequired, sets.Draw(t, "required"))
		have, _ := ParseCapabilities(SideWorker, sets.Draw(t, "have"))
		subset := true
		for _, token := range required {
			subset = subset && slices.Contains(have, token)
		}
		if Matches(required, have) != subset || (len(MissingCapabilities(required, have)) == 0) != subset {
			t.Fatalf("%v of %v: want %v", required, have, subset)
		}
	})
}
