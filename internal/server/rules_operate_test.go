package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"
)

func TestU45_who_cancels_again_changes_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path := "/v1/executions/" + bare(w.submitted(t))
		first := w.post(t, path+"/cancel", `{"reason":"enough"}`).wants(t, 200)
		if first.text(t, "status") != "cancelled" || first.text(t, "cancellation.source") != "operator" || first.text(t, "cancellation.reason") != "enough" {
			t.Errorf("%s", first.body)
		}
		before := w.count(t)
		if again := w.post(t, path+"/cancel", `{"reason":"other"}`).wants(t, 200); string(again.body) != string(first.body) || w.count(t) != before {
			t.Errorf("%s", again.body)
		}
		ended := w.finished(t, `"result":1`)
		w.post(t, ended+"/cancel", `{}`).refuses(t, 409, "execution_not_active")
	})
}

func TestU46_a_replay_opens_what_has_ended_with_or_without_its_steps(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		path := "/v1/executions/" + bare(id)
		w.post(t, path+"/replay", `{}`).refuses(t, 409, "execution_not_terminal")
		_, lease := w.claimed(t)
		w.send(t, request{method: "PUT", path: path + "/steps/charge", body: `{"lease":` + lease + `,"result":1}`}).wants(t, 201)
		w.post(t, path+"/fail", `{"lease":`+lease+`,"class":"permanent","message":"no"}`).wants(t, 200)
		replayed := w.post(t, path+"/replay", `{"reason":"mended","keep_steps":true,"deadline_at":"2030-01-02T03:04:05.006Z"}`).wants(t, 200)
		for field, want := range map[string]any{
			"execution_id": id, "status": "ready", "run_index": 1.0, "replay_count": 1.0, "retry_count": 0.0, "failure": nil, "completed_at": nil,
			"deadline_at": "2030-01-02T03:04:05.006Z",
		} {
			if got := replayed.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		task := w.post(t, "/v1/work/claim", claimBody).wants(t, 200)
		if task.text(t, "tasks.0.attempt.type") != "replay" || task.text(t, "tasks.0.attempt.lineage.reason") != "mended" || task.number(t, "tasks.0.run_index") != 1 {
			t.Errorf("%s", task.body)
		}
		if steps := w.get(t, path+"/steps").wants(t, 200); steps.text(t, "items.0.name") != "charge" { // U78
			t.Errorf("the steps were not kept: %s", steps.body)
		}
		w.post(t, path+"/cancel", `{}`).wants(t, 200)
		w.post(t, path+"/replay", `{}`).wants(t, 200)
		if steps := w.get(t, path+"/steps").wants(t, 200); len(steps.field(t, "items").([]any)) > 0 { // U78
			t.Errorf("the steps were kept: %s", steps.body)
		}
	})
}

func TestU47_a_priority_is_clamped_and_holds_in_the_queue(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		first, second := w.submitted(t), w.submitted(t)
		put := func(id, body string) reply {
			return w.send(t, request{method: "PUT", path: "/v1/executions/" + bare(id) + "/priority", body: body})
		}
		for given, shown := range map[string]float64{"-7": 0, "0": 0, "9000": 9000, "99999": 9000} {
			if answer := put(second, `{"priority":`+given+`}`).wants(t, 200); answer.number(t, "priority") != shown {
				t.Errorf("%s is shown as %v", given, answer.number(t, "priority"))
			}
		}
		put(second, `{}`).refuses(t, 400, "missing_field")
		put(second, `{"priority":5,"reason":"urgent","expect":{"status":"ready"}}`).wants(t, 200)
		put(second, `{"priority":6,"expect":{"status":"running"}}`).refuses(t, 412, "precondition_failed")
		if taken, _ := w.claimed(t); taken != second {
			t.Errorf("%s was taken before %s", taken, second)
		}
		if taken, _ := w.claimed(t); taken != first {
			t.Errorf("then %s was taken", taken)
		}
	})
}

func TestU48_what_is_held_is_not_taken_until_it_is_released(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path := "/v1/executions/" + bare(w.submitted(t))
		held := w.post(t, path+"/hold", `{"reason":"wait"}`).wants(t, 200)
		if held.text(t, "status") != "blocked" || held.text(t, "reason") != "paused_by_operator" || held.text(t, "held.by") != "dev" || held.text(t, "held.reason") != "wait" {
			t.Errorf("%s", held.body)
		}
		if none := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).wants(t, 200); len(none.field(t, "tasks").([]any)) > 0 {
			t.Errorf("what is held was taken: %s", none.body)
		}
		released := w.send(t, request{method: "DELETE", path: path + "/hold"}).wants(t, 200)
		if released.text(t, "status") != "ready" || released.field(t, "held") != nil {
			t.Errorf("%s", released.body)
		}
		if id, _ := w.claimed(t); "/v1/executions/"+bare(id) != path {
			t.Errorf("%s was taken", id)
		}
	})
}

func TestU50_a_revoked_lease_writes_nothing_and_is_revoked_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		running := w.get(t, path).wants(t, 200)
		revoked := w.post(t, path+"/revoke", `{"reason":"mine","hold":true}`).wants(t, 200)
		if revoked.text(t, "outcome") != "revoked" || revoked.number(t, "lease_epoch") != 1 || revoked.text(t, "lease_id") != running.text(t, "lease.lease_id") {
			t.Errorf("%s", revoked.body)
		}
		again := w.post(t, path+"/revoke", `{}`).wants(t, 200)
		if again.text(t, "outcome") != "already_satisfied" || again.text(t, "cause") == "" {
			t.Errorf("%s", again.body)
		}
		for _, call := range []string{"complete", "renew", "progress"} {
			w.post(t, path+"/"+call, `{"lease":`+lease+`}`).refuses(t, 409, "lease_revoked")
		}
		shown := w.get(t, path).wants(t, 200)
		if shown.text(t, "held.by") != "dev" || shown.field(t, "lease") != nil || shown.number(t, "reclaim_count") != 0 {
			t.Errorf("%s", shown.body)
		}
	})
}

func TestU51_an_operator_claims_one_execution_for_itself(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job","lane":"quiet","requires":["gpu"],"input":7}`).wants(t, 201).text(t, "execution_id")
		path := "/v1/executions/" + bare(id)
		w.post(t, "/v1/lanes/quiet/pause", "").wants(t, 200)
		w.post(t, path+"/claim", `{}`).wants(t, 409)
		task := w.post(t, path+"/claim", `{"force":true,"lease_ttl_ms":45000,"reason":"by hand"}`).wants(t, 200) // which asks for no capabilities
		for field, want := range map[string]any{"execution_id": id, "how": "fresh", "input": 7.0, "lease.ttl_ms": 45000.0} {
			if got := task.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		shown := w.get(t, path).wants(t, 200)
		if shown.text(t, "lease.worker_id") != "operator" || shown.text(t, "lease.worker_instance_id") != "operator" {
			t.Errorf("%s", shown.body)
		}
		w.post(t, path+"/complete", `{"lease":"`+task.text(t, "lease.fence")+`"}`).wants(t, 200)
	})
}

func TestU53_tags_are_merged_and_null_deletes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job","tags":{"a":"1","b":"2"}}`).wants(t, 201).text(t, "execution_id")
		path := "/v1/executions/" + bare(id) + "/tags"
		patch := func(query, body string) reply {
			return w.send(t, request{method: "PATCH", path: path + query, body: body, header: map[string]string{"Content-Type": "application/merge-patch+json"}})
		}
		patched := patch("?reason=tidy", `{"b":null,"c":"3","none":null}`).wants(t, 200)
		if tags, _ := patched.field(t, "tags").(map[string]any); len(tags) != 2 || tags["a"] != "1" || tags["c"] != "3" {
			t.Errorf("%s", patched.body)
		}
		patch("", `{"a":"9","Bad Key":"x"}`).refuses(t, 400, "invalid_tag_key")
		patch("?expect_status=running", `{"a":"9"}`).refuses(t, 412, "precondition_failed")
		if shown := w.get(t, strings.TrimSuffix(path, "/tags")).wants(t, 200); shown.text(t, "tags.a") != "1" || shown.text(t, "tags.c") != "3" {
			t.Errorf("a refused patch changed something: %s", shown.body)
		}
	})
}

func TestU56_one_machinery_one_audit_row_and_only_what_was_there_at_the_start(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		var early []string
		for range 3 {
			early = append(early, w.submitted(t))
		}
		run := func(body string) reply {
			t.Helper()
			job := w.post(t, "/v1/bulk", body).wants(t, 202)
			done := w.get(t, "/v1/bulk/"+job.text(t, "job_id")+"?wait_ms=30000").wants(t, 200)
			if done.text(t, "state") != "done" || done.number(t, "done") != 3 || done.number(t, "total") != 3 || done.field(t, "refused") != nil {
				t.Errorf("%s: %s", body, done.body)
			}
			return done
		}
		slow := w.post(t, "/v1/bulk", `{"action":"hold","filter":{"kind":["job"]},"rate_per_second":2,"reason":"all"}`).wants(t, 202)
		for time.Now().UTC().Format("2006-01-02T15:04:05.000Z") <= slow.text(t, "started_at") { // what happens in one millisecond has no order
		}
		late := w.submitted(t) // matches, and was not there
		if done := w.get(t, "/v1/bulk/"+slow.text(t, "job_id")+"?wait_ms=30000").wants(t, 200); done.text(t, "state") != "done" || done.number(t, "done") != 3 {
			t.Errorf("%s", done.body)
		}
		if shown := w.get(t, "/v1/executions/"+bare(late)).wants(t, 200); shown.field(t, "held") != nil {
			t.Errorf("the job reached what came after its start: %s", shown.body)
		}
		ids := `"ids":["` + strings.Join(early, `","`) + `"]`
		for _, action := range []string{ // every action by the same machinery, each by its own rules
			`"action":"release_hold"`, `"action":"priority","args":{"priority":7}`, `"action":"tag","args":{"tags":{"a":"b"}}`, `"action":"cancel"`,
			`"action":"replay"`, `"action":"cancel"`, `"action":"retain","reason":"law"`,
		} {
			run(`{` + action + `,` + ids + `}`)
		}
		for _, id := range early {
			if shown := w.get(t, "/v1/executions/"+bare(id)).wants(t, 200); shown.number(t, "priority") != 7 || shown.text(t, "tags.a") != "b" || shown.number(t, "replay_count") != 1 || shown.text(t, "retained.reason") != "law" {
				t.Errorf("%s", shown.body)
			}
		}
		refused := w.post(t, "/v1/bulk", `{"action":"delete",`+ids+`}`).wants(t, 202)
		if done := w.get(t, "/v1/bulk/"+refused.text(t, "job_id")+"?wait_ms=30000").wants(t, 200); done.number(t, "refused.retained") != 3 {
			t.Errorf("%s", done.body)
		}
		page, err := w.Admin().AuditPage(t.Context(), ops.AuditFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, row := range page.Items {
			rows = append(rows, row.Action)
		}
		if want := slices.Repeat([]string{"bulk"}, 9); !slices.Equal(rows, want) { // one a job, and none for what the jobs did
			t.Errorf("rows %v, want %v", rows, want)
		}
	})
}

func TestU58_U131_a_stopped_job_leaves_what_is_done_and_the_stop_is_a_row(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 4 {
			w.submitted(t)
		}
		job := "/v1/bulk/" + w.post(t, "/v1/bulk", `{"action":"hold","all":true,"rate_per_second":1}`).wants(t, 202).text(t, "job_id")
		eventually(t, "the job has done something", func() bool { return w.get(t, job).wants(t, 200).number(t, "done") > 0 })
		stopped := w.post(t, job+"/stop", `{"reason":"too many"}`).wants(t, 200)
		if stopped.text(t, "state") != "stopped" || stopped.text(t, "ended_at") == "" || stopped.number(t, "done") >= 4 {
			t.Errorf("%s", stopped.body)
		}
		held := w.get(t, "/v1/executions/count?reason=paused_by_operator").wants(t, 200).number(t, "total")
		if done := w.get(t, job+"?wait_ms=1000").wants(t, 200).number(t, "done"); done != held || held == 0 {
			t.Errorf("%v are held, the job says %v", held, done)
		}
		page, err := w.Admin().AuditPage(t.Context(), ops.AuditFilter{})
		if err != nil || len(page.Items) != 2 || page.Items[0].Reason != "too many" || page.Items[0].EntityID != page.Items[1].EntityID {
			t.Errorf("%+v, %v", page.Items, err)
		}
	})
}
