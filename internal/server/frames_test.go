package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// speaking is an execution that a worker runs, which can say something.
type speaking struct {
	w           *world
	path, lease string
}

func (w *world) speaking(t *testing.T) *speaking {
	t.Helper()
	w.submitted(t)
	id, lease := w.claimed(t)
	return &speaking{w, "/v1/executions/" + url.PathEscape(id), lease}
}

// says appends frames, given as JSON.
func (s *speaking) says(t *testing.T, frames string) reply {
	t.Helper()
	return s.w.post(t, s.path+"/frames", `{"lease":`+s.lease+`,"frames":[`+frames+`]}`).wants(t, 200)
}

// ends completes the attempt.
func (s *speaking) ends(t *testing.T) {
	t.Helper()
	s.w.post(t, s.path+"/complete", `{"lease":`+s.lease+`}`).wants(t, 200)
}

// fails ends the attempt so that it is tried again at once, and takes the next one.
func (s *speaking) fails(t *testing.T) {
	t.Helper()
	s.w.post(t, s.path+"/fail", `{"lease":`+s.lease+`,"message":"x","retry_after_ms":0}`).wants(t, 200)
	eventually(t, "the next attempt", func() bool {
		got := s.w.claims(t, `"lanes":["default"]`)
		if tasks(t, got) == 0 {
			return false
		}
		lease, err := json.Marshal(got.field(t, "tasks.0.lease"))
		if err != nil {
			t.Fatal(err)
		}
		s.lease = string(lease)
		return true
	})
}

// told is what items of a page say: the id and the type or the text of each.
func told(t *testing.T, r reply) []string {
	t.Helper()
	var page struct{ Items []frameShown }
	if err := json.Unmarshal(r.body, &page); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	all := []string{}
	for _, f := range page.Items {
		all = append(all, f.brief())
	}
	return all
}

// frameShown are fields of a frame.
type frameShown struct {
	ID, Type, Mode string
	Attempt        int
	Text           string `json:"payload_text"`
}

func (f *frameShown) brief() string {
	if f.Type == "data" || f.Type == "stderr" {
		return f.ID + " " + f.Text
	}
	return strings.TrimSpace(f.ID + " " + f.Type)
}

func saysSame(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestU73_E1_frames_are_appended_all_of_them_or_none(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		said := s.says(t, `{"payload_text":"a"},{"type":"stderr","payload_text":"b","correlation_id":"c"},{"mode":"summary","payload":{"n":1}}`)
		for field, want := range map[string]any{"first_id": "0-1", "last_id": "0-3", "frame_count": 3.0, "summary_version": 1.0} {
			if got := said.field(t, field); got != want {
				t.Errorf("%s is %v in %s", field, got, said.body)
			}
		}
		for _, bad := range []struct{ frames, code, field string }{
			{``, "invalid_frame", "/frames"},
			{`{"payload_text":"a"},{"type":"A"}`, "invalid_frame", "/frames/1/type"},
			{`{"mode":"often"}`, "invalid_frame", "/frames/0/mode"},
			{`{"type":"gap"}`, "reserved_name", "/frames/0/type"},
			{`{"payload_text":"` + strings.Repeat("x", 65_537) + `"}`, "frame_too_large", "/frames/0/payload"},
			{`{"mode":"summary","payload":1}`, "invalid_patch", "/frames/0/payload"},
			{strings.Repeat(`{},`, 256) + `{}`, "batch_too_large", "/frames"},
		} {
			refused := w.post(t, s.path+"/frames", `{"lease":`+s.lease+`,"frames":[`+bad.frames+`]}`)
			if got := refused.text(t, "code"); got != bad.code || !strings.HasPrefix(refused.text(t, "field"), bad.field) {
				t.Errorf("%.40s: %s at %s, want %s at %s", bad.frames, got, refused.text(t, "field"), bad.code, bad.field)
			}
		}
		w.post(t, s.path+"/frames", `{"frames":[{}]}`).refuses(t, 400, "fence_required")
		w.post(t, s.path+"/frames", `{"lease":`+s.lease+`}`).refuses(t, 400, "missing_field")
		saysSame(t, "read", told(t, w.get(t, s.path+"/attempts/0/stream")), "0-1 a", "0-2 b", "0-3 ")
	})
}

func TestU73_a_raw_body_is_one_frame_byte_for_byte(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		var lease struct{ Fence string }
		if err := json.Unmarshal([]byte(s.lease), &lease); err != nil {
			t.Fatal(err)
		}
		w.send(t, request{
			method: "POST", path: s.path + "/frames?type=log&mode=best_effort&client_seq=1", body: "\x00\xff",
			header: map[string]string{"Content-Type": "image/x", "FlowFabric-Lease": lease.Fence},
		}).wants(t, 200)
		page := w.get(t, s.path+"/attempts/latest/stream").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.type": "log", "items.0.mode": "best_effort", "items.0.payload_bytes": "AP8=", "items.0.payload_content_type": "image/x", "items.0.payload_size": 2.0,
		} {
			if got := page.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
	})
}

func TestU73_E3_a_repeat_under_its_number_appends_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		call := func(seq int, text string) reply {
			return w.post(t, s.path+"/frames", fmt.Sprintf(`{"lease":%s,"client_seq":%d,"frames":[{"payload_text":%q}]}`, s.lease, seq, text))
		}
		first := call(4, "a").wants(t, 200)
		if again := call(4, "other").wants(t, 200); string(again.body) != string(first.body) {
			t.Errorf("%s after %s", again.body, first.body)
		}
		call(3, "b").refuses(t, 409, "stale_append")
		call(5, "c").wants(t, 200)
		saysSame(t, "read", told(t, w.get(t, s.path+"/attempts/0/stream")), "0-1 a", "0-2 c")
	})
}

func TestU77_frames_of_a_batch_are_appended_in_their_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		one, two := w.speaking(t), w.speaking(t)
		item := func(s *speaking, more string) string {
			id, _ := url.PathUnescape(strings.TrimPrefix(s.path, "/v1/executions/"))
			return fmt.Sprintf(`{"execution_id":%q,"lease":%s,%s}`, id, s.lease, more)
		}
		said := w.post(t, "/v1/work/batch", `{"items":[`+strings.Join([]string{
			item(one, `"op":"frames","frames":[{"payload_text":"1"}],"client_seq":1`), item(two, `"op":"frames","frames":[{"payload_text":"x"},{"type":"no!"}]`),
			item(one, `"op":"frames","frames":[{"payload_text":"2"}],"client_seq":2`), item(two, `"op":"frames","frames":[{"payload_text":"y"}]`),
			item(one, `"op":"complete"`), item(one, `"op":"frames","frames":[{"payload_text":"late"}]`),
		}, ",")+`]}`).wants(t, 200)
		for field, want := range map[string]any{
			"items.0.frames.last_id": "0-1", "items.1.error.code": "invalid_frame", "items.1.error.field": "/frames/1/type", "items.2.frames.last_id": "0-2",
			"items.3.frames.last_id": "0-1", "items.4.ok": true, "items.5.ok": false, "failed": 2.0,
		} {
			if got := said.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, said.body)
			}
		}
		saysSame(t, "one", told(t, w.get(t, one.path+"/attempts/0/stream")), "0-1 1", "0-2 2")
		saysSame(t, "two", told(t, w.get(t, two.path+"/attempts/0/stream")), "0-1 y")
	})
}

func TestU107_E14_E15_E16_a_stream_is_read_by_pages_from_any_place(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		s.says(t, `{"payload_text":"a"},{"payload_text":"b","type":"stderr"},{"payload_text":"c","mode":"best_effort"},{"payload_text":"d"}`)
		for query, want := range map[string][]string{
			"":                              {"0-1 a", "0-2 b", "0-3 c", "0-4 d"},
			"?from=0-2&to=0-3":              {"0-2 b", "0-3 c"},
			"?from=2":                       {"0-2 b", "0-3 c", "0-4 d"},
			"?after=0-2&limit=1":            {"0-3 c"},
			"?after=start&types=stderr":     {"0-2 b"},
			"?types=data&modes=best_effort": {"0-3 c"},
			"?modes=durable,summary":        {"0-1 a", "0-2 b", "0-4 d"},
			"?after=end":                    {},
			"?limit=0":                      {},
			"?from=1&last_event_id=0-3":     {"0-4 d"},
		} {
			saysSame(t, query, told(t, w.get(t, s.path+"/attempts/0/stream"+query).wants(t, 200)), want...)
		}
		for query, want := range map[string]string{"": "start", "&from=3": "0-2", "&after=0-3": "0-3", "&from=end&types=none": "0-4"} {
			if page := w.get(t, s.path+"/attempts/0/stream?limit=0"+query).wants(t, 200); page.text(t, "next") != want {
				t.Errorf("an empty page of %s: %s", query, page.body)
			}
		}
		if page := w.get(t, s.path+"/stream?limit=0").wants(t, 200); page.text(t, "next") != "start" {
			t.Errorf("%s", page.body)
		}
		page := w.get(t, s.path+"/attempts/0/stream?limit=3").wants(t, 200)
		if page.text(t, "next") != "0-3" || page.field(t, "at_end") != false {
			t.Errorf("%s", page.body)
		}
		s.ends(t)
		page = w.get(t, s.path+"/attempts/0/stream?after="+page.text(t, "next")).wants(t, 200)
		if page.text(t, "next") != "0-4-end" || page.field(t, "at_end") != true || page.text(t, "closed.reason") != "attempt_success" || page.text(t, "closed.at") == "" {
			t.Errorf("%s", page.body)
		}
		for query, code := range map[string]string{
			"?after=1-x": "invalid_cursor", "?after=7-1": "invalid_cursor", "?from=0-1&after=0-1": "invalid_argument", "?modes=loud": "invalid_argument",
			"?limit=-1": "invalid_argument", "?follow=all": "unknown_field",
		} {
			w.get(t, s.path+"/attempts/0/stream"+query).refuses(t, 400, code)
		}
		w.get(t, s.path+"/attempts/1/stream").refuses(t, 404, "attempt_not_found")
		w.get(t, s.path+"/attempts/x/stream").refuses(t, 400, "invalid_argument")
		w.get(t, s.path+"/stream?follow=some").refuses(t, 400, "invalid_argument")
	})
}

func TestU13_E3_frames_without_client_seq_are_stored_once_under_an_idempotency_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		send := func(key, frames string) reply {
			return w.send(t, request{
				method: "POST", path: s.path + "/frames", body: `{"lease":` + s.lease + `,"frames":[` + frames + `]}`,
				header: map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"},
			})
		}
		first := send("k-1", `{"payload_text":"a"}`).wants(t, 200)
		send("k-2", `{"payload_text":"b"}`).wants(t, 200)
		again := send("k-1", `{"payload_text":"a"}`).wants(t, 200)
		if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s after %s, %v", again.body, first.body, again.header)
		}
		send("k-1", `{"payload_text":"c"}`).refuses(t, 409, "idempotency_conflict")
		saysSame(t, "stored once", told(t, w.get(t, s.path+"/attempts/0/stream").wants(t, 200)), "0-1 a", "0-2 b")
		s.ends(t)
		if late := send("k-2", `{"payload_text":"b"}`).wants(t, 200); late.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after the end: %v", late.header)
		}
		send("k-3", `{"payload_text":"e"}`).refuses(t, 409, "execution_not_active")
	})
}

func TestU107_E17_E18_a_waiting_reader_gets_what_is_said_next_and_follows_to_the_end(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		began := w.get(t, s.path+"/stream").wants(t, 200)
		saysSame(t, "start", told(t, began), "0-0 attempt_started")
		waiting := w.waits(t, request{method: "GET", path: s.path + "/stream?wait_ms=30000&after=" + began.text(t, "next")})
		one := w.waits(t, request{method: "GET", path: s.path + "/attempts/0/stream", header: map[string]string{"Prefer": "wait=30"}})
		s.says(t, `{"payload_text":"a"}`)
		came := (<-waiting).wants(t, 200)
		saysSame(t, "followed", told(t, came), "0-1 a")
		alone := (<-one).wants(t, 200)
		if saysSame(t, "read", told(t, alone), "0-1 a"); alone.header.Get("Preference-Applied") != "wait=30" {
			t.Errorf("%v", alone.header)
		}
		waiting = w.waits(t, request{method: "GET", path: s.path + "/stream?wait_ms=30000&after=" + came.text(t, "next")})
		one = w.waits(t, request{method: "GET", path: s.path + "/attempts/0/stream?wait_ms=30000&after=0-1"})
		s.fails(t)
		if closed := (<-one).wants(t, 200); closed.text(t, "closed.reason") != "attempt_failure" {
			t.Errorf("%s", closed.body)
		}
		(<-waiting).wants(t, 200)
		s.says(t, `{"payload_text":"b"}`)
		s.ends(t)
		saysSame(t, "latest", told(t, w.get(t, s.path+"/stream?wait_ms=30000").wants(t, 200)), "1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed")
		saysSame(t, "resumed after its last frame", told(t, w.get(t, s.path+"/stream?after=0-1").wants(t, 200)),
			"0-1-end attempt_closed", "1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed")
		saysSame(t, "resumed", told(t, w.get(t, s.path+"/stream?after=0-0").wants(t, 200)), "1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed")
		all := w.get(t, s.path+"/stream?follow=all&after=0-0").wants(t, 200)
		saysSame(t, "all", told(t, all), "0-1 a", "0-1-end attempt_closed", "1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed")
		for field, want := range map[string]any{
			"items.1.reason": "attempt_failure", "items.2.supersedes": 0.0, "items.2.attempt_type": "retry", "items.5.outcome": "success", "items.5.attempt": 1.0, "next": "closed", "at_end": true,
		} {
			if got := all.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		saysSame(t, "after the end", told(t, w.get(t, s.path+"/stream?after=closed&wait_ms=30000").wants(t, 200)))
	})
}

func TestU107_E17_a_reader_of_the_latest_attempt_waits_for_the_end_of_that_attempt(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		path := s.path + "/attempts/latest/stream?wait_ms=30000"
		silent := w.waits(t, request{method: "GET", path: path})
		placed := w.waits(t, request{method: "GET", path: path + "&after=0-0&types=none"})
		w.post(t, s.path+"/revoke", `{}`).wants(t, 200)
		w.post(t, s.path+"/reclaim", `{"worker_id":"v","worker_instance_id":"v-1"}`).wants(t, 200)
		for _, answered := range []<-chan reply{silent, placed} {
			if page := (<-answered).wants(t, 200); page.text(t, "closed.reason") != "reclaimed" || page.text(t, "next") != "0-0-end" {
				t.Errorf("%s", page.body)
			}
		}
	})
}

// followed reads pushed frames until the stream ends.
func followed(t *testing.T, next func() (pushed, bool)) (all []string) {
	t.Helper()
	for {
		item, ok := next()
		if !ok {
			return all
		}
		var f frameShown
		if err := json.Unmarshal([]byte(item.data), &f); err != nil || f.ID != item.id || (item.event == "frame") != (f.Mode != "") {
			t.Errorf("%v %v", err, item)
		}
		all = append(all, f.brief())
	}
}

func TestE20_E21_streams_are_pushed_and_resumed_by_id_and_end(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		s.says(t, `{"payload_text":"a"}`)
		follow, _ := w.stream(t, s.path+"/stream", nil)
		one, _ := w.stream(t, s.path+"/attempts/0/stream?from=1", nil)
		bounded, _ := w.stream(t, s.path+"/attempts/latest/stream?to=2", nil)
		s.says(t, `{"payload_text":"line 1\nline 2"}`)
		s.fails(t)
		s.says(t, `{"payload_text":"b"}`)
		s.ends(t)
		saysSame(t, "follow", followed(t, follow), "0-0 attempt_started", "0-1 a", "0-2 line 1\nline 2", "0-2-end attempt_closed", "1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed")
		saysSame(t, "one", followed(t, one), "0-1 a", "0-2 line 1\nline 2", "0-2-end attempt_closed")
		saysSame(t, "bounded", followed(t, bounded), "0-1 a", "0-2 line 1\nline 2")
		for _, nothing := range []string{"to=0", "to=start", "to=0-0", "to=1&after=0-1"} {
			none := w.send(t, request{method: "GET", path: s.path + "/attempts/0/stream?" + nothing, header: map[string]string{"Accept": "text/event-stream"}})
			if none.status != http.StatusNoContent {
				t.Errorf("%s: %d %s", nothing, none.status, none.body)
			}
		}
		for id, want := range map[string][]string{
			"1-0": {"1-1 b", "1-1-end attempt_closed", "closed closed"}, "0-1": {"1-0 attempt_started", "1-1 b", "1-1-end attempt_closed", "closed closed"}, "1-1-end": {"closed closed"},
		} {
			again, _ := w.stream(t, s.path+"/stream?after=start", map[string]string{"Last-Event-ID": id})
			saysSame(t, "after "+id, followed(t, again), want...)
			again, _ = w.stream(t, s.path+"/stream?last_event_id="+id, nil)
			saysSame(t, "query "+id, followed(t, again), want...)
		}
		for path, last := range map[string]string{"/stream": "closed", "/attempts/0/stream": "0-2-end", "/attempts/1/stream": "1-1-end"} {
			ended := w.send(t, request{method: "GET", path: s.path + path, header: map[string]string{"Accept": "text/event-stream", "Last-Event-ID": last}})
			if ended.status != http.StatusNoContent {
				t.Errorf("%s after %s: %d %s", path, last, ended.status, ended.body)
			}
		}
		push := map[string]string{"Accept": "text/event-stream"}
		w.send(t, request{method: "GET", path: s.path + "/stream?after=x", header: push}).refuses(t, 400, "invalid_cursor")
		w.send(t, request{method: "GET", path: s.path + "/attempts/5/stream", header: push}).refuses(t, 404, "attempt_not_found")
		w.send(t, request{method: "GET", path: s.path + "/attempts/0/stream?from=1&after=1", header: push}).refuses(t, 400, "invalid_argument")
	})
}

func TestE22_a_late_reader_is_told_of_the_gap_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"job","policy":{"stream_policy":{"max_frames":2}}}`).wants(t, 201)
		id, lease := w.claimed(t)
		s := &speaking{w, "/v1/executions/" + url.PathEscape(id), lease}
		for range 4 {
			s.says(t, `{"payload_text":"x"}`)
		}
		page := w.get(t, s.path+"/attempts/0/stream").wants(t, 200)
		if saysSame(t, "read", told(t, page), "0-3 x", "0-4 x"); page.number(t, "truncated_before") != 3 {
			t.Errorf("%s", page.body)
		}
		s.ends(t)
		next, _ := w.stream(t, s.path+"/attempts/0/stream", nil)
		var all []string
		for {
			item, ok := next()
			if !ok {
				break
			}
			all = append(all, item.id+" "+item.event)
		}
		saysSame(t, "pushed", all, " gap", "0-3 frame", "0-4 frame", "0-4-end attempt_closed")
	})
}

func TestU107_E11_a_summary_is_read_and_waited_for(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		w.get(t, s.path+"/summary").refuses(t, 404, "summary_not_found")
		waiting := w.waits(t, request{method: "GET", path: s.path + "/summary?wait_ms=30000"})
		s.says(t, `{"mode":"summary","payload":{"n":1.50,"text":"x"}},{"mode":"summary","payload":{"text":null}}`)
		first := (<-waiting).wants(t, 200)
		if !strings.Contains(string(first.body), `"document":{"n":1.50},"version":2,`) || first.header.Get("ETag") == "" {
			t.Errorf("%s %v", first.body, first.header)
		}
		waiting = w.waits(t, request{method: "GET", path: s.path + "/summary?attempt=0&wait_version=2&wait_ms=30000"})
		s.says(t, `{"mode":"summary","payload":{"m":[null]}}`)
		if second := (<-waiting).wants(t, 200); !strings.Contains(string(second.body), `{"n":1.50,"m":[null]},"version":3,`) {
			t.Errorf("%s", second.body)
		}
		same := w.send(t, request{method: "GET", path: s.path + "/summary", header: map[string]string{"If-None-Match": w.get(t, s.path+"/summary").header.Get("ETag")}})
		if same.status != http.StatusNotModified {
			t.Errorf("%d", same.status)
		}
		w.get(t, s.path+"/summary?attempt=3").refuses(t, 404, "attempt_not_found")
		w.get(t, s.path+"/summary?attempt=x").refuses(t, 400, "invalid_argument")
	})
}

func TestU30_U41_attempts_show_what_there_is_of_their_streams(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		s.says(t, `{"payload_text":"abc"},{"mode":"summary","payload":{}}`)
		s.fails(t)
		attempts := w.get(t, s.path+"/attempts").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.stream.frame_count": 2.0, "items.0.stream.bytes": 5.0, "items.0.stream.closed_reason": "attempt_failure", "items.1.stream.frame_count": 0.0,
		} {
			if got := attempts.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, attempts.body)
			}
		}
		if one := w.get(t, s.path+"/attempts/0").wants(t, 200); one.text(t, "stream.closed_at") == "" {
			t.Errorf("%s", one.body)
		}
	})
}

func TestU19_pushed_streams_end_when_the_server_drains(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	s := w.speaking(t)
	next, _ := w.stream(t, s.path+"/stream", nil)
	if item, ok := next(); !ok || item.event != "attempt_started" {
		t.Errorf("%v", item)
	}
	waiting := w.waits(t, request{method: "GET", path: s.path + "/attempts/0/stream?wait_ms=30000"})
	w.server.Drain()
	if item, ok := next(); ok {
		t.Errorf("%v came after the end", item)
	}
	saysSame(t, "the present state", told(t, (<-waiting).wants(t, 200)))
}

func TestU36_an_export_has_what_the_attempts_said(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		s := w.speaking(t)
		s.says(t, `{"payload_text":"a"}`)
		s.fails(t)
		s.says(t, `{"payload_text":"b"}`)
		line, _, _ := strings.Cut(string(w.get(t, "/v1/executions/export?include=frames&encoding=bytes").wants(t, 200).body), "\n")
		var shown struct {
			Frames []struct {
				ID   string
				Data string `json:"payload_bytes"`
			}
			Next string `json:"frames_next"`
		}
		if err := json.Unmarshal([]byte(line), &shown); err != nil || fmt.Sprint(shown) != "{[{0-1 YQ==} {1-1 Yg==}] }" {
			t.Errorf("%v %v in %s", err, shown, line)
		}
	})
}

func TestU36_the_frames_of_a_line_are_bounded_and_read_on_where_it_says(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	s := w.speaking(t)
	one := `{"payload_text":"` + strings.Repeat("x", 60_000) + `"}`
	call := strings.Repeat(one+",", 16) + one
	for range 20 {
		s.says(t, call)
	}
	line, _, _ := strings.Cut(string(w.get(t, "/v1/executions/export?include=frames").wants(t, 200).body), "\n")
	var shown struct {
		Frames []frameShown
		Next   string `json:"frames_next"`
	}
	if err := json.Unmarshal([]byte(line), &shown); err != nil || len(line) > 24<<20 || shown.Next == "" || shown.Frames[len(shown.Frames)-1].ID != shown.Next {
		t.Fatalf("%v: %d bytes, next %s", err, len(line), shown.Next)
	}
	n, next := len(shown.Frames), shown.Next
	for {
		page := w.get(t, s.path+"/attempts/0/stream?after="+next).wants(t, 200)
		n, next = n+len(told(t, page)), page.text(t, "next")
		if page.field(t, "at_end") == true {
			break
		}
	}
	if n != 20*17 {
		t.Errorf("%d frames", n)
	}
}
