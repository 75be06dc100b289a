package wire

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Raw is bytes with their content type: an answer that is not a JSON document, or, as a field of a request, a body that is not
// JSON. The tag accept of that field lists the accepted content types.
type Raw struct {
	Data        []byte
	ContentType string
}

// Sink is the answer of an operation that writes a stream of bytes to a writer of the caller. If the operation fails, the written
// bytes must be discarded.
type Sink struct {
	To io.Writer
	// Progress is called occasionally with the number of copied pages, from other goroutines, one at a time; may be nil.
	Progress func(pages, total int)
}

// place is where a parameter is sent.
type place string

const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
)

// parameter is a field of a request outside its body.
type parameter struct {
	in       place
	name     string // of the map of tags: its prefix
	argument string // its name in the rules
	index    []int
	codec    codec
	required bool
	least    *int64 // minimum of a number; may be nil
}

// field is its name in errors (U11).
func (p *parameter) field() string { return string(p.in) + "." + p.name }

// plan is the parsed type of a request.
type plan struct {
	params []parameter
	query  []string     // names of the query parameters, for hints
	body   []int        // index of the field Body; nil if the request has none
	shape  *jsonx.Shape // of the body
	raw    []int        // index of the field of type Raw; nil if there is none
	accept string       // content types of raw; "*/*" accepts any
}

// plans parses the whole table, once. The result must not be changed.
var plans = sync.OnceValue(func() map[reflect.Type]*plan {
	known := map[reflect.Type]*plan{}
	for _, o := range Operations() {
		known[o.Request] = newPlan(o.Request)
	}
	return known
})

// planOf returns the plan of a request; for a type outside the table it is built anew.
func planOf(t reflect.Type) *plan {
	if p, ok := plans()[t]; ok {
		return p
	}
	return newPlan(t)
}

func newPlan(t reflect.Type) *plan {
	p := &plan{}
	p.add(t, nil)
	return p
}

// add adds the fields of a request. A field without a place is a bug in this package, found by the test of the table.
func (p *plan) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		in, name := placeOf(f.Tag)
		switch {
		case name != "":
			p.params = append(p.params, parameter{
				in, name, argumentOf(f.Tag, name), at, codecOf(f.Type, in == inQuery && strings.HasSuffix(name, ".")), f.Tag.Get("required") == "true", leastOf(f.Tag),
			})
			if in == inQuery {
				p.query = append(p.query, name)
			}
		case f.Name == "Body":
			p.body, p.shape = at, jsonx.ShapeOf(f.Type)
		case f.Type == reflect.TypeFor[Raw]():
			p.raw, p.accept = at, f.Tag.Get("accept")
		case f.Anonymous:
			p.add(f.Type, at)
		default:
			panic(fmt.Sprintf("wire: %s.%s is not in path, query, header or body", t, f.Name))
		}
	}
}

// leastOf returns the minimum of a parameter, as in the document.
func leastOf(tag reflect.StructTag) *int64 {
	n, err := strconv.ParseInt(tag.Get("minimum"), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// tooSmall returns the refusal of a number below the minimum, or nil.
func (p *parameter) tooSmall(v reflect.Value) *Error {
	if v = reflect.Indirect(v.FieldByIndex(p.index)); p.least == nil || v.Int() >= *p.least {
		return nil
	}
	return jsonx.Invalid(fmt.Sprintf("must be at least %d", *p.least), "")
}

func placeOf(tag reflect.StructTag) (place, string) {
	for _, in := range []place{inPath, inQuery, inHeader} {
		if name := tag.Get(string(in)); name != "" {
			return in, name
		}
	}
	return "", ""
}

// argumentOf is a parameter's name in the rules: its tag argument, or its name.
func argumentOf(tag reflect.StructTag, name string) string {
	switch argument := tag.Get("argument"); {
	case argument != "":
		return argument
	case strings.HasSuffix(name, "."):
		return tagsArgument
	default:
		return name
	}
}

// parameter finds the query parameter with a name, and what follows a prefix.
func (p *plan) parameter(name string) (found *parameter, rest string) {
	for i := range p.params {
		q := &p.params[i]
		if q.in != inQuery {
			continue
		}
		if rest, ok := strings.CutPrefix(name, q.name); ok && (rest == "" || strings.HasSuffix(q.name, ".")) {
			return q, rest
		}
	}
	return nil, ""
}
