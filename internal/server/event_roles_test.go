package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// sharedKinds are the groups of kinds, in order, that a key sees in the log.
func (w *world) sharedKinds(t *testing.T, key string) (groups []string) {
	t.Helper()
	var page struct {
		Items []struct{ Kind, Namespace string }
	}
	answer := w.send(t, request{method: "GET", path: "/v1/events?after=start&limit=1000", key: key}).wants(t, 200)
	if err := json.Unmarshal(answer.body, &page); err != nil {
		t.Fatal(err)
	}
	for _, event := range page.Items {
		group, _, _ := strings.Cut(event.Kind, ".")
		groups = append(groups, group)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

func TestE35_U121_events_without_a_namespace_are_shown_to_the_roles_that_may_read_them(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		admin := w.key(t, "*", "admin")
		do := func(method, path, body string) {
			t.Helper()
			if status := w.send(t, request{method: method, path: path, body: body, key: admin}).status; status >= 300 {
				t.Fatalf("%s %s: %d", method, path, status)
			}
		}
		do("POST", "/v1/keys/rotate", keyBody("k", "1", 1000))
		do("PUT", "/v1/lanes/default", `{"max_concurrent":7}`)
		do("PUT", "/v1/quotas/mail", `{"concurrency_limit":7}`)
		joins := request{method: "POST", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`, key: w.key(t, "*", "work")}
		if status := w.send(t, joins).status; status >= 300 {
			t.Fatalf("the worker joins: %d", status)
		}
		submit := w.key(t, "default", "submit")
		w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"k"}`, key: submit}).wants(t, 201)
		for key, want := range map[string]struct {
			key  string
			sees string
		}{
			"admin everywhere":            {admin, "execution key lane quota worker"},
			"operate everywhere":          {w.key(t, "*", "operate"), "execution lane quota worker"},
			"read everywhere":             {w.key(t, "*", "read"), "execution"},
			"read and submit everywhere":  {w.key(t, "*", "read", "submit", "work"), "execution"},
			"admin of a namespace":        {w.key(t, "default", "admin"), "execution lane quota"},
			"operate of a namespace":      {w.key(t, "default", "operate"), "execution lane quota"},
			"read of a namespace":         {w.key(t, "default", "read"), "execution"},
			"operate of a foreign tenant": {w.key(t, "other", "operate"), "lane quota"}, // the lane was changed for all
		} {
			if got := strings.Join(w.sharedKinds(t, want.key), " "); got != want.sees {
				t.Errorf("%s sees %q, want %q", key, got, want.sees)
			}
		}
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		w := serveStore(t, sqliteStore(t), server.Config{Open: true})
		w.send(t, request{method: "PUT", path: "/v1/lanes/default", body: `{"max_concurrent":7}`}).wants(t, 200)
		if !slices.Contains(w.sharedKinds(t, ""), "lane") {
			t.Error("open mode has every role")
		}
	})
}
