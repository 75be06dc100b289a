package jsonx

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// manner is how a type is written as JSON.
type manner uint8

const (
	asOthers  manner = iota // by encoding/json: what our messages do not have
	asItself                // by the type's AppendJSON, at the end of the text
	asJSON                  // by the type's MarshalJSON: those of this module write compact JSON
	asText                  // a string, by the type's MarshalText
	asRaw                   // json.RawMessage: without white space
	asBytes                 // []byte: base64
	asPointer               // what it points to, or null
	asList                  // a slice
	asObject                // a map with string keys, sorted
	asFields                // a struct
	asString
	asBool
	asInt
	asMillis  // time.Duration: a whole number of milliseconds
	asInstant // time.Time: as AppendTime writes it
	asDynamic // an interface: what it holds
	asSpread  // a Spread: several members of the object that it stands in
)

// zeroer is a type that says itself what omitzero leaves out.
type zeroer interface{ IsZero() bool }

// writing is a type, looked at once for how it is written: as encoding/json writes it, byte for byte, but for instants and spans of time.
type writing struct {
	manner manner
	typ    reflect.Type
	elem   *writing // of pointers, slices and maps
	fields []writtenField
	last   atomic.Int32 // how long the text of the last one was
}

// writtenField is a field of a struct: a member of its object, or an embedded struct with several.
type writtenField struct {
	*writing
	name  string // with comma, quotes and colon; "" of an embedded struct
	index int
	empty bool                       // a string, a number or a boolean that is left out when it is zero
	list  bool                       // tag nil:"[]": a slice that is [] when it is nil
	how   string                     // of a Spread: the tag spread
	omit  func(v reflect.Value) bool // when another value is left out; nil: never
}

// writingOf looks at a type. There are as many writings as the program has types that it writes.
var writingOf = remember(func(t reflect.Type, _ func(reflect.Type) (*writing, bool)) map[reflect.Type]*writing {
	return map[reflect.Type]*writing{t: writings{}.of(t)}
})

// remember keeps what a function says of types, which does not change. The function is given what is known already, and may say
// something of other types besides. Two goroutines that ask for a type at once may both call it; what it says of a type is complete.
func remember[T any](look func(t reflect.Type, known func(reflect.Type) (T, bool)) map[reflect.Type]T) func(reflect.Type) T {
	var seen sync.Map
	known := func(t reflect.Type) (found T, ok bool) {
		if value, ok := seen.Load(t); ok {
			return value.(T), true
		}
		return found, false
	}
	return func(t reflect.Type) T {
		if found, ok := known(t); ok {
			return found
		}
		for other, found := range look(t, known) {
			seen.LoadOrStore(other, found)
		}
		found, _ := known(t)
		return found
	}
}

// writings collects the writings of types that refer to each other.
type writings map[reflect.Type]*writing

func (all writings) of(t reflect.Type) *writing {
	if known, ok := all[t]; ok {
		return known
	}
	w := &writing{typ: t, manner: mannerOf(t)}
	all[t] = w
	switch w.manner {
	case asPointer, asList, asObject:
		w.elem = all.of(t.Elem())
	case asFields:
		var ok bool
		if w.fields, ok = all.fieldsOf(t, map[string]bool{}); !ok {
			w.manner, w.fields = asOthers, nil
		}
	}
	return w
}

// mannerOf puts the methods of a type before its kind.
func mannerOf(t reflect.Type) manner {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return asRaw
	case t.Kind() == reflect.Pointer:
		return asPointer
	case t.Kind() == reflect.Interface:
		return asDynamic
	case t == timeType:
		return asInstant
	case t == durationType:
		return asMillis
	case has[Appender](t) && t.Implements(reflect.TypeFor[json.Marshaler]()):
		return asItself
	case describes(t):
		return asFields
	case has[json.Marshaler](t):
		if ofThisModule(t) {
			return asJSON
		}
		return asOthers
	case has[encoding.TextMarshaler](t):
		return asText
	}
	switch t.Kind() {
	case reflect.Struct:
		return asFields
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return asList
		}
		if t.Elem() == reflect.TypeFor[byte]() {
			return asBytes
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !has[encoding.TextMarshaler](t.Key()) {
			return asObject
		}
	case reflect.String:
		return asString
	case reflect.Bool:
		return asBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return asInt
	}
	return asOthers
}

// describes reports whether the tags of a struct say how it is written: then its fields are, and its MarshalJSON, which it may have for
// encoding/json, is not called. A field without a JSON name, or one that is left out, says that the type knows better, unless its tag apart
// says that it travels in another way.
func describes(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t == timeType {
		return false
	}
	found := false
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			if !describes(f.Type) {
				return false
			}
		case !f.IsExported():
			continue
		case name == "-" && f.Tag.Get("apart") == "true":
			continue
		case name == "" || name == "-":
			return false
		}
		found = true
	}
	return found
}

// has reports whether a type or a pointer to it has the methods of I.
func has[I any](t reflect.Type) bool { return reflect.PointerTo(t).Implements(reflect.TypeFor[I]()) }

// ofThisModule reports whether the type is one of ours.
func ofThisModule(t reflect.Type) bool {
	module, _, _ := strings.Cut(reflect.TypeFor[writing]().PkgPath(), "/internal/")
	return t.PkgPath() == module || strings.HasPrefix(t.PkgPath(), module+"/")
}

// fieldsOf looks at the fields of a struct; not ok when they are not of a sort that messages have. Such are left to encoding/json,
// whose rules on fields that hide each other are not repeated here.
func (all writings) fieldsOf(t reflect.Type, names map[string]bool) (fields []writtenField, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded, ok := all.fieldsOf(f.Type, names)
			if !ok {
				return nil, false
			}
			fields = append(fields, writtenField{writing: &writing{typ: f.Type, manner: asFields, fields: embedded}, index: i})
			continue
		case f.Anonymous || !plainName(name):
			return nil, false
		case name == "":
			name = f.Name
		}
		if how, spread := spreadOf(f); spread {
			fields = append(fields, writtenField{writing: &writing{typ: f.Type, manner: asSpread}, name: name, index: i, how: how})
			continue
		}
		checkUnit(t, f, name)
		written := writtenField{list: isList(f), writing: all.of(f.Type), name: "," + string(AppendString(nil, name)) + ":", index: i}
		if names[name] || !written.leaveOut(options) {
			return nil, false
		}
		names[name] = true
		fields = append(fields, written)
	}
	return fields, true
}

// plainName reports whether a name of a tag is one for encoding/json too.
func plainName(name string) bool {
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// leaveOut says when a field is left out; not ok when the options of its tag are of another sort.
func (f *writtenField) leaveOut(options string) (ok bool) {
	kind := f.typ.Kind()
	asksItself := options == "omitzero" && (has[zeroer](f.typ) || f.typ.Implements(reflect.TypeFor[zeroer]()))
	switch {
	case options == "", options == "omitempty" && kind == reflect.Struct:
		return true
	case options != "omitempty" && options != "omitzero":
		return false
	case asksItself:
		f.omit = saysZero
		return kind != reflect.Pointer && kind != reflect.Interface
	case f.manner == asString || f.manner == asBool || f.manner == asInt || f.manner == asMillis:
		f.empty = true
	case options == "omitempty" && (kind == reflect.Map || kind == reflect.Slice || kind == reflect.String):
		f.omit = func(v reflect.Value) bool { return v.Len() == 0 }
	default:
		f.omit = reflect.Value.IsZero
		return options == "omitzero" || kind <= reflect.Float64 || kind == reflect.Interface || kind == reflect.Pointer
	}
	return true
}

// saysZero asks the value itself.
func saysZero(v reflect.Value) bool { return addressable(v).Addr().Interface().(zeroer).IsZero() }

// addressable is the value, or a copy of one that has no address.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}
