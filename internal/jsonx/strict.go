package jsonx

import (
	"encoding"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Decode reads the JSON of a request into what a pointer points to, strictly (U5). A null is the same as a field that is absent. Its
// error is nil or Errors.
//
// Text that is not JSON, a duplicate name, and half a surrogate pair in a string are invalid_json with line and column, and the only
// fault that is reported. A list or map with more elements than it may have is batch_too_large, and the only fault too. Otherwise up to
// a hundred faults are reported: unknown_field at any depth with the nearest known name as hint, missing_field, and invalid_argument for
// values of a wrong type, for two fields of which one may be given and for what a type refuses. Fields of type json.RawMessage keep
// their bytes as they are; inside of them, only that it is JSON at most 1000 values deep is checked.
func Decode(data []byte, into any) error { return DecodeWithin(data, into, nil) }

// DecodeWithin is Decode with a budget of memory: before lists and maps take more than a megabyte, and each further megabyte, hold is
// asked for so many bytes and reports whether there are any. If not, the text is batch_too_large.
func DecodeWithin(data []byte, into any, hold func(bytes int) bool) error {
	d := &Decoder{scanner: newScanner(data), hold: hold}
	if !utf8.Valid(data) {
		d.fail(firstInvalid(data), "the text is not UTF-8")
	}
	v := reflect.ValueOf(into).Elem()
	if s := shapeOf(v.Type()); s.Form != FormStruct || d.Expect("an object", "{") {
		d.value(s, v)
	}
	if d.peek(); d.at < len(data) {
		d.unexpected("the end")
	}
	if d.broken != nil {
		return Errors{d.broken}
	}
	return d.found.OrNil()
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

// The bounds of what is reported of a request that is full of faults, so that the answer does not outgrow it.
const (
	maxFaults = 100
	maxName   = 128 // bytes of a name in a pointer
)

// Decoder reads one document and collects its faults. A Reader is given one.
type Decoder struct {
	scanner
	found   Errors   // their fields are relative to what is being read
	given   []string // the fields of the object that is being checked
	scratch any      // a pointer to the memory of Scratch
	most    int      // elements of the list or map that comes next; 0: defaultMost
	used    int      // bytes of memory that lists and maps have taken
	held    int      // bytes of it that hold was asked for
	hold    func(bytes int) bool
	long    *Error // the fault of one that is too long, while its place is being found
}

// EscapePointer writes a name as a part of a JSON pointer (RFC 6901); one that is too long to be shown is cut.
func EscapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(short(name))
}

// short cuts a name that is too long to be shown.
func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// Peek passes white space and returns the first byte of the next value, which says its type.
func (d *Decoder) Peek() byte { return d.peek() }

// Bytes passes the next value, of any type, and returns its bytes, which are a part of the text.
func (d *Decoder) Bytes() []byte { return d.skip(maxDepth) }

// String reads the next value, which must be a string; not ok: it is not, and was refused.
func (d *Decoder) String() (value string, ok bool) {
	if !d.Expect("a string", `"`) {
		return "", false
	}
	value = d.str()
	return value, d.broken == nil
}

// Refuse reports a fault of what is being read; nil is none. Its field is relative to that.
func (d *Decoder) Refuse(e *Error) {
	if e == nil || d.broken != nil || len(d.found) == maxFaults {
		return
	}
	noted := *e
	d.found = append(d.found, &noted)
}

// foundIn says that the faults from a place of the list on are those of a member. So the way to a value is written only when something
// is wrong with it.
func (d *Decoder) foundIn(name string, from int) {
	for _, e := range d.found[from:] {
		e.Field = "/" + EscapePointer(name) + e.Field
	}
}

// Scratch returns memory for a value that a Reader needs only until it returns. It is zero, and the same for all values of that type
// in a document, so that not every one of them costs an allocation.
func Scratch[T any](d *Decoder) *T {
	if used, ok := d.scratch.(*T); ok {
		var zero T
		*used = zero
		return used
	}
	fresh := new(T)
	d.scratch = fresh
	return fresh
}

// Into reads the next value into what a pointer points to, which is zero, and reports whether it had no fault.
func (d *Decoder) Into(pointer any) bool {
	faults := len(d.found)
	v := reflect.ValueOf(pointer).Elem()
	d.value(shapeOf(v.Type()), v)
	return d.broken == nil && len(d.found) == faults
}

// value reads the next value into v, which is zero.
func (d *Decoder) value(s *Shape, v reflect.Value) {
	begin := d.peek()
	if begin == 'n' && s.Form != FormRaw && (s.Form != FormMember || !d.lenient) {
		d.word()
		return
	}
	switch s.Form {
	case FormString:
		if begin == '"' || d.Expect("a string", `"`) {
			v.SetString(d.str())
		}
	case FormPointer:
		v.Set(reflect.New(s.Elem.Type))
		d.value(s.Elem, v.Elem())
	case FormStruct:
		d.structure(s, v)
	case FormSlice:
		d.list(s, v)
	case FormMap:
		d.dictionary(s, v)
	case FormRaw:
		d.raw(v)
	case FormOwn:
		v.Addr().Interface().(Reader).ReadJSON(d)
	case FormText:
		d.Text(v.Addr().Interface().(encoding.TextUnmarshaler))
	case FormAny:
		d.anything(v)
	case FormMember:
		v.Addr().Interface().(Spread).ReadMember(d, s.member.Ending, s.how)
	default:
		d.scalar(s, v)
	}
}

// Expect reports whether the next value begins with one of some characters; if not, it is passed and refused: kind was expected.
func (d *Decoder) Expect(kind string, begins string) bool {
	c := d.peek()
	for i := range len(begins) {
		if begins[i] == c {
			return true
		}
	}
	d.skip(maxDepth)
	d.Refuse(&Error{Code: CodeInvalidArgument, Detail: "expected " + kind + ", found " + kindOf(c)})
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
