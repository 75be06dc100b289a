package rules

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// budget makes a budget with these fields beside its name, and answers its id.
func (w *world) budget(t testing.TB, name, fields string) (id string) {
	t.Helper()
	return w.post(t, "/v1/budgets", `{"name":"`+name+`",`+fields+`}`).wants(t, 201).text(t, "budget_id")
}

// budgetTokens are the dimensions of a budget that limits tokens.
func budgetTokens(hard int) string { return fmt.Sprintf(`"dimensions":{"tokens":{"hard":%d}}`, hard) }

// budgetTask submits work with these fields beside its kind and takes it.
func (w *world) budgetTask(t testing.TB, fields string) task {
	t.Helper()
	id := w.submit(t, `{"kind":"k",`+fields+`}`)
	k := w.claim(t, "default")
	if k.id != id {
		t.Fatalf("claimed %s, want %s", k.id, id)
	}
	return k
}

// costing are the fields of work that names a budget and expects to use so many tokens.
func costing(tokens int, budget string) string {
	return fmt.Sprintf(`"budget_ids":[%q],"estimate":{"tokens":%d}`, budget, tokens)
}

// budgetShows checks fields of a budget.
func (w *world) budgetShows(t testing.TB, budget string, want fields) reply {
	t.Helper()
	return w.get(t, "/v1/budgets/"+budget).wants(t, 200).shows(t, want)
}

// budgetHas checks what of a budget's tokens is used, reserved and overrun.
func (w *world) budgetHas(t testing.TB, budget string, used, reserved, overrun int) {
	t.Helper()
	w.budgetShows(t, budget, fields{"dimensions.tokens.used": used, "dimensions.tokens.reserved": reserved, "dimensions.tokens.overrun": overrun})
}

// budgetReport reports usage under a lease, given as JSON, with more fields.
func (w *world) budgetReport(t testing.TB, k task, usage, more string) reply {
	t.Helper()
	return w.under(t, k, "usage", `"usage":`+usage+more)
}

// budgetCharge charges a budget.
func (w *world) budgetCharge(t testing.TB, budget, usage, more string) reply {
	t.Helper()
	return w.post(t, "/v1/budgets/"+budget+"/charge", `{"usage":`+usage+more+`}`)
}

func (w *world) budgetPatch(t testing.TB, budget, body string) reply {
	t.Helper()
	return w.send(t, "PATCH", "/v1/budgets/"+budget, body)
}

// budgetVerb closes, reopens or resets a budget.
func (w *world) budgetVerb(t testing.TB, budget, verb string) reply {
	t.Helper()
	return w.post(t, "/v1/budgets/"+budget+"/"+verb, `{}`)
}

// budgetBlocked checks that work waits for room in a budget, and what is shown of it.
func (w *world) budgetBlocked(t testing.TB, id string, detail fields) {
	t.Helper()
	x := w.state(t, id, fields{"status": "blocked", "reason": "waiting_for_budget"})
	for name, value := range detail {
		x.shows(t, fields{"blocking_detail." + name: value})
	}
}

// budgetMeter checks what an execution has used, and that it used nothing else of what is named here.
func (w *world) budgetMeter(t testing.TB, id string, want fields) {
	t.Helper()
	got := w.get(t, at(id)+"/usage").wants(t, 200)
	for name, amount := range want {
		got.shows(t, fields{"usage." + name: amount})
	}
}

// budgetNames are the names of the budgets in a list of an answer, in order.
func (r reply) budgetNames(t testing.TB, list string) (names []string) {
	t.Helper()
	for i := range r.items(t, list) {
		names = append(names, r.text(t, fmt.Sprintf("%s.%d.name", list, i)))
	}
	return names
}

// budgetIf is the world with a revision expected by every request.
func (w *world) budgetIf(revision any) *world {
	expecting := &http.Client{Transport: budgetHeader{w.http.Transport, fmt.Sprintf(`"%v"`, revision)}}
	return &world{&serving{client: w.client, url: w.url, http: expecting, routes: w.routes}, w.namespace, w.leases}
}

type budgetHeader struct {
	http.RoundTripper
	ifMatch string
}

func (h budgetHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("If-Match", h.ifMatch)
	return h.RoundTripper.RoundTrip(r)
}

// budgetTold checks how many events of a kind there are, and fields of their data.
func (w *world) budgetTold(t testing.TB, kind string, want ...fields) {
	t.Helper()
	told := w.toldByNow(t, kind)
	if len(told) != len(want) {
		t.Fatalf("%d events %s, want %d", len(told), kind, len(want))
	}
	for i, data := range want {
		for name, value := range data {
			told[i].shows(t, fields{"data." + name: value})
		}
	}
}

// budgetPass turns the clock, far enough that the sweep sees what is due by then.
func budgetPass(hand *clock.Manual, d time.Duration) {
	hand.TurnTo(hand.Now().Add(d).Truncate(50 * time.Millisecond).Add(50 * time.Millisecond))
}

// budgetBecomes waits until an execution has a status.
func (w *world) budgetBecomes(t testing.TB, id, status string) reply {
	t.Helper()
	var x reply
	comes(t, id+" is "+status, func() bool {
		x = w.get(t, at(id)).wants(t, 200)
		return x.text(t, "status") == status
	})
	return x
}
