package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Place returns where in a request of the operation an argument that a rule refuses is found (U11). Rules use their own names,
// such as revision, policy.retry, items[3].kind or tags["app.tier"], wherever the argument came from. given reports whether the
// request has a parameter, by its place, "query" or "header", and its name; "tag." is any with this prefix. It matters if an
// argument can be given in several ways.
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

// Keys that the header of any request can give (U13): for the request, and for the work that it creates, unless its body has a
// field for that (U14).
const (
	requestKey = "request_key"
	workKey    = "idempotency_key"
)

// carriersOf returns the parameters that can carry an argument.
func (p *plan) carriersOf(argument string) (carriers []*parameter) {
	for i := range p.params {
		rest, carries := strings.CutPrefix(argument, p.params[i].argument)
		if carries && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			carriers = append(carriers, &p.params[i])
		}
	}
	return carriers
}

// fieldOf names a part of the parameter in errors: tags have one for each key.
func (p *parameter) fieldOf(argument string) string {
	if !p.codec.tags {
		return p.field()
	}
	return strings.TrimSuffix(p.field(), ".") + strings.Join(append([]string{""}, jsonx.ArgumentParts(argument)[1:]...), ".")
}

// inBody reports whether the body has the argument. A map is the map of tags.
func (p *plan) inBody(name string) bool {
	switch {
	case p.body == nil:
		return false
	case p.shape.Form == jsonx.FormMap:
		return name == tagsArgument
	}
	return p.shape.Has(name)
}

// pointer returns the JSON pointer of an argument in the body.
func (p *plan) pointer(parts []string) string {
	if p.body != nil && p.shape.Form == jsonx.FormMap && parts[0] == tagsArgument {
		parts = parts[1:]
	}
	return jsonx.PointerTo(parts)
}

// TagArgument is the rules' name of the tag with this key.
func TagArgument(key string) string { return tagsArgument + "[" + strconv.Quote(key) + "]" }

// tagsArgument is the rules' name of the tags of a request, wherever they are.
const tagsArgument = "tags"

// Pointer is the JSON pointer of an argument, given its name in the rules.
func Pointer(argument string) string { return jsonx.Pointer(argument) }
