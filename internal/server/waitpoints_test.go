package server_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU79_waitpoints_are_listed_and_shown_without_their_tokens(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		_, id, answer := w.suspended(t, anySignal)
		waitpoint, token := answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token")
		_, digest, _ := strings.Cut(token, ":")
		w.submitted(t)
		other, lease := w.claimed(t)
		w.post(t, "/v1/executions/"+bare(other)+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"other"}`).wants(t, 201)
		for query, want := range map[string]int{
			"": 2, "?state=pending": 1, "?state=active": 1, "?state=closed": 0, "?state=all": 2, "?waitpoint_key=answer": 1, "?waitpoint_key=none": 0,
			"?execution_id=" + bare(id): 1, "?limit=1": 1, "?limit=0": 0,
		} {
			list := w.get(t, "/v1/waitpoints"+query).wants(t, 200)
			if got := len(list.field(t, "items").([]any)); got != want || strings.Contains(string(list.body), digest) || strings.Contains(string(list.body), "callback_url") {
				t.Errorf("%s: %d, want %d: %s", query, got, want, list.body)
			}
		}
		w.get(t, "/v1/waitpoints?state=asleep").refuses(t, 400, "invalid_argument")
		w.get(t, "/v1/waitpoints?cursor=x").refuses(t, 400, "invalid_cursor")
		w.get(t, "/v1/waitpoints?execution_id=0198f0a0-0000-7000-8000-000000000000").refuses(t, 404, "execution_not_found")
		shown := w.get(t, "/v1/waitpoints/"+waitpoint).wants(t, 200)
		if shown.text(t, "execution_id") != id || shown.text(t, "token_fingerprint") != digest[:16] || shown.field(t, "token") != nil || shown.header.Get("ETag") == "" {
			t.Errorf("%s", shown.body)
		}
		w.get(t, "/v1/waitpoints/0198f0a0-0000-7000-8000-000000000000").refuses(t, 404, "waitpoint_not_found")
		w.get(t, "/v1/waitpoints/x").refuses(t, 400, "invalid_id")
	})
}

func TestU80_an_operator_reads_a_token_and_issues_it_anew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, _, answer := w.suspended(t, anySignal)
		waitpoint, token := answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token")
		link := w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann"}`).wants(t, 201)
		read := w.get(t, path+"/waitpoints/"+waitpoint+"/token").wants(t, 200)
		if read.text(t, "token") != token || read.text(t, "callback_url") != answer.text(t, "waitpoints.0.callback_url") || read.header.Get("Cache-Control") != "no-store" || read.header.Get("ETag") != "" {
			t.Errorf("%v %s", read.header, read.body)
		}
		fresh := w.post(t, "/v1/waitpoints/"+waitpoint+"/reissue", `{"reason":"it leaked"}`).wants(t, 200)
		if fresh.text(t, "token") == token || fresh.text(t, "token") == "" || fresh.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v %s", fresh.header, fresh.body)
		}
		w.signals(t, waitpoint, token, `{"name":"x"}`).refuses(t, 401, "invalid_token")
		if renewed := w.get(t, "/v1/links/"+link.text(t, "link_id")+"/url").wants(t, 200); renewed.text(t, "url") == link.text(t, "url") {
			t.Errorf("the link survived: %s", renewed.body) // W32
		}
		w.signals(t, waitpoint, fresh.text(t, "token"), `{"name":"x"}`).wants(t, 200)
		w.get(t, path+"/waitpoints/"+waitpoint+"/token").refuses(t, 404, "waitpoint_not_found") // it is closed
		audit := w.get(t, "/v1/audit?limit=100").wants(t, 200)
		for _, action := range []string{"read_waitpoint_token", "reissue_token", "create_link", "read_link_url"} { // U131
			if !strings.Contains(string(audit.body), `"action":"`+action+`"`) {
				t.Errorf("the audit log has no %s: %s", action, audit.body)
			}
		}
		if strings.Contains(string(audit.body), fresh.text(t, "token")) {
			t.Error("the audit log shows a token")
		}
	})
}

func TestW31_no_answer_about_a_token_is_kept_on_the_way(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		const nothing = "0198f0a0-0000-7000-8000-000000000000"
		for _, key := range []string{"", "ffk_wrong", w.key(t, "default", "read"), w.key(t, "default", "operate")} {
			for _, r := range []request{
				{method: "GET", path: "/v1/executions/" + nothing + "/waitpoints/" + nothing + "/token"},
				{method: "HEAD", path: "/v1/executions/" + nothing + "/waitpoints/" + nothing + "/token"},
				{method: "GET", path: "/v1/executions/x/waitpoints/y/token?z=1"},
				{method: "POST", path: "/v1/waitpoints/" + nothing + "/reissue"},
				{method: "POST", path: "/v1/waitpoints/" + nothing + "/reissue", body: `{`},
				{method: "GET", path: "/v1/links/" + nothing + "/url"},
			} {
				r.key = key
				if answer := w.send(t, r); answer.status < 400 || answer.header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s %s: %d %v", r.method, r.path, answer.status, answer.header)
				}
			}
		}
	})
}

func TestU83_a_waitpoint_is_closed_by_an_operator_or_under_the_lease(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit, work, operate := w.key(t, "default", "submit"), w.key(t, "default", "work"), w.key(t, "default", "operate")
		id, lease := w.taken(t, submit, work)
		make := func(key string) string {
			body := `{"lease":` + lease + `,"waitpoint_key":"` + key + `"}`
			return w.send(t, request{method: "POST", path: "/v1/executions/" + bare(id) + "/waitpoints", key: work, body: body}).wants(t, 201).text(t, "waitpoint_id")
		}
		one, two := make("a"), make("b")
		end := func(key, waitpoint, body string, header map[string]string) reply {
			return w.send(t, request{method: "POST", path: "/v1/waitpoints/" + waitpoint + "/close", key: key, body: body, header: header})
		}
		end(work, one, `{}`, nil).refuses(t, 403, "role_required")
		end(submit, one, `{}`, nil).refuses(t, 403, "role_required")
		end(work, one, `{"lease":"`+bare(id)+`.9.`+bare(id)+`"}`, nil).refuses(t, 400, "invalid_handle") // no store has given that out
		if done := end(work, one, `{"lease":`+lease+`,"reason":"done"}`, nil).wants(t, 200); done.text(t, "outcome") != "closed" {
			t.Errorf("%s", done.body)
		}
		if done := end(operate, two, `{"reason":"stale"}`, nil).wants(t, 200); done.text(t, "outcome") != "closed" {
			t.Errorf("%s", done.body)
		}
		if again := end(operate, two, ``, nil).wants(t, 200); again.text(t, "outcome") != "already_closed" {
			t.Errorf("%s", again.body)
		}
		three := make("c")
		fence := fenceOf(lease)
		if done := end(work, three, ``, map[string]string{"FlowFabric-Lease": fence}).wants(t, 200); done.text(t, "outcome") != "closed" { // U27
			t.Errorf("%s", done.body)
		}
		suspend := w.send(t, request{method: "POST", path: "/v1/executions/" + bare(id) + "/suspend", key: work, body: `{"lease":` + lease + `,` + anySignal + `}`}).wants(t, 200)
		end(operate, suspend.text(t, "waitpoints.0.waitpoint_id"), ``, nil).refuses(t, 409, "waitpoint_active")
		end(operate, "0198f0a0-0000-7000-8000-000000000000", ``, nil).refuses(t, 404, "waitpoint_not_found")
	})
}

func TestU84_links_are_made_listed_and_withdrawn(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit, work, operate, read := w.key(t, "default", "submit"), w.key(t, "default", "work"), w.key(t, "default", "operate"), w.key(t, "default", "read")
		id, lease := w.taken(t, submit, work)
		waitpoint := w.send(t, request{method: "POST", path: "/v1/executions/" + bare(id) + "/waitpoints", key: work, body: `{"lease":` + lease + `,"waitpoint_key":"q"}`}).wants(t, 201).text(t, "waitpoint_id")
		links := "/v1/waitpoints/" + waitpoint + "/links"
		make := func(key, body string) reply {
			return w.send(t, request{method: "POST", path: links, key: key, body: body})
		}
		make(work, `{"approver":"ann"}`).refuses(t, 403, "role_required")
		make(read, `{"approver":"ann"}`).refuses(t, 403, "role_required")
		make(operate, `{}`).refuses(t, 400, "missing_field")
		make(operate, `{"approver":""}`).refuses(t, 400, "invalid_argument")
		make(operate, `{"approver":"ann","expires_in_ms":0}`).refuses(t, 400, "invalid_argument")
		first := make(work, `{"lease":`+lease+`,"approver":"ann","title":"Deploy?","message":"now","comment_required":true,"decisions":[{"id":"yes","label":"Yes","signal_name":"approved"}]}`).wants(t, 201)
		if !strings.HasPrefix(first.text(t, "url"), w.url+"/approve/"+first.text(t, "link_id")+"/") || first.header.Get("Cache-Control") != "no-store" || first.text(t, "expires_at") == "" {
			t.Errorf("%v %s", first.header, first.body)
		}
		if second := make(operate, `{"approver":"bob"}`).wants(t, 201); second.text(t, "decisions.1.signal_name") != "rejected" {
			t.Errorf("%s", second.body)
		}
		list := w.send(t, request{method: "GET", path: links, key: operate}).wants(t, 200)
		ann := "items.0." // both may be of one millisecond
		if list.text(t, "items.0.approver") == "bob" {
			ann = "items.1."
		}
		for field, want := range map[string]any{"approver": "ann", "state": "open", "title": "Deploy?", "decisions.0.id": "yes", "url": nil} {
			if got := list.field(t, ann+field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, list.body)
			}
		}
		page := w.send(t, request{method: "GET", path: links + "?limit=1", key: operate}).wants(t, 200)
		rest := w.send(t, request{method: "GET", path: links + "?cursor=" + url.QueryEscape(page.text(t, "next_cursor")), key: operate}).wants(t, 200)
		if page.text(t, "items.0.link_id") != list.text(t, "items.0.link_id") || rest.text(t, "items.0.link_id") != list.text(t, "items.1.link_id") || rest.field(t, "next_cursor") != nil {
			t.Errorf("%s, then %s", page.body, rest.body)
		}
		fence := fenceOf(lease)
		asWorker := func(fence string) reply {
			return w.send(t, request{method: "GET", path: links, key: work, header: map[string]string{"FlowFabric-Lease": fence}})
		}
		asWorker(fence).wants(t, 200)
		w.send(t, request{method: "GET", path: links, key: work}).refuses(t, 403, "role_required")
		asWorker(bare(id)+".1."+bare(id)).refuses(t, 403, "role_required") // not the lease of that execution
		address := "/v1/links/" + first.text(t, "link_id")
		if shown := w.send(t, request{method: "GET", path: address + "/url", key: operate}).wants(t, 200); shown.text(t, "url") != first.text(t, "url") || shown.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s", shown.body)
		}
		w.send(t, request{method: "GET", path: address + "/url", key: work, header: map[string]string{"FlowFabric-Lease": fence}}).refuses(t, 403, "role_required")
		w.send(t, request{method: "DELETE", path: address, key: work}).refuses(t, 403, "role_required")
		w.send(t, request{method: "DELETE", path: address, key: work, header: map[string]string{"FlowFabric-Lease": fence}}).wants(t, 204)
		w.send(t, request{method: "DELETE", path: address, key: operate, body: `{"reason":"again"}`}).wants(t, 204)
		w.send(t, request{method: "DELETE", path: "/v1/links/0198f0a0-0000-7000-8000-000000000000", key: operate}).refuses(t, 404, "link_not_found")
		if gone := w.send(t, request{method: "GET", path: links, key: operate}).wants(t, 200); gone.text(t, ann+"state") != "revoked" {
			t.Errorf("%s", gone.body)
		}
	})
}

// taken submits something and claims it with keys; its id and its lease as JSON.
func (w *world) taken(t *testing.T, submit, work string) (id, lease string) {
	t.Helper()
	w.send(t, request{method: "POST", path: "/v1/executions", key: submit, body: `{"kind":"job"}`}).wants(t, 201)
	task := w.send(t, request{method: "POST", path: "/v1/work/claim", key: work, body: `{"worker_id":"w","worker_instance_id":"` + work[4:16] + `","lanes":["default"],"wait_ms":20000}`}).wants(t, 200)
	return task.text(t, "tasks.0.execution_id"), `"` + task.text(t, "tasks.0.lease.fence") + `"`
}

// fenceOf is a lease as taken gives it, for a header.
func fenceOf(lease string) string { return strings.Trim(lease, `"`) }

func TestU85_what_waits_is_listed_oldest_first(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		wait := func(submission, reason string) (id, waitpoint string) {
			w.post(t, "/v1/executions", submission).wants(t, 201)
			id, lease := w.claimed(t)
			answer := w.post(t, "/v1/executions/"+bare(id)+"/suspend", `{"lease":`+lease+`,`+anySignal+`,"reason_code":"`+reason+`","timeout_at":"2031-01-02T03:04:05Z"}`).wants(t, 200)
			return id, answer.text(t, "waitpoints.0.waitpoint_id")
		}
		first, waitpoint := wait(`{"kind":"job","tags":{"team":"red"},"deadline_at":"2030-01-02T03:04:05Z"}`, "waiting_for_approval")
		second, _ := wait(`{"kind":"job","tags":{"team":"blue"}}`, "waiting_for_callback")
		w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann"}`).wants(t, 201)
		for query, want := range map[string]string{
			"/v1/suspended": first + second, "/v1/suspended?limit=1": first, "/v1/suspended?reason_code=waiting_for_callback": second, "/v1/suspended?tag.team=red": first,
			"/v1/suspended?lane=default": first + second, "/v1/suspended?lane=other": "", "/v1/suspended?approver=ann": first, "/v1/approvals": first,
			"/v1/approvals?approver=bob": "", "/v1/approvals?tag.team=blue": "", "/v1/suspended?flow_id=" + bare(first): "", "/v1/approvals?limit=0": "",
		} {
			list, got := w.get(t, query).wants(t, 200), ""
			for _, item := range list.field(t, "items").([]any) {
				got += item.(map[string]any)["execution_id"].(string)
			}
			if got != want {
				t.Errorf("%s: %s", query, list.body)
			}
		}
		page := w.get(t, "/v1/suspended?limit=1").wants(t, 200)
		if rest := w.get(t, "/v1/suspended?cursor="+url.QueryEscape(page.text(t, "next_cursor"))).wants(t, 200); rest.text(t, "items.0.execution_id") != second {
			t.Errorf("%s", rest.body)
		}
		for field, want := range map[string]any{
			"timeout_at": "2031-01-02T03:04:05.000Z", "expires_at": "2030-01-02T03:04:05.000Z", "links.0.approver": "ann", "links.0.url": nil, "waitpoints.0.waitpoint_id": waitpoint,
			"execution.tags.team": "red", "execution.policy": nil, "reason_code": "waiting_for_approval", "progress.0.node.type": "single", "progress.0.progress": 0.0,
		} {
			if got := page.field(t, "items.0."+field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, page.body)
			}
		}
		w.get(t, "/v1/suspended?tag.team").refuses(t, 400, "invalid_argument")
		w.get(t, "/v1/approvals?reason_code=waiting_for_callback").refuses(t, 400, "unknown_field")
		w.get(t, "/v1/suspended?cursor=x").refuses(t, 400, "invalid_cursor")
	})
}

func TestU42_submit_reads_the_waits_of_its_own_work_alone(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, work := w.key(t, "default", "submit"), w.key(t, "default", "work")
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "another", Roles: []string{"submit"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := w.taken(t, mine, work)
		for _, list := range []string{"/waitpoints", "/signals", "/suspensions", "/suspension"} {
			path := "/v1/executions/" + bare(id) + list
			w.send(t, request{method: "GET", path: path, key: mine}).wants(t, 200)
			w.send(t, request{method: "GET", path: path, key: work}).wants(t, 200)
			w.send(t, request{method: "GET", path: path, key: made.Secret}).refuses(t, 403, "role_required")
		}
	})
}

func TestI14_waits_of_another_namespace_are_as_if_they_were_not_there(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		all := []string{"submit", "work", "operate"}
		acme, globex := w.key(t, "acme", all...), w.key(t, "globex", all...)
		id, lease := w.taken(t, acme, acme)
		pending := w.send(t, request{method: "POST", path: "/v1/executions/" + bare(id) + "/waitpoints", key: acme, body: `{"lease":` + lease + `,"waitpoint_key":"p"}`}).wants(t, 201).text(t, "waitpoint_id")
		link := w.send(t, request{method: "POST", path: "/v1/waitpoints/" + pending + "/links", key: acme, body: `{"approver":"ann"}`}).wants(t, 201).text(t, "link_id")
		const absent = "0198f0a0-0000-7000-8000-000000000000"
		for _, r := range []request{
			{method: "GET", path: "/v1/executions/{id}/waitpoints"},
			{method: "GET", path: "/v1/executions/{id}/signals"},
			{method: "GET", path: "/v1/executions/{id}/suspensions"},
			{method: "GET", path: "/v1/executions/{id}/suspension"},
			{method: "POST", path: "/v1/executions/{id}/resume", body: `{}`},
			{method: "POST", path: "/v1/executions/{id}/approve", body: `{"name":"approved"}`},
			{method: "POST", path: "/v1/executions/{id}/suspend", body: `{"lease":` + lease + `,` + anySignal + `}`},
			{method: "POST", path: "/v1/executions/{id}/waitpoints", body: `{"lease":` + lease + `,"waitpoint_key":"x"}`},
			{method: "GET", path: "/v1/waitpoints?execution_id={id}"},
			{method: "GET", path: "/v1/waitpoints/{waitpoint}"},
			{method: "GET", path: "/v1/executions/{id}/waitpoints/{waitpoint}/token"},
			{method: "POST", path: "/v1/waitpoints/{waitpoint}/reissue"},
			{method: "POST", path: "/v1/waitpoints/{waitpoint}/close"},
			{method: "POST", path: "/v1/waitpoints/{waitpoint}/close", body: `{"lease":` + lease + `}`},
			{method: "POST", path: "/v1/waitpoints/{waitpoint}/links", body: `{"approver":"eve"}`},
			{method: "GET", path: "/v1/waitpoints/{waitpoint}/links"},
			{method: "DELETE", path: "/v1/links/{link}"},
			{method: "GET", path: "/v1/links/{link}/url"},
		} {
			ask := func(id, waitpoint, link string) reply {
				asked := r
				asked.key, asked.header = globex, map[string]string{"X-Request-Id": "same"}
				asked.path = strings.NewReplacer("{id}", id, "{waitpoint}", waitpoint, "{link}", link).Replace(r.path)
				return w.send(t, asked)
			}
			theirs, none := ask(bare(id), pending, link), ask(absent, absent, absent)
			named := strings.ReplaceAll(string(theirs.body), bare(id), absent) // the id that was asked for
			if theirs.status != 404 || none.status != 404 || named != string(none.body) {
				t.Errorf("%s %s: %d %s\nthat does not exist: %d %s", r.method, r.path, theirs.status, theirs.body, none.status, none.body)
			}
		}
		for _, list := range []string{"/v1/waitpoints", "/v1/suspended", "/v1/approvals"} {
			if empty := w.send(t, request{method: "GET", path: list, key: globex}).wants(t, 200); string(empty.body) != `{"items":[]}` {
				t.Errorf("%s: %s", list, empty.body)
			}
		}
	})
}

func TestU112_waitpoints_are_told_as_built(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true})
	if info := w.get(t, "/v1/info").wants(t, 200); info.field(t, "features.waitpoints") != true {
		t.Errorf("%s", info.body)
	}
}

func TestW30_whatever_may_not_show_a_token_shows_kid_and_fingerprint_alone(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, id, answer := w.suspended(t, anySignal)
		waitpoint, token := answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token")
		link := w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann"}`).wants(t, 201)
		read := w.get(t, path+"/waitpoints/"+waitpoint+"/token").wants(t, 200)
		address := w.get(t, "/v1/links/"+link.text(t, "link_id")+"/url").wants(t, 200)
		if read.text(t, "token") != token || address.text(t, "url") != link.text(t, "url") {
			t.Errorf("%s %s", read.body, address.body)
		}
		kid, digest, _ := strings.Cut(token, ":")
		_, ofLink, _ := strings.Cut(tokenIn(link.text(t, "url")), ":")
		withFingerprint := map[string]bool{"/v1/waitpoints/" + waitpoint: true, "/v1/waitpoints?state=all": true, path + "/waitpoints?include_closed=true": true, "/v1/suspended": true}
		reads := []string{
			path, path + "/suspension", path + "/suspensions", path + "/signals?inline=true", path + "/events", "/v1/approvals", "/v1/waitpoints/" + waitpoint + "/links",
			"/v1/executions", "/v1/executions/export?include=signals,input", "/v1/events?after=start", "/v1/audit", "/metrics", "/v1/keys",
		}
		reads = slices.AppendSeq(reads, maps.Keys(withFingerprint))
		look := func() {
			t.Helper()
			for _, from := range reads {
				seen := w.get(t, from)
				if text := string(seen.body); seen.status != 200 || strings.Contains(text, digest) || strings.Contains(text, ofLink) || strings.Contains(text, "/v1/callbacks/"+waitpoint) || strings.Contains(text, "/approve/"+link.text(t, "link_id")) {
					t.Errorf("%s: %d %s", from, seen.status, text)
				} else if withFingerprint[from] && (!strings.Contains(text, `"token_kid":"`+kid+`"`) || !strings.Contains(text, `"token_fingerprint":"`+digest[:16]+`"`)) {
					t.Errorf("%s does not show kid and fingerprint: %s", from, text)
				}
			}
		}
		look()
		w.signals(t, waitpoint, token, `{"name":"paid"}`).wants(t, 200)
		delete(withFingerprint, "/v1/suspended") // it waits no more
		look()
		if task := w.claims(t, `"lanes":["default"],"wait_ms":20000`); task.text(t, "tasks.0.execution_id") != id || strings.Contains(string(task.body), digest) {
			t.Errorf("%s", task.body)
		}
	})
}
