package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
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
	At      Time               `json:"at"`
	Lease   LeaseRef           `json:"lease"`
	Bytes   []byte             `json:"bytes"`
	One     string             `json:"one" oneof:"x"`
	Another string             `json:"another" oneof:"x"`
}

func decodeOuter(text string) (outer, Errors) {
	var o outer
	var all Errors
	errors.As(DecodeJSON([]byte(text), &o), &all)
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
		{"in a lease", `{"lease":{"lease_id":"a","lease_epok":1}}`, "/lease/lease_epok", `did you mean "lease_epoch"?`},
		{"escaped in the pointer", `{"a/b~c":1}`, "/a~1b~0c", "known here: kind, number, ratio, flag, list, map, patch, raw, raws, at, lease, bytes, one, another"},
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

func TestW6_a_lease_that_cannot_be_read_is_an_invalid_handle(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"x"`, `{"fence":"x"}`, `{"lease_id":"a","lease_epoch":1,"attempt_id":"b","fence":"a.2.b"}`} {
		_, all := decodeOuter(`{"lease":` + text + `}`)
		if len(all) != 1 || all[0].Code != CodeInvalidHandle || all[0].Field != "/lease" {
			t.Errorf("%s: %v", text, all)
		}
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
		{"a number for a lease", `{"lease":4}`, "/lease", "expected an object, found a number"},
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
	if !errors.As(all.orNil(), &first) || first != all[0] || !strings.HasSuffix(all.Error(), "(and 7 more)") {
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
		"lease":null,"bytes":null,"one":null,"another":"x"}`)
	want := outer{Map: map[string]string{"b": "x"}, Patch: map[string]*string{"gone": nil}, Another: "x"}
	if all != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v %v", o, all)
	}
	var i inner
	var faults Errors
	if errors.As(DecodeJSON([]byte(`{"name":null}`), &i), &faults); len(faults) != 1 || faults[0].Code != CodeMissingField || faults[0].Field != "/name" {
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

func TestU77_a_command_of_a_batch_has_the_fields_of_its_own_call(t *testing.T) {
	t.Parallel()
	const items = `{"items":[
		{"op":"renew","execution_id":"x","lease":"a.1.b","percent":3},
		{"op":"fail","execution_id":"x","lease":"a.1.b"},
		{"op":"step","execution_id":"x","result":1,"result_text":"b"},
		{"op":"explode","execution_id":"x"},
		{"execution_id":"x"},
		{"op":"complete","execution_id":"x","result":{"a":1},"result_content_type":"application/json","lease":{"lease_id":"a","lease_epoch":1,"attempt_id":"b"}}]}`
	var req SendWorkRequest
	var all Errors
	errors.As(DecodeJSON([]byte(items), &req.Body), &all)
	var got []string
	for _, e := range all {
		got = append(got, e.Code+" "+e.Field)
	}
	want := []string{
		"unknown_field /items/0/percent", "missing_field /items/1/message", "invalid_argument /items/2/result_text",
		"missing_field /items/2/name", "invalid_argument /items/3/op", "missing_field /items/4/op",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if last := req.Body.Items[5]; last.Lease != (LeaseRef{"a", 1, "b"}) || string(last.ResultFields.Payload().Data) != `{"a":1}` {
		t.Errorf("%+v", last)
	}
}
