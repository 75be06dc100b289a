package server_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Names of keys are not unique: what a key submitted is its own by its id, which a rotation keeps.
func TestU122_two_keys_of_one_name_do_not_share_what_they_submitted(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, namesake := w.key(t, "default", "submit"), w.key(t, "default", "submit")
		work := w.key(t, "default", "work")
		post := func(path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: mine, body: body}).wants(t, 201)
		}
		one := post("/v1/executions", `{"kind":"job","lane":"l"}`).text(t, "execution_id")
		flow := post("/v1/flows", `{"kind":"g","seal":false,"nodes":[{"name":"n","kind":"job","delay_ms":3600000}]}`)
		extended := w.send(t, request{method: "POST", path: "/v1/flows/" + flow.text(t, "flow_id") + "/extend", key: mine, body: `{"nodes":[{"name":"m","kind":"job","delay_ms":3600000}]}`}).wants(t, 200)
		task := w.send(t, request{method: "POST", path: "/v1/work/claim", key: work, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["l"],"wait_ms":20000}`}).wants(t, 200)
		child := w.send(t, request{
			method: "POST", path: "/v1/executions/" + one + "/spawn", key: work, body: `{"children":[{"name":"c","kind":"job","delay_ms":3600000}]}`,
			header: map[string]string{"FlowFabric-Lease": task.text(t, "tasks.0.lease.fence")},
		}).wants(t, 200).text(t, "children.c")
		own := []string{
			"/v1/executions/" + one, "/v1/executions/" + flow.text(t, "members.n"), "/v1/executions/" + extended.text(t, "members.m"), "/v1/executions/" + child,
			"/v1/flows/" + flow.text(t, "flow_id"), "/v1/events?after=start&execution_id=" + one, "/v1/events?after=start&flow_id=" + flow.text(t, "flow_id"),
		}
		for _, path := range own {
			w.send(t, request{method: "GET", path: path, key: mine}).wants(t, 200)
			w.send(t, request{method: "GET", path: path, key: namesake}).refuses(t, 403, "role_required")
		}
		w.send(t, request{method: "POST", path: "/v1/executions/" + one + "/cancel", key: namesake, body: `{}`}).refuses(t, 403, "role_required")
		w.send(t, request{method: "PATCH", path: "/v1/flows/" + flow.text(t, "flow_id") + "/tags", key: namesake, body: `{"a":"b"}`}).refuses(t, 403, "role_required")
		if listed := w.send(t, request{method: "GET", path: "/v1/flows", key: mine}).wants(t, 200); !strings.Contains(string(listed.body), flow.text(t, "flow_id")) {
			t.Errorf("its own flow is not listed: %s", listed.body)
		}
		if listed := w.send(t, request{method: "GET", path: "/v1/flows", key: namesake}).wants(t, 200); strings.Contains(string(listed.body), "flow_id") {
			t.Errorf("the flow of another is listed: %s", listed.body)
		}
	})
}

func TestU122_a_rotated_key_and_one_that_was_renamed_keep_what_they_submitted(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		created, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "shop", Roles: []string{"submit"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: created.Secret, body: `{"kind":"job"}`}).wants(t, 201).text(t, "execution_id")
		rotated, err := w.Admin().APIKeys().Rotate(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		name := "store"
		if _, err := w.Admin().APIKeys().Change(t.Context(), created.ID, api.APIKeyChange{Name: &name}); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{created.Secret, rotated.Secret} {
			w.send(t, request{method: "GET", path: "/v1/executions/" + id, key: secret}).wants(t, 200)
		}
	})
}

// A record of an older version says only the name of who submitted it, as one that a program submitted without a key.
func TestU122_what_was_submitted_under_a_name_alone_is_the_names(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		named, _ := inprocess.As(w.Client, service.Caller{Name: "submit@default", Namespaces: []string{"default"}, Namespace: "default"})
		handle, err := named.Submit(t.Context(), flowfabric.Submission{Kind: "job"})
		if err != nil {
			t.Fatal(err)
		}
		flow, err := named.Flows().Submit(t.Context(), flowfabric.Flow{Kind: "g", Nodes: []flowfabric.Node{{Name: "n", Kind: "job"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/v1/executions/" + string(handle.ID), "/v1/flows/" + string(flow.ID)} {
			w.send(t, request{method: "GET", path: path, key: w.key(t, "default", "submit")}).wants(t, 200)
			w.send(t, request{method: "GET", path: path, key: w.laneKey(t, "default", []string{"x"}, "submit")}).refuses(t, 403, "role_required")
		}
	})
}

// Who may cancel a flow cancels its members: work of another key is not made one.
func TestU122_a_submitter_adds_only_its_own_executions_to_its_flows(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, theirs, all := w.key(t, "default", "submit"), w.key(t, "default", "submit"), w.key(t, "default", "admin") // two keys of one name
		submit := func(key, id string) string {
			body := `{"kind":"job","execution_id":"{fp:7}:01900000-0000-7000-8000-00000000` + id + `"}`
			return w.send(t, request{method: "POST", path: "/v1/executions", key: key, body: body}).wants(t, 201).text(t, "execution_id")
		}
		own, victim, added := submit(mine, "a001"), submit(theirs, "a002"), submit(theirs, "a003")
		flow := "/v1/flows/" + w.send(t, request{
			method: "POST", path: "/v1/flows", key: mine, body: `{"kind":"k","seal":false,"flow_id":"{fp:7}:01900000-0000-7000-8000-00000000a004","nodes":[{"name":"n","kind":"job"}]}`,
		}).wants(t, 201).text(t, "flow_id")
		extend := func(key, id, name string) reply {
			return w.send(t, request{method: "POST", path: flow + "/extend", key: key, body: `{"members":[{"execution_id":"` + id + `","name":"` + name + `"}]}`})
		}
		if refused := extend(mine, victim, "v").refuses(t, 403, "role_required"); refused.text(t, "field") != "/members/0/execution_id" {
			t.Errorf("%s", refused.body)
		}
		extend(mine, own, "o").wants(t, 200)
		extend(all, added, "x").wants(t, 200)  // an administrator may
		extend(mine, added, "x").wants(t, 200) // which is there already
		w.send(t, request{method: "POST", path: flow + "/cancel", key: mine, body: `{"reason":"r"}`}).wants(t, 200)
		if status := w.send(t, request{method: "GET", path: "/v1/executions/" + victim, key: theirs}).wants(t, 200).text(t, "status"); status != "ready" {
			t.Errorf("the work of another is %s", status)
		}
	})
}

// Whoever knows what another key submitted, and its idempotency key or id, learns no result from submitting it again.
func TestU122_a_submit_that_another_key_made_before_shows_no_more_than_its_id_and_state(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, other := w.key(t, "default", "submit"), w.key(t, "default", "submit")
		lanes := w.send(t, request{
			method: "POST", path: "/v1/api-keys", key: w.key(t, "default", "admin"), body: `{"name":"both","roles":["submit","work"],"namespaces":["default"],"lanes":["m"]}`,
		}).wants(t, 201).text(t, "secret")
		reader, worker := w.key(t, "default", "submit", "read"), w.key(t, "default", "submit", "work")
		post := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: key, body: body})
		}
		const work = `{"kind":"job","lane":"l","input":{"order":17},"tags":{"t":"private-tag"},"idempotency_key":"order-17"}`
		id := post(mine, "/v1/executions", work).wants(t, 201).text(t, "execution_id")
		task := post(worker, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["l"],"wait_ms":20000}`).wants(t, 200)
		w.send(t, request{
			method: "POST", path: "/v1/executions/" + id + "/complete", key: worker, body: `{"result":"private-result"}`,
			header: map[string]string{"FlowFabric-Lease": task.text(t, "tasks.0.lease.fence")},
		}).wants(t, 200)
		const graph = `{"kind":"g","seal":false,"tags":{"t":"private-tag"},"flow_id":"{fp:7}:01900000-0000-7000-8000-00000000b001"}`
		post(mine, "/v1/flows", graph).wants(t, 201)
		byID := strings.Replace(work, `"idempotency_key":"order-17"`, `"execution_id":"`+id+`"`, 1)
		for name, key := range map[string]string{"its own": mine, "reader": reader, "worker": worker, "submitter": other, "worker of another lane": lanes} {
			shown := name == "its own" || name == "reader" || name == "worker"
			for _, body := range []string{work, byID} {
				for _, query := range []string{"", "?wait_ms=1000"} {
					again := post(key, "/v1/executions"+query, body).wants(t, 200)
					if again.text(t, "execution_id") != id || again.text(t, "outcome") != "duplicate" {
						t.Errorf("%s: %s", name, again.body)
					}
					if strings.Contains(string(again.body), "private") != shown {
						t.Errorf("%s gets %s", name, again.body)
					}
				}
			}
			if again := post(key, "/v1/flows", graph).wants(t, 200); strings.Contains(string(again.body), "private") != (shown && name != "worker") {
				t.Errorf("%s gets %s", name, again.body)
			}
		}
	})
}
