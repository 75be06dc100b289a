package apifuzz

import (
	"encoding/json"
	"slices"
	"strings"
)

// value is a JSON value that need not be one: nil, bool, string, raw, []value or *object.
type value any

// raw is written as it stands.
type raw string

// object keeps the order of its members, and may have one twice.
type object struct {
	names  []string
	values []value
	closed bool // the document lists its fields: another one is unknown
}

func (o *object) set(name string, v value) {
	if i := slices.Index(o.names, name); i >= 0 {
		o.values[i] = v
		return
	}
	o.add(name, v)
}

func (o *object) add(name string, v value) {
	o.names, o.values = append(o.names, name), append(o.values, v)
}

func (o *object) drop(name string) {
	if i := slices.Index(o.names, name); i >= 0 {
		o.names, o.values = slices.Delete(o.names, i, i+1), slices.Delete(o.values, i, i+1)
	}
}

func (o *object) has(name string) bool { return slices.Contains(o.names, name) }

// write writes a value as text.
func write(b *strings.Builder, v value) {
	switch v := v.(type) {
	case raw:
		b.WriteString(string(v))
	case []value:
		b.WriteByte('[')
		for i, member := range v {
			separate(b, i)
			write(b, member)
		}
		b.WriteByte(']')
	case *object:
		b.WriteByte('{')
		for i, name := range v.names {
			separate(b, i)
			write(b, name)
			b.WriteByte(':')
			write(b, v.values[i])
		}
		b.WriteByte('}')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // only nil, bool and string come here
		}
		b.Write(text)
	}
}

func separate(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func textOf(v value) string {
	var b strings.Builder
	write(&b, v)
	return b.String()
}

// slot is a place in a value where something else can be put.
type slot struct {
	in  *object // nil: in a list
	put func(value)
}

// slotsOf lists the places of a value.
func slotsOf(v value) []slot {
	var all []slot
	switch v := v.(type) {
	case []value:
		for i := range v {
			all = append(all, slot{put: func(other value) { v[i] = other }})
			all = append(all, slotsOf(v[i])...)
		}
	case *object:
		for i := range v.names {
			all = append(all, slot{in: v, put: func(other value) { v.values[i] = other }})
			all = append(all, slotsOf(v.values[i])...)
		}
	}
	return all
}
