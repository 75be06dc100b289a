package wire

import (
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Message is a request in HTTP form.
type Message struct {
	Method string
	Path   string // percent-encoded
	Query  string // encoded, without "?"; "" for none
	Header http.Header
	Body   []byte // nil if there is none; its content type is in Header
}

// EncodeRequest converts a pointer to the request of an operation into a message. A path parameter without a value, or a time
// that cannot be written, is invalid_argument.
func EncodeRequest(o *Operation, req any) (Message, error) {
	v := reflect.ValueOf(req).Elem()
	p := planOf(v.Type())
	m := Message{Method: o.Method, Path: o.Path, Header: http.Header{}}
	var faults Errors
	for i := range p.params {
		param := &p.params[i]
		if err := m.put(param, v.FieldByIndex(param.index)); err != nil {
			err.Field = param.field()
			faults = append(faults, err)
		}
	}
	if err := m.putBody(p, v); err != nil {
		faults = append(faults, jsonx.AsError(err))
	}
	return m, faults.OrNil()
}

// put adds one parameter, unless it is zero.
func (m *Message) put(param *parameter, v reflect.Value) *Error {
	if param.codec.tags {
		for _, name := range slices.Sorted(maps.Keys(v.Interface().(map[string]*string))) {
			m.addQuery(param.name+name, v.Interface().(map[string]*string)[name])
		}
		return nil
	}
	text := ""
	if given := !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0); given {
		var err error
		if text, err = param.codec.write(v); err != nil {
			return jsonx.AsError(err)
		}
	} else if param.in != inPath {
		return nil
	}
	switch param.in {
	case inPath:
		if text == "" {
			return jsonx.Invalid("the path needs a value here", "")
		}
		m.Path = strings.Replace(m.Path, "{"+param.name+"}", escapeSegment(text), 1)
	case inQuery:
		m.addQuery(param.name, &text)
	case inHeader:
		m.Header.Set(param.name, text)
	}
	return nil
}

// addQuery appends a query parameter; nil: only its name.
func (m *Message) addQuery(name string, value *string) {
	if m.Query != "" {
		m.Query += "&"
	}
	m.Query += url.QueryEscape(name)
	if value != nil {
		m.Query += "=" + url.QueryEscape(*value)
	}
}

// escapeSegment encodes a segment of a path. "." and ".." are encoded too, because they would be taken for directories.
func escapeSegment(text string) string {
	escaped := url.PathEscape(text)
	if escaped == "." || escaped == ".." {
		escaped = strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}

// putBody adds the body: raw if there is one, else JSON. A DELETE without fields has no body.
func (m *Message) putBody(p *plan, v reflect.Value) error {
	if p.raw != nil {
		if raw := v.FieldByIndex(p.raw).Interface().(Raw); raw.ContentType != "" {
			m.Header.Set("Content-Type", raw.ContentType)
			m.Body = append([]byte{}, raw.Data...)
			return nil
		}
	}
	if p.body == nil {
		return nil
	}
	body := v.FieldByIndex(p.body)
	if m.Method == http.MethodDelete && body.IsZero() {
		return nil
	}
	text, err := Marshal(body.Addr().Interface())
	if err != nil {
		return err
	}
	if string(text) == "null" {
		text = []byte("{}")
	}
	m.Header.Set("Content-Type", ContentJSON)
	m.Body = text
	return nil
}
