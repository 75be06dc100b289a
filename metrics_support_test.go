package flowfabric_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// metered is a world whose clock is turned by hand and whose commits can be stopped, with the samples of its metrics.
type metered struct {
	*world
	store string
	clock *clock.Manual
	gate  *gate
}

// cause is something that users do, and by how much samples move because of it.
type cause struct {
	name  string
	do    func(t *testing.T, w *metered)
	moves map[string]float64
	on    map[string]map[string]float64 // by store: what moves there besides
}

// check performs the cause on every store and looks at the samples.
func (c cause) check(t *testing.T) {
	t.Helper()
	for name, address := range everyStore() {
		t.Run(c.name+" on "+name, func(t *testing.T) {
			t.Parallel()
			w := openMetered(t, name, address(t))
			want := map[string]float64{}
			maps.Copy(want, c.moves)
			maps.Copy(want, c.on[name])
			before := w.scrape(t)
			for limit := time.Now().Add(giveUp); before[`ff_store_pool{state="busy"}`] != 0 && time.Now().Before(limit); {
				before = w.scrape(t) // the engine's own loops are at work
			}
			c.do(t, w)
			w.moved(t, before, want)
		})
	}
}

func openMetered(t *testing.T, store, url string) *metered {
	t.Helper()
	hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	g := &gate{}
	t.Cleanup(g.open)
	return &metered{world: openWorld(t, url, engine.Hooks{Clock: hand, Probe: g}), store: store, clock: hand, gate: g}
}

// turn moves the clock on.
func (w *metered) turn(d time.Duration) { w.clock.TurnTo(w.clock.Now().Add(d)) }

// moved waits until samples have moved by exactly so much. What is read from the store is kept for seconds, so the clock goes on a
// little with every look; background work needs no more than the processor.
func (w *metered) moved(t *testing.T, before, want map[string]float64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := inTime(t)
	for {
		after := w.scrape(t)
		wrong := ""
		for _, sample := range slices.Sorted(maps.Keys(want)) {
			if got := after[sample] - before[sample]; got < want[sample]-1e-6 || got > want[sample]+1e-6 {
				wrong += "\n" + sample + " moved by " + strconv.FormatFloat(got, 'g', -1, 64) + ", want " + strconv.FormatFloat(want[sample], 'g', -1, 64)
			}
		}
		if wrong == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(wrong)
		}
	}
}

// scrape reads all samples, by name and labels as they are shown. Gauges that were kept are read anew.
func (w *metered) scrape(t testing.TB) map[string]float64 {
	t.Helper()
	w.turn(gaugesKept)
	return scrape(t, w.Client)
}

// gaugesKept is longer than what the store tells is kept.
const gaugesKept = 3 * time.Second

func scrape(t testing.TB, c *flowfabric.Client) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	c.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return samplesOf(t, answer.Body.String())
}

func samplesOf(t testing.TB, text string) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		samples[line[:at]] = value
	}
	return samples
}

// gate is a probe that stops transactions, or takes their answers away.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: open
	inside chan struct{} // gets a value for every transaction that stands before the gate
	lose   error         // the answer of the next transaction
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.inside = make(chan struct{}), make(chan struct{}, 100)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// BeforeCommit waits while the gate is shut.
func (g *gate) BeforeCommit([]string) error {
	g.mu.Lock()
	closed := g.closed
	if closed != nil {
		g.inside <- struct{}{}
	}
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
	return nil
}

// AfterCommit takes one answer away if that was asked for.
func (g *gate) AfterCommit([]string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	lost := g.lose
	g.lose = nil
	return lost
}

// submit hands in n pieces of work one after the other.
func (w *metered) submit(t *testing.T, n int, o flowfabric.SubmitOptions) (ids []flowfabric.ID) {
	t.Helper()
	for range n {
		ids = append(ids, must[flowfabric.SubmitResult](t)(w.Submit(inTime(t), echo.Submission(flowfabric.Text("x"), o))).ID)
	}
	return ids
}

// claim takes up to n pieces of work of a lane.
func (w *metered) claim(t *testing.T, lane string, n int) []*api.Claimed {
	t.Helper()
	r := api.ClaimRequest{WorkerID: "w", InstanceID: "w-1", Lanes: []string{lane}, Max: n, LeaseTTL: time.Minute}
	return must[api.ClaimAnswer](t)(w.Work().Claim(inTime(t), r)).Tasks
}

// one takes a piece of work that must be there.
func (w *metered) one(t *testing.T, lane string) *api.Claimed {
	t.Helper()
	tasks := w.claim(t, lane, 1)
	if len(tasks) != 1 {
		t.Fatalf("%d tasks in lane %s", len(tasks), lane)
	}
	return tasks[0]
}

// do sends a command under a lease, which must be refused with the code; "": accepted.
func (w *metered) do(t *testing.T, claimed *api.Claimed, item api.WorkItem, code string) {
	t.Helper()
	item.ID, item.Lease = claimed.ID, claimed.Lease
	answers := must[[]api.WorkAnswer](t)(w.Work().Do(inTime(t), item))
	if got := flowfabric.CodeOf(answers[0].Err); got != code {
		t.Fatalf("%s: %v, want %q", item.Op, answers[0].Err, code)
	}
}

// beside runs a call until the test ends. The call must end when its context does.
func (w *metered) beside(t *testing.T, call func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(ctx)
	}()
	t.Cleanup(func() {
		w.gate.open()
		cancel()
		<-done
	})
}
