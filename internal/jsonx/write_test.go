package jsonx

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
)

// writtenAsOthers compares what is written of a value, and of a pointer to it, with what encoding/json writes.
func writtenAsOthers(t interface {
	Helper()
	Errorf(format string, args ...any)
}, value any,
) {
	t.Helper()
	pointer := reflect.New(reflect.TypeOf(value))
	pointer.Elem().Set(reflect.ValueOf(value))
	for _, v := range []any{value, pointer.Interface()} {
		want, wantErr := encodeAsOthers(v)
		got, err := Marshal(v)
		if (err != nil) != (wantErr != nil) || string(got) != string(want) {
			t.Errorf("%T was written as\n%s, %v\nwant\n%s, %v", v, got, err, want, wantErr)
		}
	}
}

// Types for every rule of encoding/json that one could run into.
type (
	named       string
	numbered    int8
	byPointer   struct{ Text string }
	byValue     struct{ Text string }
	asWord      struct{ Word string }
	zeroAtSeven int
	appending   struct{ Text string }
	embedded    struct {
		A string `json:"a"`
		B *int   `json:"b,omitempty"`
	}
	hiding struct {
		embedded
		A int `json:"a"`
	}
	withPointer struct {
		*embedded
		C int `json:"c"`
	}
	everything struct {
		embedded
		Untagged  string
		Named     named            `json:"named,omitempty"`
		Numbered  numbered         `json:"numbered,omitempty"`
		Unsigned  uint16           `json:"unsigned,omitempty"`
		Ratio     float64          `json:"ratio,omitempty"`
		Quoted    embedded         `json:"quoted"`
		Skipped   string           `json:"-"`
		hidden    int              //nolint:unused // encoding/json does not see it either
		Pointer   *byPointer       `json:"pointer,omitempty"`
		Value     byPointer        `json:"value"`
		Own       byValue          `json:"own"`
		Words     []asWord         `json:"words,omitempty"`
		Array     [2]int           `json:"array"`
		ByWord    map[asWord]int   `json:"by_word,omitempty"`
		ByNumber  map[int]string   `json:"by_number,omitempty"`
		ByName    map[named]*int   `json:"by_name,omitempty"`
		Any       any              `json:"any"`
		Anything  any              `json:"anything,omitempty"`
		Big       *big.Int         `json:"big,omitempty"`
		Seven     zeroAtSeven      `json:"seven,omitzero"`
		Raw       json.RawMessage  `json:"raw,omitempty"`
		Raws      *json.RawMessage `json:"raws"`
		Bytes     []byte           `json:"bytes"`
		Deep      **int            `json:"deep"`
		Flags     []bool           `json:"flags"`
		ZeroBytes []byte           `json:"zero_bytes,omitzero"`
		Struct    embedded         `json:"struct,omitzero"`
	}
)

func (p *byPointer) MarshalJSON() ([]byte, error) { return Marshal("pointer " + p.Text) }
func (v byValue) MarshalJSON() ([]byte, error)    { return Marshal(map[string]string{"value": v.Text}) }
func (w asWord) MarshalText() ([]byte, error)     { return []byte("<" + w.Word + "\xff>"), nil }

func (a appending) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }
func (a *appending) AppendJSON(text []byte) ([]byte, error) {
	return AppendString(text, "<"+a.Text), nil
}
func (z zeroAtSeven) IsZero() bool { return z == 7 }

func TestU9_other_types_are_written_as_encoding_json_writes_them(t *testing.T) {
	t.Parallel()
	one := 1
	pointer := &one
	spaced := json.RawMessage(" { \"a\" : [ 1 , \"b c\" ] } ")
	full := everything{
		embedded: embedded{"x<>&\u2028", &one}, Untagged: "\xff\x00\"\\\b\f\n\r\t\x7f", Named: "n", Numbered: -1, Unsigned: 7, Ratio: 1e21,
		Quoted: embedded{A: "q"}, Pointer: &byPointer{"p"}, Value: byPointer{"v"}, Own: byValue{"o"}, Words: []asWord{{"w"}, {}},
		ByWord: map[asWord]int{{"b"}: 1, {"a"}: 2}, ByNumber: map[int]string{10: "x", 9: "y"}, ByName: map[named]*int{"z": &one, "<": nil},
		Any: []any{1, 2.5, "x", nil, map[string]any{"b": true, "a": byValue{"in"}}}, Anything: &byPointer{"any"},
		Big: big.NewInt(1 << 40), Seven: 7, Raw: spaced, Raws: &spaced, Bytes: []byte{}, Deep: &pointer, Flags: []bool{true, false}, ZeroBytes: []byte{},
	}
	for _, value := range []any{
		everything{},
		full,
		[]everything{full},
		map[string]everything{"a": full},
		hiding{embedded{A: "a"}, 2},
		withPointer{},
		withPointer{&embedded{A: "a"}, 1},
		struct {
			A int `json:"a,string"`
		}{1},
		struct {
			A string `json:"a b"`
		}{"x"},
		json.RawMessage("1 "), json.RawMessage(nil), json.RawMessage(""), json.RawMessage("[1,]"),
		[]json.RawMessage{spaced, nil},
		map[string]json.RawMessage{"a": []byte(`{"b":"\u00e4"}`)},
		"x", 1, 2.5, true, []string(nil),
		[]string{},
		map[string]string(nil),
		map[string]string{},
		map[string]string{"b": "1", "a": "2", "": "\xff"},
		struct{}{},
		(*everything)(nil), (*byPointer)(nil),
		byPointer{"x"},
		[]byPointer{{"x"}},
		[]any{nil},
		appending{"x"},
		[]appending{{"x"}, {}},
		map[string]appending{"a": {"x"}},
		[]any{appending{"x"}, &appending{"y"}, []appending{{"z"}}, map[string]any{"a": appending{"x"}}},
		map[string]any{"a": full, "b": &full, "c": []embedded{{A: "<"}}, "d": map[string]*embedded{"e": nil}, "f": 1.5},
		func() {},
		struct{ F func() }{},
	} {
		writtenAsOthers(t, value)
	}
	if text, err := Marshal(nil); err != nil || string(text) != "null" {
		t.Errorf("nil was written as %s, %v", text, err)
	}
}

func TestU9_lists_of_uneven_elements_are_written_whole(t *testing.T) {
	t.Parallel()
	lengths := []int{1, 100_000, 3, 10, 50_000}
	list := make([]string, len(lengths))
	for i, n := range lengths {
		list[i] = strings.Repeat("x", n)
	}
	writtenAsOthers(t, list)
	list[0], list[1] = list[1], list[0]
	writtenAsOthers(t, list)
}

func FuzzWriting(f *testing.F) {
	for _, text := range []string{"", "plain text of some length", "ä\u2028\u2029\ufffd", "\xff\xc3\x28", "\x00\x1f\x7f\"\\/<>&", `{"a": [1, 2.0, "b c"]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		writtenAsOthers(t, string(data))
		writtenAsOthers(t, map[string]string{string(data): string(data)})
		writtenAsOthers(t, map[string]json.RawMessage{"raw": data})
	})
}

// What an interface holds is written as it is elsewhere, if it is of a type of this module.
func TestU6_instants_and_spans_have_their_form_inside_of_interfaces(t *testing.T) {
	t.Parallel()
	value := spans{A: time.Second}
	for want, v := range map[string]any{
		`[{"a_ms":1000},{"a_ms":1000},[{"a_ms":1000}]]`: []any{value, &value, []spans{value}},
		`{"a":{"a_ms":1000}}`:                           map[string]any{"a": value},
	} {
		if text, err := Marshal(v); err != nil || string(text) != want {
			t.Errorf("%s %v, want %s", text, err, want)
		}
	}
	list := []any{nil}
	list[0] = list
	if text, err := Marshal(map[string]any{"a": list}); err == nil {
		t.Errorf("a list that holds itself was written as %.40s", text)
	}
}

func TestU62_a_list_is_written_and_read_one_element_after_the_other(t *testing.T) {
	t.Parallel()
	for _, given := range [][]embedded{{}, {{A: "a"}}, {{A: "a"}, {A: strings.Repeat("b", 1000)}, {}}} {
		whole, err := Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		text, err := AppendEach(nil, len(given), func(i int) embedded { return given[i] })
		if err != nil || string(text) != string(whole) {
			t.Errorf("%s %v, want %s", text, err, whole)
		}
		got := []embedded{}
		list := Each[embedded]{Do: func(e *embedded) { got = append(got, *e) }}
		if err := DecodeLenient(text, &list); err != nil || !reflect.DeepEqual(got, given) {
			t.Errorf("%s was read as %v: %v", text, got, err)
		}
	}
}
