package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// stated are requests of operations whose repeats are not recognised by a key, and where what they stored is read. holds is a text that is there
// once it is stored, and not before; "": any change is.
var stated = map[string]func(t *testing.T, w *world) (r repeatable, read, holds string){
	wire.RegisterWorker.ID: func(*testing.T, *world) (repeatable, string, string) {
		return repeatable{path: "/v1/workers", body: `{"worker_id":"kept","worker_instance_id":"w-7"}`}, "/v1/workers/w-7", "kept"
	},
	wire.HeartbeatWorker.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		return onWorker("/v1/workers/w-1/heartbeat", `{}`, "")(t, w), "/v1/workers/w-1", seen
	},
	wire.RenewLease.ID:     leased(`/renew`, `"ttl_ms":3600000`, "", ""),
	wire.ReportProgress.ID: leased(`/progress`, `"percent":42`, "", `"percent":42`),
	wire.AppendFrames.ID:   leased(`/frames`, `"frames":[{"payload_text":"kept"}]`, "/stream", `"kept"`),
	wire.PutStep.ID:        leased(`/steps/kept`, `"result":1`, "/steps", `"kept"`),
	wire.SpawnChildren.ID:  leased(`/spawn`, `"children":[{"name":"kept","kind":"job"}]`, "/children", `"kept"`),
	wire.SetJoin.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		r := onFlow(`/members/a/join`, `{"policy":"any_of"}`, "")(t, w)
		return r, r.path, "any_of"
	},
	wire.PatchFlowTags.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		r := onFlow(`/tags`, `{"a":"kept"}`, "")(t, w)
		return r, strings.TrimSuffix(r.path, "/tags"), "kept"
	},
	wire.PutFlowTags.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		r := onFlow(`/tags`, `{"a":"kept"}`, "")(t, w)
		return r, strings.TrimSuffix(r.path, "/tags"), "kept"
	},
	wire.SendWork.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		w.submitted(t)
		id, lease := w.claimed(t)
		return repeatable{path: "/v1/work/batch", body: `{"items":[{"op":"progress","execution_id":"` + id + `","lease":` + lease + `,"percent":42}]}`}, "/v1/executions/" + id, `"percent":42`
	},
	wire.DeliverCallback.ID: func(t *testing.T, w *world) (repeatable, string, string) {
		a := w.asks(t, "")
		return repeatable{path: "/v1/callbacks/" + a.waitpoint + "/" + url.PathEscape(a.token), body: `{"n":"kept"}`}, "/v1/executions/" + url.PathEscape(a.execution) + "/signals?inline=true", "kept"
	},
}

// seen is what is held of a worker that is seen again: it was seen before too, perhaps at the same moment.
const seen = `"state":"live"`

// leased makes a command under a lease that is not ended by it.
func leased(path, fields, read, holds string) func(*testing.T, *world) (repeatable, string, string) {
	return func(t *testing.T, w *world) (repeatable, string, string) {
		w.submitted(t)
		id, lease := w.claimed(t)
		at := "/v1/executions/" + url.PathEscape(id)
		return repeatable{path: at + path, body: `{"lease":` + lease + `,` + fields + `}`}, at + read, holds
	}
}

// storesNothing are the operations after which nothing is stored that could be lost.
var storesNothing = map[string]bool{wire.Nudge.ID: true, wire.VerifyGrant.ID: true, wire.MakeBackup.ID: true, wire.DrainServer.ID: true}

// Whatever a client does with its connection, it gets a success only when what it asked for is stored, and never by an empty answer
// (I1): one that sends half of its body and closes its half or stalls, one that closes its half after the request, one that vanishes; over HTTP/2
// one that stalls or resets its stream in the middle of its body, or resets it behind the body or with its answer on the way.
func TestI1_every_route_tells_of_a_success_only_when_it_is_stored(t *testing.T) {
	t.Parallel()
	for _, o := range wire.Operations() {
		if o.Method == http.MethodGet || o.Reserved || storesNothing[o.ID] {
			continue
		}
		makes, repeats := repeatables[o.ID]
		states, known := stated[o.ID]
		if repeats == known {
			t.Errorf("%s: say what its client gets", o.ID)
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			for version, clients := range map[string]func(t *testing.T, w *world) misbehaving{"HTTP1": connections, "HTTP2": streams} {
				t.Run(version, func(t *testing.T) {
					t.Parallel()
					onEveryStore(t, func(t *testing.T, w *world) {
						if repeats {
							isTold(t, w, o, makes(t, w), nil, clients(t, w))
							return
						}
						r, read, holds := states(t, w)
						text := func() string { return string(w.get(t, read).body) }
						before := text()
						stored := func() bool { return holds == "" && text() != before || holds != "" && strings.Contains(text(), holds) }
						if stored() && holds != seen {
							t.Fatalf("%q is in %s before the request", holds, before)
						}
						isTold(t, w, o, r, stored, clients(t, w))
					})
				})
			}
		})
	}
}

// isTold sends a request by clients that misbehave, then by one that does not. stored reports whether what it asked for is there; nil: that its
// key says.
func isTold(t *testing.T, w *world, o *wire.Operation, r repeatable, stored func() bool, misbehave misbehaving) {
	t.Helper()
	before := w.count(t)
	for _, end := range []int{halfClosed, stalled} {
		if r.body == "" {
			break
		}
		if answer := misbehave(t, o, r, len(r.body)/2, end); answer != nil && answer.status < 400 {
			t.Errorf("half of the request was told as %d %s", answer.status, answer.body)
		}
		if now := w.count(t); now != before && !r.goesOn {
			t.Errorf("half of the request wrote %d events", now-before)
		}
	}
	told := misbehave(t, o, r, len(r.body), halfClosed)
	if told != nil && strings.Contains(string(told.body), `"code":"timeout"`) {
		told = nil // of an item of a batch the answer is that it is not known
	}
	if told != nil && (told.status >= 300 || len(told.body) == 0 && told.status != http.StatusNoContent) {
		t.Errorf("it was told %d %q", told.status, told.body)
	}
	if told != nil && stored != nil && !stored() {
		t.Errorf("it was told %d %s, and nothing is there", told.status, told.body)
	}
	misbehave(t, o, r, len(r.body), vanished)
	var last reply
	eventually(t, "what vanished clients have begun is over", func() bool {
		last = w.send(t, request{method: o.Method, path: r.path, body: r.body, header: map[string]string{"Idempotency-Key": "once"}})
		return last.status != http.StatusServiceUnavailable
	})
	switch {
	case last.status >= 300:
		t.Errorf("the same request again: %d %s", last.status, last.body)
	case told != nil && stored == nil && last.header.Get("Idempotency-Replayed") != "true":
		t.Errorf("it was told %d %s, and is not on record: %s", told.status, told.body, last.body)
	}
}

// What a client does after it has sent its request, or part of it.
const (
	halfClosed = iota // it closes its half and reads on; over HTTP/2 it resets the stream, and takes what has come until then
	vanished          // it resets the connection or the stream
	stalled           // it sends nothing more and waits
)

// soon makes a server give up clients that stall.
func soon(s *http.Server) { s.ReadTimeout = 50 * time.Millisecond }

// misbehaving sends some bytes of the body of a request and ends its connection or stream; nil: there was no answer.
type misbehaving func(t *testing.T, o *wire.Operation, r repeatable, sent, end int) *reply

// connections are clients that misbehave over HTTP/1.1, each with a connection of its own.
func connections(t *testing.T, w *world) misbehaving {
	t.Helper()
	slow := w.slow(t, soon)
	return func(t *testing.T, o *wire.Operation, r repeatable, sent, end int) *reply {
		t.Helper()
		if end == stalled {
			return slow.misbehave(t, o, r, sent, end)
		}
		return w.misbehave(t, o, r, sent, end)
	}
}

func (w *world) misbehave(t *testing.T, o *wire.Operation, r repeatable, sent, end int) *reply {
	t.Helper()
	conn := w.dial(t).(*net.TCPConn)
	media := ""
	if r.body != "" {
		media = "Content-Type: application/json\r\n"
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nIdempotency-Key: once\r\n%sContent-Length: %d\r\n\r\n%s", o.Method, r.path, w.host(), media, len(r.body), r.body[:sent]); err != nil {
		t.Fatal(err)
	}
	if end == vanished {
		if err := conn.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		return nil
	}
	if end == halfClosed {
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	text := ends(t, conn)
	if text == "" {
		return nil
	}
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("it was told half an answer: %v: %q", err, text)
	}
	return &reply{response.StatusCode, response.Header, body}
}
