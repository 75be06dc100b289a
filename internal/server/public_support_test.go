package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
)

// asleep is an execution that waits at a waitpoint.
type asleep struct {
	execution, waitpoint, token, callback string
}

// asks suspends a new execution until somebody says go, or until the given condition is met at the waitpoint a.
func (w *world) asks(t testing.TB, condition string) asleep {
	t.Helper()
	if condition == "" {
		condition = `{"type":"single","waitpoint_key":"a","name":"go"}`
	}
	id := w.post(t, "/v1/executions", `{"kind":"deploy","tags":{"service":"shop"},"policy":{"max_signals_per_execution":100}}`).wants(t, 201).text(t, "execution_id")
	path := "/v1/executions/" + url.PathEscape(id)
	fence := w.post(t, path+"/claim", `{"worker_id":"me"}`).wants(t, 200).text(t, "lease.fence")
	answer := w.post(t, path+"/suspend",
		`{"lease":"`+fence+`","waitpoints":[{"fresh":{"waitpoint_key":"a"}}],"reason_code":"waiting_for_approval","resume_condition":`+condition+`}`).wants(t, 200)
	return asleep{id, answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token"), pathOf(t, answer.text(t, "waitpoints.0.callback_url"))}
}

// pathOf is the path of an address, as it is sent.
func pathOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Path == "" {
		t.Fatalf("%q: %v", address, err)
	}
	return u.EscapedPath()
}

// signals is the path of the signals of a waitpoint.
func (a asleep) signals() string { return "/v1/waitpoints/" + a.waitpoint + "/signals" }

// status is that of the execution.
func (w *world) status(t testing.TB, a asleep) string {
	t.Helper()
	return w.get(t, "/v1/executions/"+url.PathEscape(a.execution)).wants(t, 200).text(t, "status")
}

// link makes a link and returns its id and its path.
func (w *world) link(t testing.TB, a asleep, fields string) (id, path string) {
	t.Helper()
	if fields == "" {
		fields = `"title":"Deploy it?","message":"Two commits.\nOne migration."`
	}
	made := w.post(t, "/v1/waitpoints/"+a.waitpoint+"/links", `{"approver":"ann@example.com",`+fields+`}`).wants(t, 201)
	return made.text(t, "link_id"), pathOf(t, made.text(t, "url"))
}

// visit is a request of a browser, which does not follow redirects: a form is posted, none is a GET.
func (w *world) visit(t testing.TB, path string, form url.Values) reply {
	t.Helper()
	r := request{method: "GET", path: path, header: map[string]string{"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}}
	if form != nil {
		r.method, r.body = "POST", form.Encode()
		r.header["Content-Type"], r.header["Origin"] = "application/x-www-form-urlencoded", "null" // as of a page without referrer
	}
	return w.ask(t, r)
}

// ask sends a request and takes any answer for one.
func (w *world) ask(t testing.TB, r request) reply {
	t.Helper()
	client := *w.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response := (&world{url: w.url, http: &client}).open(t, r)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, body}
}

// shows checks the status of a page and what it says.
func (a reply) shows(t testing.TB, status int, texts ...string) reply {
	t.Helper()
	a.wants(t, status)
	for _, text := range texts {
		if !strings.Contains(string(a.body), text) {
			t.Errorf("the page does not say %q: %s", text, a.body)
		}
	}
	return a
}

// approves is a form with a decision.
func decides(decision, comment string) url.Values {
	return url.Values{"decision": {decision}, "comment": {comment}}
}

// everything is what requests that change nothing must leave: events, audit rows, and all that is kept of the wait.
func (w *world) everything(t testing.TB, a asleep) string {
	t.Helper()
	var all strings.Builder
	for after := api.FromStart; ; {
		page, err := w.Events().Read(t.Context(), ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, len(page.Events), page.Next)
		if after = page.Next; page.AtEnd {
			break
		}
	}
	for row, err := range w.Admin().Audit(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, row.Action, row.EntityID, row.Hash)
	}
	execution := "/v1/executions/" + url.PathEscape(a.execution)
	for _, path := range []string{execution, execution + "/waitpoints?include_closed=true", execution + "/signals", execution + "/suspensions", "/v1/waitpoints/" + a.waitpoint + "/links"} {
		fmt.Fprintln(&all, string(w.get(t, path).wants(t, 200).body))
	}
	return all.String()
}

// alike is an answer without what may differ between two that are the same: the id of the request and the time.
func (a reply) alike(t testing.TB) string {
	t.Helper()
	head := a.header.Clone()
	id := head.Get("X-Request-Id")
	head.Del("X-Request-Id")
	head.Del("Date")
	lines, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s", a.status, lines, strings.ReplaceAll(string(a.body), id, "<id>"))
}
