package wire

import (
	"reflect"
	"testing"
)

// submitItem is the answer about an item.
type submitItem struct {
	Outcome     string `json:"outcome"`
	ExecutionID string `json:"execution_id"`
	PublicState string `json:"public_state"`
	Priority    int    `json:"priority"`
}

func TestU22_answers_about_many_items_are_flat_and_in_order(t *testing.T) {
	t.Parallel()
	var all Items[submitItem]
	all.Add(submitItem{Outcome: "created", ExecutionID: "x<", PublicState: "waiting"}, nil)
	all.Add(submitItem{Outcome: "created"}, &Problem{Code: "invalid_argument", Status: 400})
	text, err := Marshal(all)
	const want = `{"items":[{"index":0,"ok":true,"outcome":"created","execution_id":"x<","public_state":"waiting","priority":0},` +
		`{"index":1,"ok":false,"error":{"type":"","title":"","status":400,"detail":"","code":"invalid_argument","class":"","retryable":false}}],"failed":1}`
	if err != nil || string(text) != want {
		t.Fatalf("%s\nwant %s\n%v", text, want, err)
	}
	var back Items[submitItem]
	if err := Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, all) {
		t.Errorf("%+v %v", back, err)
	}
}

func TestU22_a_value_without_fields_leaves_no_trace(t *testing.T) {
	t.Parallel()
	var all Items[None]
	all.Add(None{}, nil)
	text, err := Marshal(all)
	if err != nil || string(text) != `{"items":[{"index":0,"ok":true}],"failed":0}` {
		t.Errorf("%s %v", text, err)
	}
}
