package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// take claims one execution of a kind in lane default, and waits for it.
func (w *world) take(t testing.TB, kind string) task {
	t.Helper()
	got := w.claims(t, `"lanes":["default"],"kinds":["`+kind+`"],"wait_ms":60000`)
	if len(got) != 1 {
		t.Fatalf("no %s to claim", kind)
	}
	return got[0]
}

// does takes one execution of each kind and completes it.
func (w *world) does(t testing.TB, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		w.complete(t, w.take(t, kind), `"`+kind+`"`)
	}
}

// breaks takes one execution of each kind and fails it for good.
func (w *world) breaks(t testing.TB, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		w.fail(t, w.take(t, kind))
	}
}

// nodes are members, each of a kind that is called like itself.
func nodes(names ...string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = `{"name":"` + name + `","kind":"` + name + `"}`
	}
	return strings.Join(all, ",")
}

// line is a flow of members that wait for each other, more being further fields of it.
func line(more string, names ...string) string {
	all := make([]string, len(names))
	for i, name := range names {
		after := ""
		if i > 0 {
			after = `,"after":["` + names[i-1] + `"]`
		}
		all[i] = `{"name":"` + name + `","kind":"` + name + `"` + after + `}`
	}
	return `{"kind":"line"` + more + `,"nodes":[` + strings.Join(all, ",") + `]}`
}

// flowAt is the path of a flow.
func flowAt(id string) string { return "/v1/flows/" + bare(id) }

// over waits for the end of an execution or a flow, by its path, and checks fields of it.
func (w *world) over(t testing.TB, path string, want fields) reply {
	t.Helper()
	return w.get(t, path+"?wait_ms=20000").wants(t, 200).shows(t, want)
}

// home is the path of the flow that an execution is a member of.
func (w *world) home(t testing.TB, id string) string {
	t.Helper()
	return flowAt(w.get(t, at(id)).wants(t, 200).text(t, "flow_id"))
}

// statuses are those of the members of a flow by name.
func (w *world) statuses(t testing.TB, path string) map[string]string {
	t.Helper()
	got := w.get(t, path+"/members?limit=1000").wants(t, 200)
	all := map[string]string{}
	for i := range got.items(t, "items") {
		of := fmt.Sprintf("items.%d.", i)
		all[got.text(t, of+"name")] = got.text(t, of+"status")
	}
	return all
}

// stand checks the statuses of members of a flow, given as name:status.
func (w *world) stand(t testing.TB, path string, want ...string) {
	t.Helper()
	var got []string
	for name, status := range w.statuses(t, path) {
		got = append(got, name+":"+status)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", path, got, want)
	}
}

// count checks how many elements a list of the answer has.
func (r reply) count(t testing.TB, path string, want int) reply {
	t.Helper()
	if got := len(r.items(t, path)); got != want {
		t.Errorf("%s: %s has %d elements, want %d: %s", r.asked, path, got, want, r.body)
	}
	return r
}

// texts are the values of a field of every element of a list.
func (r reply) texts(t testing.TB, path, field string) []string {
	t.Helper()
	all := []string{}
	for i := range r.items(t, path) {
		all = append(all, r.text(t, fmt.Sprintf("%s.%d.%s", path, i, field)))
	}
	return all
}

// lists checks the values of a field of every element of a list, in order.
func (r reply) lists(t testing.TB, path, field string, want ...string) reply {
	t.Helper()
	if got := r.texts(t, path, field); !slices.Equal(got, want) {
		t.Errorf("%s: %s are %v, want %v", r.asked, field, got, want)
	}
	return r
}

// told are the events that a query finds from the start of the log up to the nth of a kind. The log is in order: what came before that
// one is among them.
func (w *world) told(t testing.TB, query, kind string, nth int) (events []reply) {
	t.Helper()
	for after, tries := "start", 0; tries < 20; tries++ {
		page := w.get(t, "/v1/events?limit=1000&wait_ms=5000&after="+after+"&"+query).wants(t, 200)
		for i := range page.items(t, "items") {
			one := page.at(t, fmt.Sprintf("items.%d", i))
			events = append(events, one)
			if one.text(t, "kind") == kind {
				if nth--; nth == 0 {
					return events
				}
			}
		}
		after = page.text(t, "next")
	}
	t.Fatalf("%s: %s was never told: %v", query, kind, kinds(t, events))
	return nil
}

// toldByNow are the events of the namespace up to now, of some kinds by comma. A budget is made last: when the log tells of it, it has
// told all before.
func (w *world) toldByNow(t testing.TB, kinds string) (told []reply) {
	t.Helper()
	mark := w.budget(t, fmt.Sprintf("mark%d", w.last.Add(1)), budgetTokens(1))
	after := "start"
	for end := time.Now().Add(patience); time.Now().Before(end); {
		page := w.get(t, "/v1/events?limit=1000&wait_ms=1000&kind=budget.created,"+kinds+"&after="+after).wants(t, 200)
		for i := range page.items(t, "items") {
			one := page.at(t, fmt.Sprintf("items.%d", i))
			if one.text(t, "data.budget_id") == mark {
				return told
			}
			if slices.Contains(strings.Split(kinds, ","), one.text(t, "kind")) {
				told = append(told, one)
			}
		}
		after = page.text(t, "next")
	}
	t.Fatal("the log does not tell of what was done")
	return nil
}

// toldOf are the events of a kind about an execution or a flow itself up to now.
func (w *world) toldOf(t testing.TB, id, kind string) []reply {
	t.Helper()
	return slices.DeleteFunc(w.toldByNow(t, kind), func(one reply) bool {
		return cmp.Or(one.text(t, "execution_id"), one.text(t, "flow_id")) != id
	})
}

// kinds are those of events.
func kinds(t testing.TB, events []reply) []string {
	t.Helper()
	var all []string
	for _, one := range events {
		all = append(all, one.text(t, "kind"))
	}
	return all
}

// story checks the kinds of events.
func story(t testing.TB, events []reply, want ...string) {
	t.Helper()
	if got := kinds(t, events); !slices.Equal(got, want) {
		t.Errorf("events are %v, want %v", got, want)
	}
}

// preferring asks to wait by the header Prefer, and answers how long the server would have.
func (w *world) preferring(t testing.TB, method, path, body, prefer string) (applied string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("FlowFabric-Namespace", w.namespace)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Prefer", prefer)
	response, err := w.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s %s: status %d", method, path, response.StatusCode)
	}
	return response.Header.Get("Preference-Applied")
}

// at is a part of the answer.
func (r reply) at(t testing.TB, path string) reply {
	t.Helper()
	r.value = r.field(t, path)
	text, err := json.Marshal(r.value)
	if err != nil {
		t.Fatal(err)
	}
	r.body = text
	return r
}
