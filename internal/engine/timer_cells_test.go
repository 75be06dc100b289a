package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// cellRows is how many rows each kind of timer gets: more than an unruly store gives at a time.
const cellRows = 5

// timerCell is one kind of what S60 lists.
type timerCell struct {
	name     string // with the rule that says when it is due
	label    string // of its timers
	shared   bool   // only a store that processes share has it
	together bool   // what is due for one row does the same for all that are due
	// arm makes rows that become due at a moment; done counts what the sweep has done for them, twice if it has done it twice.
	arm func(w *world, lane string) (due base.Time, done func() int)
}

// timerCells are the kinds of S60 that there are. Events (E37) have no timers of their own: the loop looks at the log every minute (TestE37_S60).
var timerCells = []timerCell{
	{name: "L19 executions by wake_at", label: "execution", arm: armDelays},
	{name: "W36 pending waitpoints", label: "execution", arm: armWaitpoints},
	{name: "S47 rate keys", label: "rate", arm: armRates},
	{name: "S50 liveness of workers", label: "worker", arm: armLiveness},
	{name: "S54 removal of workers", label: "worker", arm: armWorkers},
	{name: "B36 budget resets", label: "budget", arm: armResets},
	{name: "W17 purge of signing keys", label: "signing_key", together: true, arm: armSigningKeys},
	{name: "L139 retention of executions", label: "retention", arm: armRetention},
	{name: "U131 audit rows", label: "audit", arm: armAudit},
	{name: "L84 idempotency keys", label: "idempotency_key", arm: armKeys},
	{name: "W4 recorded requests", label: "request", arm: armRequests},
	{name: "B26 recorded charges", label: "charge", arm: armCharges},
	{name: "L117 records of claims", label: "claim", arm: armClaims},
	{name: "U101 limits of all processes", label: "allowance", shared: true, arm: armAllowances},
	{name: "L140 follow-up work", label: "followup", arm: armFlows},
	{name: "E8 best-effort frames", label: "frames", arm: armBestEffort},
	{name: "U58 bulk jobs", label: "bulk", arm: armJobs},
	{name: "E43 deliveries of webhooks", label: "webhook", arm: armDeliveries},
}

// each arms one row after the other, each in a commit of its own.
func each(f func(i int)) {
	for i := range cellRows {
		f(i)
	}
}

// told counts the events of a kind that come from now on, of those that fit.
func (w *world) toldOf(kind string, fits func(engine.LoggedEvent) bool) func() int {
	w.t.Helper()
	count := func() (n int) {
		for _, ev := range w.events(engine.EventFilter{Kinds: []string{kind}}) {
			if fits == nil || fits(ev) {
				n++
			}
		}
		return n
	}
	before := count()
	return func() int { return count() - before }
}

// left counts the small records of a kind.
func (w *world) left(kind store.DocKind) int {
	w.t.Helper()
	return len(must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: kind}}}))(w.t).Scanned[0])
}

// dropped counts how many of the records of a kind that stand there now are gone.
func (w *world) dropped(kind store.DocKind) func() int {
	w.t.Helper()
	there := w.left(kind)
	if there != cellRows {
		w.t.Fatalf("%d records, want %d", there, cellRows)
	}
	return func() int { return there - w.left(kind) }
}

func armDelays(w *world, lane string) (base.Time, func() int) {
	each(func(int) { w.submit(core.Submission{Lane: lane, DelayMS: ptr(base.Minute)}) })
	return w.now().Add(base.Minute), w.toldOf("execution.ready", nil)
}

func armWaitpoints(w *world, lane string) (base.Time, func() int) {
	expires := base.Hour
	each(func(int) {
		task := w.started(core.Submission{Lane: lane})
		must(w.e.CreateWaitpoint(w.ctx(), client, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: "a", ExpiresInMS: &expires}))(w.t)
		w.hold(given(task))
		w.release(task)
	})
	return w.now().Add(expires), w.toldOf("waitpoint.closed", nil)
}

func armRates(w *world, lane string) (base.Time, func() int) {
	w.quota("q", core.QuotaSettings{RateLimit: 1, WindowMS: base.Minute, PerKey: true})
	each(func(i int) {
		s := attached(use("q", fmt.Sprint(i)))
		s.Lane = lane
		w.complete(w.started(s))
	})
	return w.now().Add(2 * base.Minute), w.dropped(27) // a window later than nothing counts any more: a key in use has few timers
}

// mortals registers instances whose names begin so.
func (w *world) mortals(prefix string) (dead func() int) {
	w.t.Helper()
	each(func(i int) {
		w.register(core.Registration{WorkerID: "w", InstanceID: fmt.Sprint(prefix, i), Lanes: []string{"l"}, MaxConcurrent: 1, LivenessTTLMS: base.Minute})
	})
	return w.toldOf("worker.dead", func(ev engine.LoggedEvent) bool { return strings.HasPrefix(ev.InstanceID, prefix) })
}

func armLiveness(w *world, _ string) (base.Time, func() int) {
	dead := w.mortals("mortal")
	return w.now().Add(base.Minute), dead
}

func armWorkers(w *world, _ string) (base.Time, func() int) {
	seen, dead := w.now(), w.mortals("forgotten")
	w.turn(base.Minute)
	eventually(w.t, "they have lapsed", func() bool { return dead() == cellRows })
	return seen.Add(base.Day), func() int {
		all := w.workers(engine.WorkerQuery{State: "all"})
		return cellRows - len(slices.DeleteFunc(all, func(id string) bool { return !strings.HasPrefix(id, "forgotten") }))
	}
}

func armResets(w *world, _ string) (base.Time, func() int) {
	at := w.now().Add(base.Hour)
	each(func(i int) {
		w.create(tokens(fmt.Sprint("resets", i), 10, resetting(core.BudgetReset{Type: "interval", EveryMS: 300 * base.Day, AnchorAt: at})))
	})
	return at, w.toldOf("budget.reset", nil)
}

func armSigningKeys(w *world, _ string) (base.Time, func() int) {
	const grace = base.Hour - 1 // to the last moment of which a key verifies
	each(func(i int) { must(w.rotateKey(fmt.Sprint("next", i), byte(i+2), grace))(w.t) })
	return w.now().Add(base.Hour), w.toldOf("key.purged", nil)
}

func armRetention(w *world, lane string) (base.Time, func() int) {
	var ids []base.GivenID
	each(func(int) {
		s := policy(`{"retention_ms":60000}`)
		s.Lane = lane
		ids = append(ids, w.submit(s))
		w.cancel(ids[len(ids)-1])
	})
	return w.now().Add(base.Minute), func() (gone int) {
		for _, id := range ids {
			if _, err := w.e.Describe(w.ctx(), client, id); base.CodeOf(err) == base.CodeExecutionNotFound {
				gone++
			}
		}
		return gone
	}
}

func armAudit(w *world, lane string) (base.Time, func() int) {
	each(func(i int) { w.hold(w.submit(core.Submission{Lane: lane, Namespace: fmt.Sprint("told", i)})) })
	return w.now().Add(auditedFor), func() (gone int) {
		for i := range cellRows {
			if check := must(w.e.VerifyAudit(w.ctx(), admin, fmt.Sprint("told", i)))(w.t); check.Rows == 0 && check.Broken == 0 {
				gone++
			}
		}
		return gone
	}
}

func armKeys(w *world, lane string) (base.Time, func() int) {
	each(func(i int) {
		w.submit(core.Submission{Lane: lane, IdempotencyKey: fmt.Sprint("key", i), PolicyJSON: []byte(`{"dedup_window_ms":60000}`)})
	})
	return w.now().Add(base.Minute), func() (free int) {
		for i := range cellRows {
			if !w.hasKey(fmt.Sprint("key", i)) {
				free++
			}
		}
		return free
	}
}

func armRequests(w *world, lane string) (base.Time, func() int) {
	each(func(i int) {
		must(w.e.PutLane(w.ctx(), operator, fmt.Sprint(lane, i), core.LaneSettings{}, engine.Operator{RequestKey: "once"}))(w.t)
	})
	return w.now().Add(base.Day), w.dropped(2)
}

func armCharges(w *world, _ string) (base.Time, func() int) {
	w.create(tokens("charged", 100))
	each(func(i int) {
		must(w.charge("charged", 1, func(r *engine.ChargeRequest) { r.DedupKey = fmt.Sprint("once", i) }))(w.t)
	})
	return w.now().Add(7 * base.Day), w.dropped(26)
}

func armClaims(w *world, lane string) (base.Time, func() int) {
	each(func(i int) {
		w.submit(core.Submission{Lane: lane})
		r := ask()
		r.Lanes, r.RequestKey = []string{lane}, fmt.Sprint("claim", i)
		w.complete(w.claimAs(r))
	})
	return w.now().Add(base.Minute), w.dropped(3)
}

func armAllowances(w *world, _ string) (base.Time, func() int) {
	each(func(i int) {
		_, _, err := w.e.TakeRate(w.ctx(), fmt.Sprint("limit", i), 10, 1)
		ok(w.t, err)
	})
	return w.now().Add(2 * base.Hour), w.dropped(13) // an hour after it was last used, or up to one later
}

func armFlows(w *world, lane string) (base.Time, func() int) {
	var flows []base.GivenID
	each(func(int) {
		s := core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: "a", Lane: lane, PolicyJSON: []byte(`{"retention_ms":60000}`)}}}
		flow := w.submitFlow(s)
		w.cancelFlow(flow, core.CancelAll, "")
		flows = append(flows, flow.Flow.ID.Given())
	})
	return w.now().Add(base.Minute), func() (gone int) {
		for _, id := range flows {
			if _, err := w.e.Flow(w.ctx(), client, id); base.CodeOf(err) == base.CodeFlowNotFound {
				gone++
			}
		}
		return gone
	}
}

func armBestEffort(w *world, lane string) (base.Time, func() int) {
	var speakers []base.GivenID
	each(func(int) {
		s := policy(`{"stream_policy":{"best_effort":{"ttl_ms":30000}}}`)
		s.Lane = lane
		task := w.started(s)
		w.says(task, fleeting("a"))
		speakers = append(speakers, given(task))
	})
	return w.now().Add(base.Minute + 50), func() (gone int) { // kept for twice as long; an entry of the due index is late by up to 50 ms
		for _, id := range speakers {
			if w.recordsOf(id, chunks) == 0 {
				gone++
			}
		}
		return gone
	}
}

// armDeliveries makes deliveries whose receivers ask for an hour of patience, each of an endpoint of its own.
func armDeliveries(w *world, lane string) (base.Time, func() int) {
	w.receivers = w.listening(nil, w.e)
	w.receivers.answers(func(context.Context, webhook.Request) webhook.Answer {
		return webhook.Answer{Status: 503, RetryAfter: time.Hour}
	})
	each(func(i int) {
		namespace := fmt.Sprint("hooked", i)
		hook := w.hooked(namespace, fmt.Sprintf("https://%d.example/", i), submittedOnly)
		w.submit(core.Submission{Namespace: namespace, Lane: lane})
		eventually(w.t, "it has failed", func() bool { v := w.hook(hook.ID); return v.Queue.Retrying == 1 && v.Queue.Owner == "" })
	})
	w.receivers.answers(taken204)
	return w.now().Add(base.Hour), func() int { return len(w.receivers.all()) - cellRows }
}

// bulkJobs is the kind of record that a bulk job has.
const bulkJobs store.DocKind = 6

func armJobs(w *world, lane string) (base.Time, func() int) {
	each(func(int) {
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", IDs: []base.GivenID{w.submit(core.Submission{Lane: lane})}}))(w.t)
		w.ended(job.JobID)
	})
	return w.now().Add(7 * base.Day), w.dropped(bulkJobs)
}

// unruly is the store of a process that meets everything that S61 to S64 allow for: it gets the due timers a few at a time, each of them again when it
// has handled it, as from another process that took it before; and it may die as soon as it has taken some.
type unruly struct {
	store.Store
	taken chan string // the first row of the timers that it has died with

	mu      sync.Mutex
	labelOf func(store.TimerKind) string
	label   string        // of the timers that it dies with; "": it lives
	due     base.Time     // and since when they are due: older ones may be left over
	again   []store.Timer // that were given once
}

// dies says with which timers it dies from now on; labelOf returns their labels.
func (u *unruly) dies(labelOf func(store.TimerKind) string, label string, due base.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.labelOf, u.label, u.due = labelOf, label, due
}

// atATime is how many timers an unruly store gives.
const atATime = 2

// TakeDue takes timers, and ends with the process that it is to end with.
func (u *unruly) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	if limit != 500 {
		return nil, fmt.Errorf("%d timers at a time, want 500 (S61)", limit)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.label != "" {
		timers, err := u.Store.TakeDue(ctx, limit, hide, except...)
		at := slices.IndexFunc(timers, func(t store.Timer) bool { return u.labelOf(t.Kind) == u.label && t.At >= u.due })
		if at < 0 {
			return timers, err
		}
		u.taken <- timerRow(timers[at])
		<-ctx.Done()
		return nil, ctx.Err()
	}
	timers, err := u.Store.TakeDue(ctx, atATime, hide, except...)
	first := u.again
	u.again = slices.Clone(timers)
	return append(slices.DeleteFunc(first, func(t store.Timer) bool { return slices.Contains(except, t.Kind) }), timers...), err
}

// timerRow is the first row that a timer is for.
func timerRow(t store.Timer) string {
	if len(t.IDs) > 0 {
		return t.IDs[0].String()
	}
	return t.Texts[0]
}

// looksAFew waits until the sweep has looked at the store a few times.
func (w *world) looksAFew() {
	w.t.Helper()
	from := w.e.Polls()
	eventually(w.t, "the sweep looks", func() bool { return w.e.Polls() >= from+3 })
}

// auditedFor is how long the worlds of these tests keep rows of the audit log.
const auditedFor = base.Hour

func TestS60_every_kind_of_timer_acts_at_its_time_once_in_batches_and_whatever_happens_to_others(t *testing.T) {
	t.Parallel()
	labels := map[string]bool{}
	for _, cell := range timerCells {
		labels[cell.label] = true
	}
	cfg := engine.Config{SigningKey: seeding("a", 1), AuditRetention: time.Duration(auditedFor) * time.Millisecond}
	onStoresWith(t, cfg, func(t *testing.T, w *world) {
		for _, label := range w.e.TimerLabels() {
			if !labels[label] {
				t.Errorf("timers %q have no cell", label)
			}
		}
		for i, cell := range timerCells {
			if cell.shared && w.url == "" {
				continue
			}
			t.Run(cell.name, func(t *testing.T) {
				w.t = t
				cell.show(t, w, fmt.Sprint("cell", i))
			})
		}
		w.t, w.cfg.Trap = t, nil
		w.e = w.openEngine(w.store)
	})
}

// show lets rows of the kind become due in a process that dies with them, and a second one go on with them, that cannot handle the first.
func (c *timerCell) show(t *testing.T, w *world, lane string) {
	t.Helper()
	traps, unruly := &traps{}, &unruly{Store: w.store, taken: make(chan string, 1)}
	w.cfg.Trap = traps.trap
	closeEngine(t, w.e)
	w.e = w.openEngine(unruly)
	w.turn(base.Hour - int64(w.now())%base.Hour) // due times are rounded up to whole seconds, minutes or hours
	due, done := c.arm(w, lane)
	w.turnTo(due - 1)
	w.looksAFew()
	same(t, "done before its time", done(), 0)

	unruly.dies(w.e.TimerLabel, c.label, due)
	w.turnTo(due)
	var bad string
	eventually(t, "the timers become due", func() bool {
		select {
		case bad = <-unruly.taken:
			return true
		default:
			return false
		}
	})
	closeEngine(t, w.e)

	unruly.dies(nil, "", 0)
	traps.at("timer:"+c.label, bad)
	w.e = w.openEngine(unruly)
	w.turn(2 * base.Second) // until when the timers of the dead are hidden (S62)
	rest := cellRows - 1
	if c.together {
		rest = cellRows
	}
	eventually(t, "the others are done", func() bool { return done() >= rest })
	eventually(t, "the bad one is set aside", func() bool {
		return slices.ContainsFunc(w.asides(), func(row string) bool { return strings.HasSuffix(row, bad) })
	})
	w.looksAFew()
	same(t, "done without the bad one", done(), rest)
	traps.clear()
	w.turn(2 * base.Second)
	eventually(t, "the bad one is done, too", func() bool { return done() >= cellRows })
	w.looksAFew()
	same(t, "done, each once", done(), cellRows)
}

// upkeep is a store whose maintenance is counted, and fails while the test says so.
type upkeep struct {
	store.Store
	fails atomic.Bool
	tries atomic.Int64
}

// Maintain counts.
func (u *upkeep) Maintain(ctx context.Context, before base.Time) error {
	defer u.tries.Add(1) // when it is over, so that a test can wait for it
	if u.fails.Load() {
		return errors.New("the connection was lost")
	}
	return u.Store.Maintain(ctx, before)
}

func TestE37_S60_events_go_when_their_time_is_over_and_not_before_though_the_first_try_fails(t *testing.T) {
	t.Parallel()
	const keep = base.Day
	cfg := engine.Config{Clock: turned, EventRetention: time.Duration(keep) * time.Millisecond}
	onStoresWith(t, cfg, func(t *testing.T, w *world) {
		w.unaudited = true // its log has no beginning
		upkeep := &upkeep{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(upkeep)
		maintained := func() {
			t.Helper()
			for range 2 { // one may have begun before
				tries := upkeep.tries.Load()
				w.turn(base.Minute)
				eventually(t, "the loop looks at the log", func() bool { return upkeep.tries.Load() > tries })
			}
		}
		w.submit(core.Submission{})
		log := func() store.PollAnswer { return must(w.store.Poll(w.ctx(), store.PollAsk{}))(t) }
		old := log()
		w.turn(keep - 10*base.Minute)
		w.submit(core.Submission{})
		maintained()
		same(t, "the log begins before the time is over", log().LogStart, old.LogStart)
		upkeep.fails.Store(true)
		w.turn(10 * base.Minute)
		maintained()
		same(t, "the log begins after a try that failed", log().LogStart, old.LogStart)
		upkeep.fails.Store(false)
		maintained()
		same(t, "the log begins behind what is too old", log().LogStart, old.LogEnd)
		maintained()
		same(t, "the log begins after another look", log().LogStart, old.LogEnd)
	})
}
