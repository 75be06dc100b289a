package wire

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
	"github.com/flowfabric/flowfabric/internal/payload"
)

// Incoming is a request after routing, on the server.
type Incoming struct {
	PathValue func(name string) string // http.Request.PathValue
	Query     string                   // http.Request.URL.RawQuery
	Header    http.Header
	Body      []byte
	Hold      func(bytes int) bool // reserves memory for lists and maps of the body, and reports whether it is available; nil: it always is
}

// DecodeRequest reads a request into a pointer to its type. Its errors are Errors: unknown_field and invalid_argument with
// query.name, header.Name or path.name, those of DecodeJSON for the body, unsupported_media_type for a body that is neither JSON
// nor another type that the request accepts. An empty body is an object without fields.
func DecodeRequest(in Incoming, into any) error {
	v := reflect.ValueOf(into).Elem()
	p := planOf(v.Type())
	head := decodeHead(in, p, v)
	body := decodeBody(in, p, v)
	if len(body) == 1 && body[0].Code == jsonx.CodeInvalidJSON {
		return body
	}
	return append(head, body...).OrNil()
}

// DecodeHead reads only path, query and header, for a streaming body.
func DecodeHead(in Incoming, into any) error {
	v := reflect.ValueOf(into).Elem()
	return decodeHead(in, planOf(v.Type()), v).OrNil()
}

func decodeHead(in Incoming, p *plan, v reflect.Value) Errors {
	var faults Errors
	for i := range p.params {
		param := &p.params[i]
		text, given := "", false
		switch param.in {
		case inPath:
			text, given = in.PathValue(param.name), true
		case inHeader:
			text = strings.Join(in.Header.Values(param.name), ", ")
			given = text != ""
		}
		if !given {
			continue
		}
		if e := param.codec.read(v.FieldByIndex(param.index), text); e != nil {
			e.Field = param.field()
			faults = append(faults, e)
		}
	}
	faults = append(faults, decodeQuery(in.Query, p, v)...)
	return append(faults, missing(p, v)...)
}

// missing returns the required parameters without a value.
func missing(p *plan, v reflect.Value) Errors {
	var faults Errors
	for i := range p.params {
		if param := &p.params[i]; param.required && v.FieldByIndex(param.index).IsZero() {
			faults = append(faults, &Error{Code: jsonx.CodeMissingField, Field: param.field(), Detail: "this parameter is required"})
		}
	}
	return faults
}

// decodeQuery reads the raw query: whether a parameter has a "=" matters for tags.
func decodeQuery(query string, p *plan, v reflect.Value) Errors {
	var faults Errors
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, equals := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(rawName)
		value, errValue := url.QueryUnescape(rawValue)
		if errName != nil || errValue != nil {
			faults = append(faults, &Error{Code: jsonx.CodeInvalidArgument, Field: "query", Detail: "the query is not percent-encoded", Hint: "write % as %25"})
			continue
		}
		if e := p.setQuery(v, name, value, equals, seen[name]); e != nil {
			e.Field = "query." + name
			faults = append(faults, e)
		}
		seen[name] = true
	}
	return faults
}

// setQuery sets one query parameter. A list can be given several times.
func (p *plan) setQuery(v reflect.Value, name, value string, equals, again bool) *Error {
	param, rest := p.parameter(name)
	switch {
	case param == nil:
		return &Error{Code: jsonx.CodeUnknownField, Detail: "unknown query parameter", Hint: jsonx.Hint(name, p.query)}
	case again && !param.codec.list:
		return jsonx.Invalid("this query parameter is given twice", "give it once")
	case !param.codec.tags:
		if e := param.codec.read(v.FieldByIndex(param.index), value); e != nil {
			return e
		}
		return param.tooSmall(v)
	}
	into := v.FieldByIndex(param.index)
	if into.IsNil() {
		into.Set(reflect.ValueOf(map[string]*string{}))
	}
	var text *string
	if equals {
		text = &value
	}
	into.Interface().(map[string]*string)[rest] = text
	return nil
}

// decodeBody reads the body by its content type; none given means JSON.
func decodeBody(in Incoming, p *plan, v reflect.Value) Errors {
	contentType := in.Header.Get("Content-Type")
	switch body := bytes.TrimSpace(in.Body); {
	case contentType != "" && !payload.IsJSON(contentType) && p.takesRaw(contentType):
		v.FieldByIndex(p.raw).Set(reflect.ValueOf(Raw{Data: in.Body, ContentType: contentType}))
		return nil
	case len(body) == 0 && p.body == nil:
		return nil
	case len(body) == 0:
		return faultsOf(jsonx.Decode([]byte("{}"), v.FieldByIndex(p.body).Addr().Interface()))
	case contentType != "" && !payload.IsJSON(contentType):
		return Errors{{
			Code: CodeUnsupportedType, Field: "header.Content-Type", Detail: "the content type of the body is not accepted here",
			Hint: "send Content-Type: " + ContentJSON,
		}}
	case p.body == nil:
		return faultsOf(jsonx.Decode(in.Body, &None{}))
	default:
		return faultsOf(jsonx.DecodeWithin(in.Body, v.FieldByIndex(p.body).Addr().Interface(), in.Hold))
	}
}

// takesRaw reports whether a body that is not JSON is accepted unchanged.
func (p *plan) takesRaw(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return p.raw != nil && (p.accept == "*/*" || err == nil && media == p.accept)
}

// faultsOf returns the errors of jsonx.Decode.
func faultsOf(err error) Errors {
	if err == nil {
		return nil
	}
	var all Errors
	errors.As(err, &all)
	return all
}
