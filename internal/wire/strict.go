package wire

import (
	"encoding"
	"reflect"
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
	return decodeJSON(data, into, nil).orNil()
}

func decodeJSON(data []byte, into any, hold func(bytes int) bool) Errors {
	d := &decoder{scanner: newScanner(data), hold: hold}
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
	found Errors   // their fields are relative to what is being read
	given []string // the fields of the object that is being checked
	lease Lease    // the one that is being read
	most  int      // elements of the list or map that comes next; 0: defaultMost
	used  int      // bytes of memory that lists and maps have taken
	held  int      // bytes of it that hold was asked for
	hold  func(bytes int) bool
	long  *Error // the fault of one that is too long, while its place is being found
}

// escapePointer writes a name as a part of a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(short(name))
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
	d.found = append(d.found, &noted)
}

// foundIn says that the faults from a place of the list on are those of a member. So the way to a value is written only when something
// is wrong with it.
func (d *decoder) foundIn(name string, from int) {
	for _, e := range d.found[from:] {
		e.Field = "/" + escapePointer(name) + e.Field
	}
}

// newLease is room for a lease, of which only one is read at a time.
func (d *decoder) newLease() *Lease {
	d.lease = Lease{}
	return &d.lease
}

// into reads the next value into a pointer and reports whether it had no fault.
func (d *decoder) into(pointer any) bool {
	faults := len(d.found)
	v := reflect.ValueOf(pointer).Elem()
	d.value(shapeOf(v.Type()), v)
	return d.broken == nil && len(d.found) == faults
}

// value reads the next value into v, which is zero.
func (d *decoder) value(s *shape, v reflect.Value) {
	begin := d.peek()
	if begin == 'n' && s.form != formRaw {
		d.word()
		return
	}
	switch s.form {
	case formString:
		if begin == '"' || d.expect("a string", `"`) {
			v.SetString(d.str())
		}
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

// expect reports whether the next value begins with one of some characters; if not, it is passed over and refused.
func (d *decoder) expect(kind string, begins string) bool {
	c := d.peek()
	for i := range len(begins) {
		if begins[i] == c {
			return true
		}
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
