package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// itemLine is the answer about a line.
type itemLine struct {
	Index       int
	OK          bool
	Outcome     string
	ExecutionID string `json:"execution_id"`
	Error       struct{ Code, Field string }
}

func linesOf(t *testing.T, body []byte) []itemLine {
	t.Helper()
	var all []itemLine
	for line := range strings.Lines(string(body)) {
		var item itemLine
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, item)
	}
	return all
}

func TestU33_a_batch_answers_for_each_item_in_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		answer := w.post(t, "/v1/executions/bulk", `{"items":[{"kind":"a","idempotency_key":"k"},{"kind":""},{"kind":"a","idempotency_key":"k"}]}`).wants(t, 200)
		if answer.number(t, "failed") != 1 || answer.text(t, "items.0.outcome") != "created" || answer.text(t, "items.1.error.code") != "invalid_argument" ||
			answer.text(t, "items.2.outcome") != "duplicate" || answer.text(t, "items.2.execution_id") != answer.text(t, "items.0.execution_id") {
			t.Errorf("%s", answer.body)
		}
		atomic := w.post(t, "/v1/executions/bulk", `{"atomic":true,"items":[{"kind":"b"},{"kind":""}]}`).refuses(t, 400, "invalid_argument")
		if atomic.number(t, "index") != 1 {
			t.Errorf("%s", atomic.body)
		}
		if count := w.get(t, "/v1/executions/count?kind=b"); count.number(t, "total") != 0 {
			t.Errorf("%s", count.body)
		}
	})
}

func TestU22_a_limit_of_0_refuses_its_item_and_no_other(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const field = "/budgets/1/dimensions/tokens/hard"
		refused := `{"kind":"b","budgets":[{"name":"own","dimensions":{"tokens":{"hard":1}}},{"dimensions":{"pages":{"hard":1},"tokens":{"hard":0}}}]}`
		answer := w.post(t, "/v1/executions/bulk", `{"items":[{"kind":"a"},`+refused+`,{"kind":"a"}]}`).wants(t, 200)
		if answer.number(t, "failed") != 1 || answer.text(t, "items.0.outcome") != "created" || answer.text(t, "items.2.outcome") != "created" ||
			answer.text(t, "items.1.error.code") != "invalid_budget" || answer.text(t, "items.1.error.field") != field ||
			answer.text(t, "items.1.error.detail") != "a limit must be at least 1" || answer.text(t, "items.1.error.hint") == "" {
			t.Errorf("%s", answer.body)
		}
		lines := linesOf(t, w.send(t, request{
			method: "POST", path: "/v1/executions/bulk", header: map[string]string{"Content-Type": "application/x-ndjson"},
			body: "{\"kind\":\"a\"}\n" + refused + "\n{\"kind\":\"a\"}\n",
		}).wants(t, 200).body)
		if len(lines) != 3 || !lines[0].OK || lines[1].OK || lines[1].Error.Code != "invalid_budget" || !lines[2].OK {
			t.Errorf("%+v", lines)
		}
		atomic := w.post(t, "/v1/executions/bulk", `{"atomic":true,"items":[{"kind":"b"},`+refused+`]}`).refuses(t, 400, "invalid_budget")
		if atomic.number(t, "index") != 1 || atomic.text(t, "field") != "/items/1"+field || atomic.field(t, "errors") != nil {
			t.Errorf("%s", atomic.body)
		}
		if made := w.get(t, "/v1/executions/count?kind=a"); made.number(t, "total") != 4 {
			t.Errorf("%s", made.body)
		}
		if made := w.get(t, "/v1/executions/count?kind=b"); made.number(t, "total") != 0 {
			t.Errorf("%s", made.body)
		}
		w.get(t, "/v1/budgets/own").refuses(t, 404, "budget_not_found")
	})
}

func TestU33_lines_are_committed_as_they_come_in(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		body, writer := io.Pipe()
		sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/executions/bulk", body)
		if err != nil {
			t.Fatal(err)
		}
		sent.Header.Set("Content-Type", "application/x-ndjson")
		go func() { _, _ = io.WriteString(writer, "{\"kind\":\"a\"}\n") }()
		response, err := w.http.Do(sent)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for i := range 3 {
			if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"index":%d,"ok":true`, i)) {
				t.Fatalf("line %d: %s", i, lines.Text())
			}
			if got := w.get(t, "/v1/executions/count").number(t, "total"); got != float64(i+1) {
				t.Errorf("%v executions after line %d", got, i)
			}
			if i < 2 {
				_, _ = io.WriteString(writer, "{\"kind\":\"a\"}\n\n")
			}
		}
		_ = writer.Close()
		if lines.Scan() {
			t.Errorf("%s", lines.Text())
		}
	})
}

func TestU33_a_line_that_cannot_be_read_is_refused_alone(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, MaxPayload: 64 << 10})
	large := `{"kind":"a","input":"` + strings.Repeat("x", 300<<10) + `"}`
	answer := w.send(t, request{
		method: "POST", path: "/v1/executions/bulk", header: map[string]string{"Content-Type": "application/x-ndjson", "Accept-Encoding": "gzip"},
		body: "{\"kind\":\"a\"}\n{\n" + large + "\n{\"kind\":\"a\",\"lan\":1}\n{\"kind\":\"b\"}",
	}).wants(t, 200)
	if answer.header.Get("Content-Type") != "application/x-ndjson" || answer.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%v", answer.header)
	}
	lines := linesOf(t, answer.body)
	codes := []string{"", "invalid_json", "payload_too_large", "unknown_field", ""}
	if len(lines) != len(codes) {
		t.Fatalf("%s", answer.body)
	}
	for i, line := range lines {
		if line.Index != i || line.Error.Code != codes[i] || line.OK != (codes[i] == "") {
			t.Errorf("line %d: %+v", i, line)
		}
	}
}

func TestU13_lines_with_a_key_do_nothing_twice(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		send := func() []itemLine {
			return linesOf(t, w.send(t, request{
				method: "POST", path: "/v1/executions/bulk", body: strings.Repeat("{\"kind\":\"a\"}\n", 1200),
				header: map[string]string{"Content-Type": "application/x-ndjson", "Idempotency-Key": "k"},
			}).wants(t, 200).body)
		}
		first, second := send(), send()
		seen := map[string]bool{}
		for i := range first {
			if !first[i].OK || !second[i].OK || first[i].ExecutionID != second[i].ExecutionID || seen[first[i].ExecutionID] {
				t.Fatalf("line %d: %+v, then %+v", i, first[i], second[i])
			}
			seen[first[i].ExecutionID] = true
		}
		if len(seen) != 1200 {
			t.Errorf("%d executions", len(seen))
		}
	})
}

func TestU36_an_export_has_a_line_an_execution_and_the_cursor_to_go_on_from(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 5 {
			w.submitted(t)
		}
		first := w.get(t, "/v1/executions/export?limit=3&include=input,result,attempts,events").wants(t, 200)
		lines := strings.Split(strings.TrimSpace(string(first.body)), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], `"input":{"n":1}`) || !strings.Contains(lines[0], `"events":[{`) {
			t.Fatalf("%s", first.body)
		}
		var last struct {
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(lines[3]), &last); err != nil || last.Next == "" {
			t.Fatalf("%v %s", err, lines[3])
		}
		rest := strings.TrimSpace(string(w.get(t, "/v1/executions/export?cursor="+last.Next).wants(t, 200).body))
		if lines := strings.Split(rest, "\n"); len(lines) != 3 || lines[2] != `{"next_cursor":null}` {
			t.Errorf("%s", rest)
		}
		w.get(t, "/v1/executions/export?include=secrets").refuses(t, 400, "invalid_argument")
		w.get(t, "/v1/executions/export?cursor=nonsense").refuses(t, 400, "invalid_cursor")
	})
}
