package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// machine sends commands about quotas, budgets and grants to the engines on all stores, and to the account.
type machine struct {
	d        *drawing
	w        *account
	clock    *sleepy.Clock
	subjects []*subject
	tally    *tally
	number   uint32
	made     int // jobs
	budgets  int
	told     map[string]*budgetEvents // by store
	crew     []instance               // that are registered
	money    bool                     // it is a case about budgets
	timed    bool                     // some of them limit time
	lenient  bool                     // and let go on what has used it up
	waiting  *queuer                  // a claim; nil: none
	doing    string                   // what was done last
	outset   outset
	jumps    int
	chances  []action
}

func newMachine(rt *rapid.T, tb testing.TB, successes *tally) *machine {
	c, d := sleepy.New(), &drawing{t: rt}
	from := pickOne(d, "outset", outsets()...)
	c.Step(from.at.Sub(c.Now()))
	m := &machine{
		d: d, outset: from, clock: c, tally: successes, told: map[string]*budgetEvents{},
		w: &account{
			now: c.StoreNow, did: successes.count, quotas: map[string]*ration{}, starts: map[string][]*start{},
			lanes: map[string]*track{"a": {open: true}, "b": {open: true}, "c": {open: true}},
		},
		subjects: openSubjects(tb, c),
	}
	for _, s := range m.subjects {
		m.told[s.name] = newBudgetEvents()
	}
	return m
}

// each runs a call on every store. do returns its error, which must have the code. A claim that waits gets what there is then.
func (m *machine) each(what string, code base.Code, do func(ctx context.Context, s *subject) error) {
	m.tell(what, code, do)
	m.serve()
}

// tell is each for what is not done before the follow-up work is: it is not checked yet whether a claim gets something.
func (m *machine) tell(what string, code base.Code, do func(ctx context.Context, s *subject) error) {
	m.number++
	m.doing, _, _ = strings.Cut(what, " ")
	m.d.t.Logf("%d at %s: %s: %q", m.number, m.w.now(), what, code)
	for _, s := range m.subjects {
		s.begin(m.number)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := do(ctx, s)
		cancel()
		if base.CodeOf(err) != code {
			m.d.t.Fatalf("%s: the account says %q, %s says %v", what, code, s.name, err)
		}
	}
	if code != "" {
		m.tally.count("refused: " + string(code))
	}
}

// same fails unless a store answered what the account says.
func (m *machine) same(s *subject, what string, want, got any) {
	if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); a != b {
		m.d.t.Fatalf("%s: the account says\n%s\n%s says\n%s", what, a, s.name, b)
	}
}

// rest waits until the loops of the engines have nothing to do before somebody is woken.
func (m *machine) rest() {
	if err := rest(m.subjects); err != nil {
		m.d.t.Fatal(err)
	}
}

// sweep lets the loops of the engines act on everything that is due, and follow-up work come to its end.
func (m *machine) sweep() {
	for busy := true; busy; busy = m.clock.Wake() {
		m.rest()
	}
}

// pass lets time go by. It stops wherever a timer is due, so that each acts at its moment.
func (m *machine) pass(d time.Duration) {
	target := m.w.now().Add(d.Milliseconds())
	m.d.t.Logf("%s pass", d)
	for m.w.now() < target {
		at := target
		for _, due := range []base.Time{m.w.due(), m.waitsUntil()} {
			if due != 0 && due < at {
				at = due
			}
		}
		if !m.part(at) && !m.avoid(at) {
			m.step(at)
		}
	}
}

// step moves the time to a moment, and lets act what is due.
func (m *machine) step(at base.Time) {
	m.rest()
	m.doing = "time"
	if slices.ContainsFunc(m.w.purses, func(p *purse) bool { return p.next == at }) {
		m.doing = "reset"
	}
	m.clock.Step(time.Duration(at.Sub(m.w.now())) * time.Millisecond)
	m.w.wake()
	m.checkEpochs()
	m.sweep()
	m.serve()
}

// instance is a worker of these tests.
type instance struct {
	id    string
	lanes []string
	caps  []string
}

// crew is who claims, and able is who takes everything once it is there. Nobody else takes from lane c.
var (
	crew = []instance{{"i1", []string{"a", "b"}, nil}, {"i2", []string{"a", "b"}, []string{"gpu"}}}
	able = instance{"i3", []string{"a", "b", "c"}, []string{"fpga", "gpu"}}
)

// register makes an instance known for longer than a case lasts.
func (m *machine) register(i instance) {
	if slices.ContainsFunc(m.crew, func(known instance) bool { return known.id == i.id }) {
		return
	}
	m.crew = append(m.crew, i)
	m.each("register "+i.id, "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Register(ctx, client, core.Registration{
			WorkerID: workerOf(i.id), InstanceID: i.id, Lanes: i.lanes, Capabilities: i.caps, LivenessTTLMS: base.Hour,
		})
		return err
	})
}

// action is one kind of command, drawn so often.
type action struct {
	name   string
	weight int
	run    func(m *machine)
}

// aboutMoney are the actions that are drawn more often in a case about budgets.
var aboutMoney = []string{"claim", "report_usage", "resume", "charge", "release_budget", "update_budget", "reopen_budget"}

// chances lists every action as often as it is to be drawn.
func chances(money bool) (all []action) {
	for _, a := range actions {
		if money && slices.Contains(aboutMoney, a.name) {
			a.weight *= 3
		}
		all = append(all, slices.Repeat([]action{a}, a.weight)...)
	}
	return all
}

func (m *machine) act() {
	if m.d.rarely("time passes", map[bool]int{true: 3, false: 5}[m.timed]) {
		if m.jumps < mostJumps && m.d.rarely("much time", 6) {
			m.jump()
		} else {
			m.pass(pickOne(m.d, "pause", admissionPauses...))
		}
	}
	for before := m.number; m.number == before; { // some find nothing to act on
		pickOne(m.d, "action", m.chances...).run(m)
	}
	m.check()
}

var admissionPauses = []time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond, time.Second, time.Second, 2 * time.Second,
	5 * time.Second, 5 * time.Second, 30 * time.Second, time.Minute,
}

// admissionHappenings must each be seen in a run: else it proves nothing about them.
var admissionHappenings = []string{
	"a claim that matches nothing", "a limit below the slots in use", "a late command", "a late report", "a report again", "hand_to",
	"budget_approved", "budget_denied", "blocked on rate", "blocked on slots", "blocked on budget",
	"default: added", "default: named already", "default: gone", "default: keeps its quota", "default: blocked on one", "refused: invalid_argument",
	"waited for work, submit", "waited for rate, time", "waited for rate, put_quota", "waited for slots, complete", "waited for slots, put_quota",
	"waited for budget, reset", "waited for budget, reset_budget", "waited for budget, update_budget", "waited for budget, reopen_budget",
	"waited in vain", "waited and gave up",
	"time: extended", "time: the rest", "time: overrun", "time: breach none", "time: breach failed", "time: breach suspended", "time: breach cancelled",
	"reset: hour", "reset: day", "reset: week", "reset: month", "reset: a day of 23h0m0s", "reset: a day of 25h0m0s", "reset: missed ones", "refused: reserved_dimension",
	"report: ok none", "report: soft_breach none", "report: hard_breach none", "report: hard_breach failed", "report: hard_breach suspended", "report: hard_breach cancelled",
	"explained: suspended", "explained: delay", "explained: operator_hold", "explained: grant", "explained: lane_state", "explained: lane_cap",
	"explained: no_live_worker", "explained: no_capable_worker", "explained: budget", "explained: rate", "explained: slots",
	"refused: admission_refused", "refused: invalid_policy", "refused: quota_in_use", "refused: budget_in_use", "refused: limit_below_usage",
	"refused: grant_signature_mismatch", "refused: grant_unknown", "refused: idempotency_conflict", "refused: budget_closed",
}

func TestSI1_SI2_SI3_SI5_SI6_SI7_SI8_SI9_SI10_SI12_SI14_BI1_to_BI11_a_second_account_of_quotas_budgets_and_grants_agrees_with_every_store(t *testing.T) {
	t.Parallel()
	successes := &tally{succeeded: map[string]int{}}
	life := func(rt *rapid.T) {
		m := newMachine(rt, caseTB{TB: t, cleanup: rt.Cleanup}, successes)
		m.begin()
		for range 10 + m.d.under("actions", 30) {
			m.act()
		}
		m.withdraw()
		for _, s := range m.subjects {
			m.checkWhole(s)
		}
	}
	never := func() (missing []string) {
		wanted := slices.Clone(admissionHappenings)
		for _, a := range actions {
			wanted = append(wanted, a.name)
		}
		return successes.without(wanted)
	}
	testseed.Rounds(t, leastRounds, mostRounds, never, life)
	t.Logf("successes: %v", successes.succeeded)
}

// without lists what was not counted.
func (c *tally) without(wanted []string) (missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range wanted {
		if c.succeeded[what] == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

// lower lets two jobs hold the slots of a quota and then allows one (S43).
func (m *machine) lower() {
	r := rations["q1"]
	r.slots = 2
	m.setQuota("q1", r)
	for range 2 {
		m.made++
		j := m.newJob()
		j.lane, j.needs = "b", []need{{"q1", ""}}
		m.send(j)
	}
	m.claimWith(engine.ClaimRequest{WorkerID: workerOf("i2"), InstanceID: "i2", Capabilities: []string{"gpu"}, LaneOrder: "listed", Max: 10, Lanes: []string{"b"}}, 90_000)
	r.slots = 1
	m.setQuota("q1", r)
}

// begin makes some quotas, budgets and work, so that commands meet something.
func (m *machine) begin() {
	m.money = coin.Draw(m.d.t, "about money")
	m.timed, m.lenient = m.money && !m.d.rarely("time does not matter", 3), coin.Draw(m.d.t, "lenient")
	m.chances = chances(m.money)
	for _, i := range crew {
		m.register(i)
	}
	if m.timed {
		m.useUpTime()
	}
	for _, id := range []string{"q1", "q2"} {
		r := rations[id]
		r.rate, r.slots = pickOne(m.d, "rate", 0, 1, 2, 3), pickOne(m.d, "slots", 0, 1, 1, 2)
		m.setQuota(id, r)
	}
	m.createBudget()
	if m.money {
		m.createBudget()
	}
	for range 4 {
		m.submit()
	}
	m.claim()
	if !m.money && m.d.rarely("a lowered limit", 3) {
		m.lower()
	}
	m.check()
}
