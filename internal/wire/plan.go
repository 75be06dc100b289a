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

// Raw is bytes with their content type: an answer that is no JSON document, and, as the field of a request, a body that is none. The
// tag accept of that field says which content types it takes.
type Raw struct {
	Data        []byte
	ContentType string
}

// Sink is the answer of an operation that delivers a stream of bytes: whoever asks says where they go. They are written while the operation
// is done, and when it fails what was written is worth nothing.
type Sink struct {
	To io.Writer
	// Progress is told now and then how many pages of a copy are there. It is called from other goroutines, one at a time; nil: it is not asked for.
	Progress func(pages, total int)
}

// place is where a parameter travels.
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
	argument string // what the rules call it
	index    []int
	codec    codec
	required bool
	least    *int64 // of a number; nil: any will do
}

// field is how errors call it (U11).
func (p *parameter) field() string { return string(p.in) + "." + p.name }

// plan is the type of a request, looked at once.
type plan struct {
	params []parameter
	query  []string     // names of the query parameters, for hints
	body   []int        // index of the field Body; nil: the request has none
	shape  *jsonx.Shape // of the body
	raw    []int        // index of the field of type Raw; nil: there is none
	accept string       // content types of raw; "*/*" takes any
}

// plans looks at the whole table, once. What it returns is not changed any more.
var plans = sync.OnceValue(func() map[reflect.Type]*plan {
	known := map[reflect.Type]*plan{}
	for _, o := range Operations() {
		known[o.Request] = newPlan(o.Request)
	}
	return known
})

// planOf finds the plan of a request; of a type outside the table it is made anew.
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

// add takes the fields of a request over. A field that travels nowhere is a mistake in this package, found by the test of the table.
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

// leastOf is the smallest number that a parameter may be, as the document says, too.
func leastOf(tag reflect.StructTag) *int64 {
	n, err := strconv.ParseInt(tag.Get("minimum"), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// tooSmall is the refusal of a number below the least; nil: it is not.
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

// argumentOf is what the rules call a parameter: its tag argument, or else its name.
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

// parameter finds the query parameter of a name, and what follows a prefix.
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
