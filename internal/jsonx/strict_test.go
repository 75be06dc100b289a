package jsonx

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// inner and outer have one field of each form.
type inner struct {
	Name  string `json:"name" required:"true"`
	Count *int   `json:"count"`
}

type outer struct {
	Kind    string             `json:"kind"`
	Number  int64              `json:"number"`
	Ratio   float64            `json:"ratio"`
	Flag    bool               `json:"flag"`
	List    []inner            `json:"list"`
	Map     map[string]string  `json:"map"`
	Patch   map[string]*string `json:"patch"`
	Raw     json.RawMessage    `json:"raw"`
	Raws    []json.RawMessage  `json:"raws"`
	At      time.Time          `json:"at"`
	Pair    pair               `json:"pair"`
	Wait    time.Duration      `json:"wait_ms"`
	Bytes   []byte             `json:"bytes"`
	One     string             `json:"one" oneof:"x"`
	Another string             `json:"another" oneof:"x"`
}

// pair reads itself from "left:right", from an object, or from a list with anything behind the two.
type pair struct{ Left, Right string }

type pairObject struct {
	Left  string `json:"left"`
	Right string `json:"right"`
}

func (p *pair) ReadJSON(d *Decoder) {
	switch d.Peek() {
	case '"':
		text, ok := d.String()
		if !ok {
			return
		}
		var colon bool
		if p.Left, p.Right, colon = strings.Cut(text, ":"); !colon {
			d.Refuse(Invalid("a pair has a colon", ""))
		}
	case '[':
		list := strings.Split(strings.Trim(string(d.Bytes()), `[]"`), `","`)
		p.Left, p.Right = list[0], list[len(list)-1]
	default:
		if object := Scratch[pairObject](d); d.Into(object) {
			*p = pair(*object)
		}
	}
}

// UnmarshalJSON is for comparisons with encoding/json.
func (p *pair) UnmarshalJSON(text []byte) error { return Decode(text, p) }

func decodeOuter(text string) (outer, Errors) {
	var o outer
	var all Errors
	errors.As(Decode([]byte(text), &o), &all)
	return o, all
}

func TestU5_text_that_is_not_json_is_told_with_line_and_column(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, c := range []struct{ name, text, detail string }{
		{"nothing", "", "line 1, column 1: the text ends where a value should stand"},
		{"no value", `{"kind":`, "line 1, column 9: the text ends where a value should stand"},
		{"no end", `{"kind":"a"`, `line 1, column 12: the text ends where "," or "}" should stand`},
		{"in a later line", "{\n  \"kind\": \"a\",\n  \"number\": nope\n}", `line 3, column 13: "n" stands where a value should`},
		{"columns are characters", `{"kind": "日本", x}`, `line 1, column 16: "x" stands where a name in quotes should`},
		{"a comma too many", `{"list":[{"name":"a"},]}`, `line 1, column 23: "]" stands where a value should`},
		{"no colon", `{"kind" "a"}`, `line 1, column 9: "\"" stands where ":" should`},
		{"no comma", `{"raws":[1 2]}`, `line 1, column 12: "2" stands where "," or "]" should`},
		{"two documents", `{} {}`, `line 1, column 4: "{" stands where the end should`},
		{"a duplicate name", "{\"kind\":\"a\",\n\"kind\":\"b\"}", `line 2, column 1: the name "kind" stands here a second time`},
		{"a duplicate unknown name", `{"x":1,"x":2}`, `line 1, column 8: the name "x" stands here a second time`},
		{"a duplicate by escape", `{"kind":"a","\u006bind":"b"}`, `line 1, column 13: the name "kind" stands here a second time`},
		{"a duplicate in a map", `{"map":{"a":"1","a":"2"}}`, `line 1, column 17: the name "a" stands here a second time`},
		{"a leading zero", `{"number":01}`, `line 1, column 12: "1" stands where "," or "}" should`},
		{"a bare point", `{"ratio":1.}`, `line 1, column 12: "}" stands where a digit should`},
		{"a bare exponent", `{"ratio":1e+}`, `line 1, column 13: "}" stands where a digit should`},
		{"a bare minus", `{"number":-}`, `line 1, column 12: "}" stands where a digit should`},
		{"a control character", "{\"kind\":\"a\tb\"}", "line 1, column 11: a control character stands in a string without an escape"},
		{"the last control character", "{\"kind\":\"\x1f\"}", "line 1, column 10: a control character stands in a string without an escape"},
		{"no such escape", `{"kind":"a\q"}`, "line 1, column 11: this escape does not exist"},
		{"a short escape", `{"kind":"\u12"}`, `line 1, column 10: \u is followed by four hexadecimal digits`},
		{"half a pair", `{"kind":"a\ud800b"}`, "line 1, column 11: half of a surrogate pair stands alone"},
		{"the wrong half", `{"kind":"\ud800\ud800"}`, "line 1, column 10: half of a surrogate pair stands alone"},
		{"an open string", `{"kind":"a`, "line 1, column 11: the text ends inside a string"},
		{"not UTF-8", "{\"kind\":\"a\xff\"}", "line 1, column 11: the text is not UTF-8"},
		{"too deep", `{"raw":` + deep + `}`, "line 1, column 1008: values are nested deeper than 1000"},
		{"too deep and unknown", `{"x":` + deep + `}`, "line 1, column 1006: values are nested deeper than 1000"},
		{"broken in an unknown field", `{"x":[1,}`, `line 1, column 9: "}" stands where a value should`},
		{"a byte order mark", "\ufeff{}", `line 1, column 1: "\ufeff" stands where a value should`},
		{"a zero byte", "{\x00}", `line 1, column 2: "\x00" stands where a name in quotes should`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, all := decodeOuter(c.text)
			if len(all) != 1 || all[0].Code != CodeInvalidJSON || all[0].Field != "" || all[0].Detail != c.detail {
				t.Errorf("%v\nwant %s", all, c.detail)
			}
		})
	}
}

func TestU5_unknown_fields_are_told_at_any_depth_with_the_nearest_name(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, field, hint string }{
		{"a letter too many", `{"kinds":"a"}`, "/kinds", `did you mean "kind"?`},
		{"capitals", `{"Kind":"a"}`, "/Kind", `did you mean "kind"?`},
		{"nothing but capitals", `{"KIND":"a"}`, "/KIND", `did you mean "kind"?`},
		{"letters swapped", `{"nubmer":1}`, "/nubmer", `did you mean "number"?`},
		{"in a list", `{"list":[{"name":"a"},{"name":"b","coutn":1}]}`, "/list/1/coutn", `did you mean "count"?`},
		{"nothing near", `{"list":[{"name":"a","zzzzzzz":{"deep":[1,{}]}}]}`, "/list/0/zzzzzzz", "known here: name, count"},
		{"in a type that reads itself", `{"pair":{"left":"a","rihgt":"b"}}`, "/pair/rihgt", `did you mean "right"?`},
		{"escaped in the pointer", `{"a/b~c":1}`, "/a~1b~0c", "known here: kind, number, ratio, flag, list, map, patch, raw, raws, at, pair, wait_ms, bytes, one, another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, all := decodeOuter(c.text)
			want := Error{Code: CodeUnknownField, Field: c.field, Detail: "this field is not known", Hint: c.hint}
			if len(all) != 1 || *all[0] != want {
				t.Errorf("%+v\nwant %+v", all, want)
			}
		})
	}
}

func TestU5_wrong_values_are_told_with_their_field(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, field, detail string }{
		{"a number for a string", `{"kind":1}`, "/kind", "expected a string, found a number"},
		{"a string for a number", `{"number":"1"}`, "/number", "expected a whole number, found a string"},
		{"a fraction", `{"number":1.5}`, "/number", "expected a whole number, found a fraction or an exponent"},
		{"an exponent", `{"number":1e3}`, "/number", "expected a whole number, found a fraction or an exponent"},
		{"too large", `{"number":9223372036854775808}`, "/number", "the number is out of range"},
		{"a ratio too large", `{"ratio":1e999}`, "/ratio", "the number is out of range"},
		{"a string for a boolean", `{"flag":"true"}`, "/flag", "expected a boolean, found a string"},
		{"an object for a list", `{"list":{}}`, "/list", "expected an array, found an object"},
		{"an element", `{"list":["a"]}`, "/list/0", "expected an object, found a string"},
		{"a null element", `{"list":[null]}`, "/list/0", "expected an element, found null"},
		{"a member of a map", `{"map":{"a":true}}`, "/map/a", "expected a string, found a boolean"},
		{"an array for an object", `{"map":[]}`, "/map", "expected an object, found an array"},
		{"no instant", `{"at":"yesterday"}`, "/at", "this is not an RFC 3339 instant"},
		{"a number for an instant", `{"at":17}`, "/at", "expected a string, found a number"},
		{"an object for a span", `{"wait_ms":{}}`, "/wait_ms", "expected a whole number, found an object"},
		{"a number for a type that reads itself", `{"pair":4}`, "/pair", "expected an object, found a number"},
		{"what such a type refuses", `{"pair":"a"}`, "/pair", "a pair has a colon"},
		{"no base64", `{"bytes":"a-b_"}`, "/bytes", "this is not standard base64"},
		{"two of one group", `{"another":"a","one":"b"}`, "/another", "one is given too"},
		{"no object at all", `null`, "", "expected an object, found null"},
		{"a list", `[]`, "", "expected an object, found an array"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, all := decodeOuter(c.text)
			if len(all) != 1 || all[0].Code != CodeInvalidArgument || all[0].Field != c.field || all[0].Detail != c.detail {
				t.Errorf("%v\nwant %s: %s", all, c.field, c.detail)
			}
		})
	}
}

func TestU11_all_faulty_fields_are_told_at_once(t *testing.T) {
	t.Parallel()
	_, all := decodeOuter(`{"kind":7, "list":[{"count":"x","nam":"a"},{}], "what":1, "at":"no", "one":"a", "another":"b"}`)
	var got []string
	for _, e := range all {
		got = append(got, e.Code+" "+e.Field)
	}
	want := []string{
		"invalid_argument /kind", "invalid_argument /list/0/count", "unknown_field /list/0/nam", "missing_field /list/0/name",
		"missing_field /list/1/name", "unknown_field /what", "invalid_argument /at", "invalid_argument /another",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	var first *Error
	if !errors.As(all.OrNil(), &first) || first != all[0] || !strings.HasSuffix(all.Error(), "(and 7 more)") {
		t.Errorf("%v", all)
	}
}

func TestU11_what_is_told_of_a_request_full_of_faults_is_bounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `"x%d":1,`, i)
	}
	_, all := decodeOuter("{" + text.String() + `"kind":"a"}`)
	if len(all) != maxFaults {
		t.Errorf("%d faults", len(all))
	}
	long := strings.Repeat("ä", 1000)
	if _, all = decodeOuter(`{"` + long + `":1}`); len(all) != 1 || all[0].Field != "/"+long[:maxName]+"…" {
		t.Errorf("%v", all)
	}
}

func TestU5_null_is_as_absent(t *testing.T) {
	t.Parallel()
	o, all := decodeOuter(`{"kind":null,"number":null,"list":null,"map":{"a":null,"b":"x"},"patch":{"gone":null},"raw":null,"at":null,
		"pair":null,"wait_ms":null,"bytes":null,"one":null,"another":"x"}`)
	want := outer{Map: map[string]string{"b": "x"}, Patch: map[string]*string{"gone": nil}, Another: "x"}
	if all != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v %v", o, all)
	}
	var i inner
	var faults Errors
	if errors.As(Decode([]byte(`{"name":null}`), &i), &faults); len(faults) != 1 || faults[0].Code != CodeMissingField || faults[0].Field != "/name" {
		t.Errorf("%v", faults)
	}
}

func TestU8_inline_json_keeps_its_very_bytes(t *testing.T) {
	t.Parallel()
	const value = "{ \"b\" : 1.0,\n\t\"a\":[ \"\\u00e4<>&\", 1e2, {\"b\":1,\"b\":2} ] }"
	o, all := decodeOuter(`{"raw": ` + value + ` , "raws":[ 1.50 , null ]}`)
	if all != nil || string(o.Raw) != value || len(o.Raws) != 2 || string(o.Raws[0]) != "1.50" {
		t.Errorf("%q %q %v", o.Raw, o.Raws, all)
	}
}

func TestU5_strings_mean_what_json_says(t *testing.T) {
	t.Parallel()
	const text = `{"kind":"\"\\\/\b\f\n\r\t\u0041\u00e4\ud83d\ude00日\u0000"}`
	o, all := decodeOuter(text)
	var want struct{ Kind string }
	if err := json.Unmarshal([]byte(text), &want); err != nil || all != nil || o.Kind != want.Kind {
		t.Errorf("%q, want %q: %v %v", o.Kind, want.Kind, all, err)
	}
}

func TestU5_a_type_reads_itself_from_all_its_forms(t *testing.T) {
	t.Parallel()
	var got struct {
		Pairs []pair           `json:"pairs"`
		Map   map[string]*pair `json:"map"`
	}
	err := Decode([]byte(`{"pairs":["a:b",{"left":"c"},{"right":"d"},["e","f"]],"map":{"x":{"left":"g","right":"h"},"y":null}}`), &got)
	want := []pair{{"a", "b"}, {"c", ""}, {"", "d"}, {"e", "f"}}
	if err != nil || !reflect.DeepEqual(got.Pairs, want) || *got.Map["x"] != (pair{"g", "h"}) || got.Map["y"] != nil {
		t.Errorf("%+v %v", got, err)
	}
	for text, want := range map[string]string{
		`{"pairs":["\ud800"]}`:  `invalid_json: line 1, column 12: half of a surrogate pair stands alone`,
		`{"pairs":["a:b",["x"}`: `invalid_json: line 1, column 21: "}" stands where "," or "]" should`,
		`{"pairs":["a:b","c"]}`: `invalid_argument: /pairs/1: a pair has a colon`,
	} {
		if err := Decode([]byte(text), &got); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// either is checked for which of its fields are given.
type either struct {
	A string `json:"a"`
	B *int   `json:"b"`
}

func (e *either) CheckJSON(given []string) Errors {
	if len(given) == 1 {
		return nil
	}
	return Errors{{Code: CodeInvalidArgument, Field: "/a", Detail: e.A + ": " + strings.Join(given, ",")}}
}

func TestU5_a_type_checks_which_fields_are_given(t *testing.T) {
	t.Parallel()
	var got []either
	err := Decode([]byte(`[{"a":"x"},{"b":1,"a":"y"},{"b":2},{"a":null,"b":null},{"b":3,"a":null}]`), &got)
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 || all[0].Error() != "invalid_argument: /1/a: y: a,b" || all[1].Error() != "invalid_argument: /3/a: : " {
		t.Errorf("%v", err)
	}
	if err := DecodeLenient([]byte(`[{}]`), &got); err != nil {
		t.Errorf("an answer was checked: %v", err)
	}
}

func TestU5_types_that_cannot_be_read_are_found(t *testing.T) {
	t.Parallel()
	for want, typ := range map[string]reflect.Type{
		"chan int cannot be read": reflect.TypeFor[[]chan int](),
		"has no JSON name":        reflect.TypeFor[struct{ A string }](),
		"two fields called name": reflect.TypeFor[struct {
			inner
			Name string `json:"name"`
		}](),
		`may have "x" elements`: reflect.TypeFor[struct {
			A []int `json:"a" most:"x"`
		}](),
	} {
		for range 2 { // what was found out before a panic is not kept
			if got := panicOf(func() { ShapeOf(typ) }); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", typ, got, want)
			}
		}
	}
	recursive := ShapeOf(reflect.TypeFor[tree]())
	if recursive != ShapeOf(reflect.TypeFor[tree]()) || recursive.Fields[1].Shape.Elem != recursive || len(recursive.Fields) != 2 {
		t.Errorf("%+v", recursive)
	}
}

// tree refers to itself, and has fields that JSON does not show.
type tree struct {
	Name     string `json:"name" doc:"What it is called." required:"true"`
	Branches []tree `json:"branches" most:"3"`
	Shown    string `json:"-"`
	private  int    //nolint:unused // encoding/json does not see it either
}

func TestU4_a_type_is_described_with_its_tags(t *testing.T) {
	t.Parallel()
	s := ShapeOf(reflect.TypeFor[tree]())
	name, branches := s.Fields[0], s.Fields[1]
	if name.Name != "name" || name.Shape.Form != FormString || !name.Required || name.Tag.Get("doc") != "What it is called." || branches.Most != 3 || branches.Required {
		t.Errorf("%+v", s.Fields)
	}
	value := reflect.ValueOf(tree{Name: "x"})
	if got := value.FieldByIndex(name.Index).String(); got != "x" {
		t.Errorf("the index of name leads to %q", got)
	}
}

// panicOf is what a function panics with; "" if it does not.
func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestU20_lists_and_maps_have_no_more_elements_than_they_may(t *testing.T) {
	t.Parallel()
	type lists struct {
		Few  []int          `json:"few" most:"2"`
		Many []struct{}     `json:"many"`
		Map  map[string]int `json:"map" most:"1"`
		Deep []lists2       `json:"deep"`
	}
	for text, want := range map[string]Error{
		`{"few":[1,2,3]}`:       {Field: "/few", Detail: "there are more than 2 elements", Limit: 2},
		`{"map":{"a":1,"b":2}}`: {Field: "/map", Detail: "there are more than 1 elements", Limit: 1},
		`{"many":[{}` + strings.Repeat(",{}", defaultMost) + `]}`: {Field: "/many", Detail: "there are more than 10000 elements", Limit: 10_000},
		`{"deep":[{},{"few":[1,2,3]}]}`:                           {Field: "/deep/1/few", Detail: "there are more than 2 elements", Limit: 2},
	} {
		var all Errors
		errors.As(Decode([]byte(text), new(lists)), &all)
		if len(all) != 1 || all[0].Code != CodeBatchTooLarge || all[0].Field != want.Field || all[0].Limit != want.Limit || all[0].Detail != want.Detail {
			t.Errorf("%.40s: %v, want %v", text, all, want)
		}
		if err := DecodeLenient([]byte(text), new(lists)); err != nil {
			t.Errorf("%.40s: an answer was refused: %v", text, err)
		}
	}
}

type lists2 struct {
	Few []int `json:"few" most:"2"`
}

func TestU20_memory_is_asked_for_before_it_is_taken(t *testing.T) {
	t.Parallel()
	type large struct {
		Words [100]string `json:"-"`
	}
	text := []byte("[{}" + strings.Repeat(",{}", 5000) + "]")
	asked := 0
	hold := func(bytes int) bool {
		asked += bytes
		return asked < 4<<20
	}
	var got []large
	var all Errors
	if errors.As(DecodeWithin(text, &got, hold), &all); len(all) != 1 || all[0].Code != CodeBatchTooLarge || asked < 4<<20 || asked > 16<<20 {
		t.Errorf("%d bytes were asked for, %v", asked, all)
	}
	if cap(got)*1600 > 4<<20 {
		t.Errorf("room for %d was made", cap(got))
	}
	if err := DecodeWithin([]byte("[{},{}]"), &got, func(int) bool { return false }); err != nil {
		t.Errorf("a small text asks for nothing: %v", err)
	}
}
