package show

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible escapes a text so that a terminal only displays it: characters that control the terminal, change the writing direction
// or are invisible are replaced by their numbers. Line breaks and tabs stay.
func Visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
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
