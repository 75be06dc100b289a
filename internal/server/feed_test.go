package server_test

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

// fleet is a server with workers that have the role work alone.
type fleet struct {
	*world
	boss string // key of an operator
	shop string // key of who submits
}

func newFleet(t *testing.T, w *world) *fleet {
	t.Helper()
	return &fleet{world: w, boss: w.key(t, "*", "operate"), shop: w.key(t, "default", "submit")}
}

// worker makes a key with the role work.
func (f *fleet) worker(t *testing.T, name string, namespaces, lanes []string) string {
	t.Helper()
	key, err := f.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: name, Roles: []string{"work"}, Namespaces: namespaces, Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	return key.Secret
}

// revoked submits into a lane, lets the instance claim it under the key, and revokes the lease. It returns the id.
func (f *fleet) revoked(t *testing.T, key, worker, instance, lane string) string {
	t.Helper()
	f.send(t, request{method: "POST", path: "/v1/executions", key: f.shop, body: `{"kind":"job","lane":"` + lane + `"}`}).wants(t, 201)
	task := f.send(t, request{
		method: "POST", path: "/v1/work/claim", key: key,
		body: `{"worker_id":"` + worker + `","worker_instance_id":"` + instance + `","lanes":["` + lane + `"],"wait_ms":20000}`,
	}).wants(t, 200)
	id := task.text(t, "tasks.0.execution_id")
	f.send(t, request{method: "POST", path: "/v1/executions/" + pathID(id) + "/revoke", key: f.boss, body: `{"hold":true}`}).wants(t, 200)
	return id
}

func pathID(id string) string { return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(id) }

func (f *fleet) events(t *testing.T, key, query string) reply {
	t.Helper()
	return f.send(t, request{method: "GET", path: "/v1/events?" + query, key: key})
}

// told lists the executions whose leases were revoked, by a page of events.
func (a reply) told(t *testing.T) (ids []string) {
	t.Helper()
	var page struct {
		Items []struct {
			Kind string `json:"kind"`
			ID   string `json:"execution_id"`
		} `json:"items"`
	}
	if err := json.Unmarshal(a.wants(t, 200).body, &page); err != nil {
		t.Fatal(err)
	}
	for _, event := range page.Items {
		if event.ID == "" {
			t.Errorf("a feed shows %s, which concerns no execution", event.Kind)
		}
		if event.Kind == "lease.revoked" {
			ids = append(ids, event.ID)
		}
	}
	return ids
}

func TestU106_a_work_key_reads_the_feed_of_the_instances_that_it_registered_and_nothing_else(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		f := newFleet(t, w)
		mine, other := f.worker(t, "mine", []string{"default"}, nil), f.worker(t, "other", []string{"default"}, nil)
		everywhere := f.worker(t, "everywhere", []string{"*"}, nil)
		own, foreign := f.revoked(t, mine, "m", "m-1", "default"), f.revoked(t, other, "o", "o-1", "default")
		all := f.revoked(t, everywhere, "e", "e-1", "default")
		for key, want := range map[string]struct{ instance, id string }{mine: {"m-1", own}, other: {"o-1", foreign}, everywhere: {"e-1", all}} {
			if got := f.events(t, key, "after=start&worker_instance_id="+want.instance).told(t); !slices.Equal(got, []string{want.id}) {
				t.Errorf("%s sees %v, want %s", want.instance, got, want.id)
			}
		}
		for _, query := range []string{
			"after=start", "after=start&worker_id=m", "after=start&worker_instance_id=", "after=start&worker_instance_id=o-1",
			"after=start&worker_instance_id=e-1", "after=start&execution_id=" + pathID(own), "after=start&kind=lease&lane=default",
		} {
			if query == "after=start&worker_id=m" {
				f.events(t, mine, query).refuses(t, 400, "unknown_field")
				continue
			}
			f.events(t, mine, query).refuses(t, 403, "role_required")
		}
		f.events(t, mine, "after=start&worker_instance_id=missing").refuses(t, 404, "worker_not_registered")
		f.events(t, everywhere, "after=start&worker_instance_id=m-1").refuses(t, 403, "role_required")
		if got := f.events(t, mine, "after=start&worker_instance_id=m-1&execution_id="+pathID(foreign)).told(t); len(got) > 0 {
			t.Errorf("it sees %v of another instance", got)
		}
		f.send(t, request{method: "GET", path: "/v1/executions/" + pathID(own) + "/events", key: mine}).refuses(t, 403, "role_required")
	})
}

func TestU106_the_feed_of_a_key_with_lanes_shows_those_lanes_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		f := newFleet(t, w)
		key, err := f.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
			Name: "mail", Roles: []string{"work"}, Namespaces: []string{"default"}, Lanes: []string{"mail", "pay"},
		})
		if err != nil {
			t.Fatal(err)
		}
		mail := key.Secret
		own := f.revoked(t, mail, "w", "w-1", "mail")
		f.revoked(t, mail, "w", "w-1", "pay")
		if _, err := f.Admin().APIKeys().Change(t.Context(), key.ID, api.APIKeyChange{Lanes: &[]string{"mail"}}); err != nil {
			t.Fatal(err)
		}
		if got := f.events(t, mail, "after=start&worker_instance_id=w-1").told(t); !slices.Equal(got, []string{own}) {
			t.Errorf("it sees %v, want %s alone", got, own)
		}
	})
}

func TestU106_who_takes_over_an_instance_sees_nothing_of_the_time_before(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		f := newFleet(t, w)
		before, after := f.worker(t, "before", []string{"default"}, nil), f.worker(t, "after", []string{"default"}, nil)
		f.revoked(t, before, "w", "w-1", "default")
		register := `{"worker_id":"w","worker_instance_id":"w-1"}`
		f.send(t, request{method: "POST", path: "/v1/workers", key: after, body: register}).refuses(t, 409, "instance_id_taken")
		f.events(t, after, "after=start&worker_instance_id=w-1").refuses(t, 403, "role_required") // while it is live it stays its owner's
		f.send(t, request{method: "POST", path: "/v1/workers/w-1/dead", key: f.boss, body: `{"reason":"r"}`}).wants(t, 200)
		w.tick(t) // the takeover is later than what happened before
		f.send(t, request{method: "POST", path: "/v1/workers", key: after, body: register}).wants(t, 200)
		if got := f.events(t, after, "after=start&worker_instance_id=w-1").told(t); len(got) > 0 {
			t.Errorf("the new owner sees %v", got)
		}
		f.events(t, before, "after=start&worker_instance_id=w-1").refuses(t, 403, "role_required")
		id := f.revoked(t, after, "w", "w-1", "default")
		if got := f.events(t, after, "after=start&worker_instance_id=w-1").told(t); !slices.Equal(got, []string{id}) {
			t.Errorf("the new owner sees %v, want %s", got, id)
		}
	})
}

// tick returns when the server's clock shows another millisecond.
func (w *world) tick(t *testing.T) {
	t.Helper()
	now := func() any {
		info, err := w.Admin().Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.ServerTime.UnixMilli()
	}
	start := now()
	eventually(t, "the clock moves", func() bool { return now() != start })
}

func TestE36_a_stream_of_a_feed_ends_when_the_instance_changes_hands(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		f := newFleet(t, w)
		before, after := f.worker(t, "before", []string{"default"}, nil), f.worker(t, "after", []string{"default"}, nil)
		f.send(t, request{method: "POST", path: "/v1/workers", key: before, body: `{"worker_id":"w","worker_instance_id":"w-1"}`}).wants(t, 200)
		stream := f.open(t, request{
			method: "GET", path: "/v1/events?after=end&worker_instance_id=w-1&actor=operator", key: before, header: map[string]string{"Accept": "text/event-stream"},
		})
		defer stream.Body.Close()
		lines := bufio.NewScanner(stream.Body)
		own := f.revoked(t, before, "w", "w-1", "default")
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: {") {
		}
		if !strings.Contains(lines.Text(), own) {
			t.Fatalf("the stream shows %q, %v; want %s", lines.Text(), lines.Err(), own)
		}
		f.send(t, request{method: "POST", path: "/v1/workers/w-1/dead", key: f.boss, body: `{"reason":"r"}`}).wants(t, 200)
		foreign := f.takenOver(t, after)
		for lines.Scan() {
			if strings.Contains(lines.Text(), foreign) {
				t.Errorf("the former owner sees %s", lines.Text())
			}
		}
		if lines.Err() == nil {
			t.Error("the stream ended as if there was nothing more")
		}
	})
}

// takenOver takes the instance w-1 over and lets it lose a lease.
func (f *fleet) takenOver(t *testing.T, key string) string {
	t.Helper()
	f.send(t, request{method: "POST", path: "/v1/workers", key: key, body: `{"worker_id":"w","worker_instance_id":"w-1"}`}).wants(t, 200)
	return f.revoked(t, key, "w", "w-1", "default")
}

func TestU43_a_submit_key_follows_the_events_of_what_it_submitted_by_any_filter(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, admin := w.key(t, "default", "submit"), w.key(t, "default", "admin")
		submit := func(key, path, body, field string) string {
			return pathID(w.send(t, request{method: "POST", path: path, key: key, body: body}).wants(t, 201).text(t, field))
		}
		const one, graph = `{"kind":"job"}`, `{"kind":"graph","nodes":[{"name":"a","kind":"job"}]}`
		events := func(query string) reply {
			return w.send(t, request{method: "GET", path: "/v1/events?after=start&" + query, key: mine})
		}
		for parameter, made := range map[string][2]string{
			"execution_id": {submit(mine, "/v1/executions", one, "execution_id"), submit(admin, "/v1/executions", one, "execution_id")},
			"flow_id":      {submit(mine, "/v1/flows", graph, "flow_id"), submit(admin, "/v1/flows", graph, "flow_id")},
		} {
			if got := events(parameter+"="+made[0]+"&kind=execution.submitted").wants(t, 200); got.text(t, "items.0.kind") != "execution.submitted" {
				t.Errorf("%s: %s", parameter, got.body)
			}
			events(parameter+"="+made[1]).refuses(t, 403, "role_required")
		}
		events("kind=execution.submitted").refuses(t, 403, "role_required")
		events("worker_instance_id=w-1").refuses(t, 403, "role_required")
		events("execution_id=01890000-0000-7000-8000-000000000000").refuses(t, 404, "execution_not_found")
	})
}
