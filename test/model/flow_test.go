package model

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// loom sends commands about flows to the engines on all stores, and to the second account.
type loom struct {
	t        reporter
	d        *drawing // nil where nothing is drawn: in a fixed story
	w        *fabric
	clock    *sleepy.Clock
	subjects []*subject
	tally    *tally
	number   uint32
	made     int                    // things with a name of their own
	told     map[string]*flowEvents // by store
	chances  []craft
}

// reporter is how a case logs what it does, and fails.
type reporter interface {
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

func newLoom(rt *rapid.T, tb testing.TB, successes *tally) *loom {
	m := newStory(tb, successes)
	m.t, m.d = rt, &drawing{t: rt}
	for _, c := range crafts {
		m.chances = append(m.chances, slices.Repeat([]craft{c}, c.weight)...)
	}
	return m
}

// newStory is a loom for commands that a test spells out.
func newStory(tb testing.TB, successes *tally) *loom {
	c := sleepy.New()
	m := &loom{
		t: tb, clock: c, tally: successes, told: map[string]*flowEvents{},
		w:        &fabric{now: c.StoreNow, happened: successes.count},
		subjects: openSubjects(tb, c),
	}
	for _, s := range m.subjects {
		m.told[s.name] = &flowEvents{cursor: "start", kinds: map[base.UUID][]string{}}
	}
	return m
}

// each runs a call on every store, which must return an error of the code, and then lets the account and the engines do what follows.
func (m *loom) each(what string, code base.Code, do func(ctx context.Context, s *subject) error) {
	m.number++
	m.t.Logf("%d at %s: %s: %q", m.number, m.w.now(), what, code)
	for _, s := range m.subjects {
		s.begin(m.number)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := do(ctx, s)
		cancel()
		if base.CodeOf(err) != code {
			m.t.Fatalf("%s: the account says %q, %s says %v", what, code, s.name, err)
		}
	}
	if code != "" {
		m.tally.count("refused: " + string(code))
	}
	m.w.follow()
	m.sweep()
	m.find()
}

// same fails unless a store answered what the account says.
func (m *loom) same(s *subject, what string, want, got any) {
	if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); a != b {
		m.t.Fatalf("%s: the account says\n%s\n%s says\n%s", what, a, s.name, b)
	}
}

// sweep lets the engines act on everything that is due, and follow-up work come to its end.
func (m *loom) sweep() {
	for busy := true; busy; busy = m.clock.Wake() {
		if err := rest(m.subjects); err != nil {
			m.t.Fatal(err)
		}
	}
}

// pass lets time go by. It stops wherever a timer is due, so that each acts at its moment.
func (m *loom) pass(d time.Duration) {
	target := m.w.now().Add(d.Milliseconds())
	m.t.Logf("%s pass", d)
	for m.w.now() < target {
		at := target
		if due := m.w.due(); due != 0 && due < target {
			at = due
		}
		m.clock.Step(time.Duration(at.Sub(m.w.now())) * time.Millisecond)
		m.w.wake()
		m.sweep()
		m.find()
	}
}

// craft is one kind of command, drawn so often.
type craft struct {
	name   string
	weight int
	run    func(m *loom)
}

// crafts is every kind of command about flows. Each must succeed at least once in a run.
var crafts = []craft{
	{"submit_flow", 5, (*loom).submitFlow},
	{"create_flow", 1, (*loom).createFlow},
	{"extend_flow", 5, (*loom).extendFlow},
	{"seal", 2, (*loom).sealFlow},
	{"set_join", 2, (*loom).setJoin},
	{"cancel_flow", 2, (*loom).cancelFlow},
	{"submit", 2, (*loom).submitOne},
	{"claim", 8, (*loom).claim},
	{"operator_claim", 3, (*loom).claimOne},
	{"grant", 1, (*loom).grant},
	{"complete", 8, (*loom).complete},
	{"fail", 5, (*loom).fail},
	{"cancel", 2, (*loom).cancel},
	{"hold", 1, (*loom).hold},
	{"release_hold", 2, (*loom).releaseHold},
	{"suspend", 2, (*loom).suspend},
	{"resume", 2, (*loom).resume},
	{"delay", 1, (*loom).delay},
	{"release", 1, (*loom).handBack},
	{"replay", 6, (*loom).replay},
	{"spawn", 4, (*loom).spawn},
	{"wait_for_children", 5, (*loom).waitForChildren},
	{"spawn_and_wait", 2, (*loom).spawnAndWait},
}

func (m *loom) did(op string) { m.tally.count(op) }

func (m *loom) act() {
	if m.d.rarely("time passes", 6) {
		m.pass(pickOne(m.d, "pause", 100*time.Millisecond, 500*time.Millisecond, time.Second, 2*time.Second, 10*time.Second, time.Minute))
	}
	for before := m.number; m.number == before; { // some find nothing to act on
		pickOne(m.d, "craft", m.chances...).run(m)
	}
	m.check()
}

// flowHappenings must each be seen in a run: else it proves nothing about them.
var flowHappenings = []string{
	"join: satisfied", "join: impossible", "join: overridden", "a quorum out of reach", "an edge from one that has ended",
	"lost: join_satisfied", "lost: join_impossible", "a candidate that is still needed", "a failure that somebody took care of",
	"flow: completed", "flow: failed", "flow: cancelled", "flow: reopened", "a stronger cancel", "already_terminal",
	"a sub-flow", "sub-flow: completed", "sub-flow: failed", "sub-flow: cancelled", "a sub-flow opened again", "a new sub-flow",
	"a cancel of what is pending in a sub-flow",
	"parent: children", "parent: children_impossible", "parent: children_timeout", "wait: satisfied", "wait: impossible", "wait: timeout",
	"a child spawned again", "parent cancel_on_failure: succeeded", "parent cancel_on_failure: failed", "parent cancel: succeeded", "parent detach: failed",
	"inputs", "an input without bytes", "expired", "a lease that lapsed", "submitted again", "joined late", "unchanged",
	"replay none", "replay skipped", "replay all", "replay of a skipped member", "a quorum of several",
	"refused: dependencies_impossible", "refused: descendant_active", "refused: max_replays_exhausted", "refused: execution_not_terminal",
	"refused: flow_already_terminal", "refused: flow_sealed", "refused: stale_graph_revision", "refused: name_taken", "refused: join_already_fixed",
	"refused: join_already_decided", "refused: downstream_already_started", "refused: cycle_detected", "refused: dependency_already_exists",
	"refused: child_not_found", "refused: quorum_exceeds_edges", "refused: join_without_edges", "refused: unknown_name", "refused: self_referencing_edge",
	"refused: execution_already_in_flow", "refused: execution_not_eligible",
}

func TestFI1_to_FI14_a_second_account_of_flows_agrees_with_every_store(t *testing.T) {
	t.Parallel()
	successes := &tally{succeeded: map[string]int{}}
	life := func(rt *rapid.T) {
		m := newLoom(rt, caseTB{TB: t, cleanup: rt.Cleanup}, successes)
		m.submitFlow()
		m.check()
		for range 15 + m.d.under("actions", 30) {
			m.act()
		}
		for _, s := range m.subjects {
			m.checkWhole(s)
		}
	}
	never := func() []string {
		wanted := slices.Clone(flowHappenings)
		for _, c := range crafts {
			wanted = append(wanted, c.name)
		}
		return successes.without(wanted)
	}
	testseed.Rounds(t, leastRounds, mostRounds, never, life)
	t.Logf("successes: %v", successes.succeeded)
}
