package flowfabric

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestU32_a_policy_read_from_json_is_the_one_that_was_written(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		policy := &Policy{}
		draw(t, reflect.ValueOf(policy).Elem())
		for _, kept := range []*time.Duration{&policy.Retention.Failed, &policy.Retention.Succeeded} {
			*kept = rapid.SampledFrom([]time.Duration{0, KeepForever, time.Hour}).Draw(t, "kept")
		}
		for _, count := range []*int{&policy.MaxReclaims, &policy.MaxReplays} {
			*count = rapid.IntRange(-1, 9).Draw(t, "count")
		}
		text := must(json.Marshal(Submission{Kind: "k", SubmitOptions: SubmitOptions{Policy: policy}}))
		var read Submission
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again := must(json.Marshal(read))
		if fields := exported(*read.Policy); !reflect.DeepEqual(&fields, policy) || string(again) != string(text) {
			t.Fatalf("%s\nagain %s\n wrote %+v\n  read %+v", text, again, policy, read.Policy)
		}
	})
}

// exported is a value with its exported fields alone.
func exported[T any](of T) (fields T) {
	from, into := reflect.ValueOf(&of).Elem(), reflect.ValueOf(&fields).Elem()
	for i := range from.NumField() {
		if from.Type().Field(i).IsExported() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return fields
}

func TestU5_a_submission_is_read_strictly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, field string
		code        base.Code
	}{
		{`{"kind":"k","lnae":"x"}`, "/lnae", base.CodeUnknownField},
		{`{}`, "/kind", base.CodeMissingField},
		{`{"kind":"k","delay_ms":1,"delay_until":"2030-01-01T00:00:00Z"}`, "", base.CodeInvalidArgument},
	} {
		var s Submission
		err := s.UnmarshalJSON([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) || e.Code != string(c.code) || c.field != "" && e.Field != c.field {
			t.Errorf("%s: %v, want %s at %s", c.text, err, c.code, c.field)
		}
	}
}

func TestU32_a_limit_of_0_is_refused_where_work_is_read(t *testing.T) {
	t.Parallel()
	const own = `"budgets":[{"dimensions":{"tokens":{"hard":1}}},{"dimensions":{"tokens":{"soft":0}}}]`
	for _, c := range []struct {
		text, place string
		into        json.Unmarshaler
	}{
		{`{"kind":"k",` + own + `}`, "", &Submission{}},
		{`{"kind":"k",` + own + `}`, "", &Flow{}},
		{`{"kind":"k","nodes":[{"name":"a","kind":"k",` + own + `}]}`, "nodes[0].", &Flow{}},
		{`{"kind":"k","defaults":{` + own + `},"nodes":[{"name":"a","kind":"k"}]}`, "defaults.", &Flow{}},
		{`{"nodes":[{"name":"a","kind":"k",` + own + `}]}`, "nodes[0].", &FlowExtension{}},
	} {
		if err := c.into.UnmarshalJSON([]byte(c.text)); CodeOf(err) != string(base.CodeInvalidBudget) || fieldOf(err) != c.place+"budgets[1].dimensions.tokens.soft" {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
