package server_test

import (
	"crypto/sha256"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestU13_no_tenant_can_take_the_id_of_another_tenant_s_request_before_it(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		thief, shop := w.key(t, "b", "submit"), w.key(t, "a", "submit")
		id := func(parts string) string {
			sum := sha256.Sum256([]byte(parts))
			return base.MintUUID(0, [10]byte(sum[:10])).String()
		}
		send := func(key, path, body string, header map[string]string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: key, body: body, header: header})
		}
		// What an older version would have derived, which anybody can compute.
		send(thief, "/v1/executions", `{"kind":"job","execution_id":"`+id("submit@a\x00a\x00order-99\x000\x00")+`"}`, nil).wants(t, 201)
		send(thief, "/v1/flows", `{"kind":"graph","flow_id":"`+id("submit@a\x00a\x00order-99\x00-1\x00")+`","nodes":[{"name":"n","kind":"job"}]}`, nil).wants(t, 201)
		key := map[string]string{"Idempotency-Key": "order-99"}
		for path, body := range map[string]string{"/v1/executions": `{"kind":"job","input":1}`, "/v1/flows": `{"kind":"graph","nodes":[{"name":"n","kind":"job"}]}`} {
			field := map[string]string{"/v1/executions": "execution_id", "/v1/flows": "flow_id"}[path]
			first := send(shop, path, body, key).wants(t, 201)
			again := send(shop, path, body, key).wants(t, 201)
			if first.text(t, field) != again.text(t, field) || again.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: the same request again: %s, then %s", path, first.body, again.body)
			}
		}
	})
}

func TestL85_the_refusal_of_an_id_that_another_tenant_has_tells_nothing_of_what_has_it(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		a, b := w.key(t, "a", "submit", "admin"), w.key(t, "b", "submit", "admin")
		send := func(key, path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: key, body: body})
		}
		const id = "01890000-0000-7000-8000-00000000000a"
		for path, made := range map[string]struct{ body, other, code string }{
			"/v1/executions": {`{"kind":"secret","execution_id":"` + id + `"}`, `{"kind":"job","execution_id":"` + id + `"}`, "id_conflict"},
			"/v1/flows": {
				`{"kind":"secret","flow_id":"` + id + `","nodes":[{"name":"n","kind":"job"}]}`,
				`{"kind":"g","flow_id":"` + id + `","nodes":[{"name":"n","kind":"job"}]}`, "flow_already_exists",
			},
			"/v1/budgets": {
				`{"name":"secret","budget_id":"` + id + `","dimensions":{"tokens":{"hard":1}}}`,
				`{"name":"mine","budget_id":"` + id + `","dimensions":{"tokens":{"hard":1}}}`, "budget_already_exists",
			},
		} {
			if made := send(a, path, made.body); made.status != 201 && made.status != 200 {
				t.Fatalf("%s", made.body)
			}
			refusal := send(b, path, made.other).refuses(t, 409, made.code)
			if refusal.field(t, "current") != nil {
				t.Errorf("%s: %s", path, refusal.body)
			}
		}
	})
}
