package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// host is the name under which the server is reached.
func (w *world) host() string { return strings.TrimPrefix(w.url, "http://") }

// credentials are worlds with what a caller shows in them: nothing where nothing is asked for, nothing where a key is, and a key.
var credentials = map[string]func(t *testing.T) (w *world, key string){
	"open":          func(t *testing.T) (*world, string) { return openWorld(t), "" },
	"without a key": func(t *testing.T) (*world, string) { return keyedWorld(t, server.Config{}), "" },
	"with a key": func(t *testing.T) (*world, string) {
		w := keyedWorld(t, server.Config{})
		return w, w.key(t, "*", "read", "submit", "work", "operate", "admin")
	},
}

// A client that stops sending in the middle must not keep a connection, whatever its route and its key, and must not be told
// that something was done (U20, I1).
func TestU20_a_body_that_does_not_come_ends_its_connection_on_every_route(t *testing.T) {
	t.Parallel()
	types := map[string]string{"json": "application/json", "form": "application/x-www-form-urlencoded", "bytes": "application/octet-stream"}
	for caller, made := range credentials {
		inner, key := made(t)
		w := inner.slow(t, func(s *http.Server) { s.ReadTimeout = 50 * time.Millisecond })
		for _, o := range wire.Operations() {
			for name, media := range types {
				if o.Method == http.MethodGet && name != "json" {
					continue
				}
				for _, length := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
					t.Run(caller+"/"+o.ID+"/"+name+"/"+strings.Fields(length)[0], func(t *testing.T) {
						t.Parallel()
						conn := w.dial(t)
						head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%s\r\n", o.Method, somePath(o, "0198f0a0-0000-7000-8000-000000000000"), w.host(), media, length)
						if key != "" {
							head += "Authorization: Bearer " + key + "\r\n"
						}
						if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
							t.Fatal(err)
						}
						if answer := ends(t, conn); o.Method != http.MethodGet && strings.HasPrefix(answer, "HTTP/1.1 2") {
							t.Errorf("it was told %q", answer)
						}
					})
				}
			}
		}
	}
}

// A client that closes its half of the connection after a request and goes on to read is given up; it must not read an answer that says
// nothing, which looks like a success.
func TestI1_U20_a_client_that_has_closed_its_half_is_told_nothing_false(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job"}`).wants(t, 201).text(t, "execution_id")
		waits := map[string]string{
			"claim":  "POST /v1/work/claim " + `{"worker_id":"w","worker_instance_id":"w-1","lanes":["empty"],"wait_ms":20000}`,
			"grants": "POST /v1/work/grants " + `{"worker_id":"w","worker_instance_id":"w-2","lanes":["empty"],"wait_ms":20000}`,
			"result": "GET /v1/executions/" + id + "/result?wait_ms=20000 ",
			"events": "GET /v1/events?after=end&wait_ms=20000 ",
		}
		for name, call := range waits {
			parts := strings.SplitN(call, " ", 3)
			conn := w.dial(t)
			if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: "+w.host()+"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				parts[0], parts[1], len(parts[2]), parts[2]); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if answer := ends(t, conn); answer != "" && strings.HasSuffix(answer, "\r\n\r\n") {
				t.Errorf("%s: it was told nothing, with a status: %q", name, answer)
			}
		}
	})
}

func TestI1_what_a_client_that_closes_its_half_is_told_is_stored(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for i := range 40 {
			conn := w.dial(t)
			body := fmt.Sprintf(`{"kind":"job","idempotency_key":"half-%d"}`, i)
			if _, err := fmt.Fprintf(conn, "POST /v1/executions HTTP/1.1\r\nHost: "+w.host()+"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			switch answer := ends(t, conn); {
			case answer == "":
			case strings.HasPrefix(answer, "HTTP/1.1 201 ") && strings.Contains(answer, `"execution_id"`):
				_, rest, _ := strings.Cut(answer, `"execution_id":"`)
				id, _, _ := strings.Cut(rest, `"`)
				w.get(t, "/v1/executions/"+id).wants(t, 200)
			default:
				t.Errorf("it was told %q", answer)
			}
		}
	})
}

// Bytes that never make a line are no progress, nor are blank lines.
func TestU20_U33_lines_that_trickle_end_their_connection(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]string{"a byte": " ", "a blank line": "\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t)
			w.server.SetLineTimeout(200 * time.Millisecond)
			conn := w.dial(t)
			if _, err := io.WriteString(conn, "POST /v1/executions/bulk HTTP/1.1\r\nHost: "+w.host()+"\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			line := `{"kind":"job"}` + "\n"
			if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(line), line); err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					if _, err := fmt.Fprintf(conn, "1\r\n%s\r\n", drop); err != nil {
						return
					}
				}
			}()
			if answer := ends(t, conn); !strings.Contains(answer, `"execution_id"`) {
				t.Errorf("what came whole was not answered: %q", answer)
			}
		})
	}
}

// HTTP/2 has streams in place of connections: one of which nothing comes must not stay, whatever route it has chosen.
func TestU20_a_body_that_does_not_come_ends_its_stream_of_http2_on_every_route(t *testing.T) {
	t.Parallel()
	for caller, made := range credentials {
		w, key := made(t)
		listener := httptest.NewUnstartedServer(nil)
		listener.Config, listener.Listener = w.server.HTTPServer(), w.server.Listener(listener.Listener)
		listener.Config.ReadTimeout, listener.EnableHTTP2 = 50*time.Millisecond, true
		listener.StartTLS()
		t.Cleanup(listener.Close)
		for _, o := range wire.Operations() {
			for _, media := range []string{"application/json", "application/x-www-form-urlencoded", "application/octet-stream"} {
				if o.Method == http.MethodGet && media != "application/json" {
					continue
				}
				t.Run(caller+"/"+o.ID+"/"+media, func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					body, never := io.Pipe()
					defer never.Close()
					r, err := http.NewRequestWithContext(ctx, o.Method, listener.URL+somePath(o, "0198f0a0-0000-7000-8000-000000000000"), body)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", media)
					if key != "" {
						r.Header.Set("Authorization", "Bearer "+key)
					}
					response, err := listener.Client().Do(r)
					if err != nil {
						if ctx.Err() != nil {
							t.Fatal("the server keeps the stream")
						}
						return // it was reset
					}
					defer response.Body.Close()
					if _, err := io.ReadAll(response.Body); err != nil && ctx.Err() != nil {
						t.Fatal("the server keeps the stream")
					}
					if response.ProtoMajor != 2 || o.Method != http.MethodGet && response.StatusCode < 400 {
						t.Errorf("it was told %s by %s", response.Status, response.Proto)
					}
				})
			}
		}
	}
}

// Heads of requests that come, and those of requests that wait for their bodies, share the memory that bodies have: clients that send large ones and
// nothing more must not take all there is.
func TestU20_U21_heads_of_requests_share_a_bound_of_memory(t *testing.T) {
	t.Parallel()
	const clients = 12
	var short strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&short, "X%d:\r\n", i)
	}
	for name, sent := range map[string]string{
		"that do not end":    "GET /healthz HTTP/1.1\r\nHost: #\r\nX-Long: " + strings.Repeat("x", 40<<10),
		"whose body is late": "POST /v1/executions HTTP/1.1\r\nHost: #\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 10\r\n" + short.String() + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keyedWorld(t, server.Config{BodyMemory: 4 << 20})
			key := w.key(t, "default", "submit")
			ended := make(chan string, clients)
			var conns []net.Conn
			for range clients {
				conn := w.dial(t)
				conns = append(conns, conn)
				if _, err := io.WriteString(conn, strings.NewReplacer("#", w.host(), "KEY", key).Replace(sent)); err != nil {
					t.Fatal(err)
				}
				go func() {
					text, _ := io.ReadAll(conn)
					ended <- string(text)
				}()
			}
			refused := 0
			for range clients - 8 { // a few fit in; the server does not wait for the others
				if answer := <-ended; answer == "" || strings.Contains(answer, " 429 ") || strings.Contains(answer, " 503 ") {
					refused++
				}
			}
			if refused < clients-8 {
				t.Errorf("%d of %d are refused", refused, clients)
			}
			if name == "that do not end" && !strings.Contains(w.log.String(), "no memory for more heads") {
				t.Errorf("the log does not tell: %s", w.log)
			}
			w.get(t, "/healthz").wants(t, 200) // small heads are always read
			for _, conn := range conns {
				_ = conn.Close()
			}
			large := request{method: "GET", path: "/healthz", header: map[string]string{"X-Large": strings.Repeat("x", 30<<10)}}
			eventually(t, "what was held is given back", func() bool {
				response, err := w.http.Do(mustRequest(t, w, large))
				if err != nil {
					return false
				}
				defer response.Body.Close()
				return response.StatusCode == http.StatusOK
			})
		})
	}
}

// net/http reads what is left of a body, for as long as a body may take, before it closes a connection; a large head would be held meanwhile.
func TestU20_U21_a_refused_request_with_a_large_head_ends_its_connection_although_its_body_does_not_come(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	conn := w.dial(t)
	defer conn.Close()
	head := "POST /v1/executions HTTP/1.1\r\nHost: " + w.host() + "\r\nContent-Type: application/json\r\nContent-Length: 10\r\nX-Large: " +
		strings.Repeat("x", 20<<10) + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil { // a body may take 30 s
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the server closes the connection
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") {
		t.Errorf("answered %q, %v", answer, err)
	}
}

func mustRequest(t *testing.T, w *world, r request) *http.Request {
	t.Helper()
	sent, err := http.NewRequestWithContext(t.Context(), r.method, w.url+r.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	return sent
}
