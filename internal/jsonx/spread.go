package jsonx

import "reflect"

// Spread is a value that stands in its object as several members: one that is called as its field, and others whose names begin so. The tag
// spread of the field says in which way, in words of the type. Its pointer has the methods.
type Spread interface {
	// Members returns the members of that way, in order.
	Members(how string) []Member
	// AppendMembers adds those that are there, each with a comma before it: ,"name":value.
	AppendMembers(text []byte, name, how string) ([]byte, error)
	// ReadMember reads the next value as the member of that ending; null reaches it in answers alone, where it may be a value.
	ReadMember(d *Decoder, ending, how string)
}

// Member is a member of a Spread.
type Member struct {
	Ending string // of its name, after the name of the field
	Rival  bool   // of those that are rivals a request may give one
}

// spreadOf reports whether a field is a Spread, and in which way.
func spreadOf(f reflect.StructField) (how string, spread bool) {
	if how, spread = f.Tag.Lookup("spread"); spread && !has[Spread](f.Type) {
		panic("jsonx: " + f.Name + " has the tag spread and is none")
	}
	return how, spread
}

// membersOf lists the members of a Spread.
func membersOf(t reflect.Type, how string) []Member {
	return reflect.New(t).Interface().(Spread).Members(how)
}

// isList reports whether a field is a list that is never null.
func isList(f reflect.StructField) bool {
	tag, given := f.Tag.Lookup("nil")
	if given && (tag != "[]" || f.Type.Kind() != reflect.Slice) {
		panic("jsonx: " + f.Name + " has the tag nil and is no list")
	}
	return given
}

// noneIfEmpty makes a slice without elements nil.
func noneIfEmpty(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
	}
}

// AppendName adds the beginning of a member: a comma, its name and a colon. The name needs no escapes.
func AppendName(text []byte, name, ending string) []byte {
	text = append(append(append(text, `,"`...), name...), ending...)
	return append(text, `":`...)
}

// AppendRaw adds JSON without its white space.
func AppendRaw(text, json []byte) ([]byte, error) { return appendCompact(text, json) }
