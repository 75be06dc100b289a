package wire

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// form is how a type is read from JSON.
type form uint8

const (
	formStruct form = iota
	formPointer
	formSlice
	formMap // with string keys
	formString
	formBool
	formInt
	formFloat
	formRaw    // json.RawMessage: the very bytes
	formBytes  // []byte: base64
	formText   // a string that the type reads itself
	formStrict // anything, read by the type itself
	formAny    // any value, of answers
)

// strictReader is a type that may be written in several ways in a request.
type strictReader interface{ readStrict(d *decoder) }

// checker is a struct with rules on which fields go together; given are the names of those that stand in the request.
type checker interface{ check(given []string) Errors }

// shape is a type, looked at once.
type shape struct {
	form   form
	typ    reflect.Type
	elem   *shape        // of pointers, slices and maps
	empty  reflect.Value // a slice without elements
	fields []field
	names  []string       // of the fields, for hints
	byName map[string]int // index in fields
	bound  []int          // the fields that are required or of a group
	checks bool           // implements checker
}

// maxFields is how many fields an object may have.
const maxFields = 128

// fieldSet is some of the fields of an object.
type fieldSet [maxFields / 64]uint64

func (s *fieldSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *fieldSet) add(i int)      { s[i/64] |= 1 << (i % 64) }

// field is a field of a JSON object. Embedded structs are flattened.
type field struct {
	name     string
	quoted   string // the name with quotes and colon
	index    []int
	shape    *shape
	required bool
	most     int    // elements of a list or map; 0: defaultMost
	group    string // of fields only one of which may be given; "" for none
	rivals   []int  // the fields of its group that stand before it
}

// of is the field of a struct.
func (f *field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// shapes collects the shapes of types that refer to each other.
type shapes map[reflect.Type]*shape

// of looks at a type. A type that messages cannot have is a mistake in this package, found by the test of the table.
func (all shapes) of(t reflect.Type) *shape {
	if known, ok := all[t]; ok {
		return known
	}
	s := &shape{typ: t}
	all[t] = s
	s.form = formOf(t)
	switch s.form {
	case formSlice:
		s.elem, s.empty = all.of(t.Elem()), reflect.MakeSlice(t, 0, 0)
	case formPointer, formMap:
		s.elem = all.of(t.Elem())
	case formStruct:
		s.checks = reflect.PointerTo(t).Implements(reflect.TypeFor[checker]())
		s.byName = map[string]int{}
		all.addFields(s, t, nil)
		s.findRivals()
	}
	return s
}

func formOf(t reflect.Type) form {
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return formRaw
	case t == reflect.TypeFor[[]byte]():
		return formBytes
	case pointer.Implements(reflect.TypeFor[strictReader]()):
		return formStrict
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return formText
	}
	switch t.Kind() {
	case reflect.Struct:
		return formStruct
	case reflect.Pointer:
		return formPointer
	case reflect.Slice:
		return formSlice
	case reflect.Map:
		return formMap
	case reflect.String:
		return formString
	case reflect.Bool:
		return formBool
	case reflect.Int, reflect.Int64:
		return formInt
	case reflect.Float64:
		return formFloat
	case reflect.Interface:
		return formAny
	default:
		panic(fmt.Sprintf("wire: a message cannot hold a %s", t))
	}
}

func (all shapes) addFields(s *shape, t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "", f.Tag.Get("inline") == "true":
			all.addFields(s, f.Type, at)
			continue
		case name == "-":
			continue
		case name == "":
			panic(fmt.Sprintf("wire: %s.%s has no JSON name", t, f.Name))
		}
		if _, twice := s.byName[name]; twice {
			panic(fmt.Sprintf("wire: %s has two fields called %s", s.typ, name))
		}
		if len(s.fields) == maxFields {
			panic(fmt.Sprintf("wire: %s has more than %d fields", s.typ, maxFields))
		}
		s.byName[name] = len(s.fields)
		s.names = append(s.names, name)
		s.fields = append(s.fields, field{
			name: name, quoted: `"` + name + `":`, index: at, shape: all.of(f.Type), required: f.Tag.Get("required") == "true", group: f.Tag.Get("oneof"),
			most: mostOf(f),
		})
	}
}

// mostOf is how many elements a field may have at the most; 0: it says nothing.
func mostOf(f reflect.StructField) int {
	text, found := f.Tag.Lookup("most")
	if !found {
		return 0
	}
	most, err := strconv.Atoi(text)
	if err != nil || most <= 0 {
		panic(fmt.Sprintf("wire: %s may have %q elements", f.Name, text))
	}
	return most
}

// findRivals finds the fields on which there are rules, and which of them compete.
func (s *shape) findRivals() {
	for i := range s.fields {
		f := &s.fields[i]
		if !f.required && f.group == "" {
			continue
		}
		for _, before := range s.bound {
			if f.group != "" && s.fields[before].group == f.group {
				f.rivals = append(f.rivals, before)
			}
		}
		s.bound = append(s.bound, i)
	}
}
