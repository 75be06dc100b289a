package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// laneKey makes a key that works on certain lanes.
func (w *world) laneKey(t testing.TB, namespace string, lanes []string, roles ...string) string {
	t.Helper()
	key, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: strings.Join(roles, "+") + "@" + strings.Join(lanes, "+"), Roles: roles, Namespaces: []string{namespace}, Lanes: lanes,
	})
	if err != nil {
		t.Fatal(err)
	}
	return key.Secret
}

func TestU122_a_work_key_with_lanes_reads_what_is_in_these_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mail, free, both := w.laneKey(t, "default", []string{"mail"}, "work"), w.key(t, "default", "work"), w.laneKey(t, "default", []string{"mail"}, "work", "read")
		submit := w.laneKey(t, "default", []string{"mail"}, "work", "submit")
		ids := map[string]string{}
		for _, lane := range []string{"mail", "pay"} {
			ids[lane] = w.send(t, request{method: "POST", path: "/v1/executions", key: submit, body: `{"kind":"job","input":"secret","lane":"` + lane + `"}`}).wants(t, 201).text(t, "execution_id")
		}
		read := 0
		for _, o := range wire.Operations() {
			if o.Only[wire.Work] != wire.OwnLanes {
				if o.Method == http.MethodGet && strings.HasPrefix(o.Path, "/v1/executions/{id}") && o.Roles&wire.Work != 0 {
					t.Errorf("%s is not bound to lanes", o.ID)
				}
				continue
			}
			read++
			ask := func(key, lane string) reply {
				t.Helper()
				return w.send(t, request{method: o.Method, path: somePath(o, ids[lane]), key: key})
			}
			refused := ask(mail, "pay").refuses(t, 403, "role_required")
			if strings.Contains(string(refused.body), "secret") || strings.Contains(string(refused.body), "pay") {
				t.Errorf("%s tells of it: %s", o.ID, refused.body)
			}
			for name, allowed := range map[string]reply{
				"of its lane": ask(mail, "mail"), "of no lanes": ask(free, "pay"), "that reads too": ask(both, "pay"), "of its own work": ask(submit, "pay"),
			} {
				if allowed.status == 403 {
					t.Errorf("%s with a key %s: %s", o.ID, name, allowed.body)
				}
			}
			if none := w.send(t, request{method: o.Method, path: somePath(o, "0198f0a0-0000-7000-8000-000000000000"), key: mail}); none.status != 404 {
				t.Errorf("%s of nothing: %d %s", o.ID, none.status, none.body)
			}
		}
		if read < 10 {
			t.Errorf("only %d routes were tried", read)
		}
	})
}

func TestF38_U122_a_work_key_with_lanes_reads_the_children_of_its_work_in_other_lanes(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mail := w.laneKey(t, "default", []string{"mail"}, "work")
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: w.key(t, "default", "submit"), body: `{"kind":"job","lane":"mail"}`}).wants(t, 201).text(t, "execution_id")
		task := w.send(t, request{method: "POST", path: "/v1/work/claim", key: mail, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["mail"],"wait_ms":20000}`}).wants(t, 200)
		spawned := w.send(t, request{
			method: "POST", path: "/v1/executions/" + id + "/spawn", key: mail, body: `{"children":[{"name":"c","kind":"job","lane":"pay","input":7}]}`,
			header: map[string]string{"FlowFabric-Lease": task.text(t, "tasks.0.lease.fence")},
		}).wants(t, 200)
		child := spawned.text(t, "children.c")
		if child == "" {
			t.Fatalf("%s", spawned.body)
		}
		w.send(t, request{method: "GET", path: "/v1/executions/" + child + "/input", key: mail}).wants(t, 200)
		w.send(t, request{method: "GET", path: "/v1/executions/" + child + "/input", key: w.laneKey(t, "default", []string{"other"}, "work")}).refuses(t, 403, "role_required")
	})
}

func TestU98_a_work_key_with_lanes_charges_for_what_it_holds_there_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mail, pay, free := w.laneKey(t, "default", []string{"mail"}, "work"), w.laneKey(t, "default", []string{"pay"}, "work"), w.key(t, "default", "work")
		both := w.laneKey(t, "default", []string{"mail", "pay"}, "work")
		admin := w.key(t, "default", "admin")
		budget := w.send(t, request{method: "POST", path: "/v1/budgets", key: admin, body: `{"name":"month","dimensions":{"calls":{"hard":100}}}`}).wants(t, 201).text(t, "budget_id")
		held := map[string]string{}
		for lane, key := range map[string]string{"mail": mail, "pay": pay} {
			held[lane] = w.send(t, request{method: "POST", path: "/v1/executions", key: admin, body: `{"kind":"job","lane":"` + lane + `"}`}).wants(t, 201).text(t, "execution_id")
			w.send(t, request{method: "POST", path: "/v1/work/claim", key: key, body: `{"worker_id":"w","worker_instance_id":"` + lane + `-1","lanes":["` + lane + `"],"wait_ms":20000}`}).wants(t, 200)
		}
		queued := w.send(t, request{method: "POST", path: "/v1/executions", key: admin, body: `{"kind":"job","lane":"mail"}`}).wants(t, 201).text(t, "execution_id")
		for _, path := range []string{"/charge", "/release"} {
			send := func(key, execution string) reply {
				t.Helper()
				body := `{"execution_id":"` + execution + `"}`
				if path == "/charge" {
					body = `{"usage":{"calls":1},"execution_id":"` + execution + `"}`
				}
				return w.send(t, request{method: "POST", path: "/v1/budgets/" + budget + path, key: key, body: body})
			}
			send(mail, held["mail"]).wants(t, 200)
			send(free, held["pay"]).wants(t, 200)
			send(mail, held["pay"]).refuses(t, 403, "role_required")
			send(mail, queued).refuses(t, 403, "role_required")
			send(both, held["mail"]).refuses(t, 403, "role_required") // another key holds it
		}
		charge := request{method: "POST", path: "/v1/budgets/" + budget + "/charge", body: `{"usage":{"calls":1}}`}
		charge.key = mail
		w.send(t, charge).refuses(t, 403, "role_required")
		charge.key = free
		w.send(t, charge).wants(t, 200)
	})
}

// counting counts how often executions are read with their payloads.
type counting struct {
	service.Backend
	whole *atomic.Int64
}

func (c counting) Do(ctx context.Context, by service.Caller, op *wire.Operation, request, answer any) error {
	if r, ok := request.(*wire.GetExecutionRequest); ok && r.View == wire.ViewFull {
		c.whole.Add(1)
	}
	return c.Backend.Do(ctx, by, op, request, answer)
}

// Whether a key may do something with an execution is decided without its payloads, which may be large and may be damaged (U122).
func TestU122_who_may_read_an_execution_is_decided_without_its_payloads(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address(t), embedded.Config{})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			conn := client.Connection()
			counted := counting{backend(client), &atomic.Int64{}}
			conn.Transport = service.NewInProcess(counted, service.Owner("local", "default"))
			w := serveClient(t, flowfabric.NewClient(conn), server.Config{})
			submitter, mail := w.key(t, "default", "submit"), w.laneKey(t, "default", []string{"mail"}, "work")
			id := w.send(t, request{method: "POST", path: "/v1/executions", key: submitter, body: `{"kind":"job","lane":"mail","input":"text"}`}).wants(t, 201).text(t, "execution_id")
			before := counted.whole.Load()
			for _, read := range []request{{path: "/state", key: submitter}, {path: "/input", key: submitter}, {path: "/input", key: mail}} {
				w.send(t, request{method: "GET", path: "/v1/executions/" + id + read.path, key: read.key}).wants(t, 200)
			}
			w.send(t, request{method: "POST", path: "/v1/executions/" + id + "/reclaim", key: mail, body: `{"worker_id":"w","worker_instance_id":"i"}`}).
				refuses(t, 409, "execution_not_reclaimable")
			if n := counted.whole.Load() - before; n != 0 {
				t.Errorf("%d executions were read with their payloads", n)
			}
		})
	}
}
