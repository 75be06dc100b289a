package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/payload"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// plain is a payload without what api.Payload knows besides of how it was read.
type plain struct {
	Data        []byte
	ContentType string
	Size        int  // in answers: of the bytes, also of those left out
	Omitted     bool // in answers: the bytes are left out (U10)
}

// anyPayload draws bytes of all sorts under content types of all sorts.
func anyPayload(t *rapid.T) plain {
	data := rapid.OneOf(
		rapid.SliceOf(rapid.Byte()),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.Map(rapid.Custom(func(t *rapid.T) any { return anyJSON(t, 3) }), func(v any) []byte {
			text, _ := Marshal(v)
			return text
		}),
		rapid.SampledFrom([][]byte{
			{},
			[]byte("null"), []byte(" 1 "), []byte("{ \"a\" : [1.0, 2e3] }\n"), []byte(`"<>&` + "\u2028" + `"`), []byte("\"\xff\""), []byte(`"\ud800"`),
			[]byte(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)), []byte(`{"a":1,"a":2}`), bytes.Repeat([]byte("\x01"), payload.TextLimit+1),
		}),
	).Draw(t, "data")
	contentType := rapid.SampledFrom([]string{
		ContentJSON, ContentText, ContentBytes, "application/problem+json", "text/html", "application/json; charset=utf-16", "x", "Text/CSV; header=present",
	}).Draw(t, "content type")
	if data == nil {
		data = []byte{}
	}
	return plain{Data: data, ContentType: contentType, Size: len(data)}
}

func anyJSON(t *rapid.T, depth int) any {
	if depth > 0 && rapid.Bool().Draw(t, "nested") {
		if rapid.Bool().Draw(t, "array") {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return anyJSON(t, depth-1) }), 0, 3).Draw(t, "elements")
		}
		return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return anyJSON(t, depth-1) }), 0, 3).Draw(t, "members")
	}
	return rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int(), func(n int) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	).Draw(t, "value")
}

// payloadName is one name of payload fields, with the ways through a request and an answer.
type payloadName struct {
	name    string
	sent    func(p plain) any
	shown   func(p plain, e Encoding) any
	request func(text []byte) (plain, error)
	answer  func(text []byte) (plain, error)
}

// The payloads of requests and of answers.
type (
	sentInput struct {
		Input api.Payload `json:"input,omitempty" spread:"sent"`
	}
	shownInput struct {
		Input api.Payload `json:"input,omitempty" spread:"shown"`
	}
	shownResult struct {
		Result api.Payload `json:"result,omitempty" spread:"shown"`
	}
	shownDetail struct {
		Detail api.Payload `json:"detail,omitempty" spread:"shown"`
	}
)

// shownAs is a payload as an answer of that encoding has it.
func shownAs(p plain, e Encoding) api.Payload {
	switch {
	case p.Omitted:
		return api.Unloaded(p.ContentType, p.Size)
	case e == EncodingBytes:
		return api.Payload{Data: p.Data, ContentType: p.ContentType}.AsBytes()
	default:
		return api.Payload{Data: p.Data, ContentType: p.ContentType}
	}
}

// sentAs is a payload as a request has it.
func sentAs(p plain) api.Payload { return api.Payload{Data: p.Data, ContentType: p.ContentType} }

// readFrom is the reverse of shownAs and sentAs.
func readFrom(p api.Payload) plain {
	return plain{Data: p.Data, ContentType: p.ContentType, Size: p.Size(), Omitted: p.Omitted()}
}

func payloadNames() []payloadName {
	return []payloadName{
		{
			"input",
			func(p plain) any { return &sentInput{sentAs(p)} }, func(p plain, e Encoding) any { return &shownInput{shownAs(p, e)} },
			reading(DecodeJSON, func(f sentInput) plain { return readFrom(f.Input) }), reading(DecodeAnswer, func(s shownInput) plain { return readFrom(s.Input) }),
		},
		{
			"result",
			func(p plain) any { return &ResultField{sentAs(p)} }, func(p plain, e Encoding) any { return &shownResult{shownAs(p, e)} },
			reading(DecodeJSON, func(f ResultField) plain { return readFrom(f.Result) }), reading(DecodeAnswer, func(s shownResult) plain { return readFrom(s.Result) }),
		},
		{
			"detail",
			func(p plain) any { return &DetailField{sentAs(p)} }, func(p plain, e Encoding) any { return &shownDetail{shownAs(p, e)} },
			reading(DecodeJSON, func(f DetailField) plain { return readFrom(f.Detail) }), reading(DecodeAnswer, func(s shownDetail) plain { return readFrom(s.Detail) }),
		},
	}
}

func reading[T any](decode func([]byte, any) error, payload func(T) plain) func([]byte) (plain, error) {
	return func(text []byte) (plain, error) {
		var fields T
		err := decode(text, &fields)
		return payload(fields), err
	}
}

// forEachPayload writes any payload under each name, reads it back, and checks what came.
func forEachPayload(t *testing.T, write func(n payloadName, p plain) any, read func(n payloadName, text []byte) (plain, error), check func(t *rapid.T, n payloadName, p, back plain, text string)) {
	t.Helper()
	for _, n := range payloadNames() {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			testseed.Check(t, func(t *rapid.T) {
				p := anyPayload(t)
				text, err := Marshal(write(n, p))
				if err != nil {
					t.Fatal(err)
				}
				back, err := read(n, text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				check(t, n, p, back, string(text))
			})
		})
	}
}

func TestU8_a_request_carries_any_bytes_bit_for_bit(t *testing.T) {
	t.Parallel()
	forEachPayload(t,
		func(n payloadName, p plain) any { return n.sent(p) },
		func(n payloadName, text []byte) (plain, error) { return n.request(text) },
		func(t *rapid.T, _ payloadName, p, back plain, text string) {
			if !reflect.DeepEqual(back, p) {
				t.Fatalf("%s became %+v", text, back)
			}
		})
}

func TestU9_an_answer_as_bytes_carries_any_bytes_bit_for_bit(t *testing.T) {
	t.Parallel()
	forEachPayload(t,
		func(n payloadName, p plain) any { return n.shown(p, EncodingBytes) },
		func(n payloadName, text []byte) (plain, error) { return n.answer(text) },
		func(t *rapid.T, n payloadName, p, back plain, text string) {
			if !reflect.DeepEqual(back, p) || !strings.HasPrefix(text, `{"`+n.name+`_bytes":`) {
				t.Fatalf("%s became %+v", text, back)
			}
		})
}

func TestU9_an_answer_differs_from_the_bytes_in_white_space_of_json_only(t *testing.T) {
	t.Parallel()
	forEachPayload(t,
		func(n payloadName, p plain) any { return n.shown(p, "") },
		func(n payloadName, text []byte) (plain, error) { return n.answer(text) },
		func(t *rapid.T, n payloadName, p, back plain, text string) {
			if strings.HasPrefix(text, `{"`+n.name+`":`) {
				var compacted bytes.Buffer
				if err := json.Compact(&compacted, p.Data); err != nil {
					t.Fatal(err)
				}
				p.Data = compacted.Bytes()
			}
			if !reflect.DeepEqual(back, p) {
				t.Fatalf("%s became %+v, want %+v", text, back, p)
			}
		})
}

func TestU20_long_text_is_sent_as_bytes_which_never_grow_sixfold(t *testing.T) {
	t.Parallel()
	for size, asText := range map[int]bool{payload.TextLimit: true, payload.TextLimit + 1: false} {
		text, err := Marshal(&sentInput{api.Bytes(bytes.Repeat([]byte("\x01"), size), ContentText)})
		if err != nil || bytes.HasPrefix(text, []byte(`{"input_text":`)) != asText || bytes.HasPrefix(text, []byte(`{"input_bytes":`)) == asText {
			t.Errorf("%d bytes: %.20s, %v, want it as text: %t", size, text, err, asText)
		}
	}
}

func TestU8_no_payload_is_no_field(t *testing.T) {
	t.Parallel()
	for _, n := range payloadNames() {
		for _, fields := range []any{n.sent(plain{}), n.shown(plain{}, ""), n.shown(plain{}, EncodingBytes)} {
			if text, err := Marshal(fields); err != nil || string(text) != "{}" {
				t.Errorf("%s: %s %v", n.name, text, err)
			}
		}
	}
}

func TestU9_the_content_type_decides_how_an_answer_shows_a_payload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, contentType, want string }{
		{"JSON", `{"a": "<&>"}`, ContentJSON, `{"input":{"a":"<&>"},"input_content_type":"application/json","input_size":12}`},
		{"null", `null`, ContentJSON, `{"input":null,"input_content_type":"application/json","input_size":4}`},
		{"a type built on JSON", `1`, "application/vnd.x+json", `{"input":1,"input_content_type":"application/vnd.x+json","input_size":1}`},
		{"not JSON", `{`, ContentJSON, `{"input_bytes":"ew==","input_content_type":"application/json","input_size":1}`},
		{"JSON that is not UTF-8", "\"\xff\"", ContentJSON, `{"input_bytes":"Iv8i","input_content_type":"application/json","input_size":3}`},
		{"text", "ä<", "text/csv", `{"input_text":"ä<","input_content_type":"text/csv","input_size":3}`},
		{"text that is none", "\xff", "text/csv", `{"input_bytes":"/w==","input_content_type":"text/csv","input_size":1}`},
		{"bytes", `1`, ContentBytes, `{"input_bytes":"MQ==","input_content_type":"application/octet-stream","input_size":1}`},
		{"empty", ``, ContentJSON, `{"input_bytes":"","input_content_type":"application/json","input_size":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := Marshal(&shownInput{api.Payload{Data: []byte(c.data), ContentType: c.contentType}})
			if err != nil || string(text) != c.want {
				t.Errorf("%s %v\nwant %s", text, err, c.want)
			}
		})
	}
}

func TestU10_what_is_left_out_shows_its_size(t *testing.T) {
	t.Parallel()
	p := plain{ContentType: ContentText, Size: 70_000, Omitted: true}
	text, err := Marshal(&shownDetail{shownAs(p, "")})
	if err != nil || string(text) != `{"detail_content_type":"text/plain; charset=utf-8","detail_size":70000,"detail_omitted":true}` {
		t.Fatalf("%s %v", text, err)
	}
	var read shownDetail
	if err := DecodeAnswer(text, &read); err != nil || !reflect.DeepEqual(readFrom(read.Detail), p) {
		t.Errorf("%+v %v", read, err)
	}
}

func TestU8_the_fields_of_a_request_say_bytes_and_content_type(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       plain
	}{
		{"nothing", `{}`, plain{}},
		{"null is nothing", `{"input":null}`, plain{}},
		{"a type of nothing", `{"input_content_type":"text/csv"}`, plain{}},
		{"JSON", `{"input": [1, 2] }`, plain{[]byte("[1, 2]"), ContentJSON, 6, false}},
		{"text", `{"input_text":"\u00e4"}`, plain{[]byte("ä"), ContentText, 2, false}},
		{"empty text", `{"input_text":""}`, plain{[]byte{}, ContentText, 0, false}},
		{"bytes", `{"input_bytes":"/w=="}`, plain{[]byte{0xff}, ContentBytes, 1, false}},
		{"a type of its own", `{"input":1,"input_content_type":"application/x"}`, plain{[]byte("1"), "application/x", 1, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var fields sentInput
			if err := DecodeJSON([]byte(c.text), &fields); err != nil {
				t.Fatal(err)
			}
			if got := readFrom(fields.Input); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestU8_a_payload_is_given_in_one_way(t *testing.T) {
	t.Parallel()
	var fields sentInput
	var all Errors
	errors.As(DecodeJSON([]byte(`{"input":1,"input_text":"a","input_bytes":"","input_size":1}`), &fields), &all)
	var got []string
	for _, e := range all {
		got = append(got, e.Code+" "+e.Field)
	}
	want := []string{"unknown_field /input_size", "invalid_argument /input_text", "invalid_argument /input_bytes"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
