package wire

import (
	"reflect"
	"slices"
	"strconv"
)

// structure reads an object whose fields are known. In an answer the others are passed over, and nothing is asked of which stand
// together.
func (d *decoder) structure(s *shape, v reflect.Value) {
	if !d.expect("an object", "{") {
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
			d.twice(s.fields[i].name, at)
			return
		}
		last = i
		seen.add(i)
		if d.peek() != 'n' {
			given.add(i)
		}
		f, faults := &s.fields[i], len(d.found)
		d.most = f.most
		d.value(f.shape, f.of(v))
		d.most = 0
		if len(d.found) > faults {
			d.foundIn(f.name, faults)
		}
		d.longIn(f.name)
	}
	if !d.lenient {
		d.checkGiven(s, v, &given)
	}
}

// nearField passes the name of one of the fields after the last: most texts have them in order, and their names as we write them.
func (d *decoder) nearField(s *shape, last int) (index int, found bool) {
	const near = 4
	rest := d.data[d.at:]
	for i := last + 1; i < min(last+1+near, len(s.fields)); i++ {
		if name := s.fields[i].quoted; len(name) <= len(rest) && rest[1] == name[1] && string(rest[:len(name)]) == name {
			d.at += len(name)
			return i, true
		}
	}
	return 0, false
}

// stranger passes a member that has no field; in a request it is refused.
func (d *decoder) stranger(s *shape, chars []byte, at int, before map[string]bool) map[string]bool {
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
	d.refuse(&Error{
		Code: CodeUnknownField, Field: "/" + escapePointer(name), Detail: "this field is not known", Hint: hintFor(name, s.names),
	})
	return with(before, name)
}

// twice refuses a name that an object has already.
func (d *decoder) twice(name string, at int) {
	d.fail(at, "the name "+strconv.Quote(short(name))+" stands here a second time")
}

// checkGiven looks at which fields were given: the required ones, at most one of each group, and what the type itself asks for.
func (d *decoder) checkGiven(s *shape, v reflect.Value, given *fieldSet) {
	for _, i := range s.bound {
		f := &s.fields[i]
		if !given.has(i) {
			if f.required {
				d.refuse(&Error{Code: CodeMissingField, Field: "/" + f.name, Detail: "this field is required"})
			}
			continue
		}
		if first := slices.IndexFunc(f.rivals, given.has); first >= 0 {
			d.refuse(&Error{
				Code: CodeInvalidArgument, Field: "/" + f.name, Detail: s.fields[f.rivals[first]].name + " is given too", Hint: "give one of them",
			})
		}
	}
	if !s.checks {
		return
	}
	d.given = d.given[:0]
	for i, name := range s.names {
		if given.has(i) {
			d.given = append(d.given, name)
		}
	}
	for _, e := range v.Addr().Interface().(checker).check(d.given) {
		d.refuse(e)
	}
}

// dictionary reads an object with any names. A null is kept where the values are pointers, and in an answer; elsewhere it is absent.
func (d *decoder) dictionary(s *shape, v reflect.Value) {
	if !d.expect("an object", "{") {
		return
	}
	most := d.mostNow()
	v.Set(reflect.MakeMap(s.typ))
	var absent map[string]bool
	for more := d.enter('}'); more; more = d.another('}') {
		if most--; most < 0 {
			d.tooMany(d.mostNow())
			return
		}
		if !d.room(int(s.elem.typ.Size()) + mapEntry) {
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
func (s *shape) holds(v reflect.Value, name string) bool {
	if tags, ok := v.Interface().(map[string]string); ok {
		_, has := tags[name]
		return has
	}
	return v.MapIndex(s.key(name)).IsValid()
}

// key is a name as a key of the map.
func (s *shape) key(name string) reflect.Value { return reflect.ValueOf(name).Convert(s.typ.Key()) }

// entry reads a value of a map, and reports whether it was kept.
func (d *decoder) entry(s *shape, v reflect.Value, name string) bool {
	if d.peek() == 'n' && s.elem.form != formPointer && s.elem.form != formRaw {
		d.word()
		if d.lenient { // as Unmarshal has it
			v.SetMapIndex(s.key(name), reflect.Zero(s.elem.typ))
		}
		return d.lenient
	}
	if tags, ok := v.Interface().(map[string]string); ok { // most messages have one
		tags[name] = ""
		if d.expect("a string", `"`) {
			tags[name] = d.str()
		}
		return true
	}
	element := reflect.New(s.elem.typ).Elem()
	d.value(s.elem, element)
	v.SetMapIndex(s.key(name), element)
	return true
}
