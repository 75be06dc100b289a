package wire

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
	names   map[string]string // of members, which come again and again
}

// fail stops the scanner at a place: invalid_json with line and column (U5). Columns count characters.
func (s *scanner) fail(at int, detail string) {
	if s.broken != nil {
		return
	}
	before := string(s.data[:at])
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	s.broken = &Error{Code: CodeInvalidJSON, Detail: "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + ": " + detail}
	s.at = len(s.data)
}

// peek passes white space and shows the next byte; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
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
		s.object(func(string, int) { s.skip(depth - 1) })
	case c == '[':
		s.array(func(int) { s.skip(depth - 1) })
	case c == '"':
		s.quoted()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	default:
		s.word()
	}
	return s.data[begin:s.at]
}

// object passes an object; member is called with the scanner before each value and must pass it.
func (s *scanner) object(member func(name string, at int)) {
	s.take('{')
	if s.take('}') {
		return
	}
	for s.broken == nil {
		if s.peek() != '"' {
			s.unexpected("a name in quotes")
			return
		}
		at := s.at
		name := s.name()
		if !s.take(':') {
			s.unexpected(`":"`)
			return
		}
		member(name, at)
		if s.take('}') {
			return
		}
		if !s.take(',') {
			s.unexpected(`"," or "}"`)
		}
	}
}

// array passes an array; element is called with the scanner before each value and must pass it.
func (s *scanner) array(element func(index int)) {
	s.take('[')
	if s.take(']') {
		return
	}
	for i := 0; s.broken == nil; i++ {
		element(i)
		if s.take(']') {
			return
		}
		if !s.take(',') {
			s.unexpected(`"," or "]"`)
		}
	}
}

// word passes true, false or null.
func (s *scanner) word() string {
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(string(s.data[s.at:min(len(s.data), s.at+len(word))]), word) {
			s.at += len(word)
			return word
		}
	}
	s.unexpected("a value")
	return ""
}

// number passes a number and returns its text.
func (s *scanner) number() string {
	begin := s.at
	s.byteIn("-")
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
	return string(s.data[begin:s.at])
}

// byteIn passes the very next byte if it is one of set.
func (s *scanner) byteIn(set string) bool {
	if s.at < len(s.data) && strings.IndexByte(set, s.data[s.at]) >= 0 {
		s.at++
		return true
	}
	return false
}

// digits passes decimal digits; at least one.
func (s *scanner) digits() bool {
	begin := s.at
	for s.byteIn("0123456789") {
	}
	return s.at > begin
}

// quoted passes a string and returns what stands between the quotes, and whether it holds escapes.
func (s *scanner) quoted() (inside []byte, escapes bool) {
	s.take('"')
	begin := s.at
	for s.at < len(s.data) {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return s.data[begin : s.at-1], escapes
		case c < ' ':
			s.fail(s.at, "a control character stands in a string without an escape")
		case c == '\\':
			escapes = true
			s.escape()
		default:
			s.at++
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

// str passes a string and returns its value. Half of a surrogate pair is no character: it is refused, not replaced.
func (s *scanner) str() string {
	s.peek()
	begin := s.at + 1
	inside, escapes := s.quoted()
	if !escapes || s.broken != nil {
		return string(inside)
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
			return ""
		}
		value = utf8.AppendRune(value, char)
		i += length
	}
	return string(value)
}

// name passes the name of a member and returns it.
func (s *scanner) name() string {
	begin := s.at
	inside, escapes := s.quoted()
	if escapes || s.broken != nil {
		s.at = begin
		return s.str()
	}
	name, known := s.names[string(inside)]
	if !known {
		name = string(inside)
		if s.names == nil {
			s.names = map[string]string{}
		}
		s.names[name] = name
	}
	return name
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
