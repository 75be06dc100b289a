package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Place says where in a request of the operation the argument travels that a rule refuses (U11): the rules call an argument by its own name,
// such as revision, policy.retry, items[3].kind or tags["app.tier"], wherever it came from. given reports whether the request has a
// parameter, by its place, "query" or "header", and its name; "tag." is any that begins so. It matters where an argument may come in
// several ways.
func Place(o *Operation, argument string, given func(in, name string) bool) string {
	p := planOf(o.Request)
	carriers := p.carriersOf(argument)
	for _, c := range carriers {
		if c.in == inPath || given(string(c.in), c.name) {
			return c.fieldOf(argument)
		}
	}
	parts := jsonx.ArgumentParts(argument)
	switch {
	case p.inBody(parts[0]):
		return p.pointer(parts)
	case argument == requestKey, argument == workKey && given(string(inHeader), HeaderIdempotencyKey):
		return string(inHeader) + "." + HeaderIdempotencyKey
	case len(carriers) > 0:
		return carriers[0].fieldOf(argument)
	case o.Method == http.MethodGet:
		return string(inQuery) + "." + argument
	}
	return p.pointer(parts)
}

// The keys that the header of any request may give (U13): of the request, and of the work that it asks for, unless its body has a field
// for that (U14).
const (
	requestKey = "request_key"
	workKey    = "idempotency_key"
)

// carriersOf are the parameters that an argument may travel in.
func (p *plan) carriersOf(argument string) (carriers []*parameter) {
	for i := range p.params {
		rest, carries := strings.CutPrefix(argument, p.params[i].argument)
		if carries && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			carriers = append(carriers, &p.params[i])
		}
	}
	return carriers
}

// fieldOf is how errors call a part of the parameter: that of tags has one for each key.
func (p *parameter) fieldOf(argument string) string {
	if !p.codec.tags {
		return p.field()
	}
	return strings.TrimSuffix(p.field(), ".") + strings.Join(append([]string{""}, jsonx.ArgumentParts(argument)[1:]...), ".")
}

// inBody reports whether the body has the argument. One that is a map is the map of tags.
func (p *plan) inBody(name string) bool {
	switch {
	case p.body == nil:
		return false
	case p.shape.Form == jsonx.FormMap:
		return name == tagsArgument
	}
	return p.shape.Has(name)
}

// pointer leads to an argument in the body.
func (p *plan) pointer(parts []string) string {
	if p.body != nil && p.shape.Form == jsonx.FormMap && parts[0] == tagsArgument {
		parts = parts[1:]
	}
	return jsonx.PointerTo(parts)
}

// TagArgument is what the rules call the tag of a key.
func TagArgument(key string) string { return tagsArgument + "[" + strconv.Quote(key) + "]" }

// tagsArgument is what the rules call the tags of a request, whichever way they come.
const tagsArgument = "tags"

// Pointer is the JSON pointer of an argument, by the name that the rules call it.
func Pointer(argument string) string { return jsonx.Pointer(argument) }
