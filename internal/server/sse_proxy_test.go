package server_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// buffering is a reverse proxy that passes an answer on when it has so much of it or all of it, as proxies do that buffer. obeys makes it honour
// X-Accel-Buffering, which answers of events carry.
type buffering struct {
	to    string
	size  int
	obeys bool
	via   *http.Client
}

func (p *buffering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.RequestURI(), r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	sent.Header = r.Header.Clone()
	answer, err := p.via.Do(sent)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	through := p.obeys && answer.Header.Get("X-Accel-Buffering") == "no"
	w.WriteHeader(answer.StatusCode)
	to, part := bufio.NewWriterSize(w, p.size), make([]byte, 512)
	for err == nil {
		var n int
		n, err = answer.Body.Read(part)
		_, _ = to.Write(part[:n])
		if through {
			_ = to.Flush()
			_ = http.NewResponseController(w).Flush()
		}
	}
	_ = to.Flush()
}

// behind is the same world, reached through a proxy.
func (w *world) behind(t *testing.T, obeys bool) *world {
	t.Helper()
	proxy := httptest.NewServer(&buffering{to: w.url, size: 1 << 20, obeys: obeys, via: w.http})
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return &world{Client: w.Client, server: w.server, url: proxy.URL, http: &http.Client{Transport: transport}}
}

func TestE20_E36_pushed_events_and_frames_pass_a_buffering_proxy_at_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		proxied := w.behind(t, true)
		next, _ := proxied.stream(t, "/v1/events?kind=execution.submitted", nil)
		for range 3 {
			w.submitted(t)
			if event, ok := next(); !ok || event.event != "execution.submitted" {
				t.Fatalf("%v", event)
			}
		}
		s := w.speaking(t)
		frames, _ := proxied.stream(t, s.path+"/stream", nil)
		if event, ok := frames(); !ok || event.event != "attempt_started" {
			t.Fatalf("%v", event)
		}
		for range 3 {
			s.says(t, `{"payload_text":"a"}`)
			if event, ok := frames(); !ok || event.event != "frame" {
				t.Fatalf("%v", event)
			}
		}
	})
}

func TestE20_E36_what_is_pushed_forbids_proxies_to_buffer_store_and_compress(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	s := w.speaking(t)
	for _, path := range []string{"/v1/events", s.path + "/stream", s.path + "/attempts/0/stream"} {
		_, answer := w.stream(t, path, nil)
		for name, want := range map[string]string{
			"X-Accel-Buffering": "no", "Cache-Control": "no-store", "Content-Length": "", "Content-Encoding": "",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if text := make([]byte, len("retry: 2000\n")); true {
			if _, err := io.ReadFull(answer.Body, text); err != nil || string(text) != "retry: 2000\n" {
				t.Errorf("%s begins with %q, %v", path, text, err)
			}
		}
	}
}

func TestE20_E36_a_silent_answer_has_a_comment_every_15_seconds(t *testing.T) {
	t.Parallel()
	hands := clock.NewManual(time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC))
	client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true, Clock: hands}), sqliteStore(t), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := serveClient(t, client, server.Config{Open: true})
	id := w.submitted(t)
	for _, path := range []string{"/v1/events", "/v1/executions/" + url.PathEscape(id) + "/stream"} {
		_, answer := w.stream(t, path, nil)
		comments := make(chan string)
		go func() {
			defer close(comments)
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ":") {
					comments <- lines.Text()
				}
			}
		}()
		for range 3 {
			eventually(t, "a comment", func() bool {
				hands.TurnTo(hands.Now().Add(15 * time.Second)) // again if the reader did not wait yet
				select {
				case <-comments:
					return true
				default:
					return false
				}
			})
		}
		_ = answer.Body.Close()
		for range comments { // until the goroutine has ended
		}
	}
}

// A proxy that keeps back whatever is streamed leaves long polls alone: they are whole answers.
func TestU18_readers_behind_a_proxy_that_never_streams_wait_with_long_polls(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		proxied := w.behind(t, false)
		from := proxied.get(t, "/v1/events?after=end").wants(t, 200).text(t, "next")
		waiting := proxied.waits(t, request{method: "GET", path: "/v1/events?kind=execution.submitted&wait_ms=30000&after=" + url.QueryEscape(from)})
		w.submitted(t)
		if kind := (<-waiting).wants(t, 200).text(t, "items.0.kind"); kind != "execution.submitted" {
			t.Error(kind)
		}
		id, lease := w.claimed(t)
		s := &speaking{w, "/v1/executions/" + url.PathEscape(id), lease}
		reading := proxied.waits(t, request{method: "GET", path: s.path + "/stream?wait_ms=30000&after=0-0"})
		s.says(t, `{"payload_text":"a"}`)
		saysSame(t, "frames", told(t, (<-reading).wants(t, 200)), "0-1 a")
	})
}

func TestE21_E36_last_event_id_continues_after_a_restart_of_the_server(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := address(t)
			w := serveStore(t, store, server.Config{Open: true})
			s := w.speaking(t)
			s.says(t, `{"payload_text":"a"}`)
			events, one := w.stream(t, "/v1/events?after=start&kind=execution.submitted", nil)
			seen, _ := events()
			frames, other := w.stream(t, s.path+"/stream", nil)
			_, _ = frames()
			said, _ := frames()
			_, _ = one.Body.Close(), other.Body.Close()
			w.server.Drain()
			if err := w.Client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			w = serveStore(t, store, server.Config{Open: true})
			s.w = w
			w.submitted(t)
			s.says(t, `{"payload_text":"b"}`)
			events, _ = w.stream(t, "/v1/events?after=start&kind=execution.submitted", map[string]string{"Last-Event-ID": seen.id})
			if event, ok := events(); !ok || event.event != "execution.submitted" || event.id == seen.id {
				t.Errorf("%v after %v", event, seen)
			}
			frames, _ = w.stream(t, s.path+"/stream", map[string]string{"Last-Event-ID": said.id})
			if event, ok := frames(); !ok || event.id != "0-2" || said.id != "0-1" {
				t.Errorf("%v after %v", event, said)
			}
		})
	}
}

func TestE32_a_restored_copy_refuses_cursors_of_the_log_that_it_was_copied_from_and_says_why(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.submitted(t)
	cursor := w.get(t, "/v1/events?after=start").wants(t, 200).text(t, "next")
	copied := filepath.Join(t.TempDir(), "copy.db")
	file, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Admin().Backup(t.Context(), file), file.Close()); err != nil {
		t.Fatal(err)
	}
	w.get(t, "/v1/events?after="+url.QueryEscape(cursor)).wants(t, 200)

	restored := serveStore(t, "sqlite:"+copied, server.Config{Open: true})
	for _, header := range []map[string]string{nil, {"Accept": "text/event-stream"}, {"Accept": "text/event-stream", "Last-Event-ID": cursor}} {
		refused := restored.send(t, request{method: "GET", path: "/v1/events?after=" + url.QueryEscape(cursor), header: header}).refuses(t, 400, "invalid_cursor")
		if detail := refused.text(t, "detail"); !strings.Contains(detail, "another event log") || !strings.Contains(refused.text(t, "hint"), "start") {
			t.Errorf("%s", refused.body)
		}
	}
	if detail := restored.get(t, "/v1/events?after=nonsense").refuses(t, 400, "invalid_cursor").text(t, "detail"); strings.Contains(detail, "another") {
		t.Errorf("a text that is no cursor at all: %s", detail)
	}
	restored.get(t, "/v1/events?after=start").wants(t, 200)
}
