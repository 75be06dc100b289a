package flowfabric_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// anyPayload is any bytes under any content type; often JSON that an encoder would write otherwise.
func anyPayload(t *rapid.T, name string) flowfabric.Payload {
	contentType := rapid.SampledFrom([]string{
		"application/json", "application/json; charset=latin1", "application/x+json", "text/plain; charset=utf-8", "text/csv", "image/png", "odd",
	}).Draw(t, name+" type")
	data := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.SampledFrom([][]byte{
			[]byte(` { "a" : [ 1e400, 1.0, "<&>" ] } `), []byte("null"), []byte(`"\u003c\u2028"`), []byte(`{"a":1,"a":2}`), []byte("\"\xff\""),
			{},
			bytes.Repeat([]byte("[1, 2]\n"), 12_000),
		}),
	).Draw(t, name)
	return flowfabric.Bytes(append([]byte{}, data...), contentType)
}

func TestU9_payloads_come_back_bit_for_bit_on_every_way(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		testseed.Check(t, func(t *rapid.T) {
			same := func(way string, got, want flowfabric.Payload) {
				if !bytes.Equal(got.Data, want.Data) || got.ContentType != want.ContentType {
					t.Errorf("%s: %q of %q, want %q of %q", way, got.Data, got.ContentType, want.Data, want.ContentType)
				}
			}
			input, result := anyPayload(t, "input"), anyPayload(t, "result")
			step, detail := anyPayload(t, "step"), anyPayload(t, "detail")
			detail.Data = detail.Data[:min(len(detail.Data), 64<<10)]
			kind := rapid.StringMatching(`[a-z]{16}`).Draw(t, "kind")
			results, err := w.SubmitMany(ctx, []flowfabric.Submission{
				{Kind: kind, Input: input, SubmitOptions: flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{}}}},
			})
			if err != nil || results[0].Err != nil {
				t.Fatalf("submitting %+v: %v %+v", input, err, results)
			}
			id := results[0].ID
			x, err := w.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if x.Input.Data != nil || x.Input.Size() <= 64<<10 {
				same("Get", x.Input, input)
			}
			got, err := w.Executions().Input(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			same("Input", got, input)

			task := claimKind(t, w, kind)
			same("Claim", task.Input, input)
			do := func(item api.WorkItem) api.WorkAnswer {
				item.ID, item.Lease = id, task.Lease
				answers, err := w.Work().Do(ctx, item)
				if err != nil || answers[0].Err != nil {
					t.Fatalf("%s: %v %+v", item.Op, err, answers)
				}
				return answers[0]
			}
			same("step", do(api.WorkItem{Op: api.OpStep, Step: "s", Result: step}).Step.Result, step)
			do(api.WorkItem{Op: api.OpFail, Message: "m", Detail: detail, RetryAfter: new(time.Duration)})
			if x, err = w.Get(ctx, id); err != nil {
				t.Fatal(err)
			}
			same("failure", x.Failure.Detail, detail)
			steps, err := w.Executions().Steps(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			same("Steps", steps[0].Result, step)
			task = claimKind(t, w, kind)
			do(api.WorkItem{Op: api.OpComplete, Result: result})
			if x, err = w.Wait(ctx, id); err != nil {
				t.Fatal(err)
			}
			if x.Result.Data != nil || x.Result.Size() <= 64<<10 {
				same("Wait", x.Result, result)
			}
			if got, err = w.Executions().Result(ctx, id); err != nil {
				t.Fatal(err)
			}
			same("Result", got, result)
		})
	})
}

// claimKind takes the one execution of a kind.
func claimKind(t *rapid.T, w *world, kind string) *api.Claimed {
	answer, err := w.Work().Claim(t.Context(), api.ClaimRequest{
		WorkerID: "hand", InstanceID: "hand-1", Lanes: []string{"default"}, Kinds: []string{kind}, Wait: patience, Max: 1,
	})
	if err != nil || len(answer.Tasks) != 1 {
		t.Fatalf("claiming %s: %v %+v", kind, err, answer)
	}
	return answer.Tasks[0]
}
