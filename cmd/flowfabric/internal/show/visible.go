package show

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible writes a text of somebody else so that a terminal only shows it: whatever would steer the terminal, turn the direction of
// writing, or stand there without being seen is shown by its number. Line breaks and tabs stay.
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

// hidden reports whether a character does something else than to be seen: controls (C0, C1, DEL), marks of direction and joining, and
// separators of lines that terminals treat differently. The joiner of emoji stays: without it they fall apart.
func hidden(r rune) bool {
	const joiner = '\u200d'
	switch {
	case r == '\n' || r == '\t' || r == joiner:
		return false
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	}
}
