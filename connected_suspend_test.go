package flowfabric_test

import (
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestW37_a_waitpoint_and_a_wait_have_a_name_before_their_first_try(t *testing.T) {
	t.Parallel()
	in, client := serve(t, problem(503, busy), says(200, `{"items":[{"index":0,"ok":true},{"index":1,"ok":true},{"index":2,"ok":true}],"failed":0}`))
	const id = "018f4e5e-0000-7000-8000-000000000001"
	named := api.NewWaitpoint{Key: "a", IdempotencyKey: "mine"}
	_, err := client.Work().Do(inTime(t),
		api.WorkItem{Op: api.OpWaitpoint, ID: id, Waitpoint: &api.NewWaitpoint{Key: "a"}},
		api.WorkItem{Op: api.OpWaitpoint, ID: id, Waitpoint: &named},
		api.WorkItem{Op: api.OpSuspend, ID: id, Suspension: &flowfabric.Suspension{Until: flowfabric.OperatorOnly()}},
	)
	if err != nil || len(in.all()) != 2 || string(in.all()[0].body) != string(in.all()[1].body) {
		t.Fatalf("%v, %d requests", err, len(in.all()))
	}
	var batch struct {
		Items []struct {
			Key string `json:"idempotency_key"`
		} `json:"items"`
	}
	if err := json.Unmarshal(in.all()[0].body, &batch); err != nil {
		t.Fatal(err)
	}
	if keys := batch.Items; keys[0].Key == "" || keys[1].Key != "mine" || keys[2].Key == "" || keys[0].Key == keys[2].Key {
		t.Errorf("%+v", keys)
	}
}

func TestU145_a_wait_that_no_server_could_read_disturbs_no_other_command(t *testing.T) {
	t.Parallel()
	in, client := serve(t, says(200, `{"items":[{"index":0,"ok":true,"outcome":"suspended","suspension_id":"s"}],"failed":0}`))
	suspend := func(c flowfabric.Condition) api.WorkItem {
		return api.WorkItem{Op: api.OpSuspend, ID: "018f4e5e-0000-7000-8000-000000000001", Suspension: &flowfabric.Suspension{Until: c}}
	}
	count := flowfabric.CountOf(1, flowfabric.DistinctSources, "a")
	count.SourceTypes = []string{}
	answers, err := client.Work().Do(inTime(t),
		suspend(flowfabric.Condition{Type: "sometimes"}), suspend(flowfabric.OperatorOnly()), suspend(flowfabric.AnyOf(count)),
		api.WorkItem{Op: api.OpSuspend, ID: "018f4e5e-0000-7000-8000-000000000001"},
		api.WorkItem{Op: api.OpWaitpoint, ID: "018f4e5e-0000-7000-8000-000000000001"},
		api.WorkItem{Op: api.OpWaitpoint, ID: "018f4e5e-0000-7000-8000-000000000001", Waitpoint: &api.NewWaitpoint{}},
	)
	if err != nil || len(in.all()) != 1 {
		t.Fatalf("%v, %d requests", err, len(in.all()))
	}
	want := []string{"invalid_argument", "", "invalid_argument", "invalid_argument", "invalid_argument", "invalid_waitpoint"}
	for i, a := range answers {
		if flowfabric.CodeOf(a.Err) != want[i] {
			t.Errorf("command %d: %v", i, a.Err)
		}
	}
	if answers[1].Outcome != "suspended" {
		t.Errorf("%+v", answers[1])
	}
}
