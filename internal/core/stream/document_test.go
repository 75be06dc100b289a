package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// patched is the document after patches, each in a call of its own.
func patched(t tester, patches ...string) *Document {
	t.Helper()
	m := newModel(testPolicy())
	for _, text := range patches {
		m.append(t, patch(text))
	}
	return m.doc
}

// oracleValue is a JSON value as encoding/json reads it; numbers keep their written form.
func oracleValue(t tester, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// oracleMerge is the pseudo-code of RFC 7396.
func oracleMerge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for name, v := range old {
			merged[name] = v
		}
	}
	for name, v := range members {
		if v == nil {
			delete(merged, name)
		} else {
			merged[name] = oracleMerge(merged[name], v)
		}
	}
	return merged
}

// jsonWriter draws JSON texts with every way to write a thing.
type jsonWriter struct {
	t    *rapid.T
	text strings.Builder
}

func (w *jsonWriter) pick(of ...string) string { return rapid.SampledFrom(of).Draw(w.t, "text") }

func (w *jsonWriter) put(of ...string) { w.text.WriteString(w.pick(of...)) }

func (w *jsonWriter) space() { w.put("", "", "", " ", "\n\t\r ") }

func (w *jsonWriter) object(room int) {
	w.put("{")
	w.space()
	for i := range rapid.IntRange(0, 5).Draw(w.t, "members") {
		if i > 0 {
			w.put(",")
			w.space()
		}
		w.put(`"a"`, `"b"`, `"c"`, `"d"`, `""`, `"\u0061"`, `"é"`, `"\u00E9"`, `"\\\""`, `"\u0022x"`, `"\ud83d\ude00"`, `"😀"`, `"e\/f"`, `"<&>"`, "\"\u2028\"")
		w.space()
		w.put(":")
		w.space()
		w.value(room - 1)
		w.space()
	}
	w.put("}")
}

func (w *jsonWriter) value(room int) {
	kind := rapid.IntRange(0, 9).Draw(w.t, "kind")
	switch {
	case kind >= 6 && room > 0:
		w.object(room)
	case kind == 5 && room > 0:
		w.put("[")
		for i := range rapid.IntRange(0, 3).Draw(w.t, "elements") {
			if i > 0 {
				w.put(",")
			}
			w.space()
			w.value(room - 1)
			w.space()
		}
		w.put("]")
	case kind >= 3:
		w.put("null")
	default:
		w.put("true", "false", "0", "-0", "1.50", "1e400", "12345678901234567890123", "-1.0E-7", `""`, `"x"`, `"\n\u0000\"\\"`, `"😀\ud83d\ude00"`, `"[{,\"}]"`)
	}
}

func TestEI4_a_document_is_the_fold_of_its_patches(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		m := newModel(testPolicy())
		folded := any(map[string]any{})
		for version := int64(0); version < 8; {
			var drafts []Draft
			for range rapid.IntRange(1, 3).Draw(t, "patches") {
				w := jsonWriter{t: t}
				w.space()
				w.object(4)
				w.space()
				drafts = append(drafts, patch(w.text.String()))
				folded = oracleMerge(folded, oracleValue(t, []byte(w.text.String())))
				version++
			}
			m.append(t, drafts...)
			if !reflect.DeepEqual(oracleValue(t, m.doc.Text), folded) {
				t.Fatalf("after %s\n%s\nwant\n%v", drafts[len(drafts)-1].Payload, m.doc.Text, folded)
			}
			if m.doc.Version != version || m.head.SummaryVersion() != version {
				t.Fatalf("version %d after %d patches", m.doc.Version, version)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, m.doc.Text); err != nil || compact.String() != string(m.doc.Text) {
				t.Fatalf("%s is not compact: %v", m.doc.Text, err)
			}
		}
	})
}

// Wide objects have an index, and forget members that were removed.
func TestEI4_many_patches_in_a_call_are_folded_in_order(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	for round := range 10 {
		var doc *Document
		folded := any(map[string]any{})
		for range 6 {
			e := edit(doc)
			for range 30 {
				p := drawnPatch(random, 20*round+2)
				folded = oracleMerge(folded, oracleValue(t, p))
				if err := e.apply(p); err != nil {
					t.Fatal(err)
				}
			}
			doc = e.document(doc, 1)
			if !reflect.DeepEqual(oracleValue(t, doc.Text), folded) {
				t.Fatalf("%s, want %v", doc.Text, folded)
			}
			want(t, "length that was counted", e.root.length(), len(doc.Text))
			want(t, "length written once more", len(json.RawMessage(must[[]byte](t)(json.Marshal(folded)))), len(doc.Text))
		}
	}
}

func drawnPatch(random *rand.Rand, names int) []byte {
	var text strings.Builder
	for range random.IntN(40) {
		value := []string{"null", "null", "1", `{"x":null,"y":2}`, `{"y":null,"z":{"y":1}}`, `"text"`}[random.IntN(6)]
		fmt.Fprintf(&text, `,"k%d":%s`, random.IntN(names), value)
	}
	return []byte("{" + strings.TrimPrefix(text.String(), ",") + "}")
}

func TestE9_the_cases_of_RFC_7396(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ document, patch, result string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":[null]}`, `{"a":1}`, `{"e":[null],"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{
			`{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}`,
			`{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}`,
			`{"title":"Hello!","author":{"givenName":"John"},"tags":["example"],"content":"This will be unchanged","phoneNumber":"+01-123-456-7890"}`,
		},
		// further rules of E9
		{`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1}}`},
		{`{"a":1}`, `{"a":{}}`, `{"a":{}}`},
		{`{"a":[1]}`, `{"a":{"b":null}}`, `{"a":{}}`},
		{`{"a":1}`, `{"a":[null,{"b":null,"c":[null]}]}`, `{"a":[null,{"b":null,"c":[null]}]}`},
		{`{"a":1}`, `{"a":"null"}`, `{"a":"null"}`},
		{`{"a":1,"b":2,"c":3}`, `{"a":null,"d":4}`, `{"b":2,"c":3,"d":4}`},
	} {
		if got := string(patched(t, row.document, row.patch).Text); got != row.result {
			t.Errorf("%s with %s: %s, want %s", row.document, row.patch, got, row.result)
		}
	}
	for _, text := range []string{`["c"]`, `["a","b"]`, `null`, `"bar"`, `1`, `true`} {
		_, err := Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{patch(text)}, Now: 1})
		wantCode(t, err, base.CodeInvalidPatch, "frames[0].payload")
	}
}

func TestE10_numbers_keep_their_form_and_the_last_of_several_members_counts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1.50,"b":12345678901234567890123,"c":-0,"d":1E+2,"e":[1.0]}`: `{"a":1.50,"b":12345678901234567890123,"c":-0,"d":1E+2,"e":[1.0]}`,
		`{"a":1,"b":2,"a":3}`:                     `{"a":3,"b":2}`,
		`{"a":1,"a":null}`:                        `{}`,
		`{"a":null,"a":1}`:                        `{"a":1}`,
		`{"a":1,"\u0061":2}`:                      `{"a":2}`,
		`{"a":{"b":1},"a":{"c":2}}`:               `{"a":{"c":2}}`,
		`{"a":[{"b":1,"c":2,"b":{"d":1,"d":2}}]}`: `{"a":[{"b":{"d":2},"c":2}]}`,
		"{ \"a\" : [ 1 , { } , [ ] ] }\n\t":       `{"a":[1,{},[]]}`,
		`{"\u0022":"\u00e9\/"}`:                   `{"\"":"\u00e9\/"}`,
		`{"a":"__delete__","b":"$null"}`:          `{"a":"__delete__","b":"$null"}`,
	} {
		if got := string(patched(t, text).Text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestE9_E10_what_is_no_object_in_UTF_8_is_refused_before_what_is_too_deep(t *testing.T) {
	t.Parallel()
	deep := func(n int, open, inner, shut string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	invalid := []string{
		"", " ", "{", "}", "{}}", "{} {}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{'a':1}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":-}`, `{"a":1e}`, `{"a":1e+}`,
		`{"a":NaN}`, `{"a":tru}`, `{"a":nulll}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[}]}`, `{"a":{]}`, "{\"a\":\"\n\"}", `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12"}`, `{"a":"`, `{"a":"\`,
		"{\"a\":\"\xff\"}", "{\"\xc3\":1}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":"\ud800"}`, `{"\udc00":1}`, `{"a":"\ud800\u0041"}`, `{"a":"\ud800\ud800"}`, "\ufeff{}", "{}\x00", "{\"a\":\x00}", `{"a":1 /* */}`,
		deep(40, `{"a":`, "1", "}") + "x", deep(20_000, "[", "", ""), deep(30_000, "[", "", "]"), `{"a":` + deep(20_000, "[", "", "]"),
	}
	for _, text := range invalid {
		_, err := Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{{}, patch(text)}, Now: 1})
		wantCode(t, err, base.CodeInvalidPatch, "frames[1].payload")
	}
	for text, code := range map[string]base.Code{
		deep(16, `{"a":`, "1", "}"):                    "",
		deep(17, `{"a":`, "1", "}"):                    base.CodePatchTooDeep,
		`{"a":` + deep(15, "[", "", "]") + "}":         "",
		`{"a":` + deep(16, "[", "", "]") + "}":         base.CodePatchTooDeep,
		`{"a":` + deep(20_000, "[", "null", "]") + "}": base.CodePatchTooDeep,
		`{"a":` + deep(8, `[{"b":`, "1", "}]") + "}":   base.CodePatchTooDeep,
		`{"a":` + deep(7, `[{"b":`, "[]", "}]") + "}":  "",
		`{"a":"` + strings.Repeat("[", 1000) + `"}`:    "",
	} {
		_, err := Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{patch(text)}, Now: 1})
		if base.CodeOf(err) != code {
			t.Errorf("%.40s: %v, want %q", text, err, code)
		}
	}
}

func TestE10_a_document_that_would_be_too_large_stays_as_it_is(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	for i := range 4 {
		m.append(t, patch(fmt.Sprintf(`{"k%d":"%s"}`, i, strings.Repeat("x", 65_000))))
	}
	room := MaxDocument - len(m.doc.Text) - len(`,"k":""`)
	fits := patch(`{"k":"` + strings.Repeat("y", room) + `"}`)
	over := patch(`{"k":"` + strings.Repeat("y", room+1) + `"}`)
	shrinks := patch(`{"k0":null}`)
	for _, drafts := range [][]Draft{{over}, {text("x"), over, shrinks}, {fits, patch(`{"z":1}`)}} {
		before := m.head
		_, err := m.head.Append(m.policy, &Appending{Drafts: drafts, Now: 1, Document: m.doc})
		e := wantCode(t, err, base.CodeSummaryTooLarge, "")
		want(t, "limit", e.Details["limit"], any(MaxDocument))
		want(t, "head", m.head, before)
	}
	m.append(t, shrinks, over, patch(`{"k":null}`), patch(`{"k0":"`+strings.Repeat("x", 65_000)+`"}`), fits)
	want(t, "size", len(m.doc.Text), MaxDocument)
	m.append(t, patch(`{}`)) // as large as may be, read and written again
	want(t, "version", m.doc.Version, int64(10))
}

func TestE11_a_document_knows_its_first_and_its_last_patch(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	first := m.now
	m.append(t, text("x"))
	want(t, "before the first patch", m.doc, nil)
	m.append(t, patch(`{}`), patch(`{"a":1}`))
	m.now += 50
	m.append(t, patch(`{"a":2}`))
	want(t, "document", m.doc, &Document{Text: []byte(`{"a":2}`), Version: 3, FirstAt: first, LastAt: first + 50})
}

// Time that grows with the square of the length would take minutes here.
func TestE9_hostile_patches_take_linear_time(t *testing.T) {
	t.Parallel()
	repeat := func(n int, each func(i int) string) string {
		var all strings.Builder
		for i := range n {
			if i > 0 {
				all.WriteByte(',')
			}
			all.WriteString(each(i))
		}
		return "{" + all.String() + "}"
	}
	m := newModel(testPolicy())
	m.append(t, patch(repeat(10_900, func(int) string { return `"a":1` })))
	want(t, "one name", string(m.doc.Text), `{"a":1}`)
	for i := range 3 { // 18,000 members in three calls
		m.append(t, patch(repeat(6_000, func(n int) string { return fmt.Sprintf(`"%x":1`, n+6_000*i) })))
	}
	for range 3 {
		var drafts []Draft
		for i := range 256 { // remove a member and set it again, in a wide object
			drafts = append(drafts, patch(fmt.Sprintf(`{"%x":null}`, 3*i)), patch(fmt.Sprintf(`{"%x":2}`, 3*i)))
		}
		m.append(t, drafts[:256]...)
		m.append(t, drafts[256:]...)
	}
	m.append(t, patch(repeat(5_000, func(n int) string { return fmt.Sprintf(`"%x":null`, n) })))
	want(t, "members", len(oracleValue(t, m.doc.Text).(map[string]any)), 13_000)
}

func FuzzPatch(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":{"b":[1,{"c":null}]},"a":2}`, `{"a":"\ud83d\ude00","b":1e5}`, `{"a":1}{`} {
		f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(text))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m := newModel(testPolicy())
		folded := any(map[string]any{})
		for _, p := range [][]byte{first, second} {
			a, err := m.head.Append(m.policy, &Appending{Drafts: []Draft{{Mode: Summary, Payload: p}}, Now: 1, Document: m.doc})
			if err != nil {
				if base.CodeOf(err) == base.CodeInvalidPatch && json.Valid(p) && bytes.HasPrefix(bytes.TrimLeft(p, " \t\r\n"), []byte("{")) && !bytes.Contains(p, []byte(`\u`)) && bytes.Equal(bytes.ToValidUTF8(p, nil), p) {
					t.Fatalf("%q: %v", p, err)
				}
				return
			}
			m.head, m.doc = a.Head, must[*Document](t)(DecodeDocument(a.Document.Encode()))
			folded = oracleMerge(folded, oracleValue(t, p))
			if !reflect.DeepEqual(oracleValue(t, m.doc.Text), folded) {
				t.Fatalf("after %q\n%s\nwant\n%v", p, m.doc.Text, folded)
			}
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add((&Document{Text: []byte(`{"a":[1,{"b":null}],"c":{}}`), Version: 3, FirstAt: 1, LastAt: 2}).Encode())
	f.Add([]byte("\x01\x01\x00\x00{\"a\":[\"]\"]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := DecodeDocument(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		if again := d.Encode(); !bytes.Equal(again, data) {
			t.Fatalf("%q is written as %q", data, again)
		}
		if err := edit(d).apply([]byte(`{"a":{"b":null,"c":1},"d":null}`)); err != nil && err.Code != base.CodeSummaryTooLarge {
			t.Fatal(err)
		}
	})
}

func TestW10_a_document_with_unreadable_bytes_is_refused(t *testing.T) {
	t.Parallel()
	good := (&Document{Text: []byte(`{"a":1}`), Version: 3, FirstAt: 1, LastAt: 2}).Encode()
	for name, data := range map[string][]byte{
		"nothing":          nil,
		"a cut one":        good[:len(good)-1],
		"another version":  append([]byte{2}, good[1:]...),
		"no patches":       (&Document{Text: []byte(`{}`)}).Encode(),
		"a list":           (&Document{Text: []byte(`[]`), Version: 1}).Encode(),
		"one too large":    (&Document{Text: []byte(`{"a":"` + strings.Repeat("x", MaxDocument) + `"}`), Version: 1}).Encode(),
		"one that is deep": (&Document{Text: []byte(strings.Repeat(`{"a":`, 17) + "1" + strings.Repeat("}", 17)), Version: 1}).Encode(),
	} {
		if _, err := DecodeDocument(data); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}
