package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestU2_every_answer_comes_through_as_it_was_given(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if o.Raw {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			testseed.Check(t, func(t *rapid.T) {
				given := reflect.New(o.Answer)
				drawAnswer(t, given.Elem())
				text, err := Marshal(given.Interface())
				if err != nil {
					t.Fatal(err)
				}
				appended, err := Append([]byte("before"), given.Interface())
				if err != nil || string(appended) != "before"+string(text) {
					t.Fatalf("Append: %s, %v, want %s", appended, err, text)
				}
				for name, read := range map[string]func([]byte, any) error{"Unmarshal": Unmarshal, "DecodeAnswer": DecodeAnswer} {
					got, gone := reflect.New(o.Answer), bytes.Clone(text)
					if err := read(gone, got.Interface()); err != nil {
						t.Fatalf("%s: %s: %v", name, text, err)
					}
					clear(gone) // the text is the reader's no more
					if !reflect.DeepEqual(got.Interface(), given.Interface()) {
						again, _ := Marshal(got.Interface())
						t.Fatalf("%s: given %s\ngot   %s", name, text, again)
					}
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
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(anyTime(t).Time))
		return
	case reflect.TypeFor[time.Duration]():
		v.SetInt(int64(anyDuration(t)))
		return
	case reflect.TypeFor[json.RawMessage]():
		text, _ := Marshal([]any{anyJSON(t, 2)})
		v.SetBytes(text)
		return
	case reflect.TypeFor[[]byte]():
		v.SetBytes(append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...))
		return
	case reflect.TypeFor[api.Payload]():
		v.Set(reflect.ValueOf(drawShown(t)))
		return
	case reflect.TypeFor[api.Condition]():
		v.Set(reflect.ValueOf(drawCondition(t, 2)))
		return
	case reflect.TypeFor[api.DefaultPolicy](): // it keeps the text that it was read from
		text, _ := Marshal(map[string]any{"<": anyJSON(t, 2)})
		if err := DecodeJSON(text, v.Addr().Interface()); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return
	case reflect.TypeFor[error]():
		if rapid.Bool().Draw(t, "refused") {
			v.Set(reflect.ValueOf(api.Errorf("stale_lease", "%s", rapid.String().Draw(t, "detail")).At("/lease", "claim again")))
		}
		return
	case reflect.TypeFor[map[string]any]():
		v.Set(reflect.ValueOf(map[string]any{"limit": 1.0}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				drawAnswer(t, v.Field(i))
			}
		}
		settleAnswer(v)
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			drawAnswer(t, v.Elem())
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			element := reflect.New(v.Type().Elem()).Elem()
			into := element
			if element.Kind() == reflect.Pointer { // lists have no null
				element.Set(reflect.New(element.Type().Elem()))
				into = element.Elem()
			}
			drawAnswer(t, into)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		drawAnswer(t, element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")).Convert(v.Type().Key()), element)
	case reflect.Interface: // any value; null is none
		v.Set(reflect.ValueOf(rapid.String().Draw(t, "any")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e9, 1e9).Draw(t, "ratio"))
	default:
		drawPlain(t, v)
	}
}

// settleAnswer makes what was drawn of a struct something that an answer can be.
func settleAnswer(v reflect.Value) {
	if reset, ok := v.Addr().Interface().(*api.BudgetReset); ok && reset.Type == "" {
		reset.Type = "none" // it is never empty in JSON
	}
	if page, ok := v.Addr().Interface().(*api.LinkPage); ok && page.Needed <= 0 {
		page.Progress = 0 // nothing counts
	}
	if input, ok := v.Addr().Interface().(*api.NamedInput); ok && !input.Present {
		input.Result = api.Payload{} // its absence says so
	}
	if edge, ok := v.Addr().Interface().(*api.EdgeView); ok && edge.Outcome == "" {
		edge.Run = 0 // it is not shown
	}
	if wait, ok := v.Addr().Interface().(*api.SuspensionRecord); ok && wait.Continuation.Omitted() {
		wait.Continuation = api.Payload{ContentType: wait.Continuation.ContentType} // its size is not shown
	}
	if resume, ok := v.Addr().Interface().(*api.Resume); ok && resume.Continuation.Omitted() {
		resume.Continuation = api.Payload{ContentType: resume.Continuation.ContentType}
	}
	if items := v.FieldByName("Items"); strings.HasPrefix(v.Type().Name(), "Page[") && items.IsNil() {
		items.Set(reflect.MakeSlice(items.Type(), 0, 0)) // it is never null in JSON
	}
	if ok := v.FieldByName("OK"); strings.HasPrefix(v.Type().Name(), "Item[") {
		ok.SetBool(true)
		v.FieldByName("Error").SetZero()
	}
}

// drawShown is a payload of an answer: none, one whose bytes are left out, or any under a content type for which it arrives bit for bit.
func drawShown(t *rapid.T) api.Payload {
	data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
	switch rapid.IntRange(0, 4).Draw(t, "payload") {
	case 0:
		return api.Payload{}
	case 1:
		return api.Unloaded("image/png", 1+len(data))
	case 2:
		return api.JSON(string(data))
	case 3:
		return api.Text(rapid.String().Draw(t, "text"))
	default:
		return api.Bytes(data, rapid.SampledFrom([]string{"image/png", "text/html; charset=utf-16", ContentBytes}).Draw(t, "type"))
	}
}

func TestU4_what_an_answer_has_besides_is_passed_over(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"items":[{"index":0,"ok":true,"outcome":"created","new":{"a":[1,{"b":null}]},"priority":7}],"failed":0,"newer":"\ud800"}`,
		`{"failed":1,"failed":0,"items":[{"priority":7,"outcome":"created","ok":true,"error":null,"index":0}]}`,
	} {
		var got, want Items[submitItem]
		if err := Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := DecodeAnswer([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s was read as %+v, want %+v: %v", text, got, want, err)
		}
	}
}

func TestU4_an_answer_that_is_none_is_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `<html>`, `{"items":[{"index":"0"}]}`, `{"items":{}}`, `{"failed":0`, `{"failed":0}}`, `[]`} {
		var got Items[submitItem]
		if err := DecodeAnswer([]byte(text), &got); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}
