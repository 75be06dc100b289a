package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"
)

func FuzzDecodeJSON(f *testing.F) {
	for _, text := range []string{
		`{"kind":"a","number":1,"list":[{"name":"x","count":2}],"raw":{"b": [1.0]},"at":"2026-01-31T09:30:00Z","lease":"a.1.b","bytes":"/w=="}`,
		`{"items":[{"op":"complete","execution_id":"x","result":1}]}`, `{"kind":"\ud83d\ude00"}`, `[`, `null`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want outer
		err := DecodeJSON(data, &got)
		if err == nil && json.Unmarshal(data, &want) != nil {
			t.Fatalf("%q was read and is no JSON of that type", data)
		}
		var all Errors
		if errors.As(err, &all) && !json.Valid(data) && all[0].Code != CodeInvalidJSON {
			t.Fatalf("%q is no JSON: %v", data, err)
		}
		_ = DecodeJSON(data, &new(SendWorkRequest).Body) // must not panic
		var raw json.RawMessage
		if err := DecodeJSON(data, &raw); (err == nil) != (json.Valid(data) && utf8.Valid(data)) && depthOf(data) <= maxDepth {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

// depthOf is how deep brackets nest at most.
func depthOf(data []byte) int {
	depth, most := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth--
		}
	}
	return most
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

func FuzzTime(f *testing.F) {
	for _, text := range []string{"2026-01-31T09:30:00Z", "2026-01-31T09:30:00.123456789+14:00", "9999-12-31T23:59:59.999-01:00", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := ParseTime(text)
		if err != nil {
			return
		}
		again, err := ParseTime(read.String())
		if err != nil || !reflect.DeepEqual(read, again) {
			t.Fatalf("%q is read as %s, that as %s: %v", text, read, again, err)
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
