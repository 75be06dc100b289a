package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// repeatable is a request that is sent twice under one key, and what else may come under that key.
type repeatable struct {
	path, body string
	other      string   // a body that means something else; "": there is none
	mayChange  []string // fields of the answer that show the present, or a secret that is shown once
	goesOn     bool     // what the request, or one before it, began writes events by itself
}

// repeatables make what a request needs and the request, by operation.
var repeatables = map[string]func(t *testing.T, w *world) repeatable{
	wire.SubmitExecution.ID: given(repeatable{path: "/v1/executions", body: `{"kind":"job"}`, other: `{"kind":"other"}`}),
	wire.SubmitExecutions.ID: given(repeatable{
		path: "/v1/executions/bulk", body: `{"items":[{"kind":"a"},{"kind":"b"}],"atomic":true}`, other: `{"items":[{"kind":"a"},{"kind":"c"}],"atomic":true}`,
	}),
	wire.StartBulk.ID: given(repeatable{
		path: "/v1/bulk", body: `{"action":"hold","all":true,"max_affected":0}`, other: `{"action":"cancel","all":true}`, mayChange: []string{"state", "ended_at"},
		goesOn: true,
	}),
	wire.StopBulk.ID: func(t *testing.T, w *world) repeatable {
		job := w.post(t, "/v1/bulk", `{"action":"hold","all":true}`).wants(t, 202).text(t, "job_id")
		return repeatable{path: "/v1/bulk/" + job + "/stop", body: `{"reason":"a"}`, other: `{"reason":"b"}`, goesOn: true}
	},

	wire.CancelExecution.ID: onWaiting(`/cancel`, `{"reason":"a"}`, `{"reason":"a","expect":{"status":"ready"}}`),
	wire.SetPriority.ID:     onWaiting(`/priority`, `{"priority":1}`, `{"priority":2}`),
	wire.HoldExecution.ID:   onWaiting(`/hold`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ReleaseHold.ID:     onWaiting(`/hold`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.PatchTags.ID:       onWaiting(`/tags`, `{"a":"1"}`, `{"a":"2"}`),
	wire.ClaimExecution.ID:  onWaiting(`/claim`, `{"worker_id":"me"}`, ""),
	wire.RevokeLease.ID:     onRunning(`/revoke`, `{"reason":"a"}`, `{"reason":"a","hold":true}`),
	wire.ReplayExecution.ID: onEnded(`/replay`, `{"reason":"a"}`, `{"reason":"a","keep_steps":true}`),
	wire.RetainExecution.ID: onEnded(`/retain`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.Unretain.ID:        onEnded(`/retain`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.DeleteExecution.ID: onEnded(``, `{"reason":"a"}`, `{"reason":"b"}`),

	wire.CompleteExecution.ID: withLease(`/complete`, `"result":1`),
	wire.FailExecution.ID:     withLease(`/fail`, `"class":"permanent","message":"no"`),
	wire.ReleaseExecution.ID:  withLease(`/release`, `"reason":"shutdown"`),
	wire.DelayExecution.ID:    withLease(`/delay`, `"delay_ms":60000`),
	wire.ClaimWork.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		return repeatable{path: "/v1/work/claim", body: claimBody, mayChange: []string{"server_time"}}
	},
	wire.GrantWork.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		return repeatable{path: "/v1/work/grants", body: grantBody}
	},
	wire.ClaimGrant.ID: func(t *testing.T, w *world) repeatable {
		_, key := w.granted(t)
		return repeatable{path: "/v1/work/grants/claim", body: `{"grant_key":"` + key + `",` + renderWorker + `}`}
	},
	wire.ReturnGrant.ID: func(t *testing.T, w *world) repeatable {
		_, key := w.granted(t)
		return repeatable{path: "/v1/work/grants/return", body: `{"grant_key":"` + key + `"}`}
	},
	wire.ReclaimExecution.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, _ := w.claimed(t)
		path := "/v1/executions/" + url.PathEscape(id)
		w.post(t, path+"/revoke", `{}`).wants(t, 200)
		return repeatable{path: path + "/reclaim", body: `{"worker_id":"w","worker_instance_id":"w-1"}`}
	},

	wire.ClaimResumed.ID: func(t *testing.T, w *world) repeatable {
		path, _, _ := w.suspended(t, anySignal)
		w.post(t, path+"/resume", `{}`).wants(t, 200)
		return repeatable{path: path + "/claim-resumed", body: `{"worker_id":"w","worker_instance_id":"w-1"}`}
	},
	wire.SuspendExecution.ID: withLease(`/suspend`, anySignal),
	wire.CreateWaitpoint.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, lease := w.claimed(t)
		return repeatable{
			path: "/v1/executions/" + url.PathEscape(id) + "/waitpoints", body: `{"lease":` + lease + `,"waitpoint_key":"a"}`,
			other: `{"lease":` + lease + `,"waitpoint_key":"b"}`,
		}
	},
	wire.ResumeExecution.ID:  onSuspended(`/resume`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ApproveExecution.ID: onSuspended(`/approve`, `{"name":"approved"}`, `{"name":"rejected"}`),
	wire.ReissueToken.ID:     onWaitpoint(`/reissue`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.CloseWaitpoint.ID:   onWaitpoint(`/close`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.CreateLink.ID:       onWaitpoint(`/links`, `{"approver":"ann"}`, `{"approver":"bob"}`),
	wire.RevokeLink.ID: func(t *testing.T, w *world) repeatable {
		links := onWaitpoint(`/links`, "", "")(t, w).path
		link := w.post(t, links, `{"approver":"ann"}`).wants(t, 201).text(t, "link_id")
		return repeatable{path: "/v1/links/" + link, body: `{"reason":"a"}`, other: `{"reason":"b"}`}
	},

	wire.SendSignal.ID: func(t *testing.T, w *world) repeatable {
		a := w.asks(t, "")
		return repeatable{path: a.signals(), body: `{"name":"go","token":"` + a.token + `"}`, other: `{"name":"stop","token":"` + a.token + `"}`}
	},
	wire.SendExecutionSignal.ID: func(t *testing.T, w *world) repeatable {
		a := w.asks(t, "")
		fields := `,"waitpoint_id":"` + a.waitpoint + `","token":"` + a.token + `"}`
		return repeatable{path: "/v1/executions/" + url.PathEscape(a.execution) + "/signals", body: `{"name":"go"` + fields, other: `{"name":"stop"` + fields}
	},
	wire.DecideLink.ID: func(t *testing.T, w *world) repeatable {
		_, link := w.link(t, w.asks(t, ""), "")
		return repeatable{path: link, body: `{"decision":"approve"}`, other: `{"decision":"reject"}`}
	},

	wire.SubmitFlow.ID: given(repeatable{path: "/v1/flows", body: chained, other: `{"kind":"other","nodes":[{"name":"a","kind":"job"}]}`}),
	wire.ExtendFlow.ID: onFlow(`/extend`, `{"nodes":[{"name":"c","kind":"job"}]}`, `{"nodes":[{"name":"d","kind":"job"}]}`),
	wire.SealFlow.ID:   onFlow(`/seal`, "", ""),
	wire.CancelFlow.ID: onFlow(`/cancel`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.DeleteFlow.ID: func(t *testing.T, w *world) repeatable {
		r := onFlow("", `{"reason":"a"}`, `{"reason":"b"}`)(t, w)
		w.post(t, r.path+"/cancel", `{"reason":"no"}`).wants(t, 200)
		return r
	},
	wire.WaitForChildren.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + url.PathEscape(id)
		w.post(t, path+"/spawn", `{"lease":`+lease+`,"children":[{"name":"x","kind":"job"}]}`).wants(t, 200)
		return repeatable{path: path + "/wait-children", body: `{"lease":` + lease + `}`}
	},

	wire.PutLane.ID:     onLane(``, `{"state":"active"}`, `{"state":"active","max_concurrent":7}`),
	wire.PauseLane.ID:   onLane(`/pause`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ResumeLane.ID:  onLane(`/resume`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.DrainLane.ID:   onLane(`/drain`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.DisableLane.ID: onLane(`/disable`, `{"reason":"a"}`, `{"reason":"b"}`),

	wire.DrainWorker.ID:    onWorker("/v1/workers/w-1/drain", "", ""),
	wire.UndrainWorker.ID:  onWorker("/v1/workers/w-1/undrain", "", ""),
	wire.DrainWorkers.ID:   onWorker("/v1/workers/drain?worker_id=w", "", ""),
	wire.UndrainWorkers.ID: onWorker("/v1/workers/undrain?worker_id=w", "", ""),
	wire.MarkWorkerDead.ID: onWorker("/v1/workers/w-1/dead", `{"reason":"a"}`, `{"reason":"b"}`),

	wire.CreateBudget.ID: given(repeatable{path: "/v1/budgets", body: redBudget, other: strings.Replace(redBudget, "100", "200", 1)}),
	wire.UpdateBudget.ID: onBudget(``, `{"on_hard":"fail"}`, `{"on_hard":"block_new"}`),
	wire.CloseBudget.ID:  onBudget(`/close`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ReopenBudget.ID: onBudget(`/reopen`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ResetBudget.ID:  onBudget(`/reset`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.DeleteBudget.ID: onBudget(``, `{"reason":"a"}`, ""),
	wire.ChargeBudget.ID: onBudget(`/charge`, `{"usage":{"tokens":1}}`, `{"usage":{"tokens":2}}`),
	wire.ReleaseBudget.ID: onBudget(`/release`, `{"execution_id":"0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50"}`,
		`{"execution_id":"0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a51"}`),
	wire.ReportUsage.ID: func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, lease := w.claimed(t)
		return repeatable{
			path: "/v1/executions/" + url.PathEscape(id) + "/usage", body: `{"lease":` + lease + `,"usage":{"tokens":1}}`,
			other: `{"lease":` + lease + `,"usage":{"tokens":2}}`,
		}
	},

	wire.PutQuota.ID: given(repeatable{path: "/v1/quotas/mail", body: `{"rate_limit":1}`, other: `{"rate_limit":2}`}),
	wire.DeleteQuota.ID: func(t *testing.T, w *world) repeatable {
		w.send(t, request{method: "PUT", path: "/v1/quotas/mail", body: `{}`}).wants(t, 200)
		return repeatable{path: "/v1/quotas/mail"}
	},
	wire.AcknowledgeRollbacks.ID: given(repeatable{path: "/v1/admin/rollbacks/acknowledge", body: `{"reason":"seen"}`, other: `{"reason":"known"}`}),
	wire.PutNamespace.ID:         given(repeatable{path: "/v1/namespaces/acme", body: `{"description":"a"}`, other: `{"description":"b"}`}),
	wire.DeleteNamespace.ID: func(t *testing.T, w *world) repeatable {
		w.send(t, request{method: "PUT", path: "/v1/namespaces/acme", body: `{}`}).wants(t, 200)
		return repeatable{path: "/v1/namespaces/acme"}
	},
	wire.CreateAPIKey.ID: given(repeatable{
		path: "/v1/api-keys", body: `{"name":"a","roles":["read"],"namespaces":["default"]}`, other: `{"name":"b","roles":["read"],"namespaces":["default"]}`,
		mayChange: []string{"secret"},
	}),
	wire.CreateWebhook.ID: given(repeatable{
		path: "/v1/webhooks", body: `{"url":"https://here.invalid/"}`, other: `{"url":"https://there.invalid/"}`, mayChange: []string{"secret", "pending", "failing_since"},
	}),
	wire.UpdateWebhook.ID: onWebhook(``, `{"max_in_flight":3}`, `{"max_in_flight":4}`),
	wire.DeleteWebhook.ID: onWebhook(``, "", ""),
	wire.RotateWebhook.ID: onWebhook(`/rotate`, `{"overlap_ms":1000}`, `{"overlap_ms":2000}`),
	wire.EnableWebhook.ID: onWebhook(`/enable`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.ReplayWebhook.ID: onWebhook(`/replay`, `{"after":"start"}`, `{"after":"start","reason":"b"}`),
	wire.TestWebhook.ID:   onWebhook(`/test`, `{"reason":"a"}`, `{"reason":"b"}`),
	wire.RedeliverWebhook.ID: func(t *testing.T, w *world) repeatable {
		r := onWebhook("", `{"reason":"a"}`, `{"reason":"b"}`)(t, w)
		r.path += "/deliveries/" + w.post(t, r.path+"/test", `{}`).wants(t, 200).text(t, "delivery_id") + "/redeliver"
		return r
	},
	wire.PatchAPIKey.ID:  onKey(``, `{"name":"b"}`, `{"name":"c"}`),
	wire.RotateAPIKey.ID: onKey(`/rotate`, `{"overlap_ms":1000}`, `{"overlap_ms":2000}`),
	wire.RevokeAPIKey.ID: onKey(``, "", ""),

	wire.SeedSigningKey.ID: func(t *testing.T, w *world) repeatable {
		w.post(t, "/v1/keys/rotate", `{"kid":"a"}`).wants(t, 200)
		w.post(t, "/v1/keys/a/revoke", `{"force":true}`).wants(t, 200)
		return repeatable{path: "/v1/keys/seed", body: seedBody("b", "1"), other: seedBody("b", "2")}
	},
	wire.RotateSigningKey.ID: given(repeatable{path: "/v1/keys/rotate", body: `{"kid":"a"}`, other: `{"kid":"a","grace_ms":1}`}),
	wire.RevokeSigningKey.ID: func(t *testing.T, w *world) repeatable {
		w.post(t, "/v1/keys/rotate", `{"kid":"a"}`).wants(t, 200)
		return repeatable{path: "/v1/keys/a/revoke", body: `{"force":true}`, other: `{"force":false}`}
	},
}

// unrepeatable are the operations whose repeats the rules do not recognise by the key, and why.
var unrepeatable = map[string]string{
	wire.RegisterWorker.ID:  "states the whole record: the present state is the answer (L117)",
	wire.HeartbeatWorker.ID: "states the whole record: the present state is the answer (L117)",
	wire.RenewLease.ID:      "nothing needed: the present state is the answer (L117)",
	wire.ReportProgress.ID:  "nothing needed: the present state is the answer (L117)",
	wire.AppendFrames.ID:    "recognised by its client_seq: the recorded answer is returned (E3)",
	wire.PutStep.ID:         "recognised by its name: the stored record is the answer (L149)",
	wire.SetJoin.ID:         "states the whole join: a second time it is unchanged (F18)",
	wire.PatchFlowTags.ID:   "states what it changes: the present tags are the answer",
	wire.PutFlowTags.ID:     "states all tags: they are the answer",
	wire.SpawnChildren.ID:   "recognised by the names of the children: those that there are are the answer (F39)",
	wire.SendWork.ID:        "each item is recognised for itself, by its lease (L117)",
	wire.DeliverCallback.ID: "the key is that of the signal: a repeat is a duplicate (W64)",
	wire.Nudge.ID:           "changes nothing that is stored",
	wire.VerifyGrant.ID:     "changes nothing",
	wire.MakeBackup.ID:      "changes nothing",
	wire.DrainServer.ID:     "concerns this process alone",
}

const claimBody = `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`

func given(r repeatable) func(*testing.T, *world) repeatable {
	return func(*testing.T, *world) repeatable { return r }
}

func onWaiting(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		return repeatable{path: "/v1/executions/" + url.PathEscape(w.submitted(t)) + path, body: body, other: other}
	}
}

func onRunning(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, _ := w.claimed(t)
		return repeatable{path: "/v1/executions/" + url.PathEscape(id) + path, body: body, other: other}
	}
}

func onSuspended(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		at, _, _ := w.suspended(t, anySignal)
		return repeatable{path: at + path, body: body, other: other}
	}
}

// onWaitpoint acts on a waitpoint at which nothing waits yet.
func onWaitpoint(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, lease := w.claimed(t)
		made := w.post(t, "/v1/executions/"+url.PathEscape(id)+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"a"}`).wants(t, 201)
		return repeatable{path: "/v1/waitpoints/" + made.text(t, "waitpoint_id") + path, body: body, other: other}
	}
}

func onEnded(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		r := onWaiting(path, body, other)(t, w)
		id := r.path[:len(r.path)-len(path)]
		w.post(t, id+"/cancel", `{}`).wants(t, 200)
		return r
	}
}

// withLease makes commands that end a lease. They are known by it: another body is answered with the first answer (L119).
func withLease(path, fields string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		id, lease := w.claimed(t)
		return repeatable{path: "/v1/executions/" + url.PathEscape(id) + path, body: `{"lease":` + lease + `,` + fields + `}`}
	}
}

// onBudget is a request about a budget.
func onBudget(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.post(t, "/v1/budgets", redBudget).wants(t, 201)
		return repeatable{path: "/v1/budgets/team-red" + path, body: body, other: other}
	}
}

// onFlow is a request about a flow that is not sealed.
func onFlow(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		at, _ := w.flowed(t, strings.Replace(chained, `"kind"`, `"seal":false,"kind"`, 1))
		return repeatable{path: at + path, body: body, other: other}
	}
}

// onLane makes changes of a lane. What goes on in it belongs to the answer and may change (L117).
func onLane(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.submitted(t)
		return repeatable{path: "/v1/lanes/default" + path, body: body, other: other, mayChange: []string{"rates"}}
	}
}

func onWorker(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).wants(t, 200)
		return repeatable{path: path, body: body, other: other}
	}
}

func onKey(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		id := w.post(t, "/v1/api-keys", `{"name":"a","roles":["read"],"namespaces":["default"]}`).wants(t, 201).text(t, "key_id")
		return repeatable{path: "/v1/api-keys/" + id + path, body: body, other: other, mayChange: []string{"secret"}}
	}
}

// onWebhook is a request about a webhook that no event gets to. What became of its deliveries may change.
func onWebhook(path, body, other string) func(*testing.T, *world) repeatable {
	return func(t *testing.T, w *world) repeatable {
		id := w.post(t, "/v1/webhooks", `{"url":"https://here.invalid/","filter":{"kinds":["none"]}}`).wants(t, 201).text(t, "endpoint_id")
		changing := []string{"secret", "pending", "failing_since", "catching_up", "attempts", "last_attempt", "next_attempt_at"}
		return repeatable{path: "/v1/webhooks/" + id + path, body: body, other: other, mayChange: changing}
	}
}

func TestU13_a_repeated_write_gets_the_first_answer_and_says_so_on_every_route(t *testing.T) {
	t.Parallel()
	for _, o := range wire.Operations() {
		makes, known := repeatables[o.ID]
		switch why := unrepeatable[o.ID]; {
		case o.Method == http.MethodGet || o.Reserved:
			continue
		case known == (why != ""):
			t.Errorf("%s: say how it is repeated, or why it is not", o.ID)
			continue
		case !known:
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) { isRepeatable(t, w, o.Method, makes(t, w)) })
		})
	}
}

func isRepeatable(t *testing.T, w *world, method string, r repeatable) {
	t.Helper()
	send := func(body, key string) reply {
		return w.send(t, request{method: method, path: r.path, body: body, header: map[string]string{"Idempotency-Key": key}})
	}
	first := send(r.body, "once")
	events := w.count(t)
	if first.status >= 300 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	again := send(r.body, "once").wants(t, first.status)
	if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: first %q, then %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
	}
	if a, b := first.without(t, r.mayChange), again.without(t, r.mayChange); !reflect.DeepEqual(a, b) {
		t.Errorf("the answer was\n%s\nand is\n%s", first.body, again.body)
	}
	if r.other != "" {
		if conflict := send(r.other, "once").refuses(t, 409, "idempotency_conflict"); conflict.text(t, "field") != "header.Idempotency-Key" { // U11
			t.Errorf("%s", conflict.body)
		}
	}
	if now := w.count(t); now != events && !r.goesOn {
		t.Errorf("the repeats wrote %d events", now-events)
	}
}

// without is the answer without some of its fields.
func (a reply) without(t *testing.T, fields []string) map[string]any {
	t.Helper()
	var object map[string]any
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &object); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
	}
	for _, name := range fields {
		delete(object, name)
	}
	return object
}

func TestU13_the_key_of_a_submit_is_for_all_that_it_asks_for(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		submit := func(path, body string) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, body: body, header: map[string]string{"Idempotency-Key": "once" + path}})
		}
		item := func(rest string) string { return `{"kind":"job","input":{"n":1},"tags":{"a":"1"}` + rest + `}` }
		const one, many = "/v1/executions", "/v1/executions/bulk"
		list := func(rest string) string { return `{"items":[` + item("") + `,` + item(rest) + `]}` }
		id := submit(one, item("")).wants(t, 201).text(t, "execution_id")
		submit(many, list("")).wants(t, 200)
		hence := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		others := []string{
			`,"idempotency_key":"order-1"`, `,"priority":5`, `,"tags":{"a":"2"}`, `,"delay_ms":60000`, `,"delay_until":"` + hence + `"`,
			`,"deadline_at":"` + hence + `"`, `,"lane":"mail"`, `,"policy":{"retry_policy":{"max_retries":1}}`,
		}
		for _, other := range others {
			body, bulk := item(other), list(other)
			if strings.Contains(other, "tags") {
				body, bulk = strings.Replace(body, `,"tags":{"a":"1"}`, "", 1), `{"items":[`+item("")+`,{"kind":"job","input":{"n":1},"tags":{"a":"2"}}]}`
			}
			if refused := submit(one, body).refuses(t, 409, "idempotency_conflict"); refused.text(t, "field") != "header.Idempotency-Key" {
				t.Errorf("%s: %s", other, refused.body)
			}
			if items := submit(many, bulk).wants(t, 200); items.field(t, "items.0.ok") != true || items.text(t, "items.1.error.code") != "idempotency_conflict" {
				t.Errorf("%s: %s", other, items.body)
			}
		}
		w.send(t, request{method: "PUT", path: "/v1/executions/" + bare(id) + "/priority", body: `{"priority":7}`}).wants(t, 200)
		w.send(t, request{method: "PATCH", path: "/v1/executions/" + bare(id) + "/tags", body: `{"a":"3"}`}).wants(t, 200)
		again := submit(one, item("")).wants(t, 201) // what was changed since is no part of the request
		if again.text(t, "execution_id") != id || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v %s", again.header, again.body)
		}
	})
}
