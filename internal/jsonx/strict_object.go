package jsonx

import (
	"reflect"
	"slices"
	"strconv"
)

// structure reads an object whose fields are known. In an answer the others are passed over, and nothing is asked of which stand
// together.
func (d *Decoder) structure(s *Shape, v reflect.Value) {
	if !d.Expect("an object", "{") {
		return
	}
	var seen, given fieldSet
	var strange map[string]bool // names of no field
	last := -1
	for more := d.enter('}'); more; more = d.another('}') {
		d.peek()
		at := d.at
		i, known := d.nearField(s, last)
		if !known {
			name, named := d.name()
			if !named {
				return
			}
			if i, known = s.byName[string(name)]; !known {
				strange = d.stranger(s, name, at, strange)
				continue
			}
		}
		if seen.has(i) && !d.lenient {
			d.twice(s.Fields[i].Name, at)
			return
		}
		last = i
		seen.add(i)
		if d.peek() != 'n' {
			given.add(i)
		}
		f, faults := &s.Fields[i], len(d.found)
		d.most = f.Most
		d.value(f.Shape, f.of(v))
		d.most = 0
		if f.List && d.lenient {
			noneIfEmpty(f.of(v))
		}
		if len(d.found) > faults {
			d.foundIn(f.Name, faults)
		}
		d.longIn(f.Name)
	}
	if !d.lenient {
		d.checkGiven(s, v, &given)
	}
}

// nearField passes the name of one of the fields after the last: most texts have them in order, and their names as we write them.
func (d *Decoder) nearField(s *Shape, last int) (index int, found bool) {
	const near = 4
	rest := d.data[d.at:]
	for i := last + 1; i < min(last+1+near, len(s.Fields)); i++ {
		if name := s.Fields[i].quoted; len(name) <= len(rest) && rest[1] == name[1] && string(rest[:len(name)]) == name {
			d.at += len(name)
			return i, true
		}
	}
	return 0, false
}

// stranger passes a member that has no field; in a request it is refused.
func (d *Decoder) stranger(s *Shape, chars []byte, at int, before map[string]bool) map[string]bool {
	if d.lenient {
		d.skip(maxDepth)
		return nil
	}
	name := string(chars)
	if before[name] {
		d.twice(name, at)
		return before
	}
	d.skip(maxDepth)
	d.Refuse(&Error{
		Code: CodeUnknownField, Field: "/" + EscapePointer(name), Detail: "this field is not known", Hint: Hint(name, s.names),
	})
	return with(before, name)
}

// twice refuses a name that an object has already.
func (d *Decoder) twice(name string, at int) {
	d.fail(at, "the name "+strconv.Quote(short(name))+" stands here a second time")
}

// checkGiven looks at which fields were given: the required ones, at most one of each group, and what the type itself asks for.
func (d *Decoder) checkGiven(s *Shape, v reflect.Value, given *fieldSet) {
	for _, i := range s.bound {
		f := &s.Fields[i]
		if !given.has(i) {
			if f.Required {
				d.Refuse(&Error{Code: CodeMissingField, Field: "/" + f.Name, Detail: "this field is required"})
			}
			continue
		}
		if first := slices.IndexFunc(f.rivals, given.has); first >= 0 {
			d.Refuse(&Error{
				Code: CodeInvalidArgument, Field: "/" + f.Name, Detail: s.Fields[f.rivals[first]].Name + " is given too", Hint: "give one of them",
			})
		}
	}
	if !s.checks {
		return
	}
	d.given = slices.Grow(d.given[:0], given.count())
	for i, name := range s.names {
		if given.has(i) {
			d.given = append(d.given, name)
		}
	}
	for _, e := range v.Addr().Interface().(Checker).CheckJSON(d.given) {
		d.Refuse(e)
	}
}

// dictionary reads an object with any names. A null is kept where the values are pointers, and in an answer; elsewhere it is absent.
func (d *Decoder) dictionary(s *Shape, v reflect.Value) {
	if !d.Expect("an object", "{") {
		return
	}
	most := d.mostNow()
	v.Set(reflect.MakeMap(s.Type))
	var absent map[string]bool
	entries := 0
	for more := d.enter('}'); more; more = d.another('}') {
		if entries == most {
			d.tooMany(most)
			return
		}
		entries++
		if !d.room(int(s.Elem.Type.Size()) + mapEntry) {
			return
		}
		d.peek()
		at := d.at
		chars, named := d.name()
		if !named {
			return
		}
		name := d.kept.keep(chars)
		if !d.lenient && (absent[name] || s.holds(v, name)) {
			d.twice(name, at)
			return
		}
		faults := len(d.found)
		if !d.entry(s, v, name) {
			absent = with(absent, name)
		}
		if len(d.found) > faults {
			d.foundIn(name, faults)
		}
	}
}

// with adds a name to a set, which may be nil.
func with(set map[string]bool, name string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[name] = true
	return set
}

// holds reports whether a map has a name.
func (s *Shape) holds(v reflect.Value, name string) bool {
	if tags, ok := v.Interface().(map[string]string); ok {
		_, has := tags[name]
		return has
	}
	return v.MapIndex(s.key(name)).IsValid()
}

// key is a name as a key of the map.
func (s *Shape) key(name string) reflect.Value { return reflect.ValueOf(name).Convert(s.Type.Key()) }

// entry reads a value of a map, and reports whether it was kept.
func (d *Decoder) entry(s *Shape, v reflect.Value, name string) bool {
	if d.peek() == 'n' && s.Elem.Form != FormPointer && s.Elem.Form != FormRaw {
		d.word()
		if d.lenient { // as Unmarshal has it
			v.SetMapIndex(s.key(name), reflect.Zero(s.Elem.Type))
		}
		return d.lenient
	}
	if tags, ok := v.Interface().(map[string]string); ok { // most messages have one
		tags[name] = ""
		if d.Expect("a string", `"`) {
			tags[name] = d.str()
		}
		return true
	}
	element := reflect.New(s.Elem.Type).Elem()
	d.value(s.Elem, element)
	v.SetMapIndex(s.key(name), element)
	return true
}
