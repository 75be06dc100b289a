package stream

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// checkObject checks that text is one JSON object in valid UTF-8, in which no half of a surrogate pair stands alone, and returns how many objects and
// arrays stand inside one another at most. It does not recurse, so that a text of any depth can be checked.
func checkObject(text []byte) (depth int, ok bool) {
	if !utf8.Valid(text) {
		return 0, false
	}
	s := syntax{text: text}
	if s.peek() != '{' {
		return 0, false
	}
	for !s.bad && s.more() {
	}
	return s.deepest, !s.bad && s.peek() == 0 && s.at == len(text)
}

// syntax passes over a JSON text.
type syntax struct {
	text    []byte
	at      int
	inside  []byte // the opening bytes of the objects and arrays that are open
	deepest int
	bad     bool
}

// peek passes white space and returns the next byte; 0 at the end.
func (s *syntax) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// more passes a value and what follows it, up to the next value; an object or array is only entered. It returns false after the last value.
func (s *syntax) more() bool {
	switch c := s.peek(); c {
	case '{', '[':
		s.at++
		s.inside = append(s.inside, c)
		s.deepest = max(s.deepest, len(s.inside))
		if s.peek() != c+2 { // the closing byte
			s.name()
			return true
		}
	case '"':
		s.string()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
	return s.follow()
}

// follow passes what may follow a value.
func (s *syntax) follow() bool {
	for len(s.inside) > 0 && !s.bad {
		open := s.inside[len(s.inside)-1]
		switch s.peek() {
		case ',':
			s.at++
			s.name()
			return true
		case open + 2:
			s.at++
			s.inside = s.inside[:len(s.inside)-1]
		default:
			s.bad = true
		}
	}
	return false
}

// name passes the name of a member where the innermost open value is an object.
func (s *syntax) name() {
	if s.inside[len(s.inside)-1] != '{' {
		return
	}
	if s.peek() != '"' {
		s.bad = true
		return
	}
	s.string()
	s.take(':')
}

// take passes one byte.
func (s *syntax) take(c byte) {
	if s.bad || s.peek() != c {
		s.bad = true
		return
	}
	s.at++
}

func (s *syntax) literal(word string) {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		s.bad = true
		return
	}
	s.at += len(word)
}

// string passes a string, at whose quote the text is.
func (s *syntax) string() {
	for s.at++; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return
		case c == '\\':
			n := escapeLength(s.text[s.at:])
			if n == 0 {
				s.bad = true
				return
			}
			s.at += n
		case c < 0x20:
			s.bad = true
			return
		default:
			s.at++
		}
	}
	s.bad = true
}

// escapeLength is the length of the escape at the beginning of text, of a surrogate pair that of both; 0: it is none.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), text[1]) < 0 {
			return 0
		}
		return 2
	}
	first, ok := hexadecimal(text)
	if !ok {
		return 0
	}
	if !utf16.IsSurrogate(first) {
		return 6
	}
	second, ok := hexadecimal(text[6:])
	if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
		return 0
	}
	return 12
}

// hexadecimal reads an escape of the form \u0000.
func hexadecimal(text []byte) (char rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		char = char<<4 | rune(c)
	}
	return char, true
}

func (s *syntax) number() {
	if s.is('-') {
		s.at++
	}
	if s.is('0') {
		s.at++
	} else {
		s.digits()
	}
	if s.is('.') {
		s.at++
		s.digits()
	}
	if s.is('e') || s.is('E') {
		s.at++
		if s.is('+') || s.is('-') {
			s.at++
		}
		s.digits()
	}
}

func (s *syntax) is(c byte) bool { return s.at < len(s.text) && s.text[s.at] == c }

// digits passes one digit or more.
func (s *syntax) digits() {
	begin := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	if s.at == begin {
		s.bad = true
	}
}
