package server_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// finished submits something, completes it with this result field, and returns its path.
func (w *world) finished(t *testing.T, result string) string {
	t.Helper()
	w.submitted(t)
	id, lease := w.claimed(t)
	path := "/v1/executions/" + url.PathEscape(id)
	w.post(t, path+"/complete", `{"lease":`+lease+`,`+result+`}`).wants(t, 200)
	return path
}

func TestU10_lists_tell_the_size_of_the_payloads_that_they_leave_out(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		large := strings.Repeat("x", 70<<10)
		path := w.finished(t, `"result_text":"`+large+`"`)
		one := w.get(t, path).wants(t, 200)
		if one.field(t, "input") == nil || one.number(t, "input_size") != float64(len(`{"n":1}`)) || one.field(t, "input_omitted") != nil {
			t.Errorf("a small payload: %s", one.body)
		}
		if one.field(t, "result_text") != nil || one.number(t, "result_size") != float64(len(large)) || one.field(t, "result_omitted") != true {
			t.Errorf("a large payload: %s", one.body)
		}
		for _, view := range []string{"", "&view=summary"} {
			list := w.get(t, "/v1/executions?kind=job"+view).wants(t, 200)
			for field, want := range map[string]any{
				"input_size": float64(len(`{"n":1}`)), "input_omitted": true, "result_size": float64(len(large)), "result_omitted": true, "has_result": true,
				"input": nil, "result": nil, "result_text": nil, "policy": nil, "state_vector": nil, "traceparent": nil,
			} {
				if got := list.field(t, "items.0."+field); got != want {
					t.Errorf("%s is %v, want %v", field, got, want)
				}
			}
		}
	})
}

func TestU26_the_views_show_what_they_are_said_to(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + url.PathEscape(id)
		w.post(t, path+"/fail", `{"lease":`+lease+`,"class":"permanent","message":"no","detail":{"a":1}}`).wants(t, 200)
		fields := func(answer reply, of string) []string {
			t.Helper()
			object, _ := answer.field(t, of).(map[string]any)
			var names []string
			for name := range object {
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		}
		ids := w.get(t, "/v1/executions?view=ids").wants(t, 200)
		if got := fields(ids, "items.0"); !slices.Equal(got, []string{"execution_id"}) {
			t.Errorf("view=ids shows %v", got)
		}
		for _, summary := range []struct {
			answer reply
			at     string
		}{{w.get(t, "/v1/executions?view=summary"), "items.0."}, {w.get(t, path+"?view=summary"), ""}} {
			summary.answer.wants(t, 200)
			if summary.answer.text(t, summary.at+"failure.message") != "no" || summary.answer.field(t, summary.at+"failure.detail") != nil ||
				summary.answer.field(t, summary.at+"attempt.failure.detail") != nil || summary.answer.field(t, summary.at+"input") != nil {
				t.Errorf("view=summary: %s", summary.answer.body)
			}
		}
		usual, full := w.get(t, path).wants(t, 200), w.get(t, path+"?view=full").wants(t, 200)
		if usual.field(t, "failure.detail.a") != 1.0 || usual.field(t, "policy") != nil || usual.field(t, "state_vector") != nil {
			t.Errorf("without a view: %s", usual.body)
		}
		if full.field(t, "policy") == nil || full.text(t, "state_vector.terminal_outcome") != "failed" {
			t.Errorf("view=full: %s", full.body)
		}
		w.get(t, path+"?view=ids").refuses(t, 400, "invalid_argument")
	})
}

func TestU9_attempts_and_exports_show_payloads_as_bytes_on_request(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + url.PathEscape(id)
		w.post(t, path+"/fail", `{"lease":`+lease+`,"class":"permanent","message":"no","detail":{"a" : 1}}`).wants(t, 200)
		exact := base64.StdEncoding.EncodeToString([]byte(`{"a" : 1}`))
		for _, c := range []struct{ path, at string }{
			{path + "/attempts", "items.0.failure"},
			{path + "/attempts/0", "failure"},
			{path + "/attempts/latest", "failure"},
			{path, "failure"},
			{path, "attempt.failure"},
		} {
			if got := w.get(t, c.path).wants(t, 200); got.field(t, c.at+".detail.a") != 1.0 || got.number(t, c.at+".detail_size") != 9 {
				t.Errorf("%s: %s", c.path, got.body)
			}
			if got := w.get(t, c.path+"?encoding=bytes").wants(t, 200); got.text(t, c.at+".detail_bytes") != exact || got.field(t, c.at+".detail") != nil {
				t.Errorf("%s as bytes: %s", c.path, got.body)
			}
			w.get(t, c.path+"?encoding=rot13").refuses(t, 400, "invalid_argument")
		}
		export := w.get(t, "/v1/executions/export?include=input,attempts&encoding=bytes").wants(t, 200)
		first, _, _ := strings.Cut(string(export.body), "\n")
		line := reply{body: []byte(first)}
		if !json.Valid(line.body) || line.text(t, "input_bytes") == "" || line.text(t, "attempts.0.failure.detail_bytes") != exact {
			t.Errorf("exported: %s", first)
		}
	})
}
