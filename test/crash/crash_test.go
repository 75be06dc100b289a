package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
)

var cluster = migrated.New()

func TestMain(m *testing.M) {
	if store := os.Getenv(variableStore); store != "" {
		fmt.Println("error", deed(os.Getenv(variableDeed), store))
		os.Exit(1)
	}
	goleak.VerifyTestMain(tidy{cluster.Around(m)})
}

// deed is what this process was started for.
func deed(name, store string) error {
	switch name {
	case "suspend":
		return suspends(store)
	case "signal":
		return signals(store, os.Getenv(variableTokens))
	case "cascade":
		return cascades(store)
	case "cancel":
		return cancels(store)
	default:
		return victim(store, os.Getenv(variableKeys))
	}
}

func TestLI19_I1_I2_I4_I6_I7_I8_I9_I10_hold_after_kill_9_of_the_only_process_on_sqlite(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "app.db")
	b := newBook(t)
	for range 6 {
		start(t, store, "a", b).killSoon(t, b)
	}
	finishAndCheck(t, store, b)
}

func TestLI19_I1_I2_I4_I6_I7_I8_I9_I10_hold_after_kill_9_of_engines_on_one_postgres(t *testing.T) {
	t.Parallel()
	store := cluster.Database(t)
	a, b := newBook(t), newBook(t)
	steady := start(t, store, "b", b) // lives on while the others die beside it
	for range 6 {
		start(t, store, "a", a).killSoon(t, a)
	}
	steady.killSoon(t, b)
	for key, id := range b.ids {
		a.ids[key] = id
	}
	finishAndCheck(t, store, a)
}

// finishAndCheck works off what is left and looks at every execution and at the whole log.
func finishAndCheck(t *testing.T, store string, b *book) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	workCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- newWorker(client).Run(workCtx) }()
	if b.size() < 100 {
		t.Fatalf("only %d submits were acknowledged", b.size())
	}
	for key, id := range b.ids {
		x, err := client.Wait(ctx, flowfabric.ID(id))
		if err != nil {
			t.Fatalf("%s %s was acknowledged: %v", key, id, err) // I1, I7
		}
		if x.Status != flowfabric.StatusSucceeded || string(x.Result.Data) != fmt.Sprintf("%q", key+"!?") && string(x.Result.Data) != key+"!?" {
			t.Errorf("%s ended %s with %q", key, x.Status, x.Result.Data) // I4
		}
	}
	checkNobodyWaits(ctx, t, client)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	checkLog(ctx, t, client, b)
	checkLimits(ctx, t, client)
}

// checkNobodyWaits waits for executions whose submit was committed and never acknowledged, too (I7).
func checkNobodyWaits(ctx context.Context, t *testing.T, client *flowfabric.Client) {
	t.Helper()
	for x, err := range client.Executions().List(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if done, err := client.Wait(ctx, x.ID); err != nil || done.Status != flowfabric.StatusSucceeded {
			t.Errorf("%s: %v, %v", x.ID, done, err)
		}
	}
}

// checkLog reads the log from its start: epochs grow by one, each lease is closed once before the next begins, and each
// execution completes once (I2, I4, I6, I10).
func checkLog(ctx context.Context, t *testing.T, client *flowfabric.Client, b *book) {
	t.Helper()
	lapsed := 0
	epochs, open, completed := map[flowfabric.ID]int64{}, map[flowfabric.ID]bool{}, map[flowfabric.ID]int{}
	for after := api.FromStart; ; {
		page, err := client.Events().Read(ctx, ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range page.Events {
			switch ev.Kind {
			case "lease.acquired":
				var data struct {
					Epoch int64 `json:"lease_epoch"`
				}
				if err := json.Unmarshal(ev.Data, &data); err != nil || data.Epoch != epochs[ev.ExecutionID]+1 || open[ev.ExecutionID] {
					t.Errorf("%s: epoch %d after %d, lease open %v, %v", ev.ExecutionID, data.Epoch, epochs[ev.ExecutionID], open[ev.ExecutionID], err)
				}
				epochs[ev.ExecutionID], open[ev.ExecutionID] = data.Epoch, true
			case "lease.expired":
				lapsed++
				open[ev.ExecutionID] = false
			case "lease.released", "lease.revoked":
				open[ev.ExecutionID] = false
			case "execution.completed":
				open[ev.ExecutionID] = false
				completed[ev.ExecutionID]++
			}
		}
		if after = page.Next; page.AtEnd {
			break
		}
	}
	if lapsed == 0 {
		t.Error("no lease lapsed: the victims died too late to prove anything")
	}
	for _, id := range b.ids {
		if completed[flowfabric.ID(id)] != 1 {
			t.Errorf("%s completed %d times", id, completed[flowfabric.ID(id)])
		}
	}
}
