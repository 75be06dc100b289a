package base

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestL6_every_text_limit_holds_at_the_bound_below_and_above(t *testing.T) {
	t.Parallel()
	progress := func(text string) error { return CheckProgress(nil, &text) }
	cases := []struct {
		name  string
		low   int
		high  int
		check func(string) error
	}{
		{"namespace", 1, 128, CheckNamespace},
		{"lane", 1, 64, CheckLane},
		{"kind", 1, 128, CheckKind},
		{"worker_id", 1, 256, func(s string) error { return CheckWorkerID("worker_id", s) }},
		{"idempotency_key", 0, 256, CheckIdempotencyKey},
		{"request_key", 0, 128, CheckRequestKey},
		{"creator", 0, 256, CheckCreator},
		{"reason", 0, 1024, func(s string) error { return CheckReason("reason", s) }},
		{"content_type", 1, 128, func(s string) error { return CheckContentType("content_type", s) }},
		{"message", 0, 4096, progress},
		{"category", 1, 64, func(s string) error { return CheckCategory("category", s) }},
		{"tags.k", 0, 256, func(s string) error { return CheckTag("k", s) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for length, ok := range map[int]bool{c.low: true, c.low + 1: true, c.high - 1: true, c.high: true, c.high + 1: false, c.low - 1: false} {
				if length < 0 {
					continue
				}
				code := CodeInvalidArgument
				if ok {
					code = ""
				}
				expect(t, c.check(strings.Repeat("a", length)), code, c.name)
			}
		})
	}
}

func TestL6_texts_are_made_of_the_allowed_characters_only(t *testing.T) {
	t.Parallel()
	worker := func(s string) error { return CheckWorkerID("worker_id", s) }
	content := func(s string) error { return CheckContentType("content_type", s) }
	reason := func(s string) error { return CheckReason("reason", s) }
	category := func(s string) error { return CheckCategory("category", s) }
	message := func(s string) error { return CheckProgress(nil, &s) }
	cases := []struct {
		name    string
		check   func(string) error
		good    []string
		refused []string
	}{
		{"namespace", CheckNamespace, []string{"a", "0", "Z_.:-9"}, []string{"_a", ".a", ":a", "-a", "a b", "a/b", "é", "a\x00"}},
		{"lane", CheckLane, []string{"!", "~", "a/b"}, []string{" ", "a b", "a\x7f", "é", "a\n"}},
		{"kind", CheckKind, []string{"!", "~"}, []string{"a b", "\x7f", "ü"}},
		{"worker", worker, []string{"w-1", "wörker"}, []string{"a b", "a\u00a0b", "a\x00", "a\u0085", "\xff"}},
		{"key", CheckIdempotencyKey, []string{"", "a b", "ключ"}, []string{"a\n", "a\x7f", "\xff"}},
		{"request key", CheckRequestKey, []string{"", "!~"}, []string{"a b", "é", "\x7f"}},
		{"creator", CheckCreator, []string{"", "A B"}, []string{"a\t", "\xc3"}},
		{"content type", content, []string{"text/plain; charset=utf-8"}, []string{"a\t", "é", "\x7f"}},
		{"reason", reason, []string{"", "two\nlines"}, []string{"\xff"}},
		{"category", category, []string{"a.b_c-9"}, []string{"A", "a b", "ä"}},
		{"message", message, []string{"50 %\nof it"}, []string{"\xff"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, text := range c.good {
				expect(t, c.check(text), "", "")
			}
			for _, text := range c.refused {
				if CodeOf(c.check(text)) != CodeInvalidArgument {
					t.Errorf("%q was not refused", text)
				}
			}
		})
	}
}

func TestL6_tag_keys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "tenant", "a_9", "a.b", "a.9", "a._", "ff", "fff.a", strings.Repeat("a", 64)} {
		expect(t, CheckTag(key, "v"), "", "")
	}
	for _, key := range []string{"", "A", "9a", "_a", "a.", ".a", "a..b", "a-b", "ff.x", "ff.", "é", "\xff", strings.Repeat("a", 65)} {
		if got := CodeOf(CheckTag(key, "v")); got != CodeInvalidTagKey {
			t.Errorf("%q: %q", key, got)
		}
	}
	expect(t, CheckTag("a", "\xff"), CodeInvalidArgument, "tags.a")
}

func TestL6_an_execution_has_at_most_64_tags(t *testing.T) {
	t.Parallel()
	tags := Tags{}
	for i := range MaxTags {
		tags["t"+strings.Repeat("a", i)[:min(i, 60)]+string(rune('a'+i%26))+strings.Repeat("b", i/26)] = ""
	}
	if len(tags) != MaxTags {
		t.Fatalf("the test made %d tags", len(tags))
	}
	expect(t, CheckTags(tags), "", "")
	tags["one_more"] = ""
	expect(t, CheckTags(tags), CodeInvalidArgument, "tags")
}

func TestL6_numbers_hold_at_the_bound_below_and_above(t *testing.T) {
	t.Parallel()
	percent := func(n int64) error { p := int(n); return CheckProgress(&p, nil) }
	payload := func(n int64) error { return DefaultLimits().CheckPayload("input", int(n)) }
	unset := func(n int64) error { return Limits{}.CheckPayload("input", int(n)) }
	raised := func(n int64) error { return Limits{MaxPayload: MaxPayloadSetting}.CheckPayload("input", int(n)) }
	const now = Time(1_700_000_000_000)
	ahead := func(n int64) error { return CheckAhead("delay_until", now.Add(n), now) }
	cases := []struct {
		name      string
		low, high int64
		code      Code
		check     func(int64) error
	}{
		{"ttl", 500, 86_400_000, CodeInvalidArgument, CheckTTL},
		{"percent", 0, 100, CodeInvalidArgument, percent},
		{"payload", -1, 4 << 20, CodePayloadTooLarge, payload},
		{"payload unset", -1, 4 << 20, CodePayloadTooLarge, unset},
		{"payload raised", -1, 64 << 20, CodePayloadTooLarge, raised},
		{"bulk items", -1, 10_000, CodeBatchTooLarge, func(n int64) error { return CheckBulk(int(n), 0) }},
		{"bulk bytes", -1, 64 << 20, CodeBatchTooLarge, func(n int64) error { return CheckBulk(1, n) }},
		{"ahead", -1, 10 * 365 * 86_400_000, CodeInvalidArgument, ahead},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, c.check(c.high), "", "")
			expect(t, c.check(c.high-1), "", "")
			expect(t, c.check(c.high+1), c.code, "")
			if c.low >= 0 {
				expect(t, c.check(c.low), "", "")
				expect(t, c.check(c.low+1), "", "")
				expect(t, c.check(c.low-1), c.code, "")
			}
		})
	}
}

func TestL6_priorities_are_clamped_and_never_refused(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]int{-1 << 40: 0, -1: 0, 0: 0, 1: 1, 8999: 8999, 9000: 9000, 9001: 9000, 1 << 40: 9000} {
		if got := ClampPriority(given); got != want {
			t.Errorf("%d became %d, want %d", given, got, want)
		}
	}
}

func TestL6_failure_messages_are_cut_on_a_character_boundary_and_repaired(t *testing.T) {
	t.Parallel()
	const limit = 16 << 10
	for _, tail := range []string{"", "a", "é", "€", "😀"} {
		for before := limit - 5; before <= limit; before++ {
			whole := strings.Repeat("a", before) + tail
			got := CutMessage(whole)
			want := whole
			if len(whole) > limit {
				want = whole[:before]
			}
			if got != want {
				t.Fatalf("%d + %q gave %d bytes, want %d", before, tail, len(got), len(want))
			}
		}
	}
	if got := CutMessage("a\xffb\xc3"); got != "a\uFFFDb\uFFFD" {
		t.Errorf("repaired to %q", got)
	}
	if got := CutMessage(strings.Repeat("\xffa", limit)); len(got) > limit || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

func TestL6_failure_details_are_cut_and_absent_ones_stay_absent(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 0, 65_535: 65_535, 65_536: 65_536, 65_537: 65_536} {
		if got := CutDetail(make([]byte, size)); len(got) != want {
			t.Errorf("%d bytes became %d, want %d", size, len(got), want)
		}
	}
	if CutDetail(nil) != nil {
		t.Error("an absent detail became an empty one")
	}
}

func TestCutText_never_splits_a_character_and_stops_at_garbage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"a€", 2, "a"},
		{"a€", 4, "a€"},
		{"€", 0, ""},
		{"😀", 3, ""},
	} {
		if got := CutText(c.text, c.limit); got != c.want {
			t.Errorf("cutText(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
	if got := CutText(strings.Repeat("\x80", 100), 50); len(got) > 50 || len(got) < 46 {
		t.Errorf("continuation bytes without a start were cut to %d", len(got))
	}
}
