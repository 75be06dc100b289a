package wire

import (
	"reflect"
	"testing"
)

func FuzzDecodeJSON(f *testing.F) {
	for _, text := range []string{
		`{"items":[{"op":"complete","execution_id":"x","lease":"a.1.b","result":1}]}`,
		`{"items":[{"op":"suspend","execution_id":"x","lease":{"fence":"a.1.b"},"resume_condition":{"type":"all_of","members":[{"type":"single"}]}}]}`, `[`, `null`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again SendWorkRequest
		if DecodeJSON(data, &got.Body) != nil { // must not panic
			return
		}
		text, err := Marshal(&got.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeAnswer(text, &again.Body); err != nil {
			t.Fatalf("%q is read, written as %q and not read again: %v", data, text, err)
		}
	})
}

func FuzzLeaseRef(f *testing.F) {
	for _, text := range []string{"a.1.b", "..", "a.01.b", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ref, err := ParseLeaseRef(text); err == nil && ref.String() != text {
			t.Fatalf("%q is read as %q", text, ref)
		}
	})
}

func FuzzQuery(f *testing.F) {
	f.Add("status=a,b&tag.x&tag.y=1&limit=3&created_from=2026-01-31T09:30:00Z")
	f.Add("%zz&;=&tag.=&status=\\,")
	f.Fuzz(func(t *testing.T, query string) {
		var read, again ListExecutionsRequest
		if DecodeHead(Incoming{Query: query}, &read) != nil {
			return
		}
		m, err := Encode(ListExecutions, &read)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeHead(Incoming{Query: m.Query}, &again); err != nil || !reflect.DeepEqual(read, again) {
			t.Fatalf("%q is read as %+v, written as %q, read as %+v: %v", query, read, m.Query, again, err)
		}
	})
}
