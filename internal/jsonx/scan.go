package jsonx

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a value that is taken over as it stands.
const maxDepth = 1000

// scanner walks over JSON text. The first place where it is none stops it: broken is set, and it stands at the end.
type scanner struct {
	data   []byte
	at     int
	broken *Error
	// lenient reads what a server answers: half of a surrogate pair counts as an unknown character.
	lenient bool
	spaced  bool // there was white space outside of strings
	kept    keeper
}

func newScanner(data []byte) scanner { return scanner{data: data, kept: keeper{total: len(data)}} }

// fail stops the scanner at a place: invalid_json with line and column (U5). Columns count characters.
func (s *scanner) fail(at int, detail string) {
	s.at = len(s.data)
	if s.broken != nil {
		return
	}
	before := string(s.data[:at])
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	s.broken = &Error{Code: CodeInvalidJSON, Detail: "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + ": " + detail}
}

// peek passes white space and shows the next byte; 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.data) {
		c := s.data[s.at]
		if c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		s.at++
		s.spaced = true
	}
	return 0
}

// take passes c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at == len(s.data) {
		return false
	}
	s.at++
	return true
}

// unexpected stops at the next byte.
func (s *scanner) unexpected(wanted string) {
	switch c := s.peek(); {
	case s.at == len(s.data):
		s.fail(s.at, "the text ends where "+wanted+" should stand")
	default:
		found := string(rune(c))
		if c >= utf8.RuneSelf {
			r, _ := utf8.DecodeRune(s.data[s.at:])
			found = string(r)
		}
		s.fail(s.at, strconv.Quote(found)+" stands where "+wanted+" should")
	}
}

// skip passes one value of any type and returns its bytes; depth is how much deeper it may nest.
func (s *scanner) skip(depth int) []byte {
	c := s.peek()
	begin := s.at
	switch {
	case depth == 0 && (c == '{' || c == '['):
		s.fail(s.at, "values are nested deeper than "+strconv.Itoa(maxDepth))
	case c == '{':
		for more := s.enter('}'); more; more = s.another('}') {
			if _, named := s.name(); named {
				s.skip(depth - 1)
			}
		}
	case c == '[':
		for more := s.enter(']'); more; more = s.another(']') {
			s.skip(depth - 1)
		}
	case c == '"':
		s.quoted()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	default:
		s.word()
	}
	return s.data[begin:s.at]
}

// Valid reports whether data is one JSON value in UTF-8, at most 1000 values deep.
func Valid(data []byte) bool {
	s := newScanner(data)
	return utf8.Valid(data) && s.whole()
}

// IsCompact reports whether data is JSON without white space outside of strings.
func IsCompact(data []byte) bool {
	s := newScanner(data)
	return s.whole() && !s.spaced
}

// whole passes the only value of a text, and reports whether it is one.
func (s *scanner) whole() bool {
	s.skip(maxDepth)
	s.peek()
	return s.broken == nil && s.at == len(s.data)
}

// enter passes the bracket of an object or an array and reports whether something stands in it.
func (s *scanner) enter(end byte) bool {
	s.at++
	return !s.take(end) && s.broken == nil
}

// another passes what stands behind a member or an element, and reports whether another one follows.
func (s *scanner) another(end byte) bool {
	switch {
	case s.take(','):
		return true
	case !s.take(end):
		s.unexpected(`"," or "` + string(end) + `"`)
	}
	return false
}

// word passes true, false or null.
func (s *scanner) word() string {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := s.at + len(word); end <= len(s.data) && string(s.data[s.at:end]) == word {
			s.at = end
			return word
		}
	}
	s.unexpected("a value")
	return ""
}

// number passes a number and returns its text.
func (s *scanner) number() []byte {
	begin := s.at
	if s.data[s.at] == '-' {
		s.at++
	}
	if !s.byteIn("0") && !s.digits() {
		s.unexpected("a digit")
	}
	if s.byteIn(".") && !s.digits() {
		s.unexpected("a digit")
	}
	if s.byteIn("eE") {
		s.byteIn("+-")
		if !s.digits() {
			s.unexpected("a digit")
		}
	}
	return s.data[begin:s.at]
}

// smallInt passes a whole number that is not negative and not long, as most are; not ok: there is none, and nothing is passed.
func (s *scanner) smallInt() (n int64, ok bool) {
	const most = 18 // digits that always fit
	begin := s.at
	if !s.digits() {
		return 0, false
	}
	digits := s.data[begin:s.at]
	broken := s.at < len(s.data) && (s.data[s.at] == '.' || s.data[s.at]|0x20 == 'e')
	if broken || len(digits) > most || digits[0] == '0' && len(digits) > 1 {
		s.at = begin
		return 0, false
	}
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// byteIn passes the very next byte if it is one of a few.
func (s *scanner) byteIn(set string) bool {
	if s.at == len(s.data) {
		return false
	}
	for i := range len(set) {
		if s.data[s.at] == set[i] {
			s.at++
			return true
		}
	}
	return false
}

// digits passes decimal digits; at least one.
func (s *scanner) digits() bool {
	begin := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > begin
}

// quoted passes a string, which begins here, and returns what stands between the quotes, and whether it holds escapes.
func (s *scanner) quoted() (inside []byte, escapes bool) {
	s.at++
	begin := s.at
	for s.at < len(s.data) {
		s.at += plainBytes(s.data[s.at:])
		switch {
		case s.at == len(s.data):
		case s.data[s.at] == '"':
			s.at++
			return s.data[begin : s.at-1], escapes
		case s.data[s.at] == '\\':
			escapes = true
			s.escape()
		default:
			s.fail(s.at, "a control character stands in a string without an escape")
		}
	}
	s.fail(len(s.data), "the text ends inside a string")
	return nil, false
}

// escape passes a backslash and what belongs to it.
func (s *scanner) escape() {
	begin := s.at
	s.at++
	switch {
	case s.byteIn(`"\/bfnrt`):
	case s.byteIn("u"):
		for range 4 {
			if !s.byteIn("0123456789abcdefABCDEF") {
				s.fail(begin, `\u is followed by four hexadecimal digits`)
			}
		}
	default:
		s.fail(begin, "this escape does not exist")
	}
}

// str passes a string, which begins here, and returns its value.
func (s *scanner) str() string { return s.kept.keep(s.chars()) }

// chars passes a string, which begins here, and returns its characters, which are a part of the text or a copy. Half of a surrogate pair is no character:
// it is refused, not replaced.
func (s *scanner) chars() []byte {
	begin := s.at + 1
	if end := begin + plainBytes(s.data[begin:]); end < len(s.data) && s.data[end] == '"' { // as most are
		s.at = end + 1
		return s.data[begin:end]
	}
	inside, escapes := s.quoted()
	if !escapes || s.broken != nil {
		return inside
	}
	value := make([]byte, 0, len(inside))
	for i := 0; i < len(inside); {
		if inside[i] != '\\' {
			value = append(value, inside[i])
			i++
			continue
		}
		char, length := unescape(inside[i:])
		if char == utf8.RuneError && length == 0 && s.lenient {
			length = len(`\u0000`)
		}
		if char == utf8.RuneError && length == 0 {
			s.fail(begin+i, "half of a surrogate pair stands alone")
			return nil
		}
		value = utf8.AppendRune(value, char)
		i += length
	}
	return value
}

// name passes the name of a member and returns it; not ok: it is none.
func (s *scanner) name() (name []byte, ok bool) {
	if s.peek() != '"' {
		s.unexpected("a name in quotes")
		return nil, false
	}
	name = s.chars()
	if !s.take(':') {
		s.unexpected(`":"`)
		return nil, false
	}
	return name, true
}

// unescape reads the escape at the beginning of text, which is well formed; length 0: half of a surrogate pair.
func unescape(text []byte) (char rune, length int) {
	if i := strings.IndexByte(`bfnrt`, text[1]); i >= 0 {
		return rune("\b\f\n\r\t"[i]), 2
	}
	if text[1] != 'u' {
		return rune(text[1]), 2
	}
	char = hexRune(text[2:6])
	if !utf16.IsSurrogate(char) {
		return char, 6
	}
	if len(text) < 12 || text[6] != '\\' || text[7] != 'u' {
		return utf8.RuneError, 0
	}
	if char = utf16.DecodeRune(char, hexRune(text[8:12])); char == utf8.RuneError {
		return utf8.RuneError, 0
	}
	return char, 12
}

func hexRune(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // the scanner has seen four hexadecimal digits
	return rune(n)
}
