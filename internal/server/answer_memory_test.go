package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// slowly sends a request and takes only the status of the answer: the rest waits in the server until the connection is closed.
func (w *world) slowly(t *testing.T, path, key string, headers ...string) (status string, conn net.Conn) {
	t.Helper()
	conn = w.dial(t)
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", path, w.host(), key, strings.Join(headers, "")); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, text); err != nil {
		t.Fatal(err)
	}
	return string(text), conn
}

// patientWorld serves a world again to clients that take little at a time, for which the server waits.
func (w *world) patientWorld(t *testing.T) *world {
	t.Helper()
	patient, _ := w.unheard(t, false)
	w.server.SetStallLimit(patience)
	return patient
}

// Answers that their clients take slowly stay in memory: a few clients must not take all there is, nor what other keys need. A command that was
// carried out is answered all the same.
func TestU20_U21_answers_that_are_not_taken_share_a_bound_of_memory(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{BodyMemory: 4 << 20}, func(t *testing.T, w *world) {
		w = w.patientWorld(t)
		const fit = 2 // of a share of 2.5 MiB
		large := fmt.Sprintf(`{"kind":"job","input":%q}`, strings.Repeat("x", 900<<10))
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: w.key(t, "default", "submit"), body: large}).wants(t, 201).text(t, "execution_id")
		step := fmt.Sprintf(`{"result":%q}`, strings.Repeat("x", 900<<10))
		greedy, other, third, worker := w.key(t, "default", "read"), w.key(t, "default", "read"), w.key(t, "default", "read"), w.key(t, "default", "work")
		claim := request{method: "POST", path: "/v1/work/claim", key: worker, body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`}
		lease := w.send(t, claim).wants(t, 200).text(t, "tasks.0.lease.fence")
		at := "/v1/executions/" + id
		w.send(t, request{method: "PUT", path: at + "/steps/large", key: worker, body: step, header: map[string]string{"FlowFabric-Lease": lease}}).wants(t, 201)
		for name, path := range map[string]string{"a payload": at + "/input", "JSON": at + "/steps?inline=true"} {
			read := func(key string) reply { return w.send(t, request{method: "GET", path: path, key: key}) }
			var held []net.Conn
			hold := func(key string) {
				for range fit {
					status, conn := w.slowly(t, path, key)
					if status != "HTTP/1.1 200" {
						t.Fatalf("%s: %s", name, status)
					}
					held = append(held, conn)
				}
			}
			hold(greedy)
			refused := read(greedy).refuses(t, 429, "rate_limited")
			if refused.header.Get("Retry-After") != "1" || refused.header.Get("ETag") != "" || refused.number(t, "current.limit") != 5<<19 || refused.text(t, "hint") == "" {
				t.Errorf("%s: %v %s", name, refused.header, refused.body)
			}
			w.send(t, request{method: "GET", path: "/v1/lanes", key: greedy}).wants(t, 200)
			read(other).wants(t, 200)
			hold(other)
			read(third).refuses(t, 503, "overloaded")
			w.send(t, request{method: "POST", path: at + "/release", key: worker, body: `{}`, header: map[string]string{"FlowFabric-Lease": lease}}).wants(t, 200)
			task := w.send(t, claim).wants(t, 200) // with its input
			if lease = task.text(t, "tasks.0.lease.fence"); len(task.body) < 900<<10 {
				t.Errorf("%s: the task has %d bytes", name, len(task.body))
			}
			for _, conn := range held {
				_ = conn.Close()
			}
			eventually(t, "what was held is given back", func() bool { return read(greedy).status == http.StatusOK && read(third).status == http.StatusOK })
		}
	})
}

// What is larger than the memory for answers can be read while nothing else is.
func TestU20_U21_the_only_answer_fits_whatever_its_size(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address(t), embedded.Config{})
			if err != nil {
				t.Fatal(err)
			}
			id, err := client.Submit(t.Context(), api.Submission{Kind: "job", Input: api.Text(strings.Repeat("x", 900<<10))})
			if err != nil {
				t.Fatal(err)
			}
			w := serveClient(t, client, server.Config{BodyMemory: 256 << 10})
			w.send(t, request{method: "GET", path: "/v1/executions/" + string(id.ID) + "/input", key: w.key(t, "default", "read")}).wants(t, 200)
		})
	}
}

// A line of an export waits until the client has taken it. Where there is no memory for one the export is cut off, which its client notices.
func TestU20_U36_exports_that_are_not_read_share_the_bound_of_memory(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{BodyMemory: 4 << 20}, func(t *testing.T, w *world) {
		w = w.patientWorld(t)
		large := fmt.Sprintf(`{"kind":"job","input":%q}`, strings.Repeat("x", 900<<10))
		w.send(t, request{method: "POST", path: "/v1/executions", key: w.key(t, "default", "submit"), body: large}).wants(t, 201)
		const path = "/v1/executions/export?include=input"
		greedy := w.key(t, "default", "read")
		var held []net.Conn
		for range 2 {
			_, conn := w.slowly(t, path, greedy)
			held = append(held, conn)
		}
		whole := func() bool {
			conn := w.dial(t)
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, w.host(), greedy); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			_, err = io.Copy(io.Discard, answer.Body)
			return err == nil
		}
		eventually(t, "an export without memory is cut off", func() bool { return !whole() }) // the others have begun, and may still read the store
		for _, conn := range held {
			_ = conn.Close()
		}
		eventually(t, "what was held is given back", whole)
	})
}

// The events that a stream has read wait until its client takes them. They count as other answers do.
func TestU20_U19_streams_of_events_that_are_not_read_share_the_bound_of_memory(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{BodyMemory: 4 << 20}, func(t *testing.T, w *world) {
		w = w.patientWorld(t)
		const accept = "Accept: text/event-stream\r\n"
		tags := map[string]string{}
		for i := range 60 {
			tags[fmt.Sprintf("key%d", i)] = strings.Repeat("x", 200)
		}
		tagged, err := json.Marshal(tags)
		if err != nil {
			t.Fatal(err)
		}
		submitter := w.key(t, "default", "submit")
		for range 60 { // nearly 1 MiB of events
			w.send(t, request{method: "POST", path: "/v1/executions", key: submitter, body: fmt.Sprintf(`{"kind":"job","tags":%s}`, tagged)}).wants(t, 201)
		}
		const path = "/v1/events?after=start&limit=1000&kind=execution.submitted"
		greedy, other := w.key(t, "default", "read"), w.key(t, "default", "read")
		var held []net.Conn
		hold := func() bool {
			status, conn := w.slowly(t, path, greedy, accept)
			held = append(held, conn)
			return status == "HTTP/1.1 200"
		}
		for range 2 {
			if !hold() {
				t.Fatal("two streams do not fit")
			}
		}
		stream := request{method: "GET", path: path, key: greedy, header: map[string]string{"Accept": "text/event-stream"}}
		w.send(t, stream).refuses(t, 429, "rate_limited")
		w.send(t, request{method: "GET", path: "/v1/events?after=start&limit=5", key: greedy}).wants(t, 200)
		status, conn := w.slowly(t, path, other, accept)
		if held = append(held, conn); status != "HTTP/1.1 200" {
			t.Errorf("the stream of another key: %s", status)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		eventually(t, "what was held is given back", func() bool {
			fits := hold()
			_ = held[len(held)-1].Close()
			return fits
		})
	})
}
