package stream

import (
	"strconv"
	"strings"
)

// Keys are texts of lower-case letters and digits that sort, byte by byte, by attempt, mode and seq. A number is a letter for the count of its hexadecimal
// digits, beginning with a for one, and these digits. Between the numbers of a key stands the letter of the mode.
const modeLetters = "dsz"

// Key is the key of the chunk of an attempt and mode whose last frame has that seq. It also begins a scan: the first key that is not below
// Key(attempt, mode, n) is that of the first chunk that reaches n.
func Key(attempt int, mode Mode, lastSeq int64) string {
	var room [40]byte
	text := appendSortable(room[:0], uint64(attempt))
	text = append(text, modeLetters[mode])
	return string(appendSortable(text, uint64(lastSeq)))
}

// KeyLimit is above all keys of an attempt and mode, and below all keys of later ones.
func KeyLimit(attempt int, mode Mode) string {
	var room [40]byte
	text := appendSortable(room[:0], uint64(attempt))
	return string(append(text, modeLetters[mode], 'z'))
}

// ParseKey is the inverse of Key.
func ParseKey(key string) (attempt int, mode Mode, lastSeq int64, ok bool) {
	n, rest, fine := cutSortable(key)
	if !fine || rest == "" {
		return 0, 0, 0, false
	}
	m := strings.IndexByte(modeLetters, rest[0])
	seq, rest, fine := cutSortable(rest[1:])
	if m < 0 || !fine || rest != "" || n > 1<<31-1 || seq > 1<<63-1 {
		return 0, 0, 0, false
	}
	return int(n), Mode(m), int64(seq), true
}

func appendSortable(to []byte, n uint64) []byte {
	at := len(to)
	to = strconv.AppendUint(append(to, 0), n, 16)
	to[at] = 'a' + byte(len(to)-at-2)
	return to
}

func cutSortable(text string) (n uint64, rest string, ok bool) {
	if text == "" || text[0] < 'a' || text[0] > 'p' {
		return 0, "", false
	}
	digits := int(text[0]-'a') + 1
	if len(text) < 1+digits {
		return 0, "", false
	}
	shown, rest := text[1:1+digits], text[1+digits:]
	n, err := strconv.ParseUint(shown, 16, 64)
	if err != nil || strconv.FormatUint(n, 16) != shown {
		return 0, "", false
	}
	return n, rest, true
}
