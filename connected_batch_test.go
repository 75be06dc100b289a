package flowfabric_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// batchItem is a command as it came in a batch.
type batchItem struct {
	Op      string `json:"op"`
	ID      string `json:"execution_id"`
	Message string `json:"message"`
}

func itemsOf(t testing.TB, body []byte) []batchItem {
	t.Helper()
	var batch struct {
		Items []batchItem `json:"items"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	return batch.Items
}

// doneAll answers every command of a batch with its own message as outcome.
func doneAll(w http.ResponseWriter, r *http.Request) {
	var batch struct {
		Items []batchItem `json:"items"`
	}
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
		panic(err)
	}
	items := make([]map[string]any, len(batch.Items))
	for i, item := range batch.Items {
		items[i] = map[string]any{"index": i, "ok": true, "outcome": item.Message}
	}
	text, err := json.Marshal(map[string]any{"items": items, "failed": 0})
	if err != nil {
		panic(err)
	}
	says(200, string(text))(w, r)
}

func failItem(n int) api.WorkItem {
	return api.WorkItem{Op: api.OpFail, ID: "018f4e5e-0000-7000-8000-000000000001", Message: strconv.Itoa(n)}
}

func TestU145_what_queues_while_a_call_is_under_way_travels_together(t *testing.T) {
	t.Parallel()
	came, release := make(chan struct{}, 2), make(chan struct{})
	hold := func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-release
		doneAll(w, r)
	}
	in, client := serve(t, hold, hold, doneAll)
	var all sync.WaitGroup
	send := func(n int) {
		all.Go(func() {
			answers, err := client.Work().Do(inTime(t), failItem(n))
			if err != nil || answers[0].Err != nil || answers[0].Outcome != strconv.Itoa(n) {
				t.Errorf("command %d was answered with %+v, %v", n, answers, err)
			}
		})
	}
	for n := range 2 { // a lone command waits for nothing, nor does a second one
		send(n)
		receive(t, came)
	}
	queued := flowfabric.QueuedCommands(client)
	for n := range 100 {
		send(2 + n)
	}
	for queued() < 100 {
		runtime.Gosched()
	}
	close(release)
	all.Wait()
	if n := len(in.all()); n > 4 {
		t.Errorf("102 commands took %d requests, want those that queued to travel together", n)
	}
	total := 0
	for _, l := range in.all() {
		total += len(itemsOf(t, l.body))
	}
	if total != 102 {
		t.Errorf("%d commands were sent, want 102", total)
	}
}

func TestU22_one_command_that_is_none_takes_no_other_with_it(t *testing.T) {
	t.Parallel()
	invalid := &flowfabric.Error{Code: "unknown_field", Class: "invalid", Message: "a field that is not known"}
	_, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if slices.ContainsFunc(itemsOf(t, body), func(item batchItem) bool { return item.Message == "13" }) {
			problem(400, invalid)(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		doneAll(w, r)
	})
	var items []api.WorkItem
	for n := range 20 {
		items = append(items, failItem(n))
	}
	items[5] = api.WorkItem{Op: "dance", ID: items[5].ID}
	items[6] = api.WorkItem{Op: api.OpStep, ID: "missing"}
	answers := must[[]api.WorkAnswer](t)(client.Work().Do(inTime(t), items...))
	for n, answer := range answers {
		switch n {
		case 5, 6, 13:
			if !errors.Is(answer.Err, flowfabric.ErrInvalid) {
				t.Errorf("command %d: %v, want a refusal", n, answer.Err)
			}
		default:
			if answer.Err != nil || answer.Outcome != strconv.Itoa(n) {
				t.Errorf("command %d was answered with %+v", n, answer)
			}
		}
	}
}

func TestU15_a_command_of_unknown_outcome_is_sent_again(t *testing.T) {
	t.Parallel()
	unknown := `{"items":[{"index":0,"ok":true,"outcome":"0"},{"index":1,"ok":false,"error":{"code":"timeout","class":"unavailable","retryable":true}}],"failed":1}`
	in, client := serve(t, says(200, unknown), doneAll)
	answers := must[[]api.WorkAnswer](t)(client.Work().Do(inTime(t), failItem(0), failItem(1)))
	for n, answer := range answers {
		if answer.Err != nil || answer.Outcome != strconv.Itoa(n) {
			t.Errorf("command %d was answered with %+v", n, answer)
		}
	}
	if again := itemsOf(t, in.all()[1].body); len(again) != 1 || again[0].Message != "1" {
		t.Errorf("sent again: %+v, want the command of unknown outcome alone", again)
	}
}
