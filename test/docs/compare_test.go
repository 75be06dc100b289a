package docs

import (
	"regexp"
	"strings"
	"testing"
)

// varying are the parts of an output that are another each time, and what stands for them.
var varying = []struct {
	part *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`"partition":\s?\d+`), `"partition": <number>`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uuid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "<clock>"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`), "<duration>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:<port>"},
	{regexp.MustCompile(`ffk_[a-z2-7]{12}_[A-Za-z0-9_-]{43}`), "<key>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<hash>"},
	{regexp.MustCompile(`"(cursor|next|next_cursor)":\s?"[^"]*"`), `"$1": <cursor>`},
	{regexp.MustCompile(`"(ms|clock_skew_ms|held_ms)":\s?-?[0-9.]+`), `"$1": <number>`},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// plain is an output without what varies, and without blank lines around it.
func plain(text string) string {
	for _, v := range varying {
		text = v.part.ReplaceAllString(text, v.word)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// matches reports whether an output is the one that a page shows. "..." stands for anything in its line; alone in a line, for any lines.
func matches(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.SplitSeq(plain(want), "\n") {
		if line == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		parts := strings.Split(line, "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern.WriteString(strings.Join(parts, `.*?`) + `\n`)
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(plain(got) + "\n")
}

func TestU263_an_output_is_compared_except_for_what_varies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"01a1de75-9ca9-7dfb-a044-6599f8fef990", "01b1de75-9ca9-7dfb-a044-6599f8fef99f\n", true},
		{"done in 2ms at http://127.0.0.1:7433", "done in 3.1s at http://127.0.0.1:40001\n", true},
		{"A  B\na  2026-05-01T10:00:00.000Z", "A\tB\na\t2026-11-15T09:06:52.335Z\n", true},
		{`{"next":"abc","at_end":true}`, `{"next":"xyz","at_end":true}`, true},
		{"first\n...\nlast", "first\nin\nbetween\nlast", true},
		{"first\n...", "first\nand more", true},
		{"version ... of", "version 1.2 of", true},
		{"", "", true},
		{"status: succeeded", "status: failed", false},
		{"one", "one\ntwo", false},
		{"one\ntwo", "one", false},
		{"version ... of", "version\n1.2 of", false},
		{"a.c", "abc", false},
		{"", "something", false},
	} {
		if matches(c.want, c.got) != c.same {
			t.Errorf("%q and %q: the same is %v", c.want, c.got, !c.same)
		}
	}
}
