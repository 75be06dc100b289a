package jsonx

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// The strings of JSON are looked at eight bytes at a time: they are most of what a message is.
const (
	wordSize = 8
	ones     = 0x0101010101010101
	highs    = 0x80 * ones
)

// notPlain marks the bytes of a word that cannot stand in a JSON string as they are: quotes, backslashes and control characters. The
// lowest mark is right; those above it may be wrong.
func notPlain(word uint64) uint64 {
	quotes, slashes := word^'"'*ones, word^'\\'*ones
	return ((quotes-ones)&^quotes | (slashes-ones)&^slashes | (word-' '*ones)&^word) & highs
}

// plainBytes counts the bytes up to the first that cannot stand in a JSON string as it is.
func plainBytes(text []byte) int {
	n := 0
	for ; n+wordSize <= len(text); n += wordSize {
		if marks := notPlain(binary.LittleEndian.Uint64(text[n:])); marks != 0 {
			return n + bits.TrailingZeros64(marks)/wordSize
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// plainASCII reports whether a text can be written in quotes as it is, without a look at its characters.
func plainASCII(text []byte) bool {
	if len(text) < wordSize {
		for _, c := range text {
			if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
				return false
			}
		}
		return true
	}
	marks := uint64(0)
	for n := 0; n+wordSize < len(text); n += wordSize {
		word := binary.LittleEndian.Uint64(text[n:])
		marks |= notPlain(word) | word&highs
	}
	word := binary.LittleEndian.Uint64(text[len(text)-wordSize:]) // the last ones, of which some may have been seen
	return marks|notPlain(word)|word&highs == 0
}

// AppendString writes a JSON string, as encoding/json does when it escapes nothing for HTML.
func AppendString(text []byte, s string) []byte {
	text = append(text, '"')
	begin := len(text)
	text = append(text, s...) // most need no escape
	if !plainASCII(text[begin:]) {
		text = appendEscaped(text[:begin], s)
	}
	return append(text, '"')
}

// appendEscaped writes the characters of a string. What is not UTF-8 becomes the replacement character; the line ends of JavaScript
// are escaped.
func appendEscaped(text []byte, s string) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r < utf8.RuneSelf:
			text = appendASCII(text, byte(r))
		case r == utf8.RuneError && size == 1, r == '\u2028', r == '\u2029':
			text = append(text, `\u`...)
			text = strconv.AppendInt(text, int64(r), 16)
		default:
			text = append(text, s[:size]...)
		}
		s = s[size:]
	}
	return text
}

func appendASCII(text []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(text, '\\', c)
	case '\b':
		return append(text, `\b`...)
	case '\f':
		return append(text, `\f`...)
	case '\n':
		return append(text, `\n`...)
	case '\r':
		return append(text, `\r`...)
	case '\t':
		return append(text, `\t`...)
	}
	if c < ' ' {
		return append(text, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
	return append(text, c)
}
