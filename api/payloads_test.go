package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// request has a payload as requests do.
type request struct {
	Kind  string      `json:"kind,omitempty"`
	Input api.Payload `json:"input,omitempty" spread:"sent"`
}

func TestU8_the_payload_of_a_request_is_read_from_its_members(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want api.Payload
	}{
		{`{}`, api.Payload{}},
		{`{"input":null}`, api.Payload{}},
		{`{"input": {"a": 1} }`, api.Payload{Data: []byte(`{"a": 1}`), ContentType: "application/json"}},
		{`{"input_text":"hi"}`, api.Text("hi")},
		{`{"input_text":""}`, api.Text("")},
		{`{"input_bytes":"AP8="}`, api.Bytes([]byte{0, 255}, "")},
		{`{"input_bytes":""}`, api.Bytes(nil, "")},
		{`{"input_content_type":"x/y","input_bytes":"AA=="}`, api.Bytes([]byte{0}, "x/y")},
		{`{"input_bytes":"AA==","input_content_type":"x/y"}`, api.Bytes([]byte{0}, "x/y")},
		{`{"input":1,"input_content_type":""}`, api.JSON(1)},
	} {
		var read request
		if err := jsonx.Decode([]byte(c.text), &read); err != nil || !reflect.DeepEqual(read.Input, c.want) {
			t.Errorf("%s is read as %+v, want %+v: %v", c.text, read.Input, c.want, err)
		}
	}
	var read request
	if err := jsonx.Decode([]byte(`{"input_content_type":"x/y"}`), &read); err != nil || !read.Input.IsNothing() {
		t.Errorf("a content type without bytes is %+v: %v", read.Input, err)
	}
}

func TestU8_two_members_with_bytes_are_refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"input":1,"input_text":"1"}`:          "/input_text",
		`{"input_bytes":"AA==","input":1}`:      "/input_bytes",
		`{"input_bytes":"A"}`:                   "/input_bytes",
		`{"input_text":1}`:                      "/input_text",
		`{"input_size":1}`:                      "/input_size", // answers have it
		`{"input_bytes":"AA==","inputbytes":1}`: "/inputbytes",
	} {
		err := api.FaultsError(jsonx.Decode([]byte(text), new(request)))
		if refusal := new(api.Error); !errors.As(err, &refusal) || refusal.Field != want {
			t.Errorf("%s: %v, want a refusal of %s", text, err, want)
		}
	}
}

func TestU10_bytes_that_were_not_loaded_are_shown_by_their_size(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		result api.Payload
		want   string
	}{
		{api.Payload{}, `{"name":"","run_index":0,"attempt_index":0,"lease_epoch":0}`},
		{api.Unloaded("x/y", 7), `,"result_content_type":"x/y","result_size":7,"result_omitted":true}`},
		{api.JSON([]int{1}), `,"result":[1],"result_content_type":"application/json","result_size":3}`},
		{api.JSON([]int{1}).AsBytes(), `,"result_bytes":"WzFd","result_content_type":"application/json","result_size":3}`},
		{api.Bytes([]byte("null"), "application/json"), `,"result":null,"result_content_type":"application/json","result_size":4}`},
		{api.Text(""), `,"result_text":"","result_content_type":"text/plain; charset=utf-8","result_size":0}`},
		{api.Payload{Data: []byte{1}}, `,"result_bytes":"AQ==","result_content_type":"application/octet-stream","result_size":1}`},
	} {
		text, err := json.Marshal(api.StepRecord{Result: c.result})
		if err != nil || !strings.HasSuffix(string(text), c.want) {
			t.Errorf("%+v is shown as %s, want %s: %v", c.result, text, c.want, err)
		}
		var read api.StepRecord
		if err := json.Unmarshal(text, &read); err != nil || read.Result.Size() != c.result.Size() || read.Result.Omitted() != c.result.Omitted() {
			t.Errorf("%s is read as %+v: %v", text, read.Result, err)
		}
	}
}

func TestU9_lists_of_answers_are_never_null(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(api.OpenSuspension{ID: "s"})
	if err != nil || !strings.Contains(string(text), `"waitpoints":[]`) {
		t.Fatalf("%s: %v", text, err)
	}
	var read api.OpenSuspension
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, api.OpenSuspension{ID: "s"}) {
		t.Errorf("%s is read as %+v: %v", text, read, err)
	}
}

func TestU26_the_lease_of_an_execution_shows_no_fence(t *testing.T) {
	t.Parallel()
	lease := api.Lease{ID: "l", Epoch: 2, AttemptID: "a"}
	text, err := json.Marshal(api.Execution{Lease: &lease})
	if err != nil || strings.Contains(string(text), `"fence"`) {
		t.Errorf("an execution is %s: %v", text, err)
	}
	if text, err = json.Marshal(lease); err != nil || !strings.Contains(string(text), `"fence":"l.2.a"`) {
		t.Errorf("a lease is %s: %v", text, err)
	}
}
