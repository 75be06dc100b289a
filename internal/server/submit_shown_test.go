package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestU32_the_answer_to_a_submit_is_the_execution_as_a_reader_sees_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for name, body := range map[string]string{
			"least":   `{"kind":"a"}`,
			"text":    `{"kind":"a","input_text":"héllo","tags":{"a":"b"},"priority":7,"idempotency_key":"k"}`,
			"null":    `{"kind":"a","input_text":""}`,
			"bytes":   `{"kind":"a","input_bytes":"AAEC","input_content_type":"image/x"}`,
			"large":   fmt.Sprintf(`{"kind":"a","input_text":%q}`, strings.Repeat("x", 70<<10)),
			"delayed": `{"kind":"a","delay_ms":600000,"lane":"slow"}`,
			"policy":  `{"kind":"a","input":[1,{"b":2.50}],"policy":{"max_reclaim_count":3},"requires":["gpu"],"fairness_key":"f"}`,
		} {
			for _, encoding := range []string{"", "?encoding=bytes"} {
				if encoding != "" {
					body = strings.Replace(body, `"idempotency_key":"k"`, `"idempotency_key":"l"`, 1)
				}
				answer := w.post(t, "/v1/executions"+encoding, body).wants(t, 201)
				created := objectOf(t, answer)
				if created["outcome"] != "created" {
					t.Errorf("%s: %s", name, answer.body)
				}
				delete(created, "outcome")
				path := "/v1/executions/" + url.PathEscape(answer.text(t, "execution_id"))
				if seen := objectOf(t, w.get(t, path+encoding).wants(t, 200)); !reflect.DeepEqual(created, seen) {
					t.Errorf("%s%s: the submit answers\n%v\na reader sees\n%v", name, encoding, created, seen)
				}
			}
		}
	})
}

// objectOf are the fields of an answer.
func objectOf(t *testing.T, answer reply) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(answer.body, &fields); err != nil {
		t.Fatalf("%v: %s", err, answer.body)
	}
	return fields
}
