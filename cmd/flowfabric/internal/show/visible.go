package show

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/runes"
)

// Visible escapes a text so that a terminal only displays it: characters that control the terminal, change the writing direction
// or are invisible are replaced by their numbers, bytes that are not UTF-8 by U+FFFD. Line breaks and tabs stay.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hidden reports whether a character is not displayed as itself: controls (C0, C1, DEL), marks of direction and joining, and line
// separators that terminals treat differently. The joiner of emoji is kept, because they need it.
func hidden(r rune) bool {
	const joiner = '\u200d'
	switch {
	case r == '\n' || r == '\t' || r == joiner:
		return false
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	}
}

// screen makes what a program writes, part by part, visible. A return to the start of a line is a line break, so that nothing is overwritten.
type screen struct {
	rest     []byte // the beginning of a character whose end is in the next part
	returned bool   // the last part ended with a return
}

// text returns what is shown of a part.
func (s *screen) text(part []byte) string {
	part = append(s.rest, part...)
	whole := runes.Whole(part)
	s.rest = part[whole:]
	text := string(part[:whole])
	if text == "" {
		return ""
	}
	if s.returned {
		text = strings.TrimPrefix(text, "\n")
	}
	s.returned = whole > 0 && part[whole-1] == '\r'
	return Visible(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
}

// end returns what is shown of a character that has no end.
func (s *screen) end() string {
	text := strings.ToValidUTF8(string(s.rest), "\uFFFD")
	*s = screen{}
	return text
}

// visibleJSON returns JSON in which characters that are not displayed as themselves are escaped, as Visible does with texts for people: what is printed on a
// terminal must not steer it. The value is the same.
func visibleJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	to := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		switch first, second := utf16.EncodeRune(r); {
		case !hidden(r):
			to = utf8.AppendRune(to, r)
		case r < 0x10000:
			to = fmt.Appendf(to, `\u%04x`, r)
		default:
			to = fmt.Appendf(to, `\u%04x\u%04x`, first, second)
		}
	}
	return to
}
