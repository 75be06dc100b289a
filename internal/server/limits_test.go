package server_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
)

// twoServers are two servers on one database.
func twoServers(t *testing.T) (a, b *world) {
	t.Helper()
	address := cluster.Database(t)
	return serveStore(t, address, server.Config{}), serveStore(t, address, server.Config{})
}

// limitedKey makes a key with limits.
func (w *world) limitedKey(t *testing.T, perSecond, inFlight int) string {
	t.Helper()
	made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: "limited", Roles: []string{"read", "submit"}, Namespaces: []string{"default"}, MaxRequestsPerSecond: perSecond, MaxInFlight: inFlight,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret
}

func TestU129_the_rate_of_a_key_holds_over_all_servers(t *testing.T) {
	t.Parallel()
	a, b := twoServers(t)
	const perSecond = 40
	key := a.limitedKey(t, perSecond, 0)
	var let atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for _, w := range []*world{a, b} {
		for range 2 {
			all.Go(func() {
				for time.Since(began) < 3*time.Second || let.Load() < perSecond {
					answer := w.send(t, request{method: "GET", path: "/v1/whoami", key: key})
					switch answer.status {
					case http.StatusOK:
						let.Add(1)
					case http.StatusTooManyRequests:
						if answer.header.Get("Retry-After") == "" || answer.number(t, "retry_after_ms") <= 0 {
							t.Errorf("%v %s", answer.header, answer.body)
						}
					default:
						t.Errorf("%d %s", answer.status, answer.body)
					}
				}
			})
		}
	}
	all.Wait()
	took := time.Since(began).Seconds()
	if most := perSecond * (took + 1) * 1.1; float64(let.Load()) > most {
		t.Errorf("%d requests in %.1f s, at most %.0f", let.Load(), took, most)
	}
}

func TestU129_the_requests_under_way_of_a_key_are_counted_over_all_servers(t *testing.T) {
	t.Parallel()
	a, b := twoServers(t)
	const most = 6
	key := a.limitedKey(t, 0, most)
	var waiting sync.WaitGroup
	var let, refused atomic.Int64
	for i := range 3 * most { // which server a request comes to makes no difference
		w := a
		if i%2 == 0 {
			w = b
		}
		waiting.Go(func() {
			answer := w.send(t, request{method: "GET", path: "/v1/events?wait_ms=30000", key: key})
			switch answer.status {
			case http.StatusOK:
				let.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("%d %s", answer.status, answer.body)
			}
		})
	}
	eventually(t, "as many requests as the key may have are under way", func() bool {
		first, _ := a.server.Waiting()
		second, _ := b.server.Waiting()
		if first+second > most {
			t.Fatalf("%d requests are under way", first+second)
		}
		return first+second == most && refused.Load() == 2*most
	})
	a.server.Drain()
	b.server.Drain()
	waiting.Wait()
	if let.Load() != most {
		t.Errorf("%d requests were let in", let.Load())
	}
	eventually(t, "the places are free again, for either server", func() bool {
		return b.send(t, request{method: "GET", path: "/v1/whoami", key: key}).status == http.StatusOK
	})
}

func TestU129_the_submits_of_a_namespace_are_limited(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const perSecond = 3
		w.send(t, request{method: "PUT", path: "/v1/namespaces/default", body: `{"max_submit_per_second":` + strconv.Itoa(perSecond) + `}`}).wants(t, 200)
		items := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"job"},`, 100), ",") + `]}`
		w.post(t, "/v1/executions/bulk", items).wants(t, 200) // more than a second's worth at once is paid off
		refused := w.post(t, "/v1/executions", `{"kind":"job"}`).refuses(t, 429, "rate_limited")
		if refused.number(t, "current.limit") != perSecond || refused.number(t, "retry_after_ms") < 10_000 {
			t.Errorf("%s", refused.body)
		}
		w.get(t, "/v1/executions/count").wants(t, 200)
	})
}

func TestU129_what_is_not_limited_costs_nothing(t *testing.T) {
	t.Parallel()
	w := serveStore(t, cluster.Database(t), server.Config{})
	key := w.key(t, "default", "read", "submit")
	for range 3 {
		w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, key: key}).wants(t, 201)
	}
	if n := w.server.Limited(); n != 0 {
		t.Errorf("%d limits are kept for keys and namespaces that have none", n)
	}
}

func TestU120_what_waits_for_a_key_ends_with_it_on_every_server(t *testing.T) {
	t.Parallel()
	a, b := twoServers(t)
	made, err := a.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: "r", Roles: []string{"read", "work"}, Namespaces: []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.send(t, request{method: "POST", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`, key: made.Secret}).wants(t, 200)
	waits := []request{
		{method: "GET", path: "/v1/events?wait_ms=30000", key: made.Secret},
		{method: "POST", path: "/v1/work/claim", body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":60000}`, key: made.Secret},
	}
	answered := make(chan reply, 2*len(waits))
	streams := make(chan error, 2)
	for _, w := range []*world{a, b} {
		for _, r := range waits {
			w.sendLater(t, r, answered)
		}
		stream := w.open(t, request{method: "GET", path: "/v1/events", key: made.Secret, header: map[string]string{"Accept": "text/event-stream"}})
		go func() {
			_, err := io.Copy(io.Discard, stream.Body)
			streams <- errors.Join(err, stream.Body.Close())
		}()
		eventually(t, "the calls wait", func() bool { readers, claims := w.server.Waiting(); return readers == 2 && claims == 1 })
	}
	if err := a.Admin().APIKeys().Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	for range cap(answered) {
		(<-answered).refuses(t, 401, "api_key_revoked")
	}
	for range cap(streams) {
		if err := <-streams; err != nil {
			t.Errorf("the stream was cut: %v", err)
		}
	}
}

func TestU22_an_atomic_batch_is_all_or_none_and_tells_which_item_was_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		before := w.count(t)
		refused := w.post(t, "/v1/executions/bulk", `{"atomic":true,"items":[{"kind":"a"},{"kind":"b","lane":"no lane"},{"kind":"c"}]}`).
			refuses(t, 400, "invalid_argument")
		if refused.number(t, "index") != 1 {
			t.Errorf("%s", refused.body)
		}
		if after := w.count(t); after != before {
			t.Errorf("a refused batch wrote %d events", after-before)
		}
		done := w.post(t, "/v1/executions/bulk", `{"items":[{"kind":"a"},{"kind":"b","lane":"no lane"},{"kind":"c"}]}`).wants(t, 200)
		if done.number(t, "failed") != 1 || done.field(t, "items.0.ok") != true || done.field(t, "items.1.ok") != false || done.field(t, "items.2.ok") != true ||
			done.text(t, "items.1.error.code") != "invalid_argument" || done.number(t, "items.2.index") != 2 {
			t.Errorf("%s", done.body)
		}
	})
}
