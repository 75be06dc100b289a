package wire

import (
	"encoding"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DecodeJSON reads the JSON of a request into a pointer, strictly (U5). null is as absent as a field that is not there.
//
// Text that is no JSON, a duplicate name, and half a surrogate pair in a string are invalid_json with line and column, and nothing
// else is told. Otherwise up to a hundred faults are told: unknown_field at any depth with the nearest known name as hint, missing_field,
// invalid_argument for values of a wrong type, for two fields of which one may be given and for what a type refuses. Fields of type
// json.RawMessage keep the very bytes; what is inside of them is checked to be JSON and no more than 1000 values deep, nothing else.
func DecodeJSON(data []byte, into any) error {
	return decodeJSON(data, into).orNil()
}

func decodeJSON(data []byte, into any) Errors {
	d := &decoder{scanner: scanner{data: data}}
	if !utf8.Valid(data) {
		d.fail(firstInvalid(data), "the text is not UTF-8")
	}
	v := reflect.ValueOf(into).Elem()
	if s := shapeOf(v.Type()); s.form != formStruct || d.expect("an object", "{") {
		d.value(s, v)
	}
	if d.peek(); d.at < len(data) {
		d.unexpected("the end")
	}
	if d.broken != nil {
		return Errors{d.broken}
	}
	return d.found
}

// firstInvalid is the place of the first byte that is not UTF-8.
func firstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// The bounds of what is told of a request that is full of faults, so that the answer does not outgrow it.
const (
	maxFaults = 100
	maxName   = 128 // bytes of a name in a pointer
)

// decoder reads one document and collects its faults.
type decoder struct {
	scanner
	path  []string // names and indexes of what is being read
	found Errors
}

// pointer is the JSON pointer of what is being read (RFC 6901).
func (d *decoder) pointer() string {
	var text strings.Builder
	for _, part := range d.path {
		text.WriteByte('/')
		text.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(short(part)))
	}
	return text.String()
}

// short cuts a name that is too long to be shown.
func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// refuse notes a fault of what is being read; nil is none. A field in it is relative to that.
func (d *decoder) refuse(e *Error) {
	if e == nil || d.broken != nil || len(d.found) == maxFaults {
		return
	}
	noted := *e
	noted.Field = d.pointer() + e.Field
	d.found = append(d.found, &noted)
}

// below reads a member or an element.
func (d *decoder) below(name string, read func()) {
	d.path = append(d.path, name)
	read()
	d.path = d.path[:len(d.path)-1]
}

// into reads the next value into a pointer and tells whether it had no fault.
func (d *decoder) into(pointer any) bool {
	faults := len(d.found)
	v := reflect.ValueOf(pointer).Elem()
	d.value(shapeOf(v.Type()), v)
	return d.broken == nil && len(d.found) == faults
}

// value reads the next value into v, which is zero.
func (d *decoder) value(s *shape, v reflect.Value) {
	if d.peek() == 'n' && s.form != formRaw {
		d.word()
		return
	}
	switch s.form {
	case formPointer:
		v.Set(reflect.New(s.elem.typ))
		d.value(s.elem, v.Elem())
	case formStruct:
		d.structure(s, v)
	case formSlice:
		d.list(s, v)
	case formMap:
		d.dictionary(s, v)
	case formRaw:
		d.raw(v)
	case formStrict:
		v.Addr().Interface().(strictReader).readStrict(d)
	case formText:
		d.text(v.Addr().Interface().(encoding.TextUnmarshaler))
	case formAny:
		d.anything(v)
	default:
		d.scalar(s, v)
	}
}

// expect tells whether the next value begins as it should; if not, it is passed over and refused.
func (d *decoder) expect(kind string, begins string) bool {
	c := d.peek()
	if c != 0 && strings.IndexByte(begins, c) >= 0 {
		return true
	}
	d.skip(maxDepth)
	d.refuse(&Error{Code: CodeInvalidArgument, Detail: "expected " + kind + ", found " + kindOf(c)})
	return false
}

func kindOf(begin byte) string {
	switch begin {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// structure reads an object whose fields are known.
func (d *decoder) structure(s *shape, v reflect.Value) {
	if !d.expect("an object", "{") {
		return
	}
	if d.lenient {
		d.known(s, v)
		return
	}
	seen := map[string]bool{}
	given := make([]bool, len(s.fields))
	d.object(func(name string, at int) {
		if d.twice(seen, name, at) {
			return
		}
		d.below(name, func() {
			i, known := s.byName[name]
			if !known {
				d.skip(maxDepth)
				d.refuse(&Error{Code: CodeUnknownField, Detail: "this field is not known", Hint: hintFor(name, s.names)})
				return
			}
			given[i] = d.peek() != 'n'
			d.value(s.fields[i].shape, v.FieldByIndex(s.fields[i].index))
		})
	})
	d.checkGiven(s, v, given)
}

// twice refuses a name that an object has already.
func (d *decoder) twice(seen map[string]bool, name string, at int) bool {
	if seen[name] && !d.lenient {
		d.fail(at, "the name "+strconv.Quote(short(name))+" stands here a second time")
		return true
	}
	seen[name] = true
	return false
}

// checkGiven looks at which fields were given: the required ones, at most one of each group, and what the type itself asks for.
func (d *decoder) checkGiven(s *shape, v reflect.Value, given []bool) {
	var names []string
	groups := map[string]string{}
	for i, f := range s.fields {
		if given[i] {
			names = append(names, f.name)
		}
		switch first, taken := groups[f.group]; {
		case f.required && !given[i]:
			d.refuse(&Error{Code: CodeMissingField, Field: "/" + f.name, Detail: "this field is required"})
		case f.group == "" || !given[i]:
		case taken:
			d.refuse(&Error{Code: CodeInvalidArgument, Field: "/" + f.name, Detail: first + " is given too", Hint: "give one of them"})
		default:
			groups[f.group] = f.name
		}
	}
	if !s.checks {
		return
	}
	for _, e := range v.Addr().Interface().(checker).check(names) {
		d.refuse(e)
	}
}

func (d *decoder) list(s *shape, v reflect.Value) {
	if !d.expect("an array", "[") {
		return
	}
	v.Set(reflect.MakeSlice(s.typ, 0, 0))
	start := d.at
	d.array(func(i int) {
		if i == v.Cap() {
			v.Grow(d.moreLike(i, start))
		}
		v.SetLen(i + 1)
		d.below(strconv.Itoa(i), func() {
			if d.peek() == 'n' && s.elem.form != formRaw {
				d.expect("an element", "")
			} else {
				d.value(s.elem, v.Index(i))
			}
		})
	})
}

// moreLike guesses how many elements follow those that were read since start, from their length; not too many, lest the first ones
// be much smaller than the rest.
func (d *decoder) moreLike(read, start int) int {
	if read == 0 {
		return 1
	}
	length := max(1, (d.at-start)/read)
	return min((len(d.data)-d.at)/length+1, 16*read)
}

// dictionary reads an object with any names. A null is kept where the values are pointers, and absent elsewhere.
func (d *decoder) dictionary(s *shape, v reflect.Value) {
	if !d.expect("an object", "{") {
		return
	}
	v.Set(reflect.MakeMap(s.typ))
	seen := map[string]bool{}
	d.object(func(name string, at int) {
		if d.twice(seen, name, at) {
			return
		}
		d.below(name, func() {
			absent := d.peek() == 'n' && s.elem.form != formPointer && s.elem.form != formRaw
			element := reflect.New(s.elem.typ).Elem()
			d.value(s.elem, element)
			if !absent {
				v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), element)
			}
		})
	})
}

// raw takes the bytes of the next value as they stand; null is absent.
func (d *decoder) raw(v reflect.Value) {
	bytes := d.skip(maxDepth)
	if string(bytes) != "null" {
		v.SetBytes(append([]byte{}, bytes...))
	}
}

// text reads a string that the type parses itself.
func (d *decoder) text(into encoding.TextUnmarshaler) {
	if !d.expect("a string", `"`) {
		return
	}
	text := d.str()
	if d.broken == nil {
		d.refuse(asError(into.UnmarshalText([]byte(text))))
	}
}

// asError is the fault that a type of this package found.
func asError(err error) *Error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return e
	}
	return invalid("the value cannot be read", "")
}

func (d *decoder) scalar(s *shape, v reflect.Value) {
	switch s.form {
	case formString:
		if d.expect("a string", `"`) {
			v.SetString(d.str())
		}
	case formBool:
		if d.expect("a boolean", "tf") {
			v.SetBool(d.word() == "true")
		}
	case formBytes:
		if d.expect("a string of base64", `"`) {
			data, err := base64.StdEncoding.DecodeString(d.str())
			if err != nil {
				d.refuse(invalid("this is not standard base64", "use the alphabet with + and /, and padding"))
			}
			v.SetBytes(data)
		}
	case formInt:
		if d.expect("a whole number", "-0123456789") {
			n, err := strconv.ParseInt(d.number(), 10, 64)
			d.refuseNumber(err, "expected a whole number, found a fraction or an exponent")
			v.SetInt(n)
		}
	case formFloat:
		if d.expect("a number", "-0123456789") {
			n, err := strconv.ParseFloat(d.number(), 64)
			d.refuseNumber(err, "expected a number")
			v.SetFloat(n)
		}
	}
}

func (d *decoder) refuseNumber(err error, otherwise string) {
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.refuse(invalid("the number is out of range", ""))
	case err != nil:
		d.refuse(invalid(otherwise, ""))
	}
}
