package wire

import (
	"errors"
	"reflect"
	"testing"
)

func TestW6_a_lease_that_cannot_be_read_is_an_invalid_handle(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"x"`, `{"fence":"x"}`, `{"lease_id":"a","lease_epoch":1,"attempt_id":"b","fence":"a.2.b"}`} {
		var all Errors
		errors.As(DecodeJSON([]byte(`{"lease":`+text+`}`), new(LeaseField)), &all)
		if len(all) != 1 || all[0].Code != CodeInvalidHandle || all[0].Field != "/lease" {
			t.Errorf("%s: %v", text, all)
		}
	}
}

func TestU5_faults_in_a_lease_are_told_with_their_field(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Error{
		`{"lease":{"lease_id":"a","lease_epok":1}}`: {Code: "unknown_field", Field: "/lease/lease_epok", Detail: "this field is not known", Hint: `did you mean "lease_epoch"?`},
		`{"lease":4}`: {Code: "invalid_argument", Field: "/lease", Detail: "expected an object, found a number"},
	} {
		var all Errors
		if errors.As(DecodeJSON([]byte(text), new(LeaseField)), &all); len(all) != 1 || *all[0] != want {
			t.Errorf("%s: %v, want %v", text, all, want)
		}
	}
	var got LeaseField
	if err := DecodeJSON([]byte(`{"lease":null}`), &got); err != nil || !got.Lease.IsZero() {
		t.Errorf("null: %+v %v", got, err)
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
	if last := req.Body.Items[5]; last.Lease != (LeaseRef{"a", 1, "b"}) || string(last.Result.Data) != `{"a":1}` {
		t.Errorf("%+v", last)
	}
}
