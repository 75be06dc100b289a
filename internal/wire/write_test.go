package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// encodeAsOthers writes a value with encoding/json, without escapes for HTML.
func encodeAsOthers(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

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
		if p.body == nil || promoted(bodyOf(o.Request).Type) || spreads(bodyOf(o.Request), map[*jsonx.Shape]bool{}) {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			testseed.Check(t, func(t *rapid.T) {
				body := reflect.New(bodyOf(o.Request).Type).Elem()
				drawValue(t, bodyOf(o.Request), body, true)
				writtenAsOthers(t, body.Interface())
			})
		})
	}
}

// promoted reports whether a body has the MarshalJSON of a value that it embeds, which encoding/json would call for the whole of it. Nothing
// but jsonx writes bodies.
func promoted(body reflect.Type) bool {
	return body.Name() == "" && body.Implements(reflect.TypeFor[json.Marshaler]())
}

// spreads reports whether a payload of a body is spread over members of the object around it, which encoding/json cannot write.
func spreads(s *jsonx.Shape, seen map[*jsonx.Shape]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	return s.Form == jsonx.FormMember || spreads(s.Elem, seen) || slices.ContainsFunc(s.Fields, func(f jsonx.Field) bool { return spreads(f.Shape, seen) })
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
		submitItem
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
		item := submitItem{Outcome: name, ExecutionID: "<" + name, Priority: n}
		problem := rapid.SampledFrom([]*Problem{nil, {Code: name, Index: &n, Current: map[string]any{name: []any{n, nil}}}}).Draw(t, "problem")
		for _, c := range []struct{ value, same any }{
			{at, at.UTC().Format("2006-01-02T15:04:05.000Z")},
			{Time{}, nil},
			{ref, parts(ref)},
			{HeldLease{name, ref}, held{name, parts(ref)}},
			{Item[submitItem]{Index: n, OK: true, Value: item}, accepted{n, true, item}},
			{Item[submitItem]{Index: n, Error: problem, Value: item}, refused{n, false, problem}},
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

func TestU9_other_values_of_this_package_are_written_as_encoding_json_writes_them(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		TimeOf(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)),
		api.ClaimAnswer{ServerTime: time.UnixMilli(-1)},
		Page[any]{Items: []any{1, ViewFull, Revision(3), &Problem{Code: "a"}, nil, LeaseRef{LeaseID: "a"}, []HeldLease{{ExecutionID: "b"}}}},
		Revision(7),
		[]Revision{7},
		ViewFull,
	} {
		writtenAsOthers(t, value)
	}
}
