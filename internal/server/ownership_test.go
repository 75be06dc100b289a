package server_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

func TestU103_a_work_key_steers_only_the_instances_that_it_registered(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		own, other := w.key(t, "default", "work"), w.key(t, "default", "work", "read")
		everywhere, operator := w.key(t, "*", "work"), w.key(t, "*", "operate")
		send := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, body: body, key: key})
		}
		send(own, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).wants(t, 200)
		send(other, "/v1/work/claim", `{"worker_id":"v","worker_instance_id":"v-1","lanes":["default"]}`).wants(t, 200) // which registers it (S50)
		send(own, "/v1/workers/drain?worker_id=w", "").wants(t, 200)
		send(other, "/v1/workers/undrain?worker_id=w", "").refuses(t, 403, "role_required")
		if undrained := send(own, "/v1/workers/undrain?worker_id=w", "").wants(t, 200); undrained.field(t, "drain") != false {
			t.Errorf("%s", undrained.body)
		}
		for instance, keys := range map[string]struct{ owner, stranger string }{"w-1": {own, other}, "v-1": {other, own}} {
			for _, stranger := range []string{keys.stranger, everywhere} {
				for _, action := range []string{"drain", "undrain", "dead"} {
					body := ""
					if action == "dead" {
						body = `{"reason":"r"}`
					}
					send(stranger, "/v1/workers/"+instance+"/"+action, body).refuses(t, 403, "role_required")
				}
			}
			send(keys.owner, "/v1/workers/"+instance+"/drain", "").wants(t, 200)
			send(keys.owner, "/v1/workers/"+instance+"/undrain", "").wants(t, 200)
			send(operator, "/v1/workers/"+instance+"/drain", "").wants(t, 200)
		}
		send(other, "/v1/workers/drain?worker_id=w", "").refuses(t, 403, "role_required")
		send(own, "/v1/workers/drain?worker_id=w", "").wants(t, 200)

		taken := send(other, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).refuses(t, 409, "instance_id_taken") // a live instance stays its owner's
		if taken.field(t, "current") != nil {
			t.Errorf("it tells of the instance: %s", taken.body)
		}
		send(other, "/v1/workers/w-1/dead", `{"reason":"r"}`).refuses(t, 403, "role_required")
		send(own, "/v1/workers/w-1/dead", `{"reason":"r"}`).wants(t, 200)
		send(other, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).wants(t, 200) // a dead one is free
		shown := w.send(t, request{method: "GET", path: "/v1/workers/w-1", key: other}).wants(t, 200)
		if shown.text(t, "registered_by") != "work+read@default" || shown.text(t, "state") != "draining" {
			t.Errorf("%s", shown.body)
		}
	})
}

func TestU103_a_key_of_the_same_name_or_of_one_tenant_takes_no_instance_that_serves_all(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		fleet, namesake, tenant := w.key(t, "*", "work"), w.key(t, "*", "work"), w.key(t, "b", "work")
		send := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, body: body, key: key})
		}
		const register, claim = `{"worker_id":"f","worker_instance_id":"f-1"}`, `{"worker_id":"f","worker_instance_id":"f-1","lanes":["default"]}`
		send(fleet, "/v1/workers", register).wants(t, 200)
		for _, thief := range []string{namesake, tenant} {
			send(thief, "/v1/workers", `{"worker_id":"f","worker_instance_id":"f-1","liveness_ttl_ms":1000}`).refuses(t, 409, "instance_id_taken")
			send(thief, "/v1/work/claim", claim).refuses(t, 409, "instance_id_taken")
			send(thief, "/v1/workers/f-1/drain", "").refuses(t, 403, "role_required")
			send(thief, "/v1/workers/f-1/dead", `{"reason":"r"}`).refuses(t, 403, "role_required")
			send(thief, "/v1/workers/drain?worker_id=f", "").refuses(t, 403, "role_required")
			w.send(t, request{method: "GET", path: "/v1/events?worker_instance_id=f-1", key: thief}).refuses(t, 403, "role_required")
		}
		if served := send(fleet, "/v1/work/claim", claim).wants(t, 200); served.field(t, "drain") != false {
			t.Errorf("%s", served.body)
		}
		send(fleet, "/v1/workers/f-1/dead", `{"reason":"deployed anew"}`).wants(t, 200)
		send(tenant, "/v1/workers", register).refuses(t, 409, "instance_id_taken") // it would keep the id from the worker of all
		send(fleet, "/v1/workers", register).wants(t, 200)
	})
}

func TestS53_U103_who_takes_an_instance_over_does_not_inherit_the_drain_of_its_owner(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		first, second, operator := w.key(t, "default", "work"), w.key(t, "default", "work"), w.key(t, "*", "operate")
		send := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, body: body, key: key})
		}
		take := func(key string) reply {
			t.Helper()
			return send(key, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).wants(t, 200)
		}
		free := func(key string) {
			t.Helper()
			send(key, "/v1/workers/w-1/dead", `{"reason":"replaced"}`).wants(t, 200)
		}
		take(first)
		send(first, "/v1/workers/w-1/drain", "").wants(t, 200)
		free(first)
		if taken := take(second); taken.field(t, "drain") != false {
			t.Errorf("it inherits the owner's drain: %s", taken.body)
		}
		send(operator, "/v1/workers/w-1/drain", "").wants(t, 200)
		free(second)
		if taken := take(first); taken.field(t, "drain") != true {
			t.Errorf("it escapes the operator's drain: %s", taken.body)
		}
	})
}

func TestS53_U103_only_an_operator_ends_the_drain_of_an_operator(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		owner, operator := w.key(t, "default", "work"), w.key(t, "*", "operate")
		send := func(key, path string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: key})
		}
		state := func() string {
			t.Helper()
			return w.send(t, request{method: "GET", path: "/v1/workers/w-1", key: operator}).wants(t, 200).text(t, "state")
		}
		w.send(t, request{method: "POST", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`, key: owner}).wants(t, 200)
		for _, before := range []string{"", "drain", "drain?leaving=true"} { // whatever the owner asked for
			if before != "" {
				send(owner, "/v1/workers/w-1/"+before).wants(t, 200)
			}
			send(operator, "/v1/workers/w-1/drain").wants(t, 200)
			send(owner, "/v1/workers/w-1/drain").wants(t, 200) // which makes it no drain of the owner
			send(owner, "/v1/workers/w-1/undrain").refuses(t, 403, "role_required")
			if got := state(); got != "draining" {
				t.Errorf("after %q: the instance is %s", before, got)
			}
			send(operator, "/v1/workers/w-1/undrain").wants(t, 200)
			if got := state(); got != "live" {
				t.Errorf("after %q: the operator's undrain leaves it %s", before, got)
			}
		}
		send(owner, "/v1/workers/w-1/drain").wants(t, 200)
		send(owner, "/v1/workers/w-1/undrain").wants(t, 200)
	})
}

func TestU103_a_rotated_key_keeps_its_instances(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		created, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "w", Roles: []string{"work"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		send := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, body: body, key: key})
		}
		const register = `{"worker_id":"w","worker_instance_id":"w-1"}`
		send(created.Secret, "/v1/workers", register).wants(t, 200)
		rotated, err := w.Admin().APIKeys().Rotate(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{rotated.Secret, created.Secret} { // both work while they overlap
			send(secret, "/v1/workers", register).wants(t, 200)
			send(secret, "/v1/workers/w-1/drain", "").wants(t, 200)
			send(secret, "/v1/workers/w-1/undrain", "").wants(t, 200)
		}
	})
}

func TestU121_the_only_namespace_is_decided_by_what_is_stored(t *testing.T) {
	t.Parallel()
	for name, thing := range map[string]request{
		"an execution": {path: "/v1/executions", body: `{"kind":"job"}`},
		"a flow":       {path: "/v1/flows", body: `{"kind":"g","nodes":[{"name":"n","kind":"job"}]}`},
		"a budget":     {path: "/v1/budgets", body: `{"name":"b","dimensions":{"tokens":{"hard":1}}}`},
		"a worker":     {path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyedOnEveryStore(t, func(t *testing.T, w *world) {
				operator, everywhere := w.key(t, "a", "operate"), w.key(t, "*", "submit", "work", "admin")
				pause := func() reply {
					t.Helper()
					return w.send(t, request{method: "POST", path: "/v1/lanes/default/pause", key: operator})
				}
				made := thing
				made.method, made.key, made.header = "POST", everywhere, map[string]string{"FlowFabric-Namespace": "a"}
				if own := w.send(t, made); own.status > 299 {
					t.Fatalf("%s", own.body)
				}
				w.send(t, request{method: "POST", path: "/v1/executions", key: everywhere, header: made.header, body: `{"kind":"job"}`}).wants(t, 201)
				pause().wants(t, 200)
				made.header = map[string]string{"FlowFabric-Namespace": "c"} // it was not set up, and no key is for it alone
				made.body = strings.Replace(made.body, "w-1", "w-2", 1)
				if other := w.send(t, made); other.status > 299 {
					t.Fatalf("%s", other.body)
				}
				pause().refuses(t, 403, "role_required")
			})
		})
	}
}

func TestS52_an_instance_that_was_marked_dead_may_register_again(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const register, claim = `{"worker_id":"w","worker_instance_id":"w-1"}`, `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`
		w.post(t, "/v1/workers", register).wants(t, 200)
		w.post(t, "/v1/workers/w-1/dead", `{"reason":"gone"}`).wants(t, 200)
		w.post(t, "/v1/work/claim", claim).refuses(t, 404, "worker_not_registered")
		if beat := w.post(t, "/v1/workers/w-1/heartbeat", `{}`).wants(t, 200); beat.field(t, "registered") != false {
			t.Errorf("%s", beat.body)
		}
		w.post(t, "/v1/workers", register).wants(t, 200)
		w.post(t, "/v1/work/claim", claim).wants(t, 200)
		if shown := w.get(t, "/v1/workers/w-1").wants(t, 200); shown.text(t, "state") != "live" {
			t.Errorf("%s", shown.body)
		}
	})
}

func TestU131_an_administrator_verifies_the_audit_log_of_its_namespaces(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		acme, all := w.key(t, "acme", "admin"), w.key(t, "*", "admin")
		verify := func(key, query, namespace string) reply {
			t.Helper()
			r := request{method: "GET", path: "/v1/audit/verify" + query, key: key}
			if namespace != "" {
				r.header = map[string]string{"FlowFabric-Namespace": namespace}
			}
			return w.send(t, r)
		}
		if own := verify(acme, "", "").wants(t, 200); own.text(t, "namespace") != "acme" || own.field(t, "ok") != true || own.number(t, "rows") == 0 || own.text(t, "hash") == "" ||
			own.field(t, "keyed") != false || own.field(t, "first_keyed") != nil || own.number(t, "first") != 1 || own.number(t, "last") != own.number(t, "rows") {
			t.Errorf("%s", own.body)
		}
		verify(acme, "", "globex").refuses(t, 403, "namespace_forbidden")
		verify(acme, "?shared=true", "").refuses(t, 403, "role_required")
		verify(all, "", "").refuses(t, 400, "namespace_required")
		if named := verify(all, "", "acme").wants(t, 200); named.text(t, "namespace") != "acme" {
			t.Errorf("%s", named.body)
		}
		if shared := verify(all, "?shared=true", "").wants(t, 200); shared.text(t, "namespace") != "*" || shared.field(t, "ok") != true {
			t.Errorf("%s", shared.body)
		}
		verify(w.key(t, "*", "operate"), "?shared=true", "").refuses(t, 403, "role_required")
	})
}
