package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
)

func withToken(token string) map[string]string { return map[string]string{"FlowFabric-Token": token} }

func TestU81_a_signal_resumes_by_either_form_with_the_token_in_header_or_body(t *testing.T) {
	t.Parallel()
	keyed := func(a asleep) []request {
		execution := "/v1/executions/" + url.PathEscape(a.execution) + "/signals"
		return []request{
			{method: "POST", path: a.signals(), body: `{"name":"go"}`, header: withToken(a.token)},
			{method: "POST", path: a.signals(), body: `{"name":"go","token":"` + a.token + `"}`},
			{method: "POST", path: execution, body: `{"name":"go","waitpoint_id":"` + a.waitpoint + `"}`, header: withToken(a.token)},
			{method: "POST", path: execution, body: `{"name":"go","waitpoint_id":"` + a.waitpoint + `","token":"` + a.token + `"}`},
		}
	}
	onEveryStore(t, func(t *testing.T, w *world) {
		for i := range 4 {
			a := w.asks(t, "")
			answer := w.send(t, keyed(a)[i]).wants(t, 200)
			if answer.text(t, "outcome") != "accepted" || answer.text(t, "effect") != "resume_condition_satisfied" || answer.text(t, "signal_id") == "" {
				t.Errorf("%s", answer.body)
			}
			if got := w.status(t, a); got != "ready" {
				t.Errorf("the execution is %s", got)
			}
		}
	})
}

func TestU81_every_field_of_a_signal_is_kept(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		body := `{"name":"note","token":"` + a.token + `","payload_text":"hello","category":"","source_type":"ci","source_identity":"build-7",
			"correlation_id":"c-1","idempotency_key":"k-1","signal_id":"0190f0c2-2222-7aaa-8bbb-0123456789ab","sent_at":"2026-01-02T03:04:05.678Z"}`
		w.post(t, a.signals(), body).wants(t, 200)
		kept := w.get(t, "/v1/executions/"+url.PathEscape(a.execution)+"/signals").wants(t, 200)
		for field, want := range map[string]any{
			"name": "note", "payload_text": "hello", "category": "", "source_type": "ci", "source_identity": "build-7", "source_verified": false,
			"correlation_id": "c-1", "signal_id": "0190f0c2-2222-7aaa-8bbb-0123456789ab", "sent_at": "2026-01-02T03:04:05.678Z", "matched": false,
		} {
			if got := kept.field(t, "items.0."+field); got != want {
				t.Errorf("%s is %v, want %v: %s", field, got, want, kept.body)
			}
		}
		again := w.post(t, a.signals(), strings.Replace(body, "hello", "other", 1)).wants(t, 200)
		if again.text(t, "outcome") != "duplicate" || again.field(t, "same_request") != false || again.text(t, "signal_id") != kept.text(t, "items.0.signal_id") {
			t.Errorf("%s", again.body)
		}
	})
}

func TestU13_the_same_request_with_the_same_key_signals_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		send := func(key, body string) reply {
			return w.send(t, request{method: "POST", path: a.signals(), body: body, header: map[string]string{"FlowFabric-Token": a.token, "Idempotency-Key": key}})
		}
		first := send("k1", `{"name":"note","payload":1}`).wants(t, 200)
		again := send("k1", `{"name":"note","payload":1}`).wants(t, 200)
		if string(first.body) != string(again.body) || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s and %v %s", first.body, again.header, again.body)
		}
		send("k1", `{"name":"note","payload":2}`).refuses(t, 409, "idempotency_conflict")
		send("k2", `{"name":"note","payload":1}`).wants(t, 200)
		if n := w.get(t, "/v1/waitpoints/"+a.waitpoint).wants(t, 200).number(t, "signal_count"); n != 2 {
			t.Errorf("%v signals", n)
		}
	})
}

// badShapes are bodies with which a signal cannot be read, and what the holder of the token gets.
var badShapes = []struct {
	body, contentType string
	status            int
	code              string
}{
	{`{"name":`, "", 400, "invalid_json"},
	{`{"name":"go","nonsense":1}`, "", 400, "unknown_field"},
	{`{}`, "", 400, "missing_field"},
	{`{"name":"go","payload":1,"payload_text":"x"}`, "", 400, "invalid_argument"},
	{`{"name":"go","signal_id":"nonsense"}`, "", 400, "invalid_signal"},
	{`{"name":""}`, "", 400, "invalid_signal"},
	{`{"name":"__go"}`, "", 400, "reserved_name"},
	{`{"name":"go","source_type":"operator"}`, "", 400, "reserved_source_type"},
	{`{"name":"go","sent_at":"yesterday"}`, "", 400, "invalid_argument"},
	{`name=go`, "text/plain", 415, "unsupported_media_type"},
	{`{"name":"go","payload_text":"` + strings.Repeat("x", 262_145) + `"}`, "", 413, "payload_too_large"},
	{`{"name":"go","payload_text":"` + strings.Repeat("x", 700_000) + `"}`, "", 413, "payload_too_large"},
}

func TestW33_U24_the_token_is_judged_before_the_body(t *testing.T) {
	t.Parallel()
	w := keylessTries(t)
	a := w.asks(t, "")
	before := w.everything(t, a)
	post := func(token, body, contentType string) reply {
		r := request{method: "POST", path: a.signals(), body: body, header: map[string]string{}}
		if token != "" {
			r.header["FlowFabric-Token"] = token
		}
		if contentType != "" {
			r.header["Content-Type"] = contentType
		}
		return w.from(t, r)
	}
	wrong := flipped(a.token)
	good := post(wrong, `{"name":"go"}`, "").refuses(t, 401, "invalid_token").alike(t)
	absent := post("", `{"name":"go"}`, "").refuses(t, 401, "missing_token").alike(t)
	for _, shape := range badShapes {
		about := shape.body[:min(len(shape.body), 60)]
		if got := post(wrong, shape.body, shape.contentType).alike(t); got != good {
			t.Errorf("%s with a wrong token: %s, want %s", about, got, good)
		}
		if got := post("", shape.body, shape.contentType).alike(t); got != absent {
			t.Errorf("%s without a token: %s, want %s", about, got, absent)
		}
		post(a.token, shape.body, shape.contentType).refuses(t, shape.status, shape.code)
	}
	for name, bad := range map[string]request{
		"a bad key of the request": {path: a.signals(), header: map[string]string{"Idempotency-Key": "with blank"}},
		"an unknown parameter":     {path: a.signals() + "?nonsense=1"},
		"a bad API key":            {path: a.signals(), key: "ffk_nonsense"},
		"another origin":           {path: a.signals(), header: map[string]string{"Origin": "https://elsewhere.example"}},
	} {
		bad.method, bad.body = "POST", `{"name":"go"}`
		if bad.header == nil {
			bad.header = map[string]string{}
		}
		bad.header["FlowFabric-Token"] = wrong
		if got := w.from(t, bad).alike(t); got != good {
			t.Errorf("%s: %s", name, got)
		}
	}
	post(a.token, `{"name":"go","token":"`+wrong+`"}`, "").refuses(t, 400, "invalid_argument")
	post(wrong, `{"name":"go","token":"`+a.token+`"}`, "").refuses(t, 401, "invalid_token")
	if after := w.everything(t, a); after != before {
		t.Errorf("refused signals left something:\n%s\n%s", before, after)
	}
}

// flipped is a token with another last digit.
func flipped(token string) string {
	last := "0"
	if strings.HasSuffix(token, last) {
		last = "1"
	}
	return token[:len(token)-1] + last
}

// keylessTries is a world in which every request of from comes from another address: otherwise many wrong tokens are too many.
func keylessTries(t testing.TB) *world {
	return serveStore(t, sqliteStore(t), server.Config{Open: true, TrustedProxies: []string{"127.0.0.0/8"}})
}

// from sends a request from an address of its own.
func (w *world) from(t testing.TB, r request) reply {
	t.Helper()
	if r.header == nil {
		r.header = map[string]string{}
	}
	n := w.callers.Add(1)
	r.header["X-Forwarded-For"] = fmt.Sprintf("10.0.%d.%d", n/250, n%250)
	return w.ask(t, r)
}

func TestU20_a_body_over_the_limit_is_not_read_and_a_wrong_token_is_still_told_first(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a := w.asks(t, "")
	for _, c := range []struct {
		path, token string
		status      int
		code        string
	}{
		{a.signals(), a.token, 413, "payload_too_large"},
		{a.signals(), flipped(a.token), 401, "invalid_token"},
		{a.signals(), "", 401, "missing_token"},
		{a.callback, "", 413, "payload_too_large"},
		{strings.Replace(a.callback, a.token, flipped(a.token), 1), "", 401, "invalid_token"},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+c.path, unreadable{t})
		r.ContentLength = 10 << 20
		if c.token != "" {
			r.Header.Set("FlowFabric-Token", c.token)
		}
		recorder := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(recorder, r)
		reply{recorder.Code, recorder.Header(), recorder.Body.Bytes()}.refuses(t, c.status, c.code)
	}
}

func TestWI5_whatever_a_token_does_not_open_is_answered_alike(t *testing.T) {
	t.Parallel()
	w := keylessTries(t)
	active, other := w.asks(t, ""), w.asks(t, "")
	closed, reissued := w.asks(t, ""), w.asks(t, "")
	w.send(t, request{method: "POST", path: closed.signals(), body: `{"name":"go"}`, header: withToken(closed.token)}).wants(t, 200)
	w.post(t, "/v1/waitpoints/"+reissued.waitpoint+"/reissue", "{}").wants(t, 200)
	link, path := w.link(t, active, "")
	linkToken := path[strings.LastIndex(path, "/")+1:]
	revoked := w.asks(t, "") // under a key that is revoked below
	w.post(t, "/v1/keys/rotate", keyBody("next", "1", 3_600_000)).wants(t, 200)
	kid, _, _ := strings.Cut(revoked.token, ":")
	fresh := w.asks(t, "")
	w.post(t, "/v1/keys/"+kid+"/revoke", "{}").wants(t, 200)

	elsewhere := "0190f0c2-2222-7aaa-8bbb-0123456789ab"
	digest := fresh.token[strings.Index(fresh.token, ":")+1:]
	tries := map[string][2]string{ // waitpoint, token
		"a wrong digit":               {fresh.waitpoint, flipped(fresh.token)},
		"the token of another":        {fresh.waitpoint, other.token},
		"a closed waitpoint":          {closed.waitpoint, flipped(fresh.token)},
		"a token from before":         {reissued.waitpoint, reissued.token},
		"the token of a link":         {active.waitpoint, linkToken},
		"a link in place of its own":  {link, linkToken},
		"a key that was revoked":      {revoked.waitpoint, revoked.token},
		"an unknown key":              {fresh.waitpoint, "missing:" + digest},
		"another key":                 {revoked.waitpoint, "next:" + digest},
		"no waitpoint":                {elsewhere, fresh.token},
		"no id":                       {"nonsense", fresh.token},
		"an execution":                {fresh.execution, fresh.token},
		"no token":                    {fresh.waitpoint, "nonsense"},
		"a token in capitals":         {fresh.waitpoint, strings.ToUpper(fresh.token)},
		"a token of blanks and signs": {fresh.waitpoint, "%20%3A%00"},
	}
	ways := map[string]func(waitpoint, token string) request{
		"signal": func(waitpoint, token string) request {
			token, _ = url.PathUnescape(token)
			return request{path: "/v1/waitpoints/" + url.PathEscape(waitpoint) + "/signals", body: `{"name":"go","token":` + quoted(token) + `}`}
		},
		"signal of an execution": func(waitpoint, token string) request {
			token, _ = url.PathUnescape(token)
			return request{path: "/v1/executions/" + url.PathEscape(fresh.execution) + "/signals", body: `{"name":"go","waitpoint_id":` + quoted(waitpoint) + `,"token":` + quoted(token) + `}`}
		},
		"callback": func(waitpoint, token string) request {
			return request{path: "/v1/callbacks/" + url.PathEscape(waitpoint) + "/" + token, body: "x"}
		},
	}
	for way, make := range ways {
		want := ""
		for name, try := range tries {
			r := make(try[0], try[1])
			r.method = "POST"
			answer := w.from(t, r)
			answer.refuses(t, 401, "invalid_token")
			if want == "" {
				want = answer.alike(t)
			}
			if got := answer.alike(t); got != want {
				t.Errorf("%s, %s: %s, others: %s", way, name, got, want)
			}
		}
	}
	for name, execution := range map[string]string{"another": other.execution, "none": elsewhere, "no id": "nonsense"} {
		r := request{method: "POST", path: "/v1/executions/" + url.PathEscape(execution) + "/signals", body: `{"name":"go","waitpoint_id":"` + fresh.waitpoint + `"}`, header: withToken(fresh.token)}
		w.from(t, r).refuses(t, 401, "invalid_token")
		if w.status(t, fresh) != "suspended" {
			t.Errorf("%s execution", name)
		}
	}
}

func quoted(text string) string { return strings.ReplaceAll(fmt.Sprintf("%q", text), `\x00`, `\u0000`) }

func TestU82_W64_the_body_of_a_callback_is_the_payload(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, "")
		callback := func(query, body string, header map[string]string) reply {
			return w.send(t, request{method: "POST", path: a.callback + query, body: body, header: header})
		}
		bytes := "\x00\xff\xfe{not json"
		callback("", `{"paid":true}`, map[string]string{"Content-Type": "application/json; charset=utf-8"}).wants(t, 200)
		callback("?name=note", bytes, map[string]string{"Content-Type": "application/x-own"}).wants(t, 200)
		callback("?name=note", "", nil).wants(t, 200)
		callback("?name=note", strings.Repeat("x", 262_144), map[string]string{"Content-Type": "text/plain"}).wants(t, 200)
		callback("?name=note", strings.Repeat("x", 262_145), map[string]string{"Content-Type": "text/plain"}).refuses(t, 413, "payload_too_large")
		callback("?name=", "x", nil).refuses(t, 400, "invalid_signal")
		callback("?nonsense=1", "x", nil).refuses(t, 400, "unknown_field")
		kept := w.get(t, "/v1/executions/"+url.PathEscape(a.execution)+"/signals").wants(t, 200)
		for field, want := range map[string]any{
			"0.name": "callback", "0.payload.paid": true, "0.payload_content_type": "application/json; charset=utf-8",
			"1.name": "note", "1.payload_bytes": base64.StdEncoding.EncodeToString([]byte(bytes)), "1.payload_content_type": "application/x-own",
			"3.payload_size": 262144.0,
		} {
			if got := kept.field(t, "items."+field); got != want {
				t.Errorf("%s is %v, want %v: %s", field, got, want, kept.body)
			}
		}
		for _, header := range []string{"Idempotency-Key", "Webhook-Id"} {
			one := callback("?name=note", "once", map[string]string{header: "msg_" + header}).wants(t, 200)
			two := callback("?name=note", "once", map[string]string{header: "msg_" + header}).wants(t, 200)
			if one.text(t, "outcome") != "accepted" || two.text(t, "outcome") != "duplicate" || one.text(t, "signal_id") != two.text(t, "signal_id") {
				t.Errorf("%s: %s and %s", header, one.body, two.body)
			}
		}
		if got := callback("?name=go", "now", nil).wants(t, 200).text(t, "effect"); got != "resume_condition_satisfied" {
			t.Errorf("the effect is %s", got)
		}
		callback("?name=go", "again", nil).refuses(t, 410, "waitpoint_closed")
	})
}

func TestW64_WI19_no_other_method_does_anything_with_a_callback(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a := w.asks(t, "")
	before := w.everything(t, a)
	for range 60 {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"} {
			answer := w.send(t, request{method: method, path: a.callback + "?name=go"}).wants(t, 405)
			if answer.header.Get("Allow") != "POST" {
				t.Fatalf("%s: Allow %s", method, answer.header.Get("Allow"))
			}
		}
	}
	if after := w.everything(t, a); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
}

func TestW64_U127_pages_of_any_origin_may_signal_and_may_not_read_links(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]server.Config{
		"no origins": {Open: true}, "some origins": {Open: true, CORSOrigins: []string{"https://console.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keyedWorld(t, cfg)
			a := w.asks(t, "")
			_, link := w.link(t, a, "")
			for _, path := range []string{a.signals(), a.callback, "/v1/executions/" + url.PathEscape(a.execution) + "/signals"} {
				ask := w.ask(t, request{method: "OPTIONS", path: path, header: map[string]string{
					"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "flowfabric-token",
				}}).wants(t, 204)
				if ask.header.Get("Access-Control-Allow-Origin") != "*" || ask.header.Get("Access-Control-Allow-Methods") != "POST" ||
					!strings.Contains(ask.header.Get("Access-Control-Allow-Headers"), "FlowFabric-Token") || ask.header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: %v", path, ask.header)
				}
				sent := w.ask(t, request{method: "POST", path: path, body: `{"name":"x"}`, header: map[string]string{"Origin": "https://elsewhere.example", "FlowFabric-Token": flipped(a.token)}})
				if sent.header.Get("Access-Control-Allow-Origin") != "*" || sent.status == 403 {
					t.Errorf("%s: %d %v", path, sent.status, sent.header)
				}
				for _, method := range []string{"GET", "DELETE"} { // what is read there needs an API key
					other := w.ask(t, request{method: "OPTIONS", path: path, header: map[string]string{"Origin": "https://elsewhere.example", "Access-Control-Request-Method": method}})
					if other.header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s of %s: %v", method, path, other.header)
					}
				}
			}
			for _, origin := range []string{"https://elsewhere.example", "https://console.example"} {
				for _, method := range []string{"GET", "POST", "OPTIONS"} {
					answer := w.ask(t, request{method: method, path: link, header: map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"}})
					for header := range answer.header {
						if strings.HasPrefix(header, "Access-Control") {
							t.Errorf("%s from %s has %s", method, origin, header)
						}
					}
				}
			}
		})
	}
}

func TestU129_too_many_wrong_tokens_from_an_address_are_refused_for_a_while(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{TrustedProxies: []string{"127.0.0.0/8"}})
	at := func(address, path string) reply {
		return w.ask(t, request{method: "POST", path: path, body: `{"name":"go"}`, header: map[string]string{"X-Forwarded-For": address, "FlowFabric-Token": "k:0"}})
	}
	wrong := "/v1/waitpoints/0190f0c2-2222-7aaa-8bbb-0123456789ab/signals"
	for range 20 {
		at("10.0.0.1", wrong).refuses(t, 401, "invalid_token")
	}
	limited := at("10.0.0.1", wrong).refuses(t, 429, "rate_limited")
	if limited.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After: %s", limited.header.Get("Retry-After"))
	}
	at("10.0.0.2", wrong).refuses(t, 401, "invalid_token")
	page := w.ask(t, request{method: "GET", path: "/approve/x/y", header: map[string]string{"X-Forwarded-For": "10.0.0.1", "Accept": "text/html"}})
	page.shows(t, 429, "Too many wrong links")
	key := w.key(t, "default", "read")
	w.send(t, request{method: "GET", path: "/v1/executions", key: key, header: map[string]string{"X-Forwarded-For": "10.0.0.1"}}).wants(t, 200)
}

func TestU129_good_tokens_count_from_an_address_with_too_many_wrong_ones(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.asks(t, `{"type":"single","waitpoint_key":"a","name":"never"}`)
		_, link := w.link(t, a, "")
		for range 20 {
			w.ask(t, request{method: "GET", path: "/approve/x/y", header: map[string]string{"Accept": "application/json"}}).refuses(t, 404, "link_not_found")
		}
		wrong := w.asks(t, "")
		w.visit(t, "/approve/x/y", nil).shows(t, 429, "Too many wrong links")
		w.visit(t, "/approve/x/y", decides("approve", "")).shows(t, 429, "Too many wrong links")
		w.post(t, wrong.callback+"x", `{}`).refuses(t, 429, "rate_limited")
		w.post(t, wrong.signals(), `{"name":"go","token":"`+a.token+`"}`).refuses(t, 429, "rate_limited")

		w.post(t, a.signals(), `{"name":"go","token":"`+a.token+`"}`).wants(t, 200)
		w.post(t, "/v1/executions/"+a.execution+"/signals", `{"name":"go","waitpoint_id":"`+a.waitpoint+`","token":"`+a.token+`"}`).wants(t, 200)
		w.post(t, a.callback, `{}`).wants(t, 200)
		w.visit(t, link, nil).shows(t, 200, "Deploy it?")
		w.visit(t, link, decides("approve", "")).shows(t, 303)
	})
}

func TestW27_U130_no_token_is_in_log_metrics_events_audit_and_problems(t *testing.T) {
	t.Parallel()
	w := loudWorld(t)
	a := w.asks(t, "")
	_, link := w.link(t, a, "")
	digests := []string{a.token[strings.Index(a.token, ":")+1:], link[strings.LastIndex(link, ":")+1:]}
	var said strings.Builder
	for _, r := range []request{
		{method: "GET", path: a.callback},
		{method: "POST", path: a.callback + "?nonsense=1"},
		{method: "POST", path: a.callback + "x"},
		{method: "POST", path: a.callback + "/more"},
		{method: "POST", path: a.callback + "?name=__x", body: "x"},
		{method: "PUT", path: link},
		{method: "POST", path: a.signals(), body: `{"name":"","token":"` + a.token + `"}`},
		{method: "POST", path: link, body: `{"decision":"nonsense"}`},
		{method: "GET", path: link + "x"},
		{method: "GET", path: link},
		{method: "HEAD", path: link},
		{method: "GET", path: link + "/more"},
		{method: "POST", path: a.callback + "?name=go", body: "x"},
		{method: "POST", path: link, body: `{"decision":"approve"}`},
	} {
		answer := w.ask(t, r)
		fmt.Fprintln(&said, answer.header, string(answer.body))
	}
	fmt.Fprintln(&said, w.log.String(), string(w.get(t, "/metrics").body), string(w.get(t, "/v1/events?after=start&limit=1000").body),
		string(w.get(t, "/v1/audit?limit=1000").body), w.everything(t, a))
	for _, digest := range digests {
		if len(digest) < 64 || strings.Contains(said.String(), digest[:40]) {
			t.Errorf("%s is shown: %s", digest, said.String())
		}
	}
	if !strings.Contains(w.log.String(), "/v1/callbacks/{waitpoint}/{token}") || !strings.Contains(w.log.String(), "/approve/{link}/{token}") {
		t.Error("the log does not name the routes")
	}
}

func TestW34_a_failed_verification_is_counted_by_cause_and_leaves_nothing(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	a, other := w.asks(t, ""), w.asks(t, "")
	before := w.everything(t, a)
	for token, execution := range map[string]string{"nonsense": "", "missing:" + strings.Repeat("0", 64): "", flipped(a.token): "", a.token: other.execution} {
		path := a.signals()
		body := `{"name":"go"}`
		if execution != "" {
			path, body = "/v1/executions/"+url.PathEscape(execution)+"/signals", `{"name":"go","waitpoint_id":"`+a.waitpoint+`"}`
		}
		w.send(t, request{method: "POST", path: path, body: body, header: withToken(token)}).refuses(t, 401, "invalid_token")
	}
	w.send(t, request{method: "POST", path: "/v1/waitpoints/nonsense/signals", body: `{"name":"go"}`, header: withToken(a.token)}).refuses(t, 401, "invalid_token")
	if after := w.everything(t, a); after != before {
		t.Errorf("something is left:\n%s\n%s", before, after)
	}
	metrics := string(w.get(t, "/metrics").wants(t, 200).body)
	for _, cause := range []string{"shape", "unknown_kid", "mismatch", "wrong_execution", "unknown_target"} {
		if !strings.Contains(metrics, `ff_token_refused_total{cause="`+cause+`"} 1`) {
			t.Errorf("%s is not counted", cause)
		}
	}
}

func TestU81_a_remote_client_signals_with_the_token_and_without_a_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		client, err := flowfabric.Connect(w.url, flowfabric.ConnectConfig{HTTP: w.http})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		a, other := w.asks(t, ""), w.asks(t, "")
		signal := func(s flowfabric.Signal) (api.SignalReceipt, error) { return client.Signal(t.Context(), s) }
		refused := func(code string, s flowfabric.Signal) {
			t.Helper()
			_, err := signal(s)
			if flowfabric.CodeOf(err) != code || strings.Contains(err.Error(), a.token) {
				t.Errorf("%v, want %s", err, code)
			}
		}
		token := flowfabric.TokenOf(a.token)
		refused("missing_token", flowfabric.Signal{WaitpointID: a.waitpoint, Name: "go"})
		refused("invalid_token", flowfabric.Signal{WaitpointID: a.waitpoint, Name: "go", Token: flowfabric.TokenOf("with\nnew line")})
		refused("invalid_token", flowfabric.Signal{WaitpointID: "", Name: "go", Token: token})
		refused("invalid_token", flowfabric.Signal{WaitpointID: other.waitpoint, Name: "go", Token: token})
		refused("invalid_token", flowfabric.Signal{WaitpointID: a.waitpoint, ExecutionID: flowfabric.ID(other.execution), Name: "go", Token: token})
		refused("invalid_signal", flowfabric.Signal{WaitpointID: a.waitpoint, Token: token})
		note := flowfabric.Signal{WaitpointID: a.waitpoint, ExecutionID: flowfabric.ID(a.execution), Name: "note", Token: token, IdempotencyKey: "k", Payload: flowfabric.Payload{Data: []byte{0, 255}, ContentType: "image/png"}}
		first, err := signal(note)
		if err != nil || first.Outcome != "accepted" {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := signal(note)
		if err != nil || again.Outcome != "duplicate" || !again.SameRequest || again.SignalID != first.SignalID {
			t.Errorf("%+v, %v", again, err)
		}
		last, err := signal(flowfabric.Signal{WaitpointID: a.waitpoint, Name: "go", Token: token})
		if err != nil || last.Effect != "resume_condition_satisfied" {
			t.Errorf("%+v, %v", last, err)
		}
	})
}
