package server_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU6_the_date_of_an_answer_is_the_time_of_the_store(t *testing.T) {
	t.Parallel()
	then := time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC)
	ctx := engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true, Clock: clock.NewManual(then)})
	client, err := embedded.Open(ctx, sqliteStore(t), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := serveClient(t, client, server.Config{Open: true})
	for _, path := range []string{"/healthz", "/v1/lanes", "/v1/executions/" + url.PathEscape("{fp:0}:0198f0a0-0000-7000-8000-000000000000"), "/nowhere"} {
		if date := w.get(t, path).header.Get("Date"); date != then.Format(http.TimeFormat) {
			t.Errorf("%s: Date %q", path, date)
		}
	}
}

func TestU17_the_tag_of_a_lane_changes_with_settings_and_counts_and_not_with_rates(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		read := func() (tag string, submitted float64) {
			lane := w.get(t, "/v1/lanes/default").wants(t, 200)
			return lane.header.Get("ETag"), lane.number(t, "rates.submitted.1m")
		}
		before, _ := read()
		eventually(t, "the rate has changed", func() bool { _, rate := read(); return rate > 0 })
		if after, _ := read(); after != before {
			t.Error("a rate changed the tag")
		}
		w.send(t, request{method: "GET", path: "/v1/lanes/default", header: map[string]string{"If-None-Match": before}}).wants(t, 304)
		w.submitted(t)
		eventually(t, "another count has another tag", func() bool { tag, _ := read(); return tag != before })
		before, _ = read()
		w.post(t, "/v1/lanes/default/pause", `{}`).wants(t, 200)
		if after, _ := read(); after == before {
			t.Error("another state has the same tag")
		}
	})
}
