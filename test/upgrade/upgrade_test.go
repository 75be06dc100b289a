package upgrade_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/ops"
)

// The kinds of the load. What shouts is done by a worker of the older program.
var (
	steps  flowfabric.Kind[string, string] = "steps"
	waits  flowfabric.Kind[string, string] = "waits"
	writes flowfabric.Kind[string, string] = "writes"
)

const shouts = "shouts"

// load submits work through all servers and works it off, until it is told to stop.
type load struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // all that the load does ends with it
	client *flowfabric.Client
	roads  *roads
	db     *sql.DB // of the store
	kinds  []string

	permits  chan struct{} // one for each submit; closed when the load is to stop
	pending  atomic.Int64  // transactions that were refused because older programs may run
	refused  chan struct{} // closed with the first of them
	accepted atomic.Int64
	mu       sync.Mutex
	ids      map[string]flowfabric.ID // of acknowledged submits, by key
	grown    chan struct{}            // closed and replaced when ids grows
	done     sync.WaitGroup
}

// startLoad starts the load. driver and source are the user's own way to the database of the store.
func startLoad(t *testing.T, driver, source string, kinds ...string) *load {
	t.Helper()
	own := &http.Transport{}
	l := &load{t: t, ctx: contextOf(t), roads: &roads{RoundTripper: own}, kinds: kinds, ids: map[string]flowfabric.ID{}, grown: make(chan struct{}), refused: make(chan struct{}), permits: make(chan struct{}, 1000)}
	client, err := flowfabric.Connect("http://server", flowfabric.ConnectConfig{HTTP: &http.Client{Transport: l.roads}})
	if err != nil {
		t.Fatal(err)
	}
	if l.db, err = sql.Open(driver, source); err != nil {
		t.Fatal(err)
	}
	l.client = client
	worker := l.worker()
	workCtx, stop := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = client.Close(context.Background())
		_ = l.db.Close()
		own.CloseIdleConnections()
	})
	go func() { ended <- worker.Run(workCtx) }()
	return l
}

// begin lets the load submit, four at a time.
func (l *load) begin() {
	for n := range 4 {
		l.done.Go(func() {
			for i := 0; ; i++ {
				if _, more := <-l.permits; !more {
					return
				}
				if !l.submit(fmt.Sprintf("%s-%d-%d", l.kinds[i%len(l.kinds)], n, i)) {
					return
				}
			}
		})
	}
}

func (l *load) submit(key string) bool {
	kind, _, _ := strings.Cut(key, "-")
	x, err := flowfabric.Kind[string, string](kind).Submit(l.ctx, l.client, key, flowfabric.SubmitOptions{IdempotencyKey: key, Policy: &flowfabric.Policy{Retry: soon}})
	if err != nil {
		l.t.Errorf("submit of %s: %v", key, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[key] = x.ID()
	close(l.grown)
	l.grown = make(chan struct{})
	return true
}

// inFlight is how many submits are under way while servers come and go.
const inFlight = 10

// more lets the load go on until n more submits are acknowledged. Others are under way when it returns.
func (l *load) more(n int) {
	l.t.Helper()
	for range n + inFlight {
		l.permits <- struct{}{}
	}
	for want := -1; ; {
		l.mu.Lock()
		size, grown := len(l.ids), l.grown
		l.mu.Unlock()
		if want < 0 {
			want = size + n
		}
		if size >= want {
			return
		}
		select {
		case <-grown:
		case <-l.ctx.Done():
			l.t.Fatalf("%d submits were acknowledged, %d were to be", size, want)
		}
	}
}

// soon has short delays: a story does not wait for the default ones.
var soon = &flowfabric.RetryPolicy{MaxRetries: 10_000, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 50 * time.Millisecond}}

func (l *load) worker() *flowfabric.Worker {
	w := flowfabric.NewWorker(l.client, flowfabric.WorkerConfig{Concurrency: 8, LeaseTTL: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	flowfabric.Handle(w, steps, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
		first, err := flowfabric.Step(ctx, t, "first", func(context.Context) (string, error) { return in + "!", nil })
		if err != nil {
			return "", err
		}
		return flowfabric.Step(ctx, t, "second", func(context.Context) (string, error) { return first + "?", nil })
	})
	flowfabric.Handle(w, waits, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
		answer, err := flowfabric.AwaitSignal[string](ctx, t, "go", flowfabric.WaitOptions{Notify: func(ctx context.Context, w flowfabric.Waitpoint) error {
			_, err := l.client.Signal(ctx, flowfabric.Signal{WaitpointID: w.ID, Token: w.Token, Name: "go", IdempotencyKey: in, Payload: flowfabric.Text("yes")})
			return err
		}})
		return in + " " + answer, err
	})
	flowfabric.Handle(w, writes, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
		tx, err := l.db.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer tx.Rollback() // nothing, or what was refused
		if _, err := tx.ExecContext(ctx, "insert into written (name) values ('"+in+"')"); err != nil {
			return "", err
		}
		if err := embedded.CompleteSQLTx(ctx, tx, t, in+" in a transaction"); err != nil {
			if flowfabric.CodeOf(err) == "upgrade_pending" {
				if l.pending.Add(1) == 1 {
					close(l.refused)
				}
			}
			return "", err
		}
		err = tx.Commit()
		if err == nil {
			l.accepted.Add(1)
		}
		return "", err
	})
	return w
}

// resultOf is how the work with that key must end.
func resultOf(key string) string {
	kind, _, _ := strings.Cut(key, "-")
	switch kind {
	case string(steps):
		return key + "!?"
	case string(waits):
		return key + " yes"
	case string(writes):
		return key + " in a transaction"
	default:
		return strings.ToUpper(key)
	}
}

// finish stops the load, waits for everything that was acknowledged, and checks that it ended once and in the right way.
func (l *load) finish() {
	l.t.Helper()
	close(l.permits)
	l.done.Wait()
	for key, id := range l.ids {
		x, err := l.client.Wait(l.ctx, id)
		if err != nil {
			l.t.Fatalf("%s was acknowledged: %v", key, err)
		}
		if x.Status != flowfabric.StatusSucceeded || string(x.Result.Data) != resultOf(key) {
			l.t.Errorf("%s ended %s with %q", key, x.Status, x.Result.Data)
		}
	}
	count := func(status ...flowfabric.Status) int {
		n, err := l.client.Executions().Count(l.ctx, ops.Filter{Status: status})
		if err != nil {
			l.t.Fatal(err)
		}
		return n.Total
	}
	if all := count(); all != len(l.ids) {
		l.t.Errorf("%d executions are stored, %d were acknowledged", all, len(l.ids))
	}
	l.endedOnce()
	var rows, names int
	if err := l.db.QueryRowContext(l.ctx, "select count(*), count(distinct name) from written").Scan(&rows, &names); err != nil {
		l.t.Fatal(err)
	}
	if int64(rows) != l.accepted.Load() || rows != names || rows != l.sizeOf(string(writes)) {
		l.t.Errorf("%d rows of %d names were written in %d transactions by %d executions", rows, names, l.accepted.Load(), l.sizeOf(string(writes)))
	}
	l.t.Logf("%d executions; %d transactions were refused while older programs ran, %d committed", len(l.ids), l.pending.Load(), l.accepted.Load())
}

func (l *load) sizeOf(kind string) (n int) {
	for key := range l.ids {
		if strings.HasPrefix(key, kind+"-") {
			n++
		}
	}
	return n
}

// endedOnce reads the log from its start.
func (l *load) endedOnce() {
	l.t.Helper()
	ended := map[flowfabric.ID]int{}
	for after, atEnd := api.FromStart, false; !atEnd; {
		page, err := l.client.Events().Read(l.ctx, ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, event := range page.Events {
			if event.Kind == "execution.completed" {
				ended[event.ExecutionID]++
			}
		}
		after, atEnd = page.Next, page.AtEnd
	}
	for key, id := range l.ids {
		if ended[id] != 1 {
			l.t.Errorf("%s ended %d times", key, ended[id])
		}
	}
}

func TestU265_two_versions_run_beside_each_other_on_one_postgres_while_one_replaces_the_other(t *testing.T) {
	t.Parallel()
	before, after := both(t)
	apart := before.schemas["postgres"] < after.schemas["postgres"]
	store := cluster.Empty(t)
	first, second := before.serve(t, store), before.serve(t, store)
	l := startLoad(t, "pgx", store, string(steps), string(waits), string(writes), shouts)
	l.create()
	l.roads.lead(first, second)
	l.begin()
	l.more(30)

	third := after.serve(t, store)
	l.roads.lead(first, second, third)
	shouter := before.start(t, func(string) {}, "work", "--kind", shouts, "--server", "http://"+third.address, "--", "tr", "a-z", "A-Z")
	l.more(30)

	l.roads.lead(second, third)
	first.end(syscall.SIGKILL)
	l.more(30)
	first = before.serve(t, store) // it may be started beside the newer one
	l.roads.lead(first, second, third)
	l.more(30)
	if apart {
		l.refuses()
	}
	if out, err := after.run(t, "migrate", "up", "--store", store); apart && (err == nil || !strings.Contains(err.Error(), "programs that have the store open")) {
		t.Errorf("migrate up beside older programs: %v\n%s", err, out)
	}

	fourth := after.serve(t, store)
	l.roads.lead(third, fourth)
	first.end(syscall.SIGTERM)
	second.end(syscall.SIGTERM)
	l.more(30)
	l.forget()
	if out, err := after.run(t, "migrate", "up", "--store", store); err != nil {
		t.Errorf("migrate up: %v\n%s", err, out)
	}
	if apart {
		before.isRefused(t, store)
	}
	l.more(30)
	l.finish()
	shouter.end(syscall.SIGTERM)
}

// refuses waits until a transaction with an outcome was refused, and checks that none was committed.
func (l *load) refuses() {
	l.t.Helper()
	select {
	case <-l.refused:
	case <-l.ctx.Done():
		l.t.Fatal("no transaction with an outcome was refused")
	}
	if n := l.accepted.Load(); n > 0 {
		l.t.Errorf("%d transactions with an outcome were committed while older programs may use the store", n)
	}
}

// isRefused starts the program as a server on a store with a schema that it does not know.
func (p program) isRefused(t *testing.T, store string) {
	t.Helper()
	out, err := p.run(t, "serve", "--store", store, "--listen", "127.0.0.1:0", "--unsafe-durability", "--insecure-open")
	if err == nil || !strings.Contains(err.Error(), "knows schema") {
		t.Errorf("the older program starts again: %v\n%s", err, out)
	}
}

// forget makes the list of programs a minute older for those that have ended without signing off.
func (l *load) forget() {
	l.t.Helper()
	if _, err := l.db.ExecContext(l.ctx, "update flowfabric.program set seen_at = seen_at - 61000 where known < (select max(known) from flowfabric.program)"); err != nil {
		l.t.Fatal(err)
	}
}

// create makes the user's own table.
func (l *load) create() {
	l.t.Helper()
	if _, err := l.db.ExecContext(l.ctx, "create table written (name text)"); err != nil {
		l.t.Fatal(err)
	}
}

func TestU265_a_version_takes_a_sqlite_file_over_from_the_one_before(t *testing.T) {
	t.Parallel()
	before, after := both(t)
	apart := before.schemas["sqlite"] < after.schemas["sqlite"]
	path := filepath.Join(t.TempDir(), "app.db")
	store := "sqlite:" + path
	server := before.serve(t, store)
	l := startLoad(t, "sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)", string(steps), string(waits), string(writes))
	l.create()
	l.roads.lead(server)
	l.begin()
	l.more(60)
	if out, err := after.run(t, "serve", "--store", store, "--listen", "127.0.0.1:0", "--insecure-open"); err == nil || !strings.Contains(err.Error(), "has this file open") {
		t.Errorf("a second program opens the file: %v\n%s", err, out)
	}
	if apart {
		l.refuses()
	}
	l.roads.lead()
	server.end(syscall.SIGKILL)
	server = after.serve(t, store)
	l.roads.lead(server)
	l.more(60)
	l.finish()
	server.end(syscall.SIGTERM)
	if apart {
		before.isRefused(t, store)
	}
}
