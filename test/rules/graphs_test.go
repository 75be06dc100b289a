package rules

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Members of flows have their names as kinds here, so that a worker takes the one that the test wants.

// node is a node as JSON, with more fields.
func node(name string, more ...string) string {
	return `{"name":"` + name + `","kind":"` + strings.Join(append([]string{name + `"`}, more...), ",") + `}`
}

// edge is an edge as JSON, with more fields.
func edge(from, to string, more ...string) string {
	return `{"from":"` + from + `","to":"` + strings.Join(append([]string{to + `"`}, more...), ",") + `}`
}

// after is the field of a node that waits for others.
func after(names ...string) string { return `"after":["` + strings.Join(names, `","`) + `"]` }

// join is the field of a node.
func join(policy string, more ...string) string {
	return `"join":{"policy":"` + strings.Join(append([]string{policy + `"`}, more...), ",") + `}`
}

// drawn are the fields of a graph with these nodes and edges.
func drawn(parts ...string) string {
	var all [2][]string
	for _, part := range parts {
		list := 0
		if strings.HasPrefix(part, `{"from"`) {
			list = 1
		}
		all[list] = append(all[list], part)
	}
	return `"nodes":[` + strings.Join(all[0], ",") + `],"edges":[` + strings.Join(all[1], ",") + `]`
}

// whole is a flow to submit whole, growing one that is not sealed, and more an extension.
func whole(parts ...string) string   { return `{"kind":"k",` + drawn(parts...) + `}` }
func growing(parts ...string) string { return `{"kind":"k","seal":false,` + drawn(parts...) + `}` }
func more(parts ...string) string    { return `{` + drawn(parts...) + `}` }

// empty makes an empty flow.
func (w *world) empty(t testing.TB) graph {
	t.Helper()
	made := w.post(t, "/v1/flows?empty=true", `{"kind":"k"}`).wants(t, 201)
	return graph{made, made.text(t, "flow_id"), made.header.Get("Location")}
}

// extend adds to a flow.
func (w *world) extend(t testing.TB, g graph, body string) reply {
	t.Helper()
	return w.post(t, g.path+"/extend", body)
}

// tag is the partition of an execution or a flow as the full form of its id has it.
func (w *world) tag(t *testing.T, id string) string {
	t.Helper()
	if tag, _, full := strings.Cut(id, ":"+bare(id)); full {
		return tag
	}
	shown := w.get(t, "/v1/executions/"+id)
	if shown.status == 404 {
		shown = w.get(t, "/v1/flows/"+id)
	}
	return fmt.Sprintf("{fp:%v}", shown.wants(t, 200).field(t, "partition"))
}

// fresh is an id that nothing has yet and that shares the number of another.
func (w *world) fresh(t *testing.T, of string) string {
	t.Helper()
	return fmt.Sprintf("%s:0198f0a0-0000-7000-8000-%012x", w.tag(t, of), w.last.Add(1))
}

// with is the world of a caller that sends a header too.
func (w *world) with(name, value string) *world {
	up := &serving{client: w.client, url: w.url, routes: w.routes, http: &http.Client{Transport: heading{w.http.Transport, name, value}}}
	return &world{up, w.namespace, w.leases}
}

type heading struct {
	http.RoundTripper
	name, value string
}

func (h heading) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return h.RoundTripper.RoundTrip(r)
}

// expecting is the world of a caller that knows a revision of the graph.
func (w *world) expecting(revision int) *world { return w.with("If-Match", strconv.Itoa(revision)) }

// cancel cancels an execution.
func (w *world) cancel(t testing.TB, id string) {
	t.Helper()
	w.post(t, at(id)+"/cancel", `{"reason":"enough"}`).wants(t, 200)
}

// ends makes a member end so; one that expires does it by itself.
func (w *world) ends(t testing.TB, g graph, name, outcome string) {
	t.Helper()
	switch outcome {
	case "succeeded":
		w.does(t, name)
	case "failed":
		w.breaks(t, name)
	case "cancelled":
		w.cancel(t, g.member(t, name))
	}
	w.ended(t, g.member(t, name), fields{"status": outcome})
}

// suspend makes a task wait for an operator.
func (w *world) suspend(t testing.TB, k task) {
	t.Helper()
	w.under(t, k, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
}

// ended waits for the end of an execution and checks fields of it.
func (w *world) ended(t testing.TB, id string, want fields) reply {
	t.Helper()
	return w.get(t, at(id)+"?wait_ms=20000").wants(t, 200).shows(t, want)
}

// flowEnds waits for the end of a flow and checks fields of it.
func (w *world) flowEnds(t testing.TB, g graph, want fields) reply {
	t.Helper()
	return w.get(t, g.path+"?wait_ms=20000").wants(t, 200).shows(t, want)
}

// flowIs checks fields of a flow now.
func (w *world) flowIs(t testing.TB, g graph, want fields) reply {
	t.Helper()
	w.spread(t, g)
	return w.get(t, g.path).wants(t, 200).shows(t, want)
}

// joinIs checks fields of the join of a member now.
func (w *world) joinIs(t testing.TB, g graph, member string, want fields) reply {
	t.Helper()
	w.spread(t, g)
	return w.get(t, g.path+"/members/"+member+"/join").wants(t, 200).shows(t, want)
}

// edgeOf is the only edge between two members.
func (w *world) edgeOf(t testing.TB, g graph, from, to string) reply {
	t.Helper()
	w.spread(t, g)
	list := w.get(t, g.path+"/edges?to="+to).wants(t, 200)
	var found string
	for i := range list.items(t, "items") {
		if at := fmt.Sprintf("items.%d.", i); list.text(t, at+"upstream") == from {
			if found != "" {
				t.Errorf("two edges lead from %s to %s: %s", from, to, list.body)
			}
			found = list.text(t, at+"edge_id")
		}
	}
	return w.get(t, g.path+"/edges/"+found).wants(t, 200)
}

// spread is the graph of a flow once the edges know of every member that has ended. An end that meets a member which another transaction
// holds leaves its edges to follow-up work (S73), which comes a moment later.
func (w *world) spread(t testing.TB, g graph) (shown reply) {
	t.Helper()
	over := []any{"succeeded", "failed", "cancelled", "expired", "skipped"}
	comes(t, "edges know of all that has ended", func() bool {
		shown = w.get(t, g.path+"/graph?limit=1000").wants(t, 200)
		ended := map[any]bool{}
		for _, item := range shown.items(t, "nodes") {
			member := item.(map[string]any)
			ended[member["name"]] = slices.Contains(over, member["status"])
		}
		return !slices.ContainsFunc(shown.items(t, "edges"), func(item any) bool {
			edge := item.(map[string]any)
			return edge["state"] == "pending" && ended[edge["upstream"]]
		})
	})
	return shown
}

// atOnce asks so many times at once.
func atOnce(n int, ask func(i int) reply) []reply {
	all := make([]reply, n)
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() { all[i] = ask(i) })
	}
	asking.Wait()
	return all
}

// comes waits until something has become so that nothing else can be waited for.
func comes(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick, over := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !so() {
		select {
		case <-over:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// idOf is the id of a member that came to the flow after it was made.
func (w *world) idOf(t testing.TB, g graph, name string) string {
	t.Helper()
	list := w.get(t, g.path+"/members?limit=1000").wants(t, 200)
	for _, item := range list.items(t, "items") {
		if member := item.(map[string]any); member["name"] == name {
			return member["execution_id"].(string)
		}
	}
	t.Fatalf("no member is %s: %s", name, list.body)
	return ""
}

// listed waits until lists and counts tell of all that was done: they follow commits in order, and a mark is submitted last.
func (w *world) listed(t testing.TB) {
	t.Helper()
	mark := fmt.Sprintf("mark%d", w.last.Add(1))
	w.submit(t, `{"kind":"`+mark+`","lane":"marks"}`)
	comes(t, "lists tell of "+mark, func() bool {
		return len(w.get(t, "/v1/executions?kind="+mark).wants(t, 200).items(t, "items")) == 1
	})
}

// counted is how many executions there are now, marks aside.
func (w *world) counted(t testing.TB) int {
	t.Helper()
	w.listed(t)
	count := func(query string) float64 {
		n, _ := w.get(t, "/v1/executions/count"+query).wants(t, 200).field(t, "total").(float64)
		return n
	}
	return int(count("") - count("?lane=marks"))
}

// seen is what a flow and its executions look like, to tell that a refusal has changed nothing.
func (w *world) seen(t testing.TB, g graph) string {
	t.Helper()
	return fmt.Sprintf("%s and %d executions", w.get(t, g.path+"/graph").wants(t, 200).body, w.counted(t))
}
