package jsonx

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

// anyTime draws an instant that JSON can carry.
func anyTime(t *rapid.T) time.Time {
	return Instant(time.UnixMilli(rapid.Int64Range(1, 253402300799999).Draw(t, "ms")))
}

func TestU6_instants_come_back_from_any_offset(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		want := anyTime(t)
		offset := time.FixedZone("", rapid.IntRange(-12*60, 14*60).Draw(t, "minutes")*60)
		local := want.In(offset)
		if local.Year() > 9999 || local.Year() < 1 {
			local = want
		}
		text, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var back time.Time
		if err := Decode(text, &back); err != nil || back != want {
			t.Fatalf("%s became %s: %v", text, back, err)
		}
		if back, err := ParseTime(local.Format(time.RFC3339Nano)); err != nil || back != want {
			t.Fatalf("%s became %s: %v", local.Format(time.RFC3339Nano), back, err)
		}
	})
}

func TestU6_instants_are_written_in_utc_with_milliseconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"},
		{"2026-01-31T09:30:00.1239999+02:00", "2026-01-31T07:30:00.123Z"},
		{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
		{"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
	} {
		got, err := ParseTime(c.text)
		text, errText := FormatTime(got)
		if err != nil || errText != nil || text != c.want {
			t.Errorf("%s: %s %v %v", c.text, text, err, errText)
		}
	}
	given := time.Date(2026, 1, 31, 9, 30, 0, 123_999_999, time.FixedZone("", 2*3600))
	for want, value := range map[string]any{
		`{"a":null,"c":null}`: instants{},
		`{"a":"2026-01-31T07:30:00.123Z","b":"2026-01-31T07:30:00.123Z","c":"2026-01-31T07:30:00.123Z","d":["2026-01-31T07:30:00.123Z"]}`: instants{given, given, &given, []time.Time{given}},
		`"2026-01-31T07:30:00.123Z"`: given,
		`null`:                       time.Time{},
	} {
		pointer := reflect.New(reflect.TypeOf(value))
		pointer.Elem().Set(reflect.ValueOf(value))
		for _, v := range []any{value, pointer.Interface()} {
			text, err := Marshal(v)
			appended, errAppend := Append(nil, v)
			if err != nil || errAppend != nil || string(text) != want || string(appended) != want {
				t.Errorf("%T was written as %s and %s, want %s: %v %v", v, text, appended, want, err, errAppend)
			}
		}
	}
}

type instants struct {
	A time.Time   `json:"a"`
	B time.Time   `json:"b,omitzero"`
	C *time.Time  `json:"c"`
	D []time.Time `json:"d,omitempty"`
}

func TestU6_what_is_no_instant_is_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "2026-01-31", "2026-01-31 09:30:00Z", "2026-01-31T09:30:00", "2026-02-30T09:30:00Z", "2026-01-31T9:30:00Z", "2026-01-31T09:30:60Z",
		"1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "1700000000", "2026-01-31T09:30:00,5Z", "2026-01-31T09:30:00 02:00", "2026-01-31T09:30:00+24:00",
	} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q became %s", text, got)
		}
	}
	for text, want := range map[string]string{
		`{"a":17}`: "invalid_argument: /a: expected a string, found a number", `{"a":"x"}`: "invalid_argument: /a: this is not an RFC 3339 instant",
		`{"d":["1969-12-31T23:59:59Z"]}`: "invalid_argument: /d/0: the instant is outside the years 1970 to 9999",
		`{"c":"\ud800"}`:                 "invalid_json: line 1, column 7: half of a surrogate pair stands alone",
	} {
		if err := Decode([]byte(text), new(instants)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var got instants
	if err := Decode([]byte(`{"a":null,"b":null,"c":null,"d":null}`), &got); err != nil || !reflect.DeepEqual(got, instants{}) {
		t.Errorf("null: %+v %v", got, err)
	}
	for _, out := range []time.Time{time.UnixMilli(-1), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if text, err := Marshal(&instants{A: out}); err == nil {
			t.Errorf("%s was written as %s", out, text)
		}
		if text, err := FormatTime(out); err == nil {
			t.Errorf("%s is shown as %s", out, text)
		}
	}
}

type spans struct {
	A time.Duration            `json:"a_ms"`
	B time.Duration            `json:"b_ms,omitempty"`
	C time.Duration            `json:"c_ms,omitzero"`
	D *time.Duration           `json:"d_ms,omitempty"`
	E []time.Duration          `json:"e_ms,omitempty"`
	F map[string]time.Duration `json:"f_ms,omitempty"`
}

func TestU6_spans_of_time_are_whole_milliseconds(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	for _, c := range []struct {
		value spans
		text  string
	}{
		{spans{}, `{"a_ms":0}`},
		{spans{A: 1, B: 1, C: 1, D: &zero}, `{"a_ms":1,"b_ms":1,"c_ms":1,"d_ms":0}`},
		{spans{A: time.Millisecond, B: time.Millisecond + 1, C: 1500 * time.Microsecond}, `{"a_ms":1,"b_ms":2,"c_ms":2}`},
		{spans{A: -time.Second, B: -1, C: -1500 * time.Microsecond}, `{"a_ms":-1000,"b_ms":0,"c_ms":-1}`},
		{spans{A: time.Hour, E: []time.Duration{1, time.Second}, F: map[string]time.Duration{"x": time.Minute}}, `{"a_ms":3600000,"e_ms":[1,1000],"f_ms":{"x":60000}}`},
		{spans{A: 1<<63 - 1, B: -1 << 63}, `{"a_ms":9223372036855,"b_ms":-9223372036854}`},
	} {
		for _, v := range []any{c.value, &c.value} {
			if text, err := Marshal(v); err != nil || string(text) != c.text {
				t.Errorf("%+v was written as %s, want %s: %v", v, text, c.text, err)
			}
		}
	}
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "-1": -time.Millisecond, "86400000": 24 * time.Hour, "9223372036854": 9223372036854 * time.Millisecond,
		"9223372036855": 9223372036854 * time.Millisecond, "9223372036854775807": 9223372036854 * time.Millisecond, "-9223372036854775808": -9223372036854 * time.Millisecond,
	} {
		for _, read := range []func([]byte, any) error{Decode, DecodeLenient} {
			var got spans
			if err := read([]byte(`{"a_ms":`+text+`,"d_ms":`+text+`}`), &got); err != nil || got.A != want || *got.D != want {
				t.Errorf("%s is read as %s, want %s: %v", text, got.A, want, err)
			}
		}
	}
}

func TestU6_a_span_of_time_comes_back_rounded_up(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		given := time.Duration(rapid.Int64Range(-1<<62, 1<<62).Draw(t, "ns"))
		text, err := Marshal(spans{A: given})
		if err != nil {
			t.Fatal(err)
		}
		var got spans
		if err := Decode(text, &got); err != nil || got.A < given || got.A-given >= time.Millisecond || got.A%time.Millisecond != 0 {
			t.Fatalf("%s became %s by way of %s: %v", given, got.A, text, err)
		}
	})
}

func TestU6_what_is_no_span_of_time_is_refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"1s"`: "expected a whole number, found a string", `1.5`: "expected a whole number, found a fraction or an exponent",
		`1e3`: "expected a whole number, found a fraction or an exponent", `9223372036854775808`: "the number is out of range", `true`: "expected a whole number, found a boolean",
	} {
		if err := Decode([]byte(`{"a_ms":`+text+`}`), new(spans)); err == nil || err.Error() != "invalid_argument: /a_ms: "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestU6_a_span_of_time_says_its_unit_by_its_name(t *testing.T) {
	t.Parallel()
	type (
		plain struct {
			Wait time.Duration `json:"wait"`
		}
		pointer struct {
			Wait *time.Duration `json:"wait,omitempty"`
		}
		list struct {
			Waits []time.Duration `json:"waits_s"`
		}
		below struct {
			Below map[string]*plain `json:"below"`
		}
	)
	for _, value := range []any{plain{}, pointer{}, list{}, below{}} {
		const want = "without _ms at the end"
		if got := panicOf(func() { ShapeOf(reflect.TypeOf(value)) }); !strings.Contains(got, want) {
			t.Errorf("%T can be read: %q", value, got)
		}
		if got := panicOf(func() { _, _ = Marshal(value) }); !strings.Contains(got, want) {
			t.Errorf("%T can be written: %q", value, got)
		}
	}
	type tagged struct {
		Wait time.Duration `json:"wait" unit:"ms"`
	}
	var read tagged
	text, err := Marshal(tagged{time.Second})
	if err != nil || string(text) != `{"wait":1000}` {
		t.Errorf("with a tag: %s, %v", text, err)
	}
	if err := Decode(text, &read); err != nil || read.Wait != time.Second {
		t.Errorf("with a tag: %+v, %v", read, err)
	}
}
