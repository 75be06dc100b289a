// Package runes cuts bytes that arrive in parts between characters. It knows nothing of where they come from or go to.
package runes

import "unicode/utf8"

// Whole returns the length of a text without the beginning of a character at its end whose rest is still to come. Bytes that are not UTF-8 count as whole.
func Whole(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				break
			}
			return len(text) - n
		}
	}
	return len(text)
}
