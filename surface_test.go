package flowfabric_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// inside are words that name what only the inside of the engine knows.
var inside = regexp.MustCompile(`(?i)(^|_|\.)(sql|dsn|store|database|table|schema|partition|shard|slot|now|clock|time)(_|$)`)

// names are those of everything that a request takes, at any depth.
func names(t reflect.Type, seen map[reflect.Type]bool) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		for _, tag := range []string{"json", "query", "path", "header"} {
			if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
				all = append(all, name)
			}
		}
		all = append(all, names(f.Type, seen)...)
	}
	return all
}

func TestU3_no_operation_asks_for_sql_a_store_a_clock_or_a_partition(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, o := range wire.Operations() {
		for _, name := range names(o.Request, map[reflect.Type]bool{}) {
			asked++
			if inside.MatchString(name) {
				t.Errorf("%s asks for %s", o.ID, name)
			}
		}
	}
	if asked < 200 {
		t.Errorf("only %d fields were looked at", asked)
	}
	for _, word := range []string{"now", "partition", "partition_key", "store_url", "sql", "server_time"} {
		if !inside.MatchString(word) {
			t.Errorf("%s would pass", word)
		}
	}
}

// The clock stands still, so that no poll can be what finds the work; and a waiting call has asked before it was there.
func TestU118_a_nudge_starts_what_was_submitted_in_a_transaction(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			opened := openWorld(t, address(t), engine.Hooks{Clock: hand})
			w := opened.overHTTP(t)
			ctx := inTime(t)
			must[flowfabric.SubmitResult](t)(opened.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{Lane: "other"}}))
			page := must[api.EventPage](t)(opened.Events().Read(ctx, ops.ReadOptions{After: api.FromStart}))
			came := make(chan api.EventPage, 1)
			go func() {
				later, err := opened.Events().Read(ctx, ops.ReadOptions{After: page.Next, Wait: 30 * time.Second})
				if err != nil {
					t.Error(err)
				}
				came <- later
			}()
			submit, commit, _ := ownTx(t, opened)
			x := must[*flowfabric.Execution](t)(submit(flowfabric.Submission{Kind: "k"}))
			if err := commit(); err != nil {
				t.Fatal(err)
			}
			if err := w.Nudge(ctx, "default"); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, came); len(got.Events) != 1 || got.Events[0].ExecutionID != x.ID || got.Events[0].Kind != "execution.submitted" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestU183_a_pool_that_takes_more_than_half_of_the_connections_is_warned_of(t *testing.T) {
	t.Parallel()
	address := cluster.Database(t)
	for pool, warned := range map[int]bool{149: false, 151: true} { // the server of the tests allows 300
		book := &logBook{}
		client := must[*flowfabric.Client](t)(embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address,
			embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: book.logger(slog.LevelWarn)}, PoolSize: pool}))
		if got := strings.Contains(book.String(), "more than half of the connections"); got != warned {
			t.Errorf("a pool of %d: warned %t\n%s", pool, got, book)
		}
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func TestU183_a_sqlite_store_has_four_readers_beside_its_writer(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	answer := httptest.NewRecorder()
	w.Client.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(answer.Body.String(), `ff_store_pool{state="max"} 5`) {
		t.Errorf("%s", answer.Body)
	}
}
