package wire

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// codec converts a field to the text of a parameter and back. Zero values are not sent; for a pointer the value is sent.
type codec struct {
	write func(v reflect.Value) (string, error)
	read  func(v reflect.Value, text string) *Error
	list  bool // []string: comma-separated items
	tags  bool // map[string]*string: one parameter per entry, nil without "="
}

func codecOf(t reflect.Type, prefix bool) codec {
	switch {
	case prefix && t == reflect.TypeFor[map[string]*string]():
		return codec{tags: true}
	case t == reflect.TypeFor[[]string]():
		return codec{write: writeList, read: readList, list: true}
	case t.Kind() == reflect.Pointer:
		return codecOf(t.Elem(), false).behindPointer()
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return codec{write: writeText, read: readText}
	}
	switch t.Kind() {
	case reflect.String:
		return codec{write: writeString, read: readString}
	case reflect.Bool:
		return codec{write: writeBool, read: readBool}
	case reflect.Int, reflect.Int64:
		return codec{write: writeInt, read: readInt}
	default:
		panic(fmt.Sprintf("wire: a parameter cannot hold a %s", t))
	}
}

// behindPointer returns the codec for a pointer to such a value.
func (c codec) behindPointer() codec {
	return codec{
		write: func(v reflect.Value) (string, error) { return c.write(v.Elem()) },
		read: func(v reflect.Value, text string) *Error {
			v.Set(reflect.New(v.Type().Elem()))
			return c.read(v.Elem(), text)
		},
	}
}

func writeString(v reflect.Value) (string, error) { return v.String(), nil }

func readString(v reflect.Value, text string) *Error {
	v.SetString(text)
	return nil
}

func writeBool(v reflect.Value) (string, error) { return strconv.FormatBool(v.Bool()), nil }

func readBool(v reflect.Value, text string) *Error {
	if text != "true" && text != "false" {
		return jsonx.Invalid("expected true or false", "")
	}
	v.SetBool(text == "true")
	return nil
}

func writeInt(v reflect.Value) (string, error) { return strconv.FormatInt(v.Int(), 10), nil }

func readInt(v reflect.Value, text string) *Error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jsonx.Invalid("expected a whole number", "")
	}
	v.SetInt(n)
	return nil
}

// writeText uses the type's own text form; a type that only has a reader is a string.
func writeText(v reflect.Value) (string, error) {
	m, ok := v.Interface().(encoding.TextMarshaler)
	if !ok {
		return v.String(), nil
	}
	text, err := m.MarshalText()
	return string(text), err
}

func readText(v reflect.Value, text string) *Error {
	return jsonx.AsError(v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)))
}

// writeList joins items with commas. A comma or backslash inside an item is escaped with a backslash.
func writeList(v reflect.Value) (string, error) {
	items := make([]string, v.Len())
	for i := range items {
		items[i] = strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(v.Index(i).String())
	}
	return strings.Join(items, ","), nil
}

// readList splits at commas. A backslash escapes a comma or a backslash; any other backslash is literal.
func readList(v reflect.Value, text string) *Error {
	var item strings.Builder
	items := v.Interface().([]string)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ',':
			items = append(items, item.String())
			item.Reset()
		case c == '\\' && i+1 < len(text) && (text[i+1] == ',' || text[i+1] == '\\'):
			i++
			item.WriteByte(text[i])
		default:
			item.WriteByte(c)
		}
	}
	v.Set(reflect.ValueOf(append(items, item.String())))
	return nil
}
