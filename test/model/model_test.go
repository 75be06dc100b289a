package model

import (
	"context"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// cluster is the Postgres of this test; its databases are migrated.
var cluster = migrated.New()

// stepsVariable asks for more commands than a usual run has: so many at least, in cases of stepsOfCase on average. The rounds are short, so
// that little is done in vain once everything has been seen.
const (
	stepsVariable = "FF_MODEL_STEPS"
	stepsOfCase   = 60
	leastRounds   = 3
	mostRounds    = 30
	usualSteps    = leastRounds * 7 * stepsOfCase
)

func TestMain(m *testing.M) {
	flag.Parse()
	total, err := strconv.Atoi(os.Getenv(stepsVariable))
	if err != nil || total < leastRounds*stepsOfCase {
		total = usualSteps
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]int{"rapid.checks": total / stepsOfCase / leastRounds, "rapid.steps": stepsOfCase} {
		if !given[name] {
			if err := flag.Set(name, strconv.Itoa(value)); err != nil {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(cluster.Around(m))
}

// tally counts the successes of every kind of command over a whole run.
type tally struct {
	mu        sync.Mutex
	succeeded map[string]int
}

func (c *tally) count(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.succeeded[op]++
}

// never lists what did not happen in the whole run: a kind of command that never succeeded, or something that should follow from commands.
func (c *tally) never() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for _, o := range operations {
		if c.succeeded[o.name] == 0 {
			missing = append(missing, o.name)
		}
	}
	for _, what := range happenings {
		if c.succeeded[what] == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

func TestLI18_the_rules_on_a_map_and_the_engine_on_every_store_do_the_same(t *testing.T) {
	t.Parallel()
	successes := &tally{succeeded: map[string]int{}}
	life := func(rt *rapid.T) {
		tb := caseTB{TB: t, cleanup: rt.Cleanup}
		c := newTrial(rt, tb, successes)
		c.d.aboutWaits = coin.Draw(rt, "about waits")
		weights := weighted(c.d.aboutWaits)
		rt.Repeat(map[string]func(*rapid.T){"": func(*rapid.T) {}, "command": func(rt *rapid.T) {
			c.d.t = rt
			c.command(weights)
		}})
	}
	testseed.Rounds(t, leastRounds, mostRounds, successes.never, life)
	t.Logf("successes: %v", successes.succeeded)
}

// trial is one case: a model and the engines, at the same moment of the same clock.
type trial struct {
	d         *drawing
	m         *reference
	clock     *sleepy.Clock
	subjects  []*subject
	successes *tally
	number    uint32
	ids       []base.UUID
	classes   []int32
	watched   []map[base.UUID]watch
	ends      []map[string]string
	swept     bool
}

func newTrial(rt *rapid.T, tb testing.TB, successes *tally) *trial {
	c := sleepy.New()
	m := newReference(c, &idSource{})
	k := &trial{d: &drawing{t: rt, m: m}, m: m, clock: c, successes: successes}
	k.subjects = openSubjects(tb, c)
	for range k.subjects {
		k.watched = append(k.watched, map[base.UUID]watch{})
		k.ends = append(k.ends, map[string]string{})
	}
	for n := range 5 {
		k.ids = append(k.ids, idAt(n))
	}
	return k
}

// command lets some time pass or not, sweeps or not, and then sends one command to everybody.
func (k *trial) command(weights []string) {
	t := k.d.t
	k.swept = false
	if k.d.rarely("time passes", 4) {
		k.step(k.d.pause())
	}
	if k.d.rarely("the clock is set back", 40) {
		k.sweep() // what one store has noticed as due and another has not would never agree again
		k.step(-pickOne(k.d, "back", 50*time.Millisecond, time.Second))
	}
	if k.d.rarely("sweep", 4) {
		k.sweep()
	}
	k.oneOrder()
	cmd := k.d.next(weights)
	if _, isClaim := cmd.(claimCommand); isClaim && k.d.aboutWaits && k.m.stands() {
		k.sweep() // a claim of several takes fewer where what is over still stands in the queue
	}
	k.d.sent = append(k.d.sent, cmd)
	ok := k.send(cmd)
	if ok && k.d.rarely("echo", 4) {
		t.Logf("the same again")
		k.echo(cmd)
	}
}

// oneOrder switches fairness off in lanes that hold work of two namespaces: whose turn it is depends on which of them a claim has seen the
// end of, and claims of these lanes see parts of them.
func (k *trial) oneOrder() {
	for _, name := range []string{"a", "b"} {
		lane := k.m.lanes[name]
		if lane == nil || lane.Settings.Fairness != core.FairnessAuto || len(k.m.namespacesIn(name)) < 2 {
			continue
		}
		settings := lane.Settings
		settings.Fairness = core.FairnessOff
		k.send(laneCommand{C: operator, Name: name, Settings: &settings})
	}
}

// step moves the clock once no goroutine is about to look at it.
func (k *trial) step(d time.Duration) {
	k.rest()
	k.clock.Step(d)
}

func (k *trial) rest() {
	if err := rest(k.subjects); err != nil {
		k.d.t.Fatal(err)
	}
}

// sweep runs the loops of the engines, and the model's.
func (k *trial) sweep() {
	k.swept = true
	k.d.t.Logf("sweep at %s", k.m.now())
	for busy := true; busy; busy = k.clock.Wake() {
		k.rest()
	}
	got := k.read()[0]
	k.m.sweep(func(id base.UUID) bool { return got.records[id] == nil })
	k.check("sweep")
	if late := k.m.overdue(); len(late) > 0 {
		k.d.t.Fatalf("L139: retention should have removed %v", late)
	}
}

// send gives one command to everybody and compares; it reports whether the command was accepted.
func (k *trial) send(cmd command) bool {
	_, isBulk := cmd.(bulkCommand)
	if isBulk {
		k.sweep() // so that what it counts is filed for searches
	}
	if claim, isClaim := cmd.(claimCommand); isClaim && k.m.hasOverdue(claim.R.Lanes) {
		claim.R.Max = 1 // how far beyond such rows a claim looks that has something is up to the engine (S21)
		cmd = claim
	}
	k.number++
	k.m.ids.begin(k.number)
	k.d.t.Logf("%d at %s: %s", k.number, k.m.now(), show(cmd))
	before, stale := k.m.digest(), k.m.stale(cmd)
	want, refusal := cmd.onModel(k.m)
	if after := k.m.digest(); (refusal != nil || stale) && !slices.Equal(before, after) {
		k.d.t.Fatalf("L78, LI3: %s was refused (%v) or stale (%v) and yet did something (-before +after):\n%s", cmd.op(), refusal, stale, cmp.Diff(before, after))
	}
	for _, s := range k.subjects {
		s.begin(k.number)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		got, err := cmd.onEngine(ctx, s)
		cancel()
		if base.CodeOf(refusal) != base.CodeOf(err) {
			k.d.t.Fatalf("%s: the model says %v, %s says %v", cmd.op(), refusal, s.name, err)
		}
		if diff := cmp.Diff(want, got, same); refusal == nil && diff != "" {
			k.d.t.Fatalf("answer to %s (-model +%s):\n%s", cmd.op(), s.name, diff)
		}
	}
	k.ids = append(k.ids, k.m.newIDs(k.ids)...)
	if refusal == nil && effective(want) {
		k.successes.count(cmd.op())
	}
	if refusal != nil {
		k.successes.count("refused: " + string(base.CodeOf(refusal)))
	}
	for _, what := range k.m.happened {
		k.successes.count(what)
	}
	k.m.happened = nil
	if lane, isLane := cmd.(laneCommand); isBulk || isLane && lane.Settings != nil {
		k.sweep() // follow-up work is begun at once, and not compared half done
		k.checkJobs()
	} else if got, isSuspend := want.(suspended); isSuspend && got.TimeoutAt != 0 && got.TimeoutAt <= k.m.now() {
		k.sweep() // a timer that is due when it is armed is noticed at once
	} else {
		k.check(cmd.op())
	}
	return refusal == nil
}

// newIDs lists the executions that are not among the known ones.
func (m *reference) newIDs(known []base.UUID) []base.UUID {
	var fresh []base.UUID
	for _, id := range m.sorted() {
		if !slices.Contains(known, id) {
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// effective reports whether an answer says that something happened.
func effective(answer any) bool {
	switch a := answer.(type) {
	case claimed:
		return len(a.Tasks) > 0
	case started:
		return a.Total > 0
	case []renewed:
		for _, one := range a {
			if one.Code == "" {
				return true
			}
		}
		return false
	default:
		return true
	}
}

func (k *trial) read() []*state {
	var all []*state
	for _, s := range k.subjects {
		got, err := s.read(k.ids, k.classes)
		if err != nil {
			k.d.t.Fatal(err)
		}
		k.classes = got.classesOf(k.classes)
		all = append(all, got)
	}
	return all
}

// difference compares a store with the model. An event is served soon after its commit, not at once: a reader stops at a number of the log that another
// transaction has drawn and not filled yet (E33). So the log is read again while events are missing.
func (k *trial) difference(s *subject, got *state) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		diff := k.m.difference(s, got)
		if !strings.HasPrefix(diff, "events of ") {
			return diff
		}
		select {
		case <-tick.C:
			if err := s.follow(ctx); err != nil {
				return diff
			}
		case <-ctx.Done():
			return diff
		}
	}
}

// check compares everything with the model and looks at the invariants.
func (k *trial) check(op string) {
	known := len(k.classes)
	all := k.read()
	if len(k.classes) != known {
		all = k.read() // with the queues of the new classes
	}
	for i, s := range k.subjects {
		if diff := k.difference(s, all[i]); diff != "" {
			k.d.t.Fatalf("after %s: %s", op, diff)
		}
		for _, text := range broken(s, all[i], k.watched[i], k.ends[i], k.swept && op == "sweep", k.m.now()) {
			k.d.t.Errorf("after %s: %s", op, text)
		}
	}
	if k.d.t.Failed() {
		k.d.t.FailNow()
	}
}

// echo sends an accepted command at once a second time: it must have no second effect (LI14).
func (k *trial) echo(cmd command) {
	before, recognised := k.m.digest(), k.m.recognises(cmd)
	k.send(cmd)
	if after := k.m.digest(); recognised && !slices.Equal(before, after) {
		k.d.t.Fatalf("LI14: %s sent twice acted twice (-once +twice):\n%s", cmd.op(), cmp.Diff(before, after))
	}
}

// recognises reports whether a repeat of an accepted command is recognised (L117); the others are new commands. A claim that was answered
// with nothing is one of those: its look at leases of an earlier call may have set free what the next one finds.
func (m *reference) recognises(cmd command) bool {
	switch c := cmd.(type) {
	case submitCommand:
		return c.S.ID != nil || c.S.IdempotencyKey != ""
	case ownTxCommand:
		return c.S.ID != nil || c.S.IdempotencyKey != ""
	case claimCommand:
		return c.R.RequestKey != "" && m.holdsLeases(c.R.InstanceID, c.R.RequestKey)
	case targetCommand:
		return c.R.RequestKey != ""
	case createCommand:
		return c.Cmd.IdempotencyKey != "" || c.C.RequestKey != ""
	case signalCommand:
		return c.Cmd.IdempotencyKey != "" || !c.Cmd.SignalID.IsZero() || c.C.RequestKey != ""
	case linkCommand:
		return c.O.RequestKey != ""
	case tokenCommand: // each read of one is recorded
		return c.O.RequestKey != ""
	default:
		return true
	}
}
