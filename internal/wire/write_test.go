package wire

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
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

func TestU9_requests_are_written_as_encoding_json_writes_them(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		p := planOf(o.Request)
		if p.body == nil {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			testseed.Check(t, func(t *rapid.T) {
				body := reflect.New(p.shape.typ).Elem()
				drawValue(t, p.shape, body, true)
				writtenAsOthers(t, body.Interface())
			})
		})
	}
}

func TestU9_answers_are_written_as_encoding_json_writes_them(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if o.Raw {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			writtenAsOthers(t, reflect.Zero(o.Answer).Interface())
			testseed.Check(t, func(t *rapid.T) {
				answer := reflect.New(o.Answer).Elem()
				drawAnswer(t, answer)
				writtenAsOthers(t, answer.Interface())
			})
		})
	}
}

// The types that write themselves are compared with structs that say the same by their fields.
func TestU9_types_that_write_themselves_write_what_fields_would(t *testing.T) {
	t.Parallel()
	type parts struct {
		LeaseID   string `json:"lease_id,omitempty"`
		Epoch     int64  `json:"lease_epoch,omitempty"`
		AttemptID string `json:"attempt_id,omitempty"`
	}
	type held struct {
		ExecutionID string `json:"execution_id"`
		parts
	}
	type accepted struct {
		Index int  `json:"index"`
		OK    bool `json:"ok"`
		SubmitItem
	}
	type refused struct {
		Index int      `json:"index"`
		OK    bool     `json:"ok"`
		Error *Problem `json:"error,omitempty"`
	}
	type list struct {
		Items  []refused `json:"items"`
		Failed int       `json:"failed"`
	}
	testseed.Check(t, func(t *rapid.T) {
		ref, at, n := anyLeaseRef(t), anyTime(t), rapid.IntRange(0, 1000).Draw(t, "index")
		if rapid.Bool().Draw(t, "empty") {
			ref = LeaseRef{}
		}
		name := rapid.String().Draw(t, "name")
		item := SubmitItem{Outcome: name, ExecutionID: "<" + name, Priority: n}
		problem := rapid.SampledFrom([]*Problem{nil, {Code: name, Index: &n, Current: map[string]any{name: []any{n, nil}}}}).Draw(t, "problem")
		for _, c := range []struct{ value, same any }{
			{at, at.UTC().Format(timeLayout)},
			{Time{}, nil},
			{ref, parts(ref)},
			{HeldLease{name, ref}, held{name, parts(ref)}},
			{Item[SubmitItem]{Index: n, OK: true, Value: item}, accepted{n, true, item}},
			{Item[SubmitItem]{Index: n, Error: problem, Value: item}, refused{n, false, problem}},
			{Item[None]{Index: n, OK: true}, refused{n, true, nil}},
			{Items[None]{Items: []Item[None]{{OK: true}}, Failed: n}, list{[]refused{{OK: true}}, n}},
			{Items[None]{}, list{}},
		} {
			got, err := Marshal(c.value)
			want, _ := encodeAsOthers(c.same)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%+v was written as\n%s, %v\nwant\n%s", c.value, got, err, want)
			}
		}
	})
}

// Types outside the table, for every rule of encoding/json that one could run into.
type (
	named       string
	numbered    int8
	byPointer   struct{ Text string }
	byValue     struct{ Text string }
	asWord      struct{ Word string }
	zeroAtSeven int
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
		Moment    time.Time        `json:"moment,omitzero"`
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
func (z zeroAtSeven) IsZero() bool                { return z == 7 }

func TestU9_other_types_are_written_as_encoding_json_writes_them(t *testing.T) {
	t.Parallel()
	one := 1
	pointer := &one
	spaced := json.RawMessage(" { \"a\" : [ 1 , \"b c\" ] } ")
	full := everything{
		embedded: embedded{"x<>&\u2028", &one}, Untagged: "\xff\x00\"\\\b\f\n\r\t\x7f", Named: "n", Numbered: -1, Unsigned: 7, Ratio: 1e21,
		Quoted: embedded{A: "q"}, Pointer: &byPointer{"p"}, Value: byPointer{"v"}, Own: byValue{"o"}, Words: []asWord{{"w"}, {}},
		ByWord: map[asWord]int{{"b"}: 1, {"a"}: 2}, ByNumber: map[int]string{10: "x", 9: "y"}, ByName: map[named]*int{"z": &one, "<": nil},
		Any: []any{1, 2.5, "x", nil, map[string]any{"b": true, "a": byValue{"in"}}}, Anything: &byPointer{"any"}, Moment: time.Unix(1, 5).UTC(),
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
		func() {},
		struct{ F func() }{},
		TimeOf(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)),
		ClaimAnswer{ClaimFields: ClaimFields{ServerTime: TimeOf(time.UnixMilli(-1))}},
		Page[any]{Items: []any{1}},
		Revision(7),
		[]Revision{7},
		ViewFull,
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
