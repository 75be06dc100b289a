package jsonx

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Form is how a type is read from JSON.
type Form uint8

// The forms.
const (
	FormStruct   Form = iota // an object whose fields are known
	FormPointer              // what it points to, or null
	FormSlice                // an array
	FormMap                  // an object with any names
	FormString               // a string
	FormBool                 // a boolean
	FormInt                  // a whole number
	FormFloat                // a number
	FormDuration             // time.Duration: a whole number of milliseconds
	FormTime                 // time.Time: a string as ParseTime reads it
	FormRaw                  // json.RawMessage: any value, whose bytes are kept as they are
	FormBytes                // []byte: a string of base64
	FormText                 // a string that is read by UnmarshalText of the type
	FormOwn                  // any value, read by the type, which is a Reader
	FormAny                  // any value, as encoding/json reads it
	FormMember               // one of the members that a Spread stands in
)

// Reader is a type that reads its JSON itself, for instance because a value may be written in several ways. Its pointer has the method.
type Reader interface {
	// ReadJSON reads the next value, whatever it is; null never reaches it. It refuses what it cannot take, and must not go past the value.
	ReadJSON(d *Decoder)
}

// Checker is a struct with rules on which of its fields go together. They are checked when it is read strictly. Its pointer has the method.
type Checker interface {
	// CheckJSON returns the faults of the object; given are the names of its fields that are in the text and not null, good until it returns.
	CheckJSON(given []string) Errors
}

// Shape describes how a type is read. It is shared and must not be changed.
type Shape struct {
	Form   Form
	Type   reflect.Type
	Elem   *Shape  // of pointers, slices and maps
	Fields []Field // of structs, in their order

	empty  reflect.Value  // a slice without elements
	names  []string       // of the fields, for hints
	byName map[string]int // index in Fields
	bound  []int          // the fields that are required or of a group
	checks bool           // the type is a Checker
	member Member         // of FormMember
	how    string         // of FormMember: the tag spread of the field
}

// maxFields is how many fields an object may have.
const maxFields = 128

// fieldSet is some of the fields of an object.
type fieldSet [maxFields / 64]uint64

func (s *fieldSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *fieldSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *fieldSet) count() int     { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Field is a field of a JSON object. Embedded structs are flattened.
type Field struct {
	Name     string
	Index    []int // of the Go field, for reflect.Value.FieldByIndex
	Shape    *Shape
	Tag      reflect.StructTag
	Required bool   // tag required:"true"
	Most     int    // tag most: elements that a list or map may have; 0: the default of 10,000
	Group    string // tag oneof: at most one field of a group may be given; "" for none
	List     bool   // tag nil:"[]": a slice that is nil is written as [], and [] of an answer is read as nil

	quoted string // the name with quotes and colon
	rivals []int  // the fields of its group that come before it
}

// of is the field of a struct.
func (f *Field) of(v reflect.Value) reflect.Value {
	for _, i := range f.Index {
		v = v.Field(i)
	}
	return v
}

// Has reports whether a struct has a field of that name in JSON.
func (s *Shape) Has(name string) bool {
	_, known := s.byName[name]
	return known
}

// ShapeOf describes a type. It panics if the type, or one that it refers to, cannot be read: if it is of a kind that has no form, or a
// struct that has a field without a JSON name, two fields of one name, or a time.Duration whose name does not end in _ms and whose tag unit is not "ms".
func ShapeOf(t reflect.Type) *Shape { return shapeOf(t) }

var shapeOf = remember(func(t reflect.Type, known func(reflect.Type) (*Shape, bool)) map[reflect.Type]*Shape {
	all := shapes{map[reflect.Type]*Shape{}, known}
	all.of(t)
	return all.found
})

// shapes collects the shapes of types that refer to each other.
type shapes struct {
	found map[reflect.Type]*Shape
	known func(reflect.Type) (*Shape, bool) // those that are complete
}

func (all shapes) of(t reflect.Type) *Shape {
	if s, ok := all.known(t); ok {
		return s
	}
	if s, ok := all.found[t]; ok {
		return s
	}
	s := &Shape{Type: t, Form: formOf(t)}
	all.found[t] = s
	switch s.Form {
	case FormSlice:
		s.Elem, s.empty = all.of(t.Elem()), reflect.MakeSlice(t, 0, 0)
	case FormPointer, FormMap:
		s.Elem = all.of(t.Elem())
	case FormStruct:
		s.checks = reflect.PointerTo(t).Implements(reflect.TypeFor[Checker]())
		s.byName = map[string]int{}
		all.addFields(s, t, nil)
		s.findRivals()
	}
	return s
}

func formOf(t reflect.Type) Form {
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return FormRaw
	case t == reflect.TypeFor[[]byte]():
		return FormBytes
	case t == durationType:
		return FormDuration
	case t == timeType:
		return FormTime
	case pointer.Implements(reflect.TypeFor[Reader]()):
		return FormOwn
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return FormText
	case t.Kind() == reflect.Struct && pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) && !describes(t):
		return FormAny
	}
	switch t.Kind() {
	case reflect.Struct:
		return FormStruct
	case reflect.Pointer:
		return FormPointer
	case reflect.Slice:
		return FormSlice
	case reflect.Map:
		return FormMap
	case reflect.String:
		return FormString
	case reflect.Bool:
		return FormBool
	case reflect.Int, reflect.Int64:
		return FormInt
	case reflect.Float64:
		return FormFloat
	case reflect.Interface:
		return FormAny
	default:
		panic(fmt.Sprintf("jsonx: a %s cannot be read from JSON", t))
	}
}

func (all shapes) addFields(s *Shape, t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "", f.Tag.Get("inline") == "true":
			all.addFields(s, f.Type, at)
			continue
		case name == "-", !f.IsExported() && !f.Anonymous:
			continue
		case name == "":
			panic(fmt.Sprintf("jsonx: %s.%s has no JSON name", t, f.Name))
		}
		if how, spread := spreadOf(f); spread {
			for _, member := range membersOf(f.Type, how) {
				field := Field{Name: name + member.Ending, Index: at, Shape: &Shape{Form: FormMember, Type: f.Type, member: member, how: how}, Tag: f.Tag}
				if member.Rival {
					field.Group = name
				}
				s.add(field)
			}
			continue
		}
		checkUnit(t, f, name)
		s.add(Field{
			Name: name, Index: at, Shape: all.of(f.Type), Tag: f.Tag, Required: f.Tag.Get("required") == "true", Most: mostOf(f), Group: f.Tag.Get("oneof"),
			List: isList(f),
		})
	}
}

// add adds a field to a struct.
func (s *Shape) add(f Field) {
	if _, twice := s.byName[f.Name]; twice {
		panic(fmt.Sprintf("jsonx: %s has two fields called %s", s.Type, f.Name))
	}
	if len(s.Fields) == maxFields {
		panic(fmt.Sprintf("jsonx: %s has more than %d fields", s.Type, maxFields))
	}
	f.quoted = `"` + f.Name + `":`
	s.byName[f.Name] = len(s.Fields)
	s.names = append(s.names, f.Name)
	s.Fields = append(s.Fields, f)
}

// mostOf is how many elements a field may have at the most; 0: it says nothing.
func mostOf(f reflect.StructField) int {
	text, found := f.Tag.Lookup("most")
	if !found {
		return 0
	}
	most, err := strconv.Atoi(text)
	if err != nil || most <= 0 {
		panic(fmt.Sprintf("jsonx: %s may have %q elements", f.Name, text))
	}
	return most
}

// findRivals finds the fields on which there are rules, and which of them compete.
func (s *Shape) findRivals() {
	for i := range s.Fields {
		f := &s.Fields[i]
		if !f.Required && f.Group == "" {
			continue
		}
		for _, before := range s.bound {
			if f.Group != "" && s.Fields[before].Group == f.Group {
				f.rivals = append(f.rivals, before)
			}
		}
		s.bound = append(s.bound, i)
	}
}
