package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

// storeVariable tells this binary, started again, that it is a process to be killed, and on which store.
const storeVariable = "FF_CLUSTER_STORE"

// seedVariable is the seed of the random numbers of such a process.
const seedVariable = "FF_CLUSTER_SEED"

// patience bounds a test; nothing waits for it to pass.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if at := os.Getenv(storeVariable); at != "" {
		deed := victim
		if os.Getenv(deedVariable) != "" {
			deed = grabs
		}
		fmt.Println(deed(at))
		os.Exit(1)
	}
	goleak.VerifyTestMain(cluster.Around(m))
}

// victim works until it is killed.
func victim(at string) error {
	e, _, err := open(context.Background(), at)
	if err != nil {
		return err
	}
	j := newJournal(os.Stdout, func(format string, args ...any) { fmt.Println("violation:", fmt.Sprintf(format, args...)) })
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		return err
	}
	(&crew{e: e, j: j, name: fmt.Sprintf("p%d", os.Getpid()), seed: seed}).work(context.Background())
	return nil
}

func open(ctx context.Context, at string) (*engine.Engine, store.Store, error) {
	var s store.Store
	var err error
	if path, file := strings.CutPrefix(at, "sqlite:"); file {
		s, err = sqlite.Open(ctx, path, sqlite.Config{UnsafeDurability: true})
	} else {
		s, err = postgres.Open(ctx, at, postgres.Config{PoolSize: 6, IdleLimit: 10 * time.Minute})
	}
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.Open(ctx, s, engine.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return e, s, err
}

func TestI1_I2_I3_I4_I5_I6_I7_I8_I9_I10_I13_I16_I17_I18_hold_for_three_engines_and_two_processes_that_die_on_one_postgres(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at, seed := cluster.Database(t), testseed.Seed(t)
	j := newJournal(nil, t.Errorf)
	engines := make([]*engine.Engine, 3)
	var first store.Store
	for i := range engines {
		e, s := mustOpen(ctx, t, at)
		engines[i] = e
		if i == 0 {
			first = s
			prepare(ctx, t, e)
		}
	}
	chaos, calm := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i, e := range engines {
		all.Go(func() { (&crew{e: e, j: j, name: fmt.Sprintf("e%d", i), seed: seed}).work(chaos) })
	}
	all.Go(func() { watch(chaos, t, engines[1]) })
	r := follow(ctx, engines[0], testseed.Stream(seed, "reader"))
	var killers sync.WaitGroup
	for i := range 2 {
		killers.Go(func() { killing(ctx, t, at, j, testseed.Stream(seed, fmt.Sprint("killer", i)), 2) })
	}
	killers.Wait()
	waitFor(ctx, j, enough)
	calm()
	all.Wait()
	checkReachable(ctx, t, engines[0], first)
	finish(ctx, t, engines, j)
	r.stop(ctx, t, engines[1], j)
	checkIndexes(ctx, t, engines[0], first)
	checkLimits(ctx, t, engines[2])
}

func TestI1_I2_I3_I4_I5_I6_I7_I8_I9_I10_I13_I16_I17_I18_hold_for_a_process_that_dies_again_and_again_on_one_sqlite_file(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at, seed := "sqlite:"+filepath.Join(t.TempDir(), "cluster.db"), testseed.Seed(t)
	prepared, s, err := open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	prepare(ctx, t, prepared)
	closeAll(ctx, t, prepared, s)
	j := newJournal(nil, t.Errorf)
	killing(ctx, t, at, j, testseed.Stream(seed, "killer"), 6)
	e, s := mustOpen(ctx, t, at)
	r := follow(ctx, e, testseed.Stream(seed, "reader"))
	chaos, calm := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { (&crew{e: e, j: j, name: "e0", seed: seed}).work(chaos) })
	all.Go(func() { watch(chaos, t, e) })
	waitFor(ctx, j, j.size()+500)
	calm()
	all.Wait()
	checkReachable(ctx, t, e, s)
	finish(ctx, t, []*engine.Engine{e}, j)
	r.stop(ctx, t, e, j)
	checkIndexes(ctx, t, e, s)
	checkLimits(ctx, t, e)
}

func mustOpen(ctx context.Context, t *testing.T, at string) (*engine.Engine, store.Store) {
	t.Helper()
	e, s, err := open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		closeAll(ctx, t, e, s)
	})
	return e, s
}

func closeAll(ctx context.Context, t *testing.T, e *engine.Engine, s store.Store) {
	t.Helper()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// prepare sets the limits that the crowd meets.
func prepare(ctx context.Context, t *testing.T, e *engine.Engine) {
	t.Helper()
	putLimits(ctx, t, e, map[string]int64{"places": places, "tokens": 1_000_000})
	if _, err := e.PutLane(ctx, operator, "capped", core.LaneSettings{MaxConcurrent: lanesCap}, engine.Operator{}); err != nil {
		t.Fatal(err)
	}
}

// killing runs processes one after the other and kills each after some more submits were acknowledged.
func killing(ctx context.Context, t *testing.T, at string, j *journal, random *rand.Rand, times int) {
	for range times {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), storeVariable+"="+at, seedVariable+"="+strconv.FormatUint(random.Uint64(), 10))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Error(err)
			return
		}
		enough := 100 + random.IntN(400)
		lines := bufio.NewScanner(out)
		for n := 0; n < enough && lines.Scan(); n++ {
			hearLine(t, j, lines.Text())
		}
		_ = cmd.Process.Kill() // kill -9; one that has ended is reported by what it said last
		for lines.Scan() {
			hearLine(t, j, lines.Text())
		}
		_ = cmd.Wait()
	}
}

// hearLine takes over what a process says. The last line of one that is killed may be cut.
func hearLine(t *testing.T, j *journal, line string) {
	switch fields := strings.Fields(line); {
	case len(fields) == 0:
	case strings.HasPrefix(line, "violation:"):
		t.Error(line)
	case fields[0] == "submitted" && len(fields) == 3 && len(fields[2]) >= 42, fields[0] == "completed" && len(fields) == 3, fields[0] == "cancelled" && len(fields) == 2 && len(fields[1]) >= 42:
		j.hear(line)
	}
}

// waitFor waits until so many submits were acknowledged, and a stale command was sent.
func waitFor(ctx context.Context, j *journal, submits int) {
	for (j.size() < submits || j.haunted.Load() == 0) && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// enough is how many submits must have been acknowledged for a test to prove something.
const enough = 200

// finish works off everything that is left (I7): holds are released, and workers complete what they get.
func finish(ctx context.Context, t *testing.T, engines []*engine.Engine, j *journal) {
	t.Helper()
	if submits, haunted := j.size(), j.haunted.Load(); submits < enough || haunted == 0 {
		t.Errorf("only %d submits were acknowledged and %d stale commands sent: this proves nothing", submits, haunted)
	}
	working, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	for i, e := range engines {
		workers.Go(func() { drain(working, e, fmt.Sprintf("drain%d", i)) })
	}
	for _, id := range j.all() {
		_, _ = engines[0].ReleaseHold(ctx, operator, id.Given(), engine.Operator{}) // many are over, or not held
	}
	for _, id := range j.all() {
		for {
			view, err := engines[0].Wait(ctx, client, id.Given(), 10*time.Second)
			if err != nil {
				t.Errorf("I1: %s: %v", id, err)
				break
			}
			if view.Execution.Status.Terminal() {
				break
			}
			if ctx.Err() != nil {
				t.Errorf("I7: %s is still %s %s", id, view.Execution.Status, view.Execution.Reason)
				break
			}
		}
	}
	stop()
	workers.Wait()
}

// drain completes everything that comes.
func drain(ctx context.Context, e *engine.Engine, name string) {
	for ctx.Err() == nil {
		got, _ := e.Claim(ctx, client, engine.ClaimRequest{WorkerID: "w", InstanceID: name, Lanes: lanes, Max: 10, Wait: time.Second, TTL: 30_000})
		for _, t := range got.Tasks {
			x := t.Execution
			f := core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
			_, _ = e.Complete(context.WithoutCancel(ctx), client, x.ID.Given(), f, nil) // an operator may have been faster
		}
	}
}

// reader follows the log all the while, in pages of every size.
type reader struct {
	cancel context.CancelFunc
	done   chan struct{}
	cursor string
	seen   []string
	err    error
}

func follow(ctx context.Context, e *engine.Engine, random *rand.Rand) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{cancel: cancel, done: make(chan struct{}), cursor: "start"}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil && r.err == nil {
			r.err = r.read(ctx, e, 1+random.IntN(50), 50*time.Millisecond)
		}
	}()
	return r
}

func (r *reader) read(ctx context.Context, e *engine.Engine, limit int, wait time.Duration) error {
	page, err := e.ReadEvents(ctx, client, engine.EventsRequest{After: r.cursor, Limit: limit, Wait: wait})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, ev := range page.Events {
		r.seen = append(r.seen, ev.ID.String()+" "+ev.Kind)
	}
	r.cursor = page.Next
	return nil
}

// stop reads what is left on another engine, and compares what the reader has seen with the log as it is now (I6).
func (r *reader) stop(ctx context.Context, t *testing.T, e *engine.Engine, j *journal) {
	t.Helper()
	r.cancel()
	<-r.done
	log, err := readAll(ctx, e)
	if err != nil || r.err != nil {
		t.Fatalf("read the log: %v, %v", err, r.err)
	}
	for len(r.seen) < len(log) {
		before := len(r.seen)
		if err := r.read(ctx, e, 1000, 0); err != nil || len(r.seen) == before {
			t.Fatalf("the reader stands at %d of %d events: %v", before, len(log), err)
		}
	}
	for i, ev := range log {
		if want := ev.ID.String() + " " + ev.Kind; r.seen[i] != want {
			t.Fatalf("I6: the reader saw %s at place %d, the log has %s there", r.seen[i], i, want)
		}
	}
	checkRecords(ctx, t, e, j, replayLog(t, log))
	t.Logf("%d executions, %d events", len(j.all()), len(log))
}
