package jsonx

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"
)

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"kind":"a","number":1,"list":[{"name":"x","count":2}],"raw":{"b": [1.0]},"at":"2026-01-31T09:30:00Z","pair":"a:b","wait_ms":5,"bytes":"/w=="}`,
		`{"kind":"\ud83d\ude00"}`, `[`, `null`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want outer
		err := Decode(data, &got)
		if err == nil && json.Unmarshal(data, &want) != nil {
			t.Fatalf("%q was read and is no JSON of that type", data)
		}
		var all Errors
		if errors.As(err, &all) && !json.Valid(data) && all[0].Code != CodeInvalidJSON {
			t.Fatalf("%q is no JSON: %v", data, err)
		}
		var raw json.RawMessage
		if err := Decode(data, &raw); (err == nil) != (json.Valid(data) && utf8.Valid(data)) && depthOf(data) <= maxDepth {
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

func FuzzTime(f *testing.F) {
	for _, text := range []string{"2026-01-31T09:30:00Z", "2026-01-31T09:30:00.123456789+14:00", "9999-12-31T23:59:59.999-01:00", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := ParseTime(text)
		if err != nil {
			return
		}
		written, err := FormatTime(read)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseTime(written)
		if err != nil || !reflect.DeepEqual(read, again) {
			t.Fatalf("%q is read as %s, that as %s: %v", text, read, again, err)
		}
	})
}
