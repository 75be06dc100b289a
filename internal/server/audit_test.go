package server_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// act is what an operator or administrator does.
type act struct {
	op         *wire.Operation
	what, body string // what stands in place of the parameters of the path, separated by |
}

// perform does something with a key.
func (w *world) perform(t *testing.T, key string, a act) reply {
	t.Helper()
	path := a.op.Path
	for what := range strings.SplitSeq(a.what, "|") {
		if from, to := strings.Index(path, "{"), strings.Index(path, "}"); from >= 0 {
			path = path[:from] + what + path[to+1:]
		}
	}
	if a.op.ID == wire.DrainWorkers.ID || a.op.ID == wire.UndrainWorkers.ID {
		path += "?worker_id=" + a.what
	}
	var header map[string]string
	if a.op.ID == wire.CreateBudget.ID || a.op.ID == wire.CreateWebhook.ID { // who may act everywhere says where it belongs
		header = map[string]string{"FlowFabric-Namespace": "default"}
	}
	return w.send(t, request{method: a.op.Method, path: path, body: a.body, key: key, header: header})
}

// untold are changes that the role operate or admin allows and that leave no row: they change nothing in the store, here, or they are
// the worker's.
var untold = []string{wire.AcknowledgeRollbacks.ID, wire.MakeBackup.ID, wire.DrainServer.ID, wire.ClaimResumed.ID, wire.ReclaimExecution.ID, wire.GrantWork.ID, wire.ChargeBudget.ID}

func TestU131_an_action_has_one_name_done_or_refused(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		admin, reader := w.key(t, "*", "admin"), w.key(t, "default", "read")
		walked := map[string]bool{}
		do := func(op *wire.Operation, what, body string) reply {
			t.Helper()
			walked[op.ID] = true
			a := act{op, what, body}
			w.perform(t, reader, a).refuses(t, 403, "role_required")
			done := w.perform(t, admin, a)
			if done.status > 299 {
				t.Fatalf("%s: %d %s", op.ID, done.status, done.body)
			}
			return done
		}
		w.actOnExecutions(t, do)
		w.actOnWhatIsShared(t, do)
		w.actOnBudgets(t, do)
		w.actOnFlows(t, do)
		actOnWebhooks(t, do)
		for _, o := range wire.Operations() {
			steers := o.Method != http.MethodGet && o.Roles&(wire.Operate|wire.Admin) != 0 && !o.Reserved
			if steers && !walked[o.ID] && !slices.Contains(untold, o.ID) {
				t.Errorf("%s is not tried here", o.ID)
			}
		}
		done, refused := w.actionsTold(t, admin, "done"), w.actionsTold(t, admin, "role_required")
		if !slices.Equal(done, refused) {
			t.Errorf("done are\n%v, refused\n%v", done, refused)
		}
	})
}

// actOnExecutions does everything that can be done to executions.
func (w *world) actOnExecutions(t *testing.T, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	submitted := func() string {
		made, err := w.Submit(t.Context(), flowfabric.Submission{Kind: "job"})
		if err != nil {
			t.Fatal(err)
		}
		return url.PathEscape(string(made.ID))
	}
	id := submitted()
	do(wire.SetPriority.Operation, id, `{"priority":7}`)
	do(wire.PatchTags.Operation, id, `{"a":"b"}`)
	do(wire.HoldExecution.Operation, id, "")
	do(wire.ReleaseHold.Operation, id, "")
	do(wire.ClaimExecution.Operation, id, `{}`)
	do(wire.RevokeLease.Operation, id, "")
	do(wire.CancelExecution.Operation, id, "")
	do(wire.ReplayExecution.Operation, id, "")
	do(wire.ClaimExecution.Operation, id, `{}`)
	do(wire.CompleteExecution.Operation, id, `{"override":true}`)
	do(wire.RetainExecution.Operation, id, `{"reason":"case 17"}`)
	do(wire.Unretain.Operation, id, "")
	do(wire.DeleteExecution.Operation, id, "")
	failing := submitted()
	do(wire.ClaimExecution.Operation, failing, `{}`)
	do(wire.FailExecution.Operation, failing, `{"override":true,"message":"no"}`)
	for range 5 {
		submitted()
	}
	w.actOnWaits(t, submitted(), do)
	job := do(wire.StartBulk.Operation, "", `{"action":"hold","all":true,"rate_per_second":1}`).text(t, "job_id")
	do(wire.StopBulk.Operation, job, "")
}

// actOnFlows does everything that operators can do to flows.
func (w *world) actOnFlows(t *testing.T, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	run, err := w.Flows().Submit(t.Context(), flowfabric.Flow{Kind: "k", Nodes: []flowfabric.Node{{Name: "a", Kind: "job"}}})
	if err != nil {
		t.Fatal(err)
	}
	id := url.PathEscape(string(run.ID))
	do(wire.PatchFlowTags.Operation, id, `{"a":"b"}`)
	do(wire.PutFlowTags.Operation, id, `{"c":"d"}`)
	do(wire.CancelFlow.Operation, id, `{"reason":"r"}`)
	do(wire.DeleteFlow.Operation, id, "")
}

// actOnWaits does everything that can be done to work that waits.
func (w *world) actOnWaits(t *testing.T, id string, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	plain, err := url.PathUnescape(id)
	if err != nil {
		t.Fatal(err)
	}
	under := func(claimed reply, item api.WorkItem) string {
		item.ID = flowfabric.ID(plain)
		item.Lease = api.Lease{
			ID: claimed.text(t, "lease.lease_id"), Epoch: int64(claimed.number(t, "lease.lease_epoch")), AttemptID: claimed.text(t, "lease.attempt_id"),
		}
		answers, err := w.Work().Do(t.Context(), item)
		if err != nil || answers[0].Err != nil {
			t.Fatalf("%+v, %v", answers, err)
		}
		return answers[0].Waitpoints[0].ID
	}
	wait := api.WorkItem{Op: api.OpSuspend, Suspension: &flowfabric.Suspension{
		Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("q")}, Until: flowfabric.OnSignal("q", "approved"),
	}}
	waitpoint := under(do(wire.ClaimExecution.Operation, id, `{}`), wait)
	do(wire.ReissueToken.Operation, waitpoint, `{}`)
	link := do(wire.CreateLink.Operation, waitpoint, `{"approver":"ann"}`).text(t, "link_id")
	do(wire.ReadLinkURL.Operation, link, "")
	do(wire.RevokeLink.Operation, link, "")
	read := *wire.ReadWaitpointToken.Operation
	read.Path = strings.Replace(read.Path, "{waitpoint}", waitpoint, 1)
	do(&read, id, "")
	do(wire.ApproveExecution.Operation, id, `{"name":"approved"}`)
	again := do(wire.ClaimExecution.Operation, id, `{}`)
	pending := under(again, api.WorkItem{Op: api.OpWaitpoint, Waitpoint: &api.NewWaitpoint{Key: "p"}})
	do(wire.CloseWaitpoint.Operation, pending, "")
	under(again, wait)
	do(wire.ResumeExecution.Operation, id, `{}`)
}

// actOnWebhooks does everything that can be done to webhooks.
func actOnWebhooks(t *testing.T, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	id := do(wire.CreateWebhook.Operation, "", `{"url":"https://here.invalid/","filter":{"kinds":["none"]}}`).text(t, "endpoint_id")
	do(wire.UpdateWebhook.Operation, id, `{"state":"disabled"}`)
	do(wire.EnableWebhook.Operation, id, "")
	do(wire.RotateWebhook.Operation, id, "")
	delivery := do(wire.TestWebhook.Operation, id, "").text(t, "delivery_id")
	do(wire.RedeliverWebhook.Operation, id+"|"+delivery, "")
	do(wire.ReplayWebhook.Operation, id, `{"after":"start"}`)
	do(wire.DeleteWebhook.Operation, id, "")
}

// actOnBudgets does everything that can be done to budgets.
func (w *world) actOnBudgets(t *testing.T, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	id := do(wire.CreateBudget.Operation, "", redBudget).text(t, "budget_id")
	do(wire.UpdateBudget.Operation, id, `{"on_hard":"fail"}`)
	do(wire.CloseBudget.Operation, id, "")
	do(wire.ReopenBudget.Operation, id, "")
	do(wire.ResetBudget.Operation, id, "")
	spender, err := w.Submit(t.Context(), flowfabric.Submission{Kind: "job"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Budgets().Charge(t.Context(), id, api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"tokens": 1}}, ExecutionID: spender.ID}); err != nil {
		t.Fatal(err)
	}
	do(wire.ReleaseBudget.Operation, id, `{"execution_id":"`+string(spender.ID)+`"}`)
	do(wire.DeleteBudget.Operation, id, "")
}

// actOnWhatIsShared does everything that can be done to lanes, quotas, workers, keys and namespaces.
func (w *world) actOnWhatIsShared(t *testing.T, do func(op *wire.Operation, what, body string) reply) {
	t.Helper()
	do(wire.PutLane.Operation, "mail", `{"max_concurrent":3}`)
	do(wire.PutQuota.Operation, "mail", `{"rate_limit":3}`)
	do(wire.DeleteQuota.Operation, "mail", "")
	do(wire.PauseLane.Operation, "mail", "")
	do(wire.DrainLane.Operation, "mail", "")
	do(wire.DisableLane.Operation, "mail", "")
	do(wire.ResumeLane.Operation, "mail", "")
	if _, err := w.Work().Register(t.Context(), api.Registration{WorkerID: "w", InstanceID: "w-1"}); err != nil {
		t.Fatal(err)
	}
	do(wire.DrainWorker.Operation, "w-1", "")
	do(wire.UndrainWorker.Operation, "w-1", "")
	do(wire.DrainWorkers.Operation, "w", "")
	do(wire.UndrainWorkers.Operation, "w", "")
	do(wire.MarkWorkerDead.Operation, "w-1", `{"reason":"gone"}`)
	key := do(wire.CreateAPIKey.Operation, "", `{"name":"ci","roles":["read"],"namespaces":["default"]}`).text(t, "key_id")
	do(wire.PatchAPIKey.Operation, key, `{"max_in_flight":3}`)
	do(wire.RotateAPIKey.Operation, key, "")
	do(wire.RevokeAPIKey.Operation, key, "")
	do(wire.RotateSigningKey.Operation, "", `{"kid":"k1"}`)
	do(wire.RevokeSigningKey.Operation, "k1", `{"force":true}`)
	do(wire.SeedSigningKey.Operation, "", seedBody("k2", "2"))
	do(wire.PutNamespace.Operation, "acme", `{"description":"the people from the hill"}`)
	do(wire.DeleteNamespace.Operation, "acme", "")
}

// actionsTold are the names that the audit log has for what had this outcome.
func (w *world) actionsTold(t *testing.T, key, outcome string) []string {
	t.Helper()
	var names []string
	rows, _ := w.send(t, request{method: "GET", path: "/v1/audit?limit=1000", key: key}).wants(t, 200).field(t, "items").([]any)
	for _, row := range rows {
		if row, _ := row.(map[string]any); row["outcome"] == outcome {
			name, _ := row["action"].(string)
			names = append(names, name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func TestU101_U131_keys_tokens_and_links_of_a_namespace_write_as_many_audit_rows_a_minute_as_are_set(t *testing.T) {
	t.Parallel()
	onStoppedStores(t, func(t *testing.T, w *world) {
		root := w.key(t, "*", "admin")
		w.send(t, request{method: "PUT", path: "/v1/namespaces/red", key: root, body: `{"max_audit_rows_per_minute":2}`}).wants(t, 200)
		chief, reader := w.key(t, "red", "operate", "submit"), w.key(t, "red", "read")
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: chief, body: `{"kind":"k"}`}).wants(t, 201).text(t, "execution_id")
		priority := func(key string, n int) reply {
			return w.send(t, request{method: "PUT", path: "/v1/executions/" + id + "/priority", key: key, body: `{"priority":` + strconv.Itoa(n) + `}`})
		}
		priority(chief, 1).wants(t, 200)
		priority(w.key(t, "red", "operate"), 2).wants(t, 200)
		refused := priority(chief, 3).refuses(t, 429, "rate_limited")
		if refused.text(t, "current.setting") != "max_audit_rows_per_minute" || refused.number(t, "current.limit") != 2 || refused.header.Get("Retry-After") == "" {
			t.Errorf("%v %s", refused.header, refused.body)
		}
		for range 2 { // a refusal of a role stays one
			priority(reader, 4).refuses(t, 403, "role_required")
		}
		w.send(t, request{method: "POST", path: "/v1/executions", key: chief, body: `{"kind":"k"}`}).wants(t, 201)
		w.send(t, request{method: "PUT", path: "/v1/executions/" + id + "/priority", key: root, body: `{"priority":5}`, header: map[string]string{"FlowFabric-Namespace": "red"}}).wants(t, 200)
	})
}

// What an operator does to the worker of another key is on record under the name of the operator, also if the call says that the instance itself stops.
func TestU103_U131_whoever_stops_the_worker_of_another_key_is_told_as_an_operator(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		owner, both, operator := w.key(t, "default", "work"), w.key(t, "*", "work", "operate"), w.key(t, "*", "operate")
		admin := w.key(t, "*", "admin")
		for _, c := range []struct {
			by, call, want string // want is the action on record and the name of the key; "": none
			leaving        bool   // the drain ends with the next registration
		}{
			{operator, "drain", "drain operate@*", false},
			{operator, "drain?leaving=true", "drain operate@*", false},
			{operator, "dead", "mark_dead operate@*", false},
			{operator, "dead?leaving=true", "mark_dead operate@*", false},
			{both, "drain?leaving=true", "drain work+operate@*", false},
			{owner, "drain", "", false},
			{owner, "drain?leaving=true", "", true},
			{owner, "dead", "", false},
			{owner, "dead?leaving=true", "", false},
		} {
			instance := rand.Text()
			send := func(key, path, body string) reply {
				return w.send(t, request{method: "POST", path: path, body: body, key: key}).wants(t, 200)
			}
			register := `{"worker_id":"w","worker_instance_id":"` + instance + `"}`
			send(owner, "/v1/workers", register)
			send(c.by, "/v1/workers/"+instance+"/"+c.call, strings.Repeat(`{"reason":"r"}`, strings.Count(c.call, "dead")))
			var told []string
			rows, _ := w.send(t, request{method: "GET", path: "/v1/audit?entity_id=" + instance, key: admin}).wants(t, 200).field(t, "items").([]any)
			for _, row := range rows {
				row, _ := row.(map[string]any)
				told = append(told, fmt.Sprint(row["action"], " ", row["principal"]))
			}
			if strings.Join(told, ", ") != c.want {
				t.Errorf("%s: on record is %q, want %q", c.call, told, c.want)
			}
			drains := strings.HasPrefix(c.call, "drain") && !c.leaving
			if again := send(owner, "/v1/workers", register); again.field(t, "drain") != drains {
				t.Errorf("%s by %q, registered again: %s", c.call, c.want, again.body)
			}
		}
	})
}

// A lease makes a request one of a worker, which is not on record: an operator, or who submitted the work, does not act under it.
func TestU122_U131_only_workers_act_under_a_lease(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		worker, operator, submitter := w.key(t, "default", "work"), w.key(t, "*", "operate", "read"), w.key(t, "default", "submit")
		send := func(key, method, path, body, lease string) reply {
			t.Helper()
			header := map[string]string{}
			if lease != "" {
				header["FlowFabric-Lease"] = lease
			}
			return w.send(t, request{method: method, path: path, body: body, key: key, header: header})
		}
		id := send(submitter, "POST", "/v1/executions", `{"kind":"k"}`, "").wants(t, 201).text(t, "execution_id")
		task := send(worker, "POST", "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`, "").wants(t, 200)
		lease := task.text(t, "tasks.0.lease.fence")
		waitpoint := send(worker, "POST", "/v1/executions/"+id+"/waitpoints", `{"lease":"`+lease+`","waitpoint_key":"q"}`, "").wants(t, 201).text(t, "waitpoint_id")
		link := send(worker, "POST", "/v1/waitpoints/"+waitpoint+"/links", `{"lease":"`+lease+`","approver":"ann"}`, "").wants(t, 201).text(t, "link_id")
		under := map[string][3]string{
			wire.CancelExecution.ID: {"POST", "/v1/executions/" + id + "/cancel", "{}"},
			wire.CloseWaitpoint.ID:  {"POST", "/v1/waitpoints/" + waitpoint + "/close", "{}"},
			wire.CreateLink.ID:      {"POST", "/v1/waitpoints/" + waitpoint + "/links", `{"approver":"ben"}`},
			wire.RevokeLink.ID:      {"DELETE", "/v1/links/" + link, ""},
		}
		for _, o := range wire.Operations() {
			call, tried := under[o.ID]
			if o.Only[wire.Work] == wire.WithLease && o.Method != http.MethodGet && !tried {
				t.Errorf("%s: try it under a lease", o.ID)
			}
			for _, key := range []string{operator, submitter} {
				if !tried {
					break
				}
				send(key, call[0], call[1], call[2], lease).refuses(t, 403, "role_required")
				if call[2] != "" {
					body := strings.Replace(`{"lease":"`+lease+`",`+call[2][1:], ",}", "}", 1)
					send(key, call[0], call[1], body, "").refuses(t, 403, "role_required")
				}
			}
		}
		if status := send(operator, "GET", "/v1/executions/"+id, "", "").wants(t, 200).text(t, "status"); status != "running" {
			t.Errorf("it is %s", status)
		}
		for _, name := range []string{wire.CreateLink.ID, wire.RevokeLink.ID, wire.CloseWaitpoint.ID, wire.CancelExecution.ID} {
			if done := send(worker, under[name][0], under[name][1], under[name][2], lease); done.status > 299 {
				t.Errorf("%s by the worker: %d %s", name, done.status, done.body)
			}
		}
	})
}
