package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// quorum is met when two different people approved, or one rejected.
const quorum = `{"type":"any_of","members":[{"type":"count","n":2,"count_kind":"distinct_sources","name":"approved","source_types":["operator","approver"],"waitpoints":["a"]},
	{"type":"single","waitpoint_key":"a","name":"rejected"}]}`

func TestU86_U87_a_person_decides_on_a_page_that_says_what_it_must(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, quorum)
		_, ann := w.link(t, a, `"title":"Deploy <it>?","message":"Two commits.\nOne migration.","expires_in_ms":183600500`)
		page := w.visit(t, ann, nil).shows(t, 200, "<h1>Deploy &lt;it&gt;?</h1>", "Two commits.\nOne migration.", "ann@example.com", "Asked by", "dev", "deploy", "service: shop",
			"2 days and 3 hours", "0 of 2 have approved.", `<form method="post">`, `value="approve"`, "Approve</button>", `value="reject"`, "Reject</button>", `name="comment"`, "(optional)")
		if strings.Contains(string(page.body), "<script") || strings.Contains(string(page.body), "action=") || strings.Contains(string(page.body), tokenIn(ann)) {
			t.Errorf("%s", page.body)
		}
		back := w.visit(t, ann, decides("approve", "Looks good.\r\nGo on.")).wants(t, 303)
		if back.header.Get("Location") != "./"+tokenIn(ann) || len(back.body) > 0 { // whatever path a proxy has taken away
			t.Errorf("%v %s", back.header, back.body)
		}
		w.visit(t, ann, nil).shows(t, 200, "Decided: Approve", "ann@example.com chose “Approve” on ", "Looks good.\nGo on.", "1 of 2 have approved.", "cannot be changed")
		if got := w.status(t, a); got != "suspended" {
			t.Errorf("one of two is enough: %s", got)
		}
		made := w.post(t, "/v1/waitpoints/"+a.waitpoint+"/links", `{"approver":"ben@example.com"}`).wants(t, 201)
		ben := pathOf(t, made.text(t, "url"))
		w.visit(t, ben, nil).shows(t, 200, "1 of 2 have approved.", "Your decision is needed")
		w.visit(t, ben, decides("approve", "")).wants(t, 303)
		w.visit(t, ben, nil).shows(t, 200, "Decided: Approve", "2 of 2 have approved.")
		if got := w.status(t, a); got != "ready" {
			t.Errorf("two of two are not enough: %s", got)
		}
		kept := w.get(t, "/v1/executions/"+url.PathEscape(a.execution)+"/signals").wants(t, 200)
		for field, want := range map[string]any{
			"name": "approved", "category": "approval", "source_type": "approver", "source_identity": "ann@example.com", "source_verified": true,
			"payload.decision": "approve", "payload.comment": "Looks good.\nGo on.",
		} {
			if got := kept.field(t, "items.0."+field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
	})
}

func TestU87_what_is_counted_is_told_by_the_label_that_people_see(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, `{"type":"count","n":2,"count_kind":"distinct_sources","name":"shipped","waitpoints":["a"]}`)
		_, ann := w.link(t, a, `"decisions":[{"id":"ship","label":"Ship it","signal_name":"shipped"},{"id":"wait","label":"Wait","signal_name":"waited"}]`)
		w.visit(t, ann, decides("ship", "")).wants(t, 303)
		w.visit(t, ann, nil).shows(t, 200, "1 of 2 have chosen “Ship it”.")
		told := w.ask(t, request{method: "GET", path: ann, header: map[string]string{"Accept": "application/json"}}).wants(t, 200)
		if got := told.text(t, "counted"); got != "shipped" {
			t.Errorf("counted is %q", got)
		}
	})
}

func tokenIn(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func TestW70_WI19_opening_a_link_a_thousand_times_changes_nothing(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a := w.asks(t, "")
	_, link := w.link(t, a, "")
	before := w.everything(t, a)
	for i := range 1000 {
		r := request{method: []string{"GET", "HEAD", "OPTIONS"}[i%3], path: link}
		if i%2 == 0 {
			r.path += "?decision=approve&utm_source=mail" // what a scanner makes of it
			r.header = map[string]string{"Accept": "text/html"}
		}
		want := 200
		if r.method == "OPTIONS" {
			want = 405
		}
		w.ask(t, r).wants(t, want)
	}
	if after := w.everything(t, a); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
	w.visit(t, link, decides("approve", "")).wants(t, 303)
}

func TestW70_every_answer_about_a_link_is_guarded(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a := w.asks(t, "")
	_, link := w.link(t, a, `"comment_required":true`)
	for name, answer := range map[string]reply{
		"page": w.visit(t, link, nil), "not found": w.visit(t, "/approve/x/y", nil), "refused": w.visit(t, link, decides("approve", "")),
		"JSON":            w.ask(t, request{method: "GET", path: link, header: map[string]string{"Accept": "application/json"}}),
		"problem":         w.ask(t, request{method: "POST", path: link, body: `{"decision":`}),
		"method":          w.ask(t, request{method: "DELETE", path: link}),
		"preflight":       w.ask(t, request{method: "OPTIONS", path: link, header: map[string]string{"Origin": "https://x.example", "Access-Control-Request-Method": "POST"}}),
		"no such route":   w.ask(t, request{method: "GET", path: link + "/more"}),
		"head":            w.ask(t, request{method: "HEAD", path: link}),
		"too large":       w.ask(t, request{method: "GET", path: link, header: map[string]string{"X-Large": strings.Repeat("x", 40<<10)}}),
		"wrong name":      w.ask(t, request{method: "GET", path: link, header: map[string]string{"Host": "elsewhere.example"}}),
		"decided":         w.visit(t, link, decides("approve", "yes")),
		"already decided": w.visit(t, link, nil),
	} {
		policy := answer.header.Get("Content-Security-Policy")
		if answer.header.Get("Cache-Control") != "no-store" || answer.header.Get("Referrer-Policy") != "no-referrer" || answer.header.Get("X-Robots-Tag") != "noindex" ||
			!strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || answer.header.Get("ETag") != "" {
			t.Errorf("%s: %d %v", name, answer.status, answer.header)
		}
	}
}

func TestW71_a_decision_that_cannot_be_is_told_on_the_same_page_with_what_was_typed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		_, link := w.link(t, a, `"title":"Deploy it?","comment_required":true`)
		before := w.everything(t, a)
		w.visit(t, link, nil).shows(t, 200, "(required)", " required>")
		w.visit(t, link, decides("approve", " \r\n ")).shows(t, 422, "Nothing was decided yet", "Write a comment", `aria-invalid="true"`, "Deploy it?", "Approve</button>")
		w.visit(t, link, decides("perhaps", "what I <think>")).shows(t, 422, "Choose one of the buttons", "what I &lt;think&gt;</textarea>")
		w.visit(t, link, decides("approve", strings.Repeat("ä", 2049))).shows(t, 422, "Shorten the comment", strings.Repeat("ä", 2049)+"</textarea>")
		w.visit(t, link, url.Values{}).shows(t, 422, "Choose one of the buttons")
		post := func(body string, header map[string]string) reply {
			return w.send(t, request{method: "POST", path: link, body: body, header: header})
		}
		post(`{"decision":"perhaps"}`, nil).refuses(t, 422, "invalid_decision")
		if field := post(`{"decision":"approve"}`, nil).refuses(t, 422, "invalid_decision").text(t, "field"); field != "/comment" {
			t.Errorf("the field is %s", field)
		}
		post(`{"decision":"approve","nonsense":1}`, nil).refuses(t, 400, "unknown_field")
		post(`{"decision":`, nil).refuses(t, 400, "invalid_json")
		post(`{"decision":"approve","comment":"`+strings.Repeat("x", 70_000)+`"}`, nil).refuses(t, 413, "payload_too_large")
		post(`{"decision":"approve"}`, map[string]string{"Idempotency-Key": "with blank"}).refuses(t, 400, "invalid_argument")
		post("x", map[string]string{"Content-Type": "text/plain", "Accept": "application/json"}).refuses(t, 415, "unsupported_media_type")
		if after := w.everything(t, a); after != before {
			t.Errorf("something changed:\n%s\n%s", before, after)
		}
		w.visit(t, link, decides("approve", "now I say why")).wants(t, 303)
	})
}

func TestW72_WI20_a_second_decision_is_told_what_the_first_was(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		id, link := w.link(t, a, "")
		first := w.post(t, link, `{"decision":"reject","comment":"not yet"}`).wants(t, 200)
		if first.text(t, "outcome") != "decided" || first.text(t, "decision") != "reject" || first.text(t, "effect") != "signal_ignored_matcher_failed" {
			t.Errorf("%s", first.body)
		}
		before := w.everything(t, a)
		for _, decision := range []string{"reject", "approve", "nonsense"} {
			again := w.post(t, link, `{"decision":"`+decision+`"}`).wants(t, 200)
			if again.text(t, "outcome") != "already_decided" || again.text(t, "decision") != "reject" || again.text(t, "decided_at") != first.text(t, "decided_at") {
				t.Errorf("%s: %s", decision, again.body)
			}
			w.visit(t, link, decides(decision, "")).wants(t, 303)
		}
		w.visit(t, link, nil).shows(t, 200, "Decided: Reject", "not yet")
		w.send(t, request{method: "DELETE", path: "/v1/links/" + id, body: "{}"}).refuses(t, 409, "link_already_decided")
		shown := w.send(t, request{method: "GET", path: link, header: map[string]string{"Accept": "application/json"}}).wants(t, 200)
		if shown.text(t, "state") != "decided" || shown.text(t, "comment") != "not yet" {
			t.Errorf("%s", shown.body)
		}
		if after := w.everything(t, a); after != before {
			t.Errorf("something changed:\n%s\n%s", before, after)
		}
	})
}

func TestU13_a_decision_is_repeated_under_its_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		_, link := w.link(t, a, "")
		post := func() reply {
			return w.send(t, request{method: "POST", path: link, body: `{"decision":"reject"}`, header: map[string]string{"Idempotency-Key": "k1"}})
		}
		first, again := post().wants(t, 200), post().wants(t, 200)
		if first.text(t, "outcome") != "decided" || string(first.body) != string(again.body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s and %v %s", first.body, again.header, again.body)
		}
	})
}

func TestW72_WI20_of_browsers_that_decide_differently_at_once_one_wins(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		_, link := w.link(t, a, "")
		answers := make([]reply, 16)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				answers[i] = w.ask(t, request{method: "POST", path: link, body: fmt.Sprintf(`{"decision":%q,"comment":"%d"}`, []string{"approve", "reject"}[i%2], i)})
			})
		}
		all.Wait()
		decided := map[string]int{}
		for _, answer := range answers {
			answer.wants(t, 200)
			decided[answer.text(t, "outcome")]++
			if answer.text(t, "decision") != answers[0].text(t, "decision") {
				t.Errorf("%s and %s", answer.body, answers[0].body)
			}
		}
		if decided["decided"] != 1 || decided["already_decided"] != 15 {
			t.Errorf("%v", decided)
		}
		if n := w.get(t, "/v1/waitpoints/"+a.waitpoint).number(t, "signal_count"); n != 1 {
			t.Errorf("%v signals", n)
		}
	})
}

func TestW73_what_can_no_longer_be_decided_says_why(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			end   func(a asleep, link string)
			code  string
			words []string
		}{
			{func(_ asleep, link string) {
				w.send(t, request{method: "DELETE", path: "/v1/links/" + link, body: "{}"}).wants(t, 204)
			}, "link_revoked", []string{"This link was withdrawn", "took it back on "}},
			{func(a asleep, _ string) {
				w.send(t, request{method: "POST", path: a.signals(), body: `{"name":"go"}`, header: withToken(a.token)}).wants(t, 200)
			}, "waitpoint_closed", []string{"no longer needed", "The work continued on "}},
			{func(a asleep, _ string) {
				w.post(t, "/v1/executions/"+url.PathEscape(a.execution)+"/cancel", `{}`).wants(t, 200)
			}, "waitpoint_closed", []string{"no longer needed", "The work that waited for it ended on "}},
		} {
			a := w.asks(t, "")
			id, link := w.link(t, a, "")
			c.end(a, id)
			before := w.everything(t, a)
			page := w.visit(t, link, nil).shows(t, 410, append(c.words, "Deploy it?", "ann@example.com")...)
			if strings.Contains(string(page.body), "<form") {
				t.Errorf("it can be decided: %s", page.body)
			}
			w.visit(t, link, decides("approve", "")).shows(t, 410, c.words...)
			w.post(t, link, `{"decision":"approve"}`).refuses(t, 410, c.code)
			told := w.send(t, request{method: "GET", path: link, header: map[string]string{"Accept": "application/json"}}).refuses(t, 410, c.code)
			if told.text(t, "current.link.approver") != "ann@example.com" {
				t.Errorf("%s", told.body)
			}
			if after := w.everything(t, a); after != before {
				t.Errorf("something changed:\n%s\n%s", before, after)
			}
		}
	})
}

func TestW73_a_link_whose_time_is_over_says_so(t *testing.T) {
	t.Parallel()
	then := clock.NewManual(time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC))
	client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true, Clock: then}), sqliteStore(t),
		embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	w := serveClient(t, client, server.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	a := w.asks(t, "")
	_, link := w.link(t, a, `"title":"Deploy it?","expires_in_ms":90000`)
	w.visit(t, link, nil).shows(t, 200, "1 minute", "until <time datetime=\"2031-05-17T12:01:30Z\">17 May 2031 at 12:01 UTC</time>")
	then.TurnTo(then.Now().Add(time.Minute))
	w.visit(t, link, nil).shows(t, 200, "less than a minute")
	then.TurnTo(then.Now().Add(30 * time.Second))
	w.visit(t, link, nil).shows(t, 410, "This link has expired", "Its time ended on 17 May 2031 at 12:01 UTC")
	w.visit(t, link, decides("approve", "")).shows(t, 410, "This link has expired")
	w.post(t, link, `{"decision":"perhaps"}`).refuses(t, 410, "link_expired")
}

func TestW71_a_link_whose_signal_is_refused_stays_undecided_and_says_why(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		_, link := w.link(t, a, "")
		for i := range 100 { // as many as the policy allows
			w.send(t, request{method: "POST", path: a.signals(), body: fmt.Sprintf(`{"name":"note","payload":%d}`, i), header: withToken(a.token)}).wants(t, 200)
		}
		w.visit(t, link, decides("approve", "kept")).shows(t, 429, "Nothing was decided yet", "takes no more answers", "kept</textarea>")
		w.post(t, link, `{"decision":"approve"}`).refuses(t, 429, "signal_limit_exceeded")
		w.visit(t, link, nil).shows(t, 200, "<form")
	})
}

func TestW71_U131_a_decision_is_in_the_audit_log_under_the_name_of_the_approver(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		id, link := w.link(t, a, "")
		w.visit(t, link, decides("approve", "")).wants(t, 303)
		w.visit(t, link, decides("approve", "")).wants(t, 303)
		rows, err := w.Admin().AuditPage(t.Context(), ops.AuditFilter{Action: "decide"})
		if err != nil || len(rows.Items) != 1 || rows.Items[0].Principal != "ann@example.com" || rows.Items[0].EntityID != id {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

func TestWI1_tokens_of_another_namespace_open_nothing(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		var all []asleep
		var links []string
		key := w.key(t, "*", "submit", "work", "operate")
		for _, namespace := range []string{"acme", "globex"} {
			one := &world{Client: w.Client, server: w.server, url: w.url, http: &http.Client{Transport: withKey{key, namespace, w.http.Transport}}}
			a := one.asks(t, "")
			_, link := one.link(t, a, "")
			all, links = append(all, a), append(links, link)
		}
		for i := range all {
			mine, other := all[i], all[1-i]
			w.send(t, request{method: "POST", path: mine.signals(), body: `{"name":"go"}`, header: withToken(other.token)}).refuses(t, 401, "invalid_token")
			crossed := links[i][:strings.LastIndex(links[i], "/")+1] + tokenIn(links[1-i])
			w.visit(t, crossed, decides("approve", "")).wants(t, 404)
			w.visit(t, links[i], nil).shows(t, 200, "Deploy it?")
		}
		w.send(t, request{method: "POST", path: all[0].signals(), body: `{"name":"go"}`, header: map[string]string{"FlowFabric-Token": all[0].token, "FlowFabric-Namespace": "globex"}}).wants(t, 200)
	})
}

// withKey sends every request with an API key, to a namespace.
type withKey struct {
	key, namespace string
	base           http.RoundTripper
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	r.Header.Set("FlowFabric-Namespace", k.namespace)
	return k.base.RoundTrip(r)
}

func TestW69_WI5_whatever_a_link_does_not_open_is_answered_alike(t *testing.T) {
	t.Parallel()
	w := keylessTries(t)
	a, other := w.asks(t, ""), w.asks(t, "")
	id, link := w.link(t, a, "")
	otherID, otherLink := w.link(t, other, "")
	_, dead := w.link(t, other, "")
	w.post(t, "/v1/waitpoints/"+other.waitpoint+"/reissue", "{}").wants(t, 200)
	decided, decidedLink := w.link(t, a, "")
	w.visit(t, decidedLink, decides("reject", "")).wants(t, 303)
	digest := link[strings.LastIndex(link, ":")+1:]
	paths := map[string]string{
		"a wrong digit":         flipped(link),
		"the token of another":  "/approve/" + id + "/" + tokenIn(otherLink),
		"another link":          "/approve/" + otherID + "/" + tokenIn(link),
		"a token from before":   dead,
		"the waitpoint's token": "/approve/" + id + "/" + a.token,
		"the waitpoint":         "/approve/" + a.waitpoint + "/" + a.token,
		"a decided link":        flipped("/approve/" + decided + "/" + tokenIn(decidedLink)),
		"an unknown key":        "/approve/" + id + "/missing:" + digest,
		"no link":               "/approve/0190f0c2-2222-7aaa-8bbb-0123456789ab/" + tokenIn(link),
		"no id":                 "/approve/nonsense/" + tokenIn(link),
		"nothing":               "/approve/%20/%00",
	}
	for _, r := range []request{
		{method: "GET", header: map[string]string{"Accept": "text/html"}},
		{method: "HEAD", header: map[string]string{"Accept": "text/html"}},
		{method: "GET", header: map[string]string{"Accept": "application/json"}},
		{method: "POST", body: `{"decision":"approve"}`},
		{method: "POST", body: `{"decision":`},
		{method: "POST", body: "decision=approve", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{method: "POST", body: "%zz", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
	} {
		want := ""
		for name, path := range paths {
			try := r
			try.path, try.header = path, map[string]string{}
			for k, v := range r.header {
				try.header[k] = v
			}
			answer := w.from(t, try).wants(t, 404)
			if want == "" {
				want = answer.alike(t)
			}
			if got := answer.alike(t); got != want {
				t.Errorf("%s of %s: %s, others: %s", r.method, name, got, want)
			}
		}
		if r.body != "" && strings.HasPrefix(r.body, "{") && !strings.Contains(want, "link_not_found") {
			t.Errorf("%s", want)
		}
	}
	w.visit(t, flipped(link), nil).shows(t, 404, "This link does not work")
}

func TestW69_a_link_lives_as_long_as_the_key_that_signed_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		_, link := w.link(t, a, "")
		kid, _, _ := strings.Cut(tokenIn(link), ":")
		w.post(t, "/v1/keys/rotate", keyBody("next", "1", 3_600_000)).wants(t, 200)
		w.visit(t, link, nil).shows(t, 200, "Deploy it?")
		w.post(t, "/v1/keys/"+kid+"/revoke", "{}").wants(t, 200)
		w.visit(t, link, nil).shows(t, 404, "This link does not work")
		w.visit(t, link, decides("approve", "")).shows(t, 404, "This link does not work")
	})
}

func TestU86_a_link_works_below_a_mount_and_with_api_keys_required(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a := w.asks(t, "")
	_, link := w.link(t, a, "")
	mounted := serveClientBelow(t, w, "/jobs")
	answer := mounted.visit(t, "/jobs"+link, decides("approve", "")).wants(t, 303)
	back, err := url.Parse("http://example.com/jobs" + link)
	if err == nil {
		back, err = back.Parse(answer.header.Get("Location"))
	}
	if err != nil || back.EscapedPath() != "/jobs"+link {
		t.Errorf("back to %s, %v", back, err)
	}
	mounted.visit(t, "/jobs"+link, nil).shows(t, 200, "Decided: Approve")
}

// serveClientBelow serves the store of a world once more, to those who have API keys, below a path of another program.
func serveClientBelow(t *testing.T, w *world, prefix string) *world {
	t.Helper()
	s, err := server.New(backend(w.Client), server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, s.Handler()))
	listener := httptest.NewServer(mux)
	t.Cleanup(func() {
		w.http.CloseIdleConnections()
		listener.Close()
	})
	return &world{Client: w.Client, server: s, url: listener.URL, http: w.http}
}

func TestU86_a_remote_client_opens_and_decides_links_as_an_embedded_one_does(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		remote, err := flowfabric.Connect(w.url, flowfabric.ConnectConfig{HTTP: w.http})
		if err != nil {
			t.Fatal(err)
		}
		defer remote.Close(t.Context())
		a := w.asks(t, quorum)
		id, link := w.link(t, a, "")
		token := flowfabric.TokenOf(tokenIn(link))
		same := func(id string) (*api.LinkPage, *api.LinkPage) {
			t.Helper()
			here, err := w.Waitpoints().OpenLink(t.Context(), id, token)
			if err != nil {
				t.Fatal(err)
			}
			there, err := remote.Waitpoints().OpenLink(t.Context(), id, token)
			if err != nil {
				t.Fatal(err)
			}
			if here.Title != there.Title || here.State != there.State || here.Kind != there.Kind || here.Needed != there.Needed ||
				here.Progress != there.Progress || !here.ExpiresAt.Equal(there.ExpiresAt) || len(there.Choices) != 2 ||
				flowfabric.CodeOf(here.Refused) != flowfabric.CodeOf(there.Refused) || here.Decision != there.Decision {
				t.Errorf("here %+v, there %+v", here, there)
			}
			return here, there
		}
		same(id)
		for _, wrong := range []flowfabric.Token{{}, flowfabric.TokenOf("a/b c"), flowfabric.TokenOf(a.token)} {
			if _, err := remote.Waitpoints().OpenLink(t.Context(), id, wrong); flowfabric.CodeOf(err) != "link_not_found" {
				t.Errorf("%v", err)
			}
			if _, err := remote.Waitpoints().Decide(t.Context(), id, wrong, api.LinkDecision{Decision: "approve"}); flowfabric.CodeOf(err) != "link_not_found" {
				t.Errorf("%v", err)
			}
		}
		_, err = remote.Waitpoints().Decide(t.Context(), id, token, api.LinkDecision{Decision: "perhaps"})
		if flowfabric.CodeOf(err) != "invalid_decision" {
			t.Errorf("%v", err)
		}
		outcome, err := remote.Waitpoints().Decide(t.Context(), id, token, api.LinkDecision{Decision: "approve", Comment: "yes"})
		if err != nil || outcome.Outcome != "decided" || outcome.Effect != "appended_to_waitpoint" {
			t.Errorf("%+v, %v", outcome, err)
		}
		again, err := remote.Waitpoints().Decide(t.Context(), id, token, api.LinkDecision{Decision: "reject"})
		if err != nil || again.Outcome != "already_decided" || again.Decision != "approve" || !again.DecidedAt.Equal(outcome.DecidedAt) {
			t.Errorf("%+v, %v", again, err)
		}
		same(id)
		id, link = w.link(t, a, "")
		token = flowfabric.TokenOf(tokenIn(link))
		w.send(t, request{method: "DELETE", path: "/v1/links/" + id, body: "{}"}).wants(t, 204)
		if _, there := same(id); flowfabric.CodeOf(there.Refused) != "link_revoked" || there.Approver != "ann@example.com" {
			t.Errorf("%+v", there)
		}
	})
}

func TestW27_a_remote_client_that_reaches_no_server_does_not_tell_the_token(t *testing.T) {
	t.Parallel()
	client, err := flowfabric.Connect("http://127.0.0.1:1", flowfabric.ConnectConfig{Retry: flowfabric.RetryPolicy{MaxRetries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	_, err = client.Waitpoints().OpenLink(t.Context(), "0190f0c2-2222-7aaa-8bbb-0123456789ab", flowfabric.TokenOf("k:secret"))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("%v", err)
	}
}

func TestU86_the_json_of_a_link_tells_how_many_have_approved_from_none_on(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	program := func(path string) reply {
		return w.ask(t, request{method: "GET", path: path, header: map[string]string{"Accept": "application/json"}}).wants(t, 200)
	}
	_, counted := w.link(t, w.asks(t, quorum), "")
	if page := program(counted); page.number(t, "needed") != 2 || page.field(t, "progress") != 0.0 {
		t.Errorf("%s", page.body)
	}
	_, single := w.link(t, w.asks(t, ""), "")
	if page := program(single); page.field(t, "needed") != nil || page.field(t, "progress") != nil {
		t.Errorf("%s", page.body)
	}
}
