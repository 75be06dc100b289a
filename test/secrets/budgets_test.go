package secrets

import (
	"encoding/json"
	"net/url"
)

// budgetsOverHTTP has work breach a budget that asks, so that the engine itself makes the waitpoint, and lets a link decide.
func (w *world) budgetsOverHTTP() {
	w.t.Helper()
	for _, decision := range []string{"approve", "reject"} {
		name := "asks-" + decision
		w.said.ok(w, "POST", "/v1/budgets", `{"name":"`+name+`","dimensions":{"tokens":{"hard":10}},"on_hard":"suspend_for_approval","approval":{"default_raise":{"tokens":100}}}`)
		w.said.ok(w, "POST", "/v1/executions", `{"kind":"charged","lane":"`+name+`","budget_ids":["`+name+`"]}`)
		text := w.said.ok(w, "POST", "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["`+name+`"],"wait_ms":20000}`)
		var claimed struct {
			Tasks []struct {
				Lease json.RawMessage `json:"lease"`
			} `json:"tasks"`
		}
		if err := json.Unmarshal([]byte(text), &claimed); err != nil || len(claimed.Tasks) != 1 {
			w.t.Fatalf("no lease in %s: %v", text, err)
		}
		execution := "/v1/executions/" + url.PathEscape(field(w.t, text, "execution_id"))
		told := w.said.ok(w, "POST", execution+"/usage", `{"usage":{"tokens":50},"lease":`+string(claimed.Tasks[0].Lease)+`}`)
		if action := field(w.t, told, "action"); action != "suspended" {
			w.t.Fatalf("the breach is answered with %s", told)
		}
		w.decideBudget(execution, decision)
		for _, path := range []string{execution, execution + "/explain", execution + "/budgets", execution + "/waitpoints?include_closed=true", execution + "/signals", execution + "/suspensions", "/v1/budgets/" + name} {
			w.said.ok(w, "GET", path, "")
		}
	}
}

// decideBudget decides by a link, twice.
func (w *world) decideBudget(execution, decision string) {
	w.t.Helper()
	waitpoint := field(w.t, w.said.ok(w, "GET", execution+"/waitpoints", ""), "waitpoint_id")
	w.issue("GET", execution+"/waitpoints/"+waitpoint+"/token", "")
	link := w.issue("POST", "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann@example.com"}`)
	path := pathOf(w.t, field(w.t, link, "url"))
	w.said.ok(w, "POST", path, `{"decision":"`+decision+`"}`)
	w.ask(&w.said, "POST", path, `{"decision":"`+decision+`"}`)
}

// ok sends a request that must be answered well, writes the answer down, and returns it.
func (b *book) ok(w *world, method, path, body string) string {
	w.t.Helper()
	status, text := w.ask(b, method, path, body)
	if status >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}
