package core

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// market drives several executions under several budgets by random commands. The bank holds them to BI1, BI2, BI3 and BI11 after every
// command; here stands a second account of everything that was asked for (BI4, BI5, BI6, BI7, BI9, BI10).
type market struct {
	*bank
	draw    *rapid.T
	budgets []base.UUID
	set     []base.UUID // of every claim, in order
	fences  map[*story]Fence
	reports int64               // tokens that were accepted, of reports, charges and exits
	forfeit map[base.UUID]int64 // tokens
	back    map[base.UUID]int64 // tokens that releases gave back
	done    map[string]int
}

var marketBudgets = []string{
	`{"name":"a","dimensions":{"tokens":{"hard":300,"soft":100,"default_reserve":20},"wall_ms":{"hard":5000}},"on_lease_loss":"forfeit",
		"reset":{"type":"interval","every_ms":60000}}`,
	`{"name":"b","dimensions":{"tokens":{"hard":500}},"on_hard":"fail"}`,
	`{"name":"c","dimensions":{"tokens":{"soft":50}}}`,
	`{"name":"d","dimensions":{"tokens":{"hard":90,"default_reserve":5}},"on_hard":"suspend_for_approval","approval":{"default_raise":{"tokens":100}},
		"reset":{"type":"calendar","unit":"hour","timezone":"Asia/Kolkata"}}`,
	`{"name":"e","dimensions":{"tokens":{"hard":350}},"on_hard":"cancel_running"}`,
}

func TestBI1_BI2_BI3_BI4_BI5_BI6_BI7_BI9_BI10_BI11_hold_over_random_lives(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	done := map[string]int{}
	names, _ := (&market{}).actions()
	life := func(t *rapid.T) {
		m := openMarket(t)
		_, actions := m.actions()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "action")
			if actions[name]() {
				m.done[name]++
			}
			m.check()
		}
		m.finish()
		mu.Lock()
		defer mu.Unlock()
		for name, n := range m.done {
			done[name] += n
		}
	}
	never := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return done[name] > 0 })
	}
	testseed.Rounds(t, 1, 10, never, life)
}

func openMarket(t *rapid.T) *market {
	m := &market{bank: openBank(t), draw: t, fences: map[*story]Fence{}, forfeit: map[base.UUID]int64{}, back: map[base.UUID]int64{}, done: map[string]int{}}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(marketBudgets)-1), 1, 3, rapid.ID[int]).Draw(t, "budgets") {
		id := m.open(marketBudgets[i])
		m.budgets, m.set = append(m.budgets, id), append(m.set, id)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "executions") {
		m.submit([]string{`{}`, `{"estimate":{"tokens":60}}`, `{"estimate":{"tokens":0,"wall_ms":700}}`}[i])
	}
	return m
}

func (m *market) actions() ([]string, map[string]func() bool) {
	type action struct {
		name string
		run  func() bool
	}
	list := []action{
		{"clock", m.tick},
		{"claim", m.claimOne},
		{"report", func() bool { return m.reportOne(false) }},
		{"report spent", func() bool { return m.reportOne(true) }},
		{"complete with usage", func() bool {
			return m.leave(func(s *story, usage map[string]int64) error { return s.completeWith(usage) })
		}},
		{"hand back", func() bool {
			return m.leave(func(s *story, _ map[string]int64) error { _, err := s.release(m.fences[s]); return err })
		}},
		{"delay with usage", func() bool {
			return m.leave(func(s *story, usage map[string]int64) error { return s.delayWith(usage) })
		}},
		{"revoke", m.revokeOne},
		{"decide", m.decideOne},
		{"charge", m.chargeOne},
		{"release", m.releaseOne},
		{"reset", m.resetOne},
		{"limit", m.limitOne},
	}
	names, byName := make([]string, len(list)), map[string]func() bool{}
	for i, a := range list {
		names[i], byName[a.name] = a.name, a.run
	}
	return names, byName
}

func (m *market) pick() *story { return rapid.SampledFrom(m.runs).Draw(m.draw, "execution") }

func (m *market) amount() int64 { return rapid.Int64Range(0, 120).Draw(m.draw, "amount") }

// lost notes what an execution would forfeit if it lost its lease now.
func (m *market) lost(s *story) {
	if s.x.Reservation == nil {
		return
	}
	for _, hold := range s.x.Reservation.Holds {
		if m.budget(hold.Budget).OnLeaseLoss == OnLossForfeit {
			m.forfeit[hold.Budget] += hold.Remaining["tokens"]
		}
	}
}

func (m *market) tick() bool {
	ms := rapid.SampledFrom([]base.Millis{50, 700, 3000, 40_000, base.Hour, base.Day}).Draw(m.draw, "ms")
	m.now = m.now.Add(ms)
	for _, s := range m.runs {
		before, after := s.x.Clone(), s.x
		m.on(s, func() { s.settle(); after = s.x })
		if before.Status == Running && after.LastLease != nil && after.LastLease.End == EndExpired && after.LastLease.Epoch == before.LeaseEpoch {
			m.lost(&story{x: before})
		}
	}
	return true
}

// claimOne holds admission to BI10 by arithmetic of its own.
func (m *market) claimOne() bool {
	s := m.pick()
	m.on(s, s.settle)
	if !s.x.Queued() {
		return false
	}
	fits := true
	for _, id := range m.set {
		for name, d := range m.budget(id).at(m.now).Dimensions {
			need, given := s.x.Policy.Estimate[name]
			if !given && d.DefaultReserve != nil {
				need = *d.DefaultReserve
			}
			if name == WallMS && !given {
				need = 1
			}
			fits = fits && (d.Hard == nil || d.Used+d.Reserved+max(need, 1) <= *d.Hard+d.Raised+d.Carried)
		}
	}
	if refusal := m.claim(s, m.set...); (refusal == nil) != fits {
		m.t.Fatalf("BI10: fits %v, refused %+v", fits, refusal)
	}
	if fits {
		m.fences[s] = s.fence()
	}
	return fits
}

func (m *market) numbers() string {
	text := ""
	for _, id := range m.budgets {
		for _, name := range m.budget(id).dimensionNames() {
			d := m.budget(id).Dimensions[name]
			text += fmt.Sprint(name, d.Used, d.Overrun)
		}
	}
	return text
}

func (m *market) reportOne(already bool) bool {
	s, n := m.pick(), m.amount()
	key := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(m.draw, "key")
	m.on(s, s.settle)
	if err := m.do(func(*Effects) error { return nil }); err != nil {
		m.t.Fatalf("%v", err)
	}
	numbers, meter := m.numbers(), s.x.Usage["tokens"]
	o, err := m.report(s, m.fences[s], amounts("tokens", n), func(c *UsageCommand) { c.AlreadySpent, c.DedupKey = already, key })
	if err != nil {
		return false
	}
	switch {
	case o.Repeated || !o.Applied:
		if s.x.Usage["tokens"] != meter || s.x.Status == Running && m.numbers() != numbers {
			m.t.Fatalf("BI5, BI6: %+v changed %s to %s", o, numbers, m.numbers())
		}
	default:
		m.reports += n
	}
	return true
}

func (m *market) leave(leave func(s *story, usage map[string]int64) error) bool {
	s, n := m.pick(), m.amount()
	m.on(s, s.settle)
	if m.fences[s] == (Fence{}) {
		return false
	}
	meter := s.x.Usage["tokens"]
	var err error
	m.on(s, func() { err = leave(s, amounts("tokens", n)) })
	m.reports += s.x.Usage["tokens"] - meter
	return err == nil
}

func (s *story) completeWith(usage map[string]int64) error {
	f := s.latestFence()
	return s.do(func(fx *Effects) error {
		_, err := s.x.Complete(fx, Completion{Fence: f, Usage: usage, Recorded: s.recorded(f.Epoch)})
		return err
	})
}

func (s *story) delayWith(usage map[string]int64) error {
	f := s.latestFence()
	return s.do(func(fx *Effects) error {
		_, err := s.x.Delay(fx, DelayCommand{Fence: f, Until: fx.Now, Usage: usage, Recorded: s.recorded(f.Epoch)})
		return err
	})
}

// latestFence is that of the lease that is held, or of the one that ended last.
func (s *story) latestFence() Fence {
	if s.x.Lease != nil {
		return s.fence()
	}
	if last := s.x.LastLease; last != nil {
		return Fence{LeaseID: last.ID, Epoch: last.Epoch, AttemptID: last.AttemptID}
	}
	return Fence{LeaseID: base.UUID{1}, Epoch: 1, AttemptID: base.UUID{1}}
}

func (m *market) revokeOne() bool {
	s := m.pick()
	m.on(s, s.settle)
	if s.x.Status != Running {
		return false
	}
	m.lost(s)
	m.on(s, func() { must[RevokeAnswer](m.t)(s.revoke(false)) })
	return true
}

func (m *market) decideOne() bool {
	s, name := m.pick(), rapid.SampledFrom([]string{"budget_approved", "budget_denied"}).Draw(m.draw, "decision")
	m.on(s, s.settle)
	if s.x.Status != Suspended {
		return false
	}
	m.on(s, func() { must[SignalAnswer](m.t)(s.approve(ApproveCommand{Principal: "ann", Name: name})) })
	return true
}

func (m *market) chargeOne() bool {
	s := m.pick()
	m.on(s, s.settle)
	meter := s.x.Usage["tokens"]
	for _, id := range m.budgets { // each, so that all of them have taken the same
		if _, err := m.bank.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 3), AlreadySpent: true}, nil); err != nil {
			m.t.Fatalf("charge: %v", err)
		}
	}
	if s.x.Usage["tokens"] != meter {
		m.t.Fatalf("a charge without execution is metered")
	}
	m.reports += 3
	return true
}

func (m *market) releaseOne() bool {
	s, id := m.pick(), rapid.SampledFrom(m.budgets).Draw(m.draw, "budget")
	released := m.release(id, s.x.ID)["tokens"]
	m.back[id] += released
	if again := m.release(id, s.x.ID)["tokens"]; again != 0 {
		m.t.Fatalf("BI7: a second release gives %d back", again)
	}
	return released > 0
}

func (m *market) resetOne() bool {
	id := rapid.SampledFrom(m.budgets).Draw(m.draw, "budget")
	if err := m.do(func(fx *Effects) error { return m.books.Reset(fx, id) }); err != nil {
		m.t.Fatalf("reset: %v", err)
	}
	return true
}

func (m *market) limitOne() bool {
	id := rapid.SampledFrom(m.budgets).Draw(m.draw, "budget")
	changed, err := m.update(id, hard("tokens", rapid.Int64Range(100, 600).Draw(m.draw, "limit")))
	return err == nil && changed
}

// check weighs everything that was ever booked against everything that was asked for (BI3, BI4), and the epochs against the schedule.
func (m *market) check() {
	for _, id := range m.budgets {
		b := m.budget(id)
		booked := b.Dimensions["tokens"].Used + b.Dimensions["tokens"].Overrun
		for i, epoch := range m.epochs {
			if epoch.Budget == id {
				booked += epoch.Dimensions["tokens"].Used + epoch.Dimensions["tokens"].Overrun
				if slices.ContainsFunc(m.epochs[:i], func(e EpochRecord) bool { return e.Budget == id && e.Epoch == epoch.Epoch }) {
					m.t.Fatalf("BI9: epoch %d ended twice", epoch.Epoch)
				}
			}
		}
		if want := m.reports + m.forfeit[id] - m.back[id]; booked != want {
			m.t.Fatalf("BI4: %s has booked %d, asked for were %d: %d reported, %d forfeited, %d given back", b.Name, booked, want, m.reports, m.forfeit[id], m.back[id])
		}
		if b.NextResetAt != 0 && b.Reset.next(b.NextResetAt-1) != b.NextResetAt {
			m.t.Fatalf("BI9: the next reset at %s is not on the schedule", b.NextResetAt)
		}
	}
}

// finish ends everything: nothing stays reserved (BI2).
func (m *market) finish() {
	for _, s := range m.runs {
		m.on(s, func() { s.settle(); _, _ = s.cancel(nil) })
	}
	for _, id := range m.budgets {
		for name, d := range m.budget(id).Dimensions {
			if d.Reserved != 0 || m.budget(id).LiveHolds != 0 {
				m.t.Fatalf("BI2: %d of %s stay reserved", d.Reserved, name)
			}
		}
	}
}
