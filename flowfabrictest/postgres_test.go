package flowfabrictest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrictest"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

func TestU154_the_store_may_be_postgres(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t, flowfabrictest.Config{Store: cluster.Database(t)})
	o := newOutside()
	crash := env.CrashAt(flowfabrictest.BeforeStep("hotel"))
	env.Worker(flowfabric.WorkerConfig{}, travel(o))
	run := must[*flowfabric.Run[[]string]](t)(trip.Submit(t.Context(), env.Client, "Rome", flowfabric.SubmitOptions{Delay: 72 * time.Hour}))
	env.Advance(72 * time.Hour)
	env.Advance(time.Minute)
	if got := statusOf(t, env, run.ID()); !crash.Hit() || got != flowfabric.StatusSucceeded || o.requests("hotel") != 2 {
		t.Errorf("hit: %v, and it is %s after %d requests", crash.Hit(), got, o.requests("hotel"))
	}
}
