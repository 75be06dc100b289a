package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
	"github.com/flowfabric/flowfabric/test/around"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// patience bounds every wait in real time; nothing waits for it to pass.
const patience = 5 * time.Minute

var (
	client   = engine.Caller{Principal: "me", Actor: "client"}
	operator = engine.Caller{Principal: "op", Actor: "operator"}
)

// world is an engine on a faulty store. The store's clock and the engine's are turned apart: what the engine does after a
// pause must not change the times of records.
type world struct {
	t      *testing.T
	store  store.Store
	faults *faulty
	e      *engine.Engine
	family *quiescence.Family
	clock  *sleepy.Clock   // the store's
	host   *sleepy.Clock   // the engine's
	ctx    context.Context //nolint:containedctx // of one test
}

type opener func(ctx context.Context, t *testing.T, c *sleepy.Clock) (store.Store, error)

func onSQLite(ctx context.Context, t *testing.T, c *sleepy.Clock) (store.Store, error) {
	return sqlite.Open(ctx, filepath.Join(t.TempDir(), "faults.db"), sqlite.Config{Clock: c.Now, UnsafeDurability: true})
}

func onPostgres(ctx context.Context, t *testing.T, c *sleepy.Clock) (store.Store, error) {
	return cluster.Again(t).Open(ctx, postgres.Config{Now: c.StoreNow, PoolSize: 4, UnsafeDurability: true})
}

func newWorld(t *testing.T, open opener) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	w := &world{t: t, family: quiescence.New(), clock: sleepy.New(), host: sleepy.New(), ctx: ctx}
	var err error
	w.family.Do(func() {
		if w.store, err = open(ctx, t, w.clock); err != nil {
			return
		}
		w.faults = &faulty{family: w.family}
		w.e, err = engine.Open(ctx, &around.Store{Store: w.store, Around: w.faults.around}, engine.Config{Clock: w.host, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		defer cancel()
		if err := w.e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := w.store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return w
}

// rest waits until the engine's loops have nothing to do.
func (w *world) rest() {
	w.t.Helper()
	if err := w.family.Await(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// sweep lets a second pass for the engine and runs its loops until nothing is due.
func (w *world) sweep() {
	w.t.Helper()
	w.host.Step(time.Second)
	for busy := true; busy; busy = w.host.Wake() {
		w.rest()
	}
}

// drive runs a call and turns the engine's clock whenever the call waits for nothing else.
func (w *world) drive(call func() (any, error)) (answer any, err error) {
	w.t.Helper()
	done := w.family.Go(func() { answer, err = call() })
	for {
		w.rest()
		select {
		case <-done:
			return answer, err
		default:
			w.host.Step(100 * time.Millisecond)
			w.host.Wake()
		}
	}
}

// try is one run of a scenario: names of its own, so that many fit into one store.
type try struct {
	*world
	name   string // of fixed length, so that it can be taken out of what the run leaves behind
	ids    []base.GivenID
	began  time.Time
	cursor string // where its events begin
	limits bool   // it has a quota and budgets
}

func (w *world) try(number int) *try {
	w.t.Helper()
	page, err := w.e.ReadEvents(w.ctx, client, engine.EventsRequest{After: "end"})
	if err != nil {
		w.t.Fatalf("find the end of the log: %v", err)
	}
	return &try{world: w, name: fmt.Sprintf("run%05d", number), began: w.clock.Now(), cursor: page.Next}
}

// end cancels what is left, so that later runs are alone.
func (r *try) end() {
	for _, id := range r.ids {
		_, _ = r.e.Cancel(r.ctx, operator, id, nil, "", engine.Operator{}) // many are over already
	}
	if r.limits {
		r.unlimit()
	}
}

// id is the n-th execution of the run.
func (r *try) id(n int) base.GivenID {
	for len(r.ids) <= n {
		var u base.UUID
		copy(u[:], r.name[3:])
		u[6], u[8], u[15] = 0x70, 0x80, byte(len(r.ids)+1)
		r.ids = append(r.ids, base.IDOf(u).Given())
	}
	return r.ids[n]
}

func (r *try) submission(n int, policy string) core.Submission {
	id := r.id(n)
	return core.Submission{ID: &id, Lane: r.name, Kind: "k", Input: core.Payload{Data: []byte("in")}, PolicyJSON: []byte(policy)}
}

func (r *try) submit(n int, policy string) {
	r.t.Helper()
	if _, err := r.e.Submit(r.ctx, client, r.submission(n, policy)); err != nil {
		r.t.Fatalf("submit: %v", err)
	}
}

func (r *try) claimRequest(key string) engine.ClaimRequest {
	return engine.ClaimRequest{WorkerID: "w", InstanceID: r.name, Lanes: []string{r.name}, Max: 2, TTL: base.Hour, RequestKey: key}
}

// claim takes an execution that was submitted.
func (r *try) claim() core.Fence {
	r.t.Helper()
	got, err := r.e.Claim(r.ctx, client, r.claimRequest(""))
	if err != nil || len(got.Tasks) == 0 {
		r.t.Fatalf("claim: %d tasks, %v", len(got.Tasks), err)
	}
	x := got.Tasks[0].Execution
	return core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
}

// running submits and claims.
func (r *try) running(policy string) core.Fence {
	r.t.Helper()
	r.submit(0, policy)
	return r.claim()
}

// remains writes down everything that the run has left behind, in words that are the same for every run.
func (r *try) remains(answer any) []string {
	r.t.Helper()
	var b strings.Builder
	put := func(what string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		fmt.Fprintf(&b, "%s: %s\n", what, text)
	}
	put("answer", answer)
	for n, id := range r.ids {
		view, err := r.e.Describe(r.ctx, client, id)
		if err != nil {
			put(fmt.Sprintf("execution %d", n), base.CodeOf(err))
			continue
		}
		class := *view.Execution.Class
		class.ID = 0
		view.Execution.Class, view.Execution.OrderKey, view.Execution.TimerAt = &class, 0, 0 // how it is filed depends on when
		put(fmt.Sprintf("execution %d", n), view)
		leases, _, err := r.e.Leases(r.ctx, client, id, 0, 1000)
		put("leases", []any{leases, base.CodeOf(err)})
		steps, err := r.e.Steps(r.ctx, client, id, engine.StepsRequest{})
		put("steps", []any{steps.Records, base.CodeOf(err)})
		result, err := r.e.Result(r.ctx, client, id)
		put("result", []any{result, base.CodeOf(err)})
		r.putWaits(put, id)
	}
	r.putLimits(put)
	r.putEvents(put)
	return strings.Split(r.anonymous(b.String()), "\n")
}

// putEvents writes down the events of the run: those of executions in their order, then the others, whose order among
// themselves is up to the sweep.
func (r *try) putEvents(put func(what string, v any)) {
	r.t.Helper()
	var others []string
	for cursor := r.cursor; ; {
		page, err := r.e.ReadEvents(r.ctx, client, engine.EventsRequest{After: cursor, Limit: 1000})
		if err != nil {
			r.t.Fatalf("read events: %v", err)
		}
		for _, logged := range page.Events {
			ev := logged.Event
			ev.At = 0
			if ev.Class != nil {
				ev.Class = &core.Class{Lane: ev.Class.Lane, Kind: ev.Class.Kind, Namespace: ev.Class.Namespace}
			}
			text, err := json.Marshal(ev)
			switch {
			case err != nil:
				r.t.Fatalf("event: %v", err)
			case !strings.Contains(string(text), r.name):
			case ev.ExecutionID.IsZero():
				others = append(others, string(text))
			default:
				put("event", ev)
			}
		}
		if cursor = page.Next; page.AtEnd {
			break
		}
	}
	slices.Sort(others)
	put("other events", others)
}

var (
	uuidText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	fullForm = regexp.MustCompile(`\{fp:\d+\}:`)
	tokenFP  = regexp.MustCompile(`"token_fingerprint":"[0-9a-f]{16}"`)
	grantOf  = regexp.MustCompile(`(?i)"(grant)?hash":"[^"]+"`)
	moment   = regexp.MustCompile(`2031-\d\d-\d\dT[0-9:.]+Z`)
)

// anonymous replaces the names of a run, moments by how long after its beginning they are, and ids by the order in which they
// appear: every lease has new ones.
func (r *try) anonymous(text string) string {
	text = fullForm.ReplaceAllString(strings.ReplaceAll(text, r.name, "RUN"), "")
	text = moment.ReplaceAllStringFunc(text, func(at string) string {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return at
		}
		return "+" + t.Sub(r.began).String()
	})
	text = tokenFP.ReplaceAllString(text, `"token_fingerprint":"FINGERPRINT"`) // it follows from the ids
	text = grantOf.ReplaceAllString(text, `"hash":"HASH"`)                     // so does that of a grant key
	seen := map[string]string{}
	return uuidText.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("id%d", len(seen)+1)
		}
		return seen[id]
	})
}
