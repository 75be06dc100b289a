package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestU2_every_answer_comes_through_as_it_was_given(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if o.Raw {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				given := reflect.New(o.Answer)
				drawAnswer(t, given.Elem())
				text, err := Marshal(given.Interface())
				if err != nil {
					t.Fatal(err)
				}
				got := reflect.New(o.Answer)
				if err := Unmarshal(text, got.Interface()); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if !reflect.DeepEqual(got.Interface(), given.Interface()) {
					again, _ := Marshal(got.Interface())
					t.Fatalf("given %s\ngot   %s", text, again)
				}
			})
		})
	}
}

// drawAnswer fills an answer of any type.
func drawAnswer(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[Time]():
		v.Set(reflect.ValueOf(anyTime(t)))
		return
	case reflect.TypeFor[json.RawMessage]():
		text, _ := Marshal([]any{anyJSON(t, 2)})
		v.SetBytes(text)
		return
	case reflect.TypeFor[[]byte]():
		v.SetBytes(append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...))
		return
	case reflect.TypeFor[map[string]any]():
		v.Set(reflect.ValueOf(map[string]any{"limit": 1.0}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			drawAnswer(t, v.Field(i))
		}
		if ok := v.FieldByName("OK"); strings.HasPrefix(v.Type().Name(), "Item[") {
			ok.SetBool(true)
			v.FieldByName("Error").SetZero()
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			drawAnswer(t, v.Elem())
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			element := reflect.New(v.Type().Elem()).Elem()
			drawAnswer(t, element)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		drawAnswer(t, element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")), element)
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e9, 1e9).Draw(t, "ratio"))
	default:
		drawPlain(t, v)
	}
}
