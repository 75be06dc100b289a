package jsonx

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of the room that is made for what is not written yet.
const (
	mostRoom    = 4 << 10 // at the beginning
	mostReserve = 1 << 20 // for a list, of which the first element is written
)

// room is a guess of how long a value becomes: as long as the last of its type, and a little.
func (w *writing) room() int { return withSpare(int(w.last.Load())) }

// withSpare is a length and a little more, for no two values are of one length.
func withSpare(length int) int { return length + length/8 + 32 }

// took remembers how long a value became.
func (w *writing) took(length int) { w.last.Store(int32(min(length, mostRoom))) }

// AppendInto adds the members of an object to one that is not ended yet and has members already, and ends it.
func AppendInto(text []byte, object any) ([]byte, error) {
	begin := len(text)
	text, err := Append(text, object)
	if err != nil {
		return nil, err
	}
	if string(text[begin:]) == "{}" {
		return append(text[:begin], '}'), nil
	}
	text[begin] = ',' // in place of the bracket
	return text, nil
}

func (w *writing) appendTo(text []byte, v reflect.Value) ([]byte, error) {
	switch w.manner {
	case asString:
		return AppendString(text, v.String()), nil
	case asInt:
		return strconv.AppendInt(text, v.Int(), 10), nil
	case asBool:
		return strconv.AppendBool(text, v.Bool()), nil
	case asFields:
		return w.appendFields(text, v)
	case asItself:
		return addressable(v).Addr().Interface().(Appender).AppendJSON(text)
	case asMillis:
		return strconv.AppendInt(text, Milliseconds(time.Duration(v.Int())), 10), nil
	case asInstant:
		return AppendTime(text, *addressable(v).Addr().Interface().(*time.Time))
	case asDynamic:
		if !v.IsNil() {
			return appendDynamic(text, v.Elem())
		}
	case asPointer:
		if !v.IsNil() {
			return w.elem.appendTo(text, v.Elem())
		}
	case asList:
		if !v.IsNil() {
			return w.appendList(text, v)
		}
	case asObject:
		if !v.IsNil() {
			return w.appendObject(text, v)
		}
	case asBytes:
		if !v.IsNil() {
			text = base64.StdEncoding.AppendEncode(append(text, '"'), v.Bytes())
			return append(text, '"'), nil
		}
	case asRaw:
		if !v.IsNil() {
			return appendCompact(text, v.Bytes())
		}
	default:
		return w.appendOther(text, v)
	}
	return append(text, "null"...), nil
}

// appendFields writes an object. The comma before the first name becomes the bracket.
func (w *writing) appendFields(text []byte, v reflect.Value) ([]byte, error) {
	begin := len(text)
	text, err := w.appendMembers(text, v)
	switch {
	case err != nil:
		return nil, err
	case len(text) == begin:
		return append(text, "{}"...), nil
	}
	text[begin] = '{'
	return append(text, '}'), nil
}

// appendMembers writes the members of an object, each with a comma before it.
func (w *writing) appendMembers(text []byte, v reflect.Value) ([]byte, error) {
	var err error
	for i := range w.fields {
		f, value := &w.fields[i], v.Field(w.fields[i].index)
		switch {
		case f.name == "":
			text, err = f.appendMembers(text, value)
		case f.manner == asSpread:
			text, err = addressable(value).Addr().Interface().(Spread).AppendMembers(text, f.name, f.how)
		case f.omit != nil && f.omit(value):
		case f.list && value.IsNil():
			text = append(append(text, f.name...), "[]"...)
		case f.manner == asString:
			if s := value.String(); s != "" || !f.empty {
				text = AppendString(append(text, f.name...), s)
			}
		case f.manner == asInt:
			if n := value.Int(); n != 0 || !f.empty {
				text = strconv.AppendInt(append(text, f.name...), n, 10)
			}
		case f.empty && value.IsZero():
		default:
			text, err = f.appendTo(append(text, f.name...), value)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// appendList writes an array. The length of the first element says how much room the others need.
func (w *writing) appendList(text []byte, v reflect.Value) ([]byte, error) {
	text = append(text, '[')
	begin := len(text)
	for i := range v.Len() {
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = w.elem.appendTo(text, v.Index(i)); err != nil {
			return nil, err
		}
		if i == 0 {
			text = reserve(text, (len(text)-begin+1)*(v.Len()-1))
		}
	}
	return append(text, ']'), nil
}

// reserve makes room at the end of a text.
func reserve(text []byte, length int) []byte {
	if length <= cap(text)-len(text) {
		return text
	}
	return slices.Grow(text, min(withSpare(length), mostReserve))
}

func (w *writing) appendObject(text []byte, v reflect.Value) ([]byte, error) {
	if tags, ok := v.Interface().(map[string]string); ok {
		return appendTags(text, tags), nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	text = append(text, '{')
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(AppendString(text, key.String()), ':')
		var err error
		if text, err = w.elem.appendTo(text, v.MapIndex(key)); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// appendTags writes the map that most messages have.
func appendTags(text []byte, tags map[string]string) []byte {
	var few [16]string
	keys := few[:0]
	for key := range tags {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	separator := byte('{')
	for _, key := range keys {
		text = append(AppendString(append(text, separator), key), ':')
		text = AppendString(text, tags[key])
		separator = ','
	}
	if separator == '{' {
		text = append(text, '{')
	}
	return append(text, '}')
}

// appendOther writes what has methods for it, and what the tables do not have. Methods that only a pointer has do not count for a
// value without an address: encoding/json has it so.
func (w *writing) appendOther(text []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	value := v.Interface()
	if m, ok := value.(json.Marshaler); ok && w.manner == asJSON {
		own, err := m.MarshalJSON()
		return append(text, own...), err
	}
	if m, ok := value.(encoding.TextMarshaler); ok && w.manner == asText {
		own, err := m.MarshalText()
		return AppendString(text, string(own)), err
	}
	own, err := encodeAsOthers(value)
	return append(text, own...), err
}

// appendDynamic writes what an interface holds. Types of this module are written as they are everywhere; values that callers made are
// left to encoding/json, which notices when they contain themselves.
func appendDynamic(text []byte, v reflect.Value) ([]byte, error) {
	t := v.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if ofThisModule(t) {
		return writingOf(v.Type()).appendTo(text, v)
	}
	own, err := encodeAsOthers(v.Interface())
	return append(text, own...), err
}

// appendCompact writes JSON of callers without its white space.
func appendCompact(text, own []byte) ([]byte, error) {
	if IsCompact(own) {
		return append(text, own...), nil
	}
	buffer := bytes.NewBuffer(text)
	if err := json.Compact(buffer, own); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// encodeAsOthers writes a value with encoding/json, without escapes for HTML.
func encodeAsOthers(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
