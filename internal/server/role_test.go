package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU122_every_route_lets_in_the_roles_of_the_table_and_no_other(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		for role := wire.Read; role <= wire.Admin; role <<= 1 {
			key := w.key(t, "*", role.String())
			for _, o := range wire.Operations() {
				if o.ID == wire.DrainServer.ID || o.ID == wire.MakeBackup.ID {
					continue // they do what they say
				}
				answer := w.send(t, request{
					method: o.Method, path: somePath(o, "0198f0a0-0000-7000-8000-000000000000"), key: key,
					header: map[string]string{"FlowFabric-Namespace": "default"},
				})
				refused := answer.status == 403
				if allowed := len(wire.Allows(o, role)) > 0; allowed == refused && !bounded(o, role) {
					t.Errorf("%s with role %s: %d %s", o.ID, role, answer.status, answer.body)
				}
			}
		}
	})
}

// bounded reports whether the table bounds the role to a condition that a bare request does not meet. Keys that list no lanes are not bound to
// any.
func bounded(o *wire.Operation, role wire.Role) bool {
	return !slices.ContainsFunc(wire.Allows(o, role), func(c wire.Condition) bool {
		return c == wire.Always || c == wire.OwnLanes || c == wire.LeasedInLanes
	})
}

func TestU122_submit_reads_and_steers_only_what_it_submitted_itself(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine := w.key(t, "default", "submit")
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "another", Roles: []string{"submit"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		other := made.Secret
		id := url.PathEscape(w.send(t, request{method: "POST", path: "/v1/executions", key: mine, body: `{"kind":"job","input":1}`}).wants(t, 201).text(t, "execution_id"))
		for _, c := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"GET", "/state", ""},
			{"GET", "/input", ""},
			{"GET", "/events?after=start", ""},
			{"GET", "/steps", ""},
			{"PATCH", "/tags", `{"a":"b"}`},
			{"POST", "/cancel", `{}`},
			{"POST", "/replay", `{}`},
		} {
			w.send(t, request{method: c.method, path: "/v1/executions/" + id + c.path, key: other, body: c.body}).refuses(t, 403, "role_required")
			w.send(t, request{method: c.method, path: "/v1/executions/" + id + c.path, key: mine, body: c.body}).wants(t, 200)
		}
		w.send(t, request{method: "GET", path: "/v1/executions", key: mine}).refuses(t, 403, "role_required")
	})
}

func TestU45_a_worker_cancels_with_its_lease_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit, work := w.key(t, "default", "submit"), w.key(t, "default", "work")
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: submit, body: `{"kind":"job"}`}).wants(t, 201).text(t, "execution_id")
		path := "/v1/executions/" + url.PathEscape(id) + "/cancel"
		w.send(t, request{method: "POST", path: path, key: work, body: `{}`}).refuses(t, 403, "role_required")
		task := w.send(t, request{method: "POST", path: "/v1/work/claim", key: work, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`}).wants(t, 200)
		cancelled := w.send(t, request{method: "POST", path: path, key: work, header: map[string]string{"FlowFabric-Lease": task.text(t, "tasks.0.lease.fence")}}).wants(t, 200)
		if cancelled.text(t, "cancellation.source") != "worker" {
			t.Errorf("%s", cancelled.body)
		}
	})
}

func TestU68_operate_ends_executions_only_by_an_override(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		operator := w.key(t, "default", "operate")
		submit, work := w.key(t, "default", "submit"), w.key(t, "default", "work")
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: submit, body: `{"kind":"job"}`}).wants(t, 201).text(t, "execution_id")
		w.send(t, request{method: "POST", path: "/v1/work/claim", key: work, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`}).wants(t, 200)
		path := "/v1/executions/" + url.PathEscape(id) + "/complete"
		w.send(t, request{method: "POST", path: path, key: operator, body: `{}`}).refuses(t, 403, "role_required")
		// Nothing of it is ignored: neither a lease that the override does not look at, nor usage that no worker reports, nor a reason without one.
		const lease = "01900000-0000-7000-8000-000000000001.1.01900000-0000-7000-8000-000000000002"
		for verb, own := range map[string]string{"complete": "", "fail": `,"message":"no"`} {
			for _, c := range []struct {
				key, more, code, field string
				header                 map[string]string
			}{
				{key: operator, more: `"override":true,"usage":{"tokens":1}`, code: "invalid_argument", field: "/usage"},
				{key: operator, more: `"override":true,"lease":"` + lease + `"`, code: "invalid_argument", field: "/lease"},
				{key: operator, more: `"override":true`, code: "invalid_argument", field: "header.FlowFabric-Lease", header: map[string]string{"FlowFabric-Lease": lease}},
				{key: work, more: `"reason":"r","lease":"` + lease + `"`, code: "unknown_field", field: "/reason"},
			} {
				at := "/v1/executions/" + url.PathEscape(id) + "/" + verb
				answer := w.send(t, request{method: "POST", path: at, key: c.key, body: "{" + c.more + own + "}", header: c.header}).refuses(t, 400, c.code)
				if answer.text(t, "field") != c.field {
					t.Errorf("%s %s: %s", verb, c.more, answer.body)
				}
			}
		}
		w.send(t, request{method: "POST", path: path, key: operator, body: `{"override":true,"reason":"by hand","result":1}`}).wants(t, 200)
	})
}

func TestL37_U68_U69_only_operators_end_the_work_of_others(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit, work, operator := w.key(t, "default", "submit"), w.key(t, "default", "work"), w.key(t, "default", "operate")
		worker := func(name string) string {
			return `{"worker_id":"` + name + `","worker_instance_id":"` + name + `","lanes":["default"],"wait_ms":20000}`
		}
		for verb, body := range map[string]string{"complete": `{"override":true,"result":1}`, "fail": `{"override":true,"class":"permanent","message":"no"}`} {
			id := w.send(t, request{method: "POST", path: "/v1/executions", key: submit, body: `{"kind":"job"}`}).wants(t, 201).text(t, "execution_id")
			w.send(t, request{method: "POST", path: "/v1/work/claim", key: work, body: worker(verb)}).wants(t, 200)
			path := "/v1/executions/" + id
			for _, key := range []string{work, submit} {
				w.send(t, request{method: "POST", path: path + "/" + verb, key: key, body: body}).refuses(t, 403, "role_required")
			}
			if status := w.send(t, request{method: "GET", path: path, key: submit}).wants(t, 200).text(t, "status"); status != "running" {
				t.Errorf("%s: %s", verb, status)
			}
			w.send(t, request{method: "POST", path: path + "/" + verb, key: operator, body: body}).wants(t, 200)
		}
	})
}

func TestU57_only_administrators_remove_and_retain_many(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		operator, admin := w.key(t, "default", "operate"), w.key(t, "default", "admin")
		for _, action := range []string{"delete", "retain"} {
			body := `{"action":"` + action + `","all":true,"dry_run":true,"reason":"r"}`
			w.send(t, request{method: "POST", path: "/v1/bulk", key: operator, body: body}).refuses(t, 403, "role_required")
			w.send(t, request{method: "POST", path: "/v1/bulk", key: admin, body: body}).wants(t, 200)
		}
		w.send(t, request{method: "POST", path: "/v1/bulk", key: operator, body: `{"action":"cancel","all":true,"dry_run":true}`}).wants(t, 200)
	})
}

func TestU121_what_all_namespaces_share_is_changed_by_keys_for_all_of_them(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		everywhere, acme := w.key(t, "*", "operate"), w.key(t, "acme", "operate", "submit")
		globex := w.key(t, "globex", "submit")
		for _, key := range []string{acme, globex} {
			w.send(t, request{method: "POST", path: "/v1/executions", key: key, body: `{"kind":"job"}`}).wants(t, 201)
		}
		put := func(key string) reply {
			return w.send(t, request{method: "PUT", path: "/v1/lanes/default", key: key, body: `{"max_concurrent":5}`})
		}
		put(acme).refuses(t, 403, "role_required")
		put(everywhere).wants(t, 200)
	})
}

func TestU121_while_there_is_one_namespace_its_operators_change_what_is_shared(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		operator := w.key(t, "default", "operate")
		w.send(t, request{method: "PUT", path: "/v1/lanes/default", key: operator, body: `{"max_concurrent":5}`}).wants(t, 200)
	})
}

func TestU122_a_key_with_lanes_works_on_those_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "w", Roles: []string{"work"}, Namespaces: []string{"default"}, Lanes: []string{"fast"}})
		if err != nil {
			t.Fatal(err)
		}
		claim := func(lanes string) reply {
			return w.send(t, request{method: "POST", path: "/v1/work/claim", key: made.Secret, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":` + lanes + `}`})
		}
		claim(`["fast"]`).wants(t, 200)
		claim(`["fast","default"]`).refuses(t, 403, "role_required")
		w.send(t, request{method: "POST", path: "/v1/workers", key: made.Secret, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["slow"]}`}).refuses(t, 403, "role_required")
		w.send(t, request{method: "POST", path: "/v1/workers", key: made.Secret, body: `{"worker_id":"w","worker_instance_id":"w-1"}`}).refuses(t, 403, "role_required") // for the lane default
	})
}

// underLease has, for each operation that takes a lease, the rest of a body with which its holder succeeds; {waitpoint} and {link} are of the execution.
var underLease = map[string]struct{ path, body string }{
	wire.RenewLease.ID:        {"/v1/executions/{id}/renew", ``},
	wire.ReportProgress.ID:    {"/v1/executions/{id}/progress", `,"percent":5`},
	wire.PutStep.ID:           {"/v1/executions/{id}/steps/one", `,"result":1`},
	wire.AppendFrames.ID:      {"/v1/executions/{id}/frames", `,"frames":[{}]`},
	wire.ReportUsage.ID:       {"/v1/executions/{id}/usage", `,"usage":{"tokens":1}`},
	wire.SpawnChildren.ID:     {"/v1/executions/{id}/spawn", `,"children":[{"name":"c","kind":"k","lane":"new"}]`},
	wire.CreateWaitpoint.ID:   {"/v1/executions/{id}/waitpoints", `,"waitpoint_key":"other"`},
	wire.CreateLink.ID:        {"/v1/waitpoints/{waitpoint}/links", `,"approver":"bob"`},
	wire.ListLinks.ID:         {"/v1/waitpoints/{waitpoint}/links", ``},
	wire.RevokeLink.ID:        {"/v1/links/{link}", ``},
	wire.CloseWaitpoint.ID:    {"/v1/waitpoints/{waitpoint}/close", ``},
	wire.CompleteExecution.ID: {"/v1/executions/{id}/complete", `,"result":1`},
	wire.FailExecution.ID:     {"/v1/executions/{id}/fail", `,"message":"m"`},
	wire.ReleaseExecution.ID:  {"/v1/executions/{id}/release", ``},
	wire.DelayExecution.ID:    {"/v1/executions/{id}/delay", `,"delay_ms":1000`},
	wire.SuspendExecution.ID:  {"/v1/executions/{id}/suspend", `,` + anySignal},
	wire.WaitForChildren.ID:   {"/v1/executions/{id}/wait-children", ``},
	wire.CancelExecution.ID:   {"/v1/executions/{id}/cancel", `,"reason":"r"`},
}

func TestU122_a_key_with_lanes_works_on_those_alone_whatever_lease_it_shows(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit, work := w.key(t, "default", "submit"), w.key(t, "default", "work")
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "mail", Roles: []string{"work"}, Namespaces: []string{"default"}, Lanes: []string{"mail"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range wire.Operations() {
			if inputs := inputsOf(o); !inputs["header FlowFabric-Lease"] && !inputs["body lease"] || o.ID == wire.SendWork.ID {
				continue
			}
			c, known := underLease[o.ID]
			if !known {
				t.Errorf("%s takes a lease: try it", o.ID)
				continue
			}
			id, lease := w.taken(t, submit, work)
			at := "/v1/executions/" + bare(id)
			waitpoint := w.send(t, request{method: "POST", path: at + "/waitpoints", key: work, body: `{"lease":` + lease + `,"waitpoint_key":"a"}`}).wants(t, 201).text(t, "waitpoint_id")
			link := w.send(t, request{method: "POST", path: "/v1/waitpoints/" + waitpoint + "/links", key: work, body: `{"lease":` + lease + `,"approver":"ann"}`}).wants(t, 201).text(t, "link_id")
			r := request{method: o.Method, path: strings.NewReplacer("{id}", bare(id), "{waitpoint}", waitpoint, "{link}", link).Replace(c.path), key: made.Secret}
			if o.Method == http.MethodGet {
				r.header = map[string]string{"FlowFabric-Lease": fenceOf(lease)}
			} else {
				r.body = `{"lease":` + lease + c.body + `}`
			}
			w.send(t, r).refuses(t, 403, "role_required")
			if r.key = work; w.send(t, r).status >= 300 {
				t.Errorf("%s: its holder is refused as well: %s", o.ID, w.send(t, r).body)
			}
		}
		id, lease := w.taken(t, submit, work)
		for _, op := range []string{`"renew"`, `"progress","percent":3`, `"complete"`, `"fail","message":"m"`, `"release"`, `"cancel","reason":"r"`} {
			answer := w.send(t, request{method: "POST", path: "/v1/work/batch", key: made.Secret, body: `{"items":[{"op":` + op + `,"execution_id":"` + id + `","lease":` + lease + `}]}`}).wants(t, 200)
			if answer.text(t, "items.0.error.code") != "role_required" {
				t.Errorf("%s: %s", op, answer.body)
			}
		}
	})
}

func TestU131_a_refusal_of_a_valid_key_is_in_the_audit_log(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		reader, admin := w.key(t, "default", "read"), w.key(t, "default", "admin")
		w.send(t, request{method: "POST", path: "/v1/executions", key: reader, body: `{"kind":"job"}`}).refuses(t, 403, "role_required")
		audit := w.send(t, request{method: "GET", path: "/v1/audit", key: admin}).wants(t, 200)
		if !strings.Contains(string(audit.body), "role_required") || !strings.Contains(string(audit.body), "submit_execution") {
			t.Errorf("%s", audit.body)
		}
	})
}

func TestU131_who_hangs_up_after_a_refusal_is_in_the_audit_log_all_the_same(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	key := w.key(t, "default", "read")
	for range 2 { // the first use is written down; after the second the key is known without a look into the store
		w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	r := httptest.NewRequestWithContext(gone, "POST", "/v1/lanes/default/pause", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	w.server.Handler().ServeHTTP(httptest.NewRecorder(), r)
	rows, err := w.Admin().AuditPage(t.Context(), ops.AuditFilter{Action: "pause_lane"})
	if err != nil || len(rows.Items) != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
}
