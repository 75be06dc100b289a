package eventdata

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestE24_any_text_survives_as_json(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		text := drawAnyText(t)
		var o Builder
		o.Str(FieldReason, text)
		o.Strs(FieldKeys, []string{text, ""})
		var got map[string]any
		if err := json.Unmarshal(o.Done().JSON(), &got); err != nil {
			t.Fatal(err)
		}
		want := strings.ToValidUTF8(text, "\ufffd")
		if len([]rune(want)) != len([]rune(text)) { // ToValidUTF8 joins runs of bad bytes, JSON replaces each
			want = string([]rune(text))
		}
		if diff := cmp.Diff(map[string]any{"reason": want, "keys": []any{want, ""}}, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestE24_absent_values_leave_no_field_and_order_is_that_of_the_calls(t *testing.T) {
	t.Parallel()
	var o Builder
	o.StrIf(FieldReason, "")
	o.Moment(FieldReason, 0)
	o.FlagIf(FieldReason, false)
	o.Raw(FieldReason, nil)
	o.IDIf(FieldReason, base.ID{})
	o.Num(FieldSize, -1)
	o.Open(FieldLease)
	o.FlagIf(FieldLate, true)
	o.Shut()
	o.Flag(FieldOn, false)
	o.Moment(FieldUntil, 1_700_000_000_000)
	o.Raw(FieldOld, json.RawMessage(`[1]`))
	o.Strs(FieldEdges, nil)
	o.UUID(FieldLeaseID, base.UUID{15: 1})
	o.IDIf(FieldParentID, base.ID{N: 7, UUID: base.UUID{15: 2}})
	const want = `{"size":-1,"lease":{"late":true},"on":false,"until":"2023-11-14T22:13:20.000Z","old":[1],"edges":[],` +
		`"lease_id":"00000000-0000-0000-0000-000000000001","parent_id":"00000000-0000-0000-0000-000000000002"}`
	if got := string(o.Done().JSON()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestE24_data_without_fields_is_an_object_and_no_data_is_nothing(t *testing.T) {
	t.Parallel()
	var o Builder
	if got := string(o.Done().JSON()); got != "{}" {
		t.Errorf("no fields: %s", got)
	}
	if got := (Data{}).JSON(); got != nil {
		t.Errorf("no data: %s", got)
	}
	if got := OfJSON(nil).JSON(); got != nil {
		t.Errorf("no text: %s", got)
	}
}

func TestE24_data_is_the_json_of_its_fields_before_and_after_it_was_stored(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		d := drawData(t)
		if got := string(d.data.JSON()); got != d.json {
			t.Fatalf("%s, want %s", got, d.json)
		}
		shape, values, texts := d.data.Parts()
		n, count, ok := cutData(shape, values+rapid.String().Draw(t, "what follows"))
		if !ok || n != len(values) || count != len(texts) {
			t.Fatalf("%d bytes of values and %d texts came back as %d and %d, %v", len(values), len(texts), n, count, ok)
		}
		if got := string(Of(shape, values, texts).JSON()); got != d.json {
			t.Fatalf("%s, want %s", got, d.json)
		}
	})
}

func TestE24_a_text_is_found_without_json(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		d := drawData(t)
		for _, name := range fieldNames {
			if got := d.data.Text(name); got != d.texts[name] {
				t.Fatalf("%s of %s: %q, want %q", name, d.json, got, d.texts[name])
			}
		}
	})
}

func TestE24_data_that_was_never_written_is_refused(t *testing.T) {
	t.Parallel()
	var o Builder
	o.Open(FieldLease)
	o.UUID(FieldLeaseID, base.UUID{1})
	o.Shut()
	o.Strs(FieldKeys, []string{"a", "b"})
	o.Num(FieldSize, 1<<40)
	shape, values, _ := o.Done().Parts()
	for n := range values {
		if _, _, ok := cutData(shape, values[:n]); ok {
			t.Errorf("%d bytes of values out of %d pass", n, len(values))
		}
	}
	for n := 1; n < len(shape); n++ {
		if _, _, ok := cutData(shape[:n], values); ok {
			t.Errorf("%d bytes of a shape out of %d pass", n, len(shape))
		}
	}
	for name, bad := range map[string]string{
		"two ends": shape + shape[len(shape)-1:], "an unknown kind": string([]byte{byte(dataKinds), 0, 0}),
		"an unknown name": string([]byte{byte(dataTrue), byte(len(fieldNames)), 0}), "more than the whole": "\x01\x01",
	} {
		if _, _, ok := cutData(bad, values); ok {
			t.Errorf("%s passes", name)
		}
	}
	if _, _, ok := cutData(string([]byte{byte(dataTexts), byte(FieldKeys), 0}), strings.Repeat("\xff", 9)+"\x01"); ok {
		t.Error("a count without bounds passes")
	}
}

func TestE24_every_field_has_a_name_of_its_own(t *testing.T) {
	t.Parallel()
	names := slices.Clone(fieldNames[:])
	slices.Sort(names)
	if names[0] == "" || len(slices.Compact(names)) != len(fieldNames) {
		t.Errorf("%q", fieldNames)
	}
}

func cutData(shape, stored string) (values, texts int, ok bool) {
	s, ok := ParseShape(shape)
	if !ok {
		return 0, 0, false
	}
	return s.Cut(stored)
}

func drawAnyText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
}

// drawnData is data, what it is as JSON, and the texts of its outermost object.
type drawnData struct {
	data  Data
	json  string
	texts map[string]string
}

// drawData draws calls of a builder, up to far more than it has room for, and makes the same calls of a writer of JSON.
func drawData(t *rapid.T) drawnData {
	if rapid.IntRange(0, 9).Draw(t, "whole") == 0 {
		return drawnData{data: OfJSON(json.RawMessage(`{ "a": [1] }`)), json: `{ "a": [1] }`}
	}
	d := drawing{t: t, o: base.NewObject(0), texts: map[string]string{}}
	names := rapid.Permutation(slices.Clone(fieldNames[:])).Draw(t, "names")
	for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "fields")] {
		d.field(name)
	}
	for d.depth > 0 {
		d.shut()
	}
	return drawnData{data: d.b.Done(), json: string(d.o.Done()), texts: d.texts}
}

type drawing struct {
	t     *rapid.T
	b     Builder
	o     *base.JSONObject
	depth int
	texts map[string]string
}

func (d *drawing) shut() {
	d.depth--
	d.b.Shut()
	d.o.Shut()
}

func (d *drawing) field(name string) {
	f := Field(slices.Index(fieldNames[:], name))
	switch dataKind(rapid.IntRange(int(dataShut), int(dataKinds)).Draw(d.t, "kind")) {
	case dataOpen:
		d.depth++
		d.b.Open(f)
		d.o.Open(name)
	case dataShut:
		if d.depth > 0 {
			d.shut()
		}
	case dataText:
		text := drawAnyText(d.t)
		d.b.StrIf(f, text)
		d.o.StrIf(name, text)
		if d.depth == 0 {
			d.texts[name] = text
		}
	case dataTexts:
		texts := rapid.SliceOfN(rapid.String(), 0, 4).Draw(d.t, "texts")
		d.b.Strs(f, texts)
		d.o.Strs(name, texts)
	case dataJSON:
		text := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("null"), json.RawMessage(`{"a":{}}`)}).Draw(d.t, "json")
		d.b.Raw(f, text)
		d.o.Raw(name, text)
	default:
		d.fixed(f, name)
	}
}

// fixed draws a field whose value is no text.
func (d *drawing) fixed(f Field, name string) {
	switch rapid.IntRange(0, 4).Draw(d.t, "kind of value") {
	case 0:
		n := rapid.Int64().Draw(d.t, "number")
		d.b.Num(f, n)
		d.o.Num(name, n)
	case 1:
		at := base.Time(rapid.Int64Range(-1, 1<<50).Draw(d.t, "moment"))
		d.b.Moment(f, at)
		d.o.Moment(name, at)
	case 2:
		u := base.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.t, "uuid"))
		d.b.UUID(f, u)
		d.o.UUID(name, u)
	case 3:
		id := base.ID{N: rapid.Byte().Draw(d.t, "n"), UUID: base.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.t, "id"))}
		d.b.IDIf(f, id)
		if !id.IsZero() {
			d.o.Str(name, id.String())
		}
	case 4:
		flag := rapid.Bool().Draw(d.t, "flag")
		d.b.Flag(f, flag)
		d.o.Flag(name, flag)
	}
}

func TestL1_the_filter_of_a_bulk_job_is_told_with_bare_ids(t *testing.T) {
	t.Parallel()
	const id = "0190f0c2-1111-7aaa-8bbb-0123456789ab"
	text := `{"filter":{"flow_id":["{fp:7}:` + id + `"]}}`
	if got := string(OfJSON(json.RawMessage(text)).JSON()); got != `{"filter":{"flow_id":["`+id+`"]}}` {
		t.Errorf("%s is shown as %s", text, got)
	}
}
