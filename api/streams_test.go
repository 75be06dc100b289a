package api_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

func TestE6_E8_a_policy_of_streams_is_written_and_read(t *testing.T) {
	t.Parallel()
	given := api.Policy{Stream: api.StreamPolicy{
		MaxFrames: 5, MaxBytes: 70_000, OnFull: api.StreamRefuses, BestEffort: api.BestEffortPolicy{TTL: 2 * time.Second, Floor: 3, Ceiling: 9, Alpha: 0.5},
	}}
	text, err := json.Marshal(given)
	const want = `{"stream_policy":{"max_frames":5,"max_bytes":70000,"on_full":"refuse","best_effort":{"ttl_ms":2000,"floor":3,"ceiling":9,"alpha":0.5}}}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var read api.Policy
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read.Stream, given.Stream) {
		t.Errorf("%+v, %v", read.Stream, err)
	}
	given.Stream.BestEffort.Alpha = math.NaN()
	if _, err := given.Text(); api.CodeOf(err) != "invalid_policy" {
		t.Errorf("a weight that is no number: %v", err)
	}
	merged := api.SubmitOptions{Policy: &api.Policy{MaxReplays: 1}}.Merged(api.SubmitOptions{Policy: &api.Policy{Stream: read.Stream}})
	if merged.Policy.MaxReplays != 1 || merged.Policy.Stream != read.Stream {
		t.Errorf("merged: %+v", merged.Policy)
	}
}
