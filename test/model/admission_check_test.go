package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// records reads what a store holds of all jobs.
func (m *machine) records(s *subject) map[base.UUID]*core.Execution {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	want := store.Want{}
	for _, j := range m.w.jobs {
		want.Executions = append(want.Executions, j.id.UUID)
	}
	if len(want.Executions) == 0 {
		return nil
	}
	loaded, err := s.store.Read(ctx, want)
	if err != nil {
		m.d.t.Fatalf("%s: read: %v", s.name, err)
	}
	return loaded.Executions
}

// recordTexts writes every record byte for byte, if that is wanted.
func (m *machine) recordTexts(wanted bool) map[string][]string {
	all := map[string][]string{}
	if !wanted {
		return all
	}
	for _, s := range m.subjects {
		records := m.records(s)
		for _, j := range m.w.jobs {
			text, err := json.Marshal(records[j.id.UUID])
			if err != nil {
				m.d.t.Fatal(err)
			}
			all[s.name] = append(all[s.name], string(text))
		}
	}
	return all
}

func (m *machine) sameTexts(before, after map[string][]string) {
	if diff := cmp.Diff(before, after); diff != "" {
		m.d.t.Fatalf("SI2: a claim that matches nothing changed records (-before +after):\n%s", diff)
	}
}

// standing is a job as the account and the stores tell it alike.
type standing struct {
	Status   string
	Slots    []string
	Charged  []string
	Meters   map[string]int64
	Epoch    int64
	QueuedAt base.Time
}

func (m *machine) standing(j *job) standing {
	st := standing{Status: j.status, Slots: append([]string{}, j.holds...), Charged: []string{}, Meters: map[string]int64{}, Epoch: j.epoch, QueuedAt: j.queuedAt}
	for _, p := range j.charged {
		st.Charged = append(st.Charged, heldText(p.id, j.reserved[p]))
	}
	for name, n := range j.meters {
		if n > 0 {
			st.Meters[name] = n
		}
	}
	return st
}

// heldText writes what is reserved of a budget, without what is nothing.
func heldText(id base.UUID, amounts map[string]int64) string {
	left := map[string]int64{}
	for name, n := range amounts {
		if n > 0 {
			left[name] = n
		}
	}
	return fmt.Sprint(id, left)
}

// stored is the same as a store has it. One that is blocked must be so on a key that there is (S44, S47).
func (m *machine) stored(s *subject, j *job, x *core.Execution) standing {
	st := standing{Slots: []string{}, Charged: []string{}, Meters: map[string]int64{}, Epoch: x.LeaseEpoch, QueuedAt: x.QueuedAt}
	switch x.Status {
	case core.Ready:
		st.Status = waits
	case core.Blocked:
		st.Status = waits
		if x.Reason == core.PausedByOperator {
			st.Status = heldBack
		} else if !m.namesKey(j, x) {
			m.d.t.Fatalf("%s: %s is blocked (%s) on %q, which is not there, or not its", s.name, j.id, x.Reason, x.BlockedOn)
		}
	case core.Granted:
		st.Status = granted
	case core.Running:
		st.Status = runs
	case core.Delayed:
		st.Status = delayed
	case core.Suspended:
		st.Status = suspends
	default:
		st.Status = over
	}
	for _, key := range x.Holds {
		if strings.HasPrefix(key, "slots:") {
			st.Slots = append(st.Slots, key)
		}
	}
	if x.Reservation != nil {
		for _, hold := range x.Reservation.Holds {
			st.Charged = append(st.Charged, heldText(hold.Budget, hold.Remaining))
		}
	}
	for name, n := range x.Meters() {
		if n > 0 {
			st.Meters[name] = n
		}
	}
	return st
}

// namesKey reports whether an execution is blocked on a key that exists and concerns the job, for the reason that goes with it.
func (m *machine) namesKey(j *job, x *core.Execution) bool {
	if strings.HasPrefix(x.BlockedOn, "budget:") {
		return x.Reason == core.WaitingForBudget && slices.ContainsFunc(m.w.purses, func(p *purse) bool { return core.BudgetKey(p.id) == x.BlockedOn })
	}
	return x.Reason == core.WaitingForQuota && slices.ContainsFunc(j.needs, func(n need) bool {
		return m.w.quotas[n.quota] != nil && (n.rate() == x.BlockedOn || n.slots() == x.BlockedOn)
	})
}

// check compares what every store tells with the account, and looks at the invariants that the account itself must keep.
func (m *machine) check() {
	m.checkLimits()
	whole, closely := m.d.rarely("everything", 12), m.d.under("store", 2*len(m.subjects)) // the others are looked at the next time
	for i, s := range m.subjects {
		records := m.records(s)
		for _, j := range m.w.jobs {
			x := records[j.id.UUID]
			if x == nil {
				m.d.t.Fatalf("%s: %s is gone", s.name, j.id)
			}
			if diff := cmp.Diff(m.standing(j), m.stored(s, j, x)); diff != "" {
				m.d.t.Fatalf("SI5, SI7, BI2: %s (-account +%s):\n%s", j.id, s.name, diff)
			}
			if x.Status == core.Blocked && x.Reason != core.PausedByOperator {
				m.did("blocked on " + strings.SplitN(x.BlockedOn, ":", 2)[0])
				if slices.ContainsFunc(j.given, func(n need) bool { return n.rate() == x.BlockedOn || n.slots() == x.BlockedOn }) {
					m.did("default: blocked on one")
				}
			}
		}
		if i == closely {
			m.checkBudgets(s, records)
			m.checkQuotas(s, records)
		}
		if whole {
			m.checkWhole(s)
		}
	}
	m.checkExplain()
}

// checkLimits is BI1 and BI2 on the account: if they did not hold there, to agree with it would prove nothing.
func (m *machine) checkLimits() {
	for _, p := range m.w.purses {
		for name, a := range p.amounts {
			reserved := m.w.reserved(p, name)
			if a.used < 0 || reserved < 0 || a.overrun < 0 || a.hard > 0 && a.used+reserved > a.most() {
				m.d.t.Fatalf("BI1: %s of %s: %+v, %d reserved", name, p.id, *a, reserved)
			}
		}
	}
	for _, j := range m.w.jobs {
		if (len(j.charged) > 0 || len(j.starts) > 0) && j.status != granted && j.status != runs {
			m.d.t.Fatalf("BI2: %s is %s and is charged to budgets", j.id, j.status)
		}
	}
}

// spending is a budget as the account and the stores tell it alike (B39).
type spending struct {
	Epoch, Breaches, Soft, Holders int64
	Closed                         bool
	Next                           base.Time
	Blocked                        int
	Numbers                        map[string][5]int64 // used, reserved, overrun, effective limit, available
}

func (m *machine) checkBudgets(s *subject, records map[base.UUID]*core.Execution) {
	want := map[base.UUID]spending{}
	for _, p := range m.w.purses {
		sp := spending{Epoch: p.epoch, Breaches: p.breaches, Soft: p.soft, Holders: m.w.holders(p), Closed: p.closed, Next: p.next, Numbers: map[string][5]int64{}}
		for name, a := range p.amounts {
			n := [5]int64{a.used, m.w.reserved(p, name), a.overrun}
			if a.hard > 0 {
				n[3], n[4] = a.most(), a.most()-n[0]-n[1]
			}
			sp.Numbers[name] = n
		}
		for _, x := range records {
			if x.BlockedOn == core.BudgetKey(p.id) {
				sp.Blocked++
			}
		}
		want[p.id] = sp
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all := 500
	views, _, err := s.e.Budgets(ctx, reader, engine.BudgetQuery{Limit: &all})
	if err != nil {
		m.d.t.Fatalf("%s: list_budgets: %v", s.name, err)
	}
	got := map[base.UUID]spending{}
	for i := range views {
		v := &views[i]
		sp := spending{
			Epoch: v.Epoch, Breaches: v.Breaches, Soft: v.SoftBreaches, Holders: v.LiveHolds, Closed: v.Closed, Next: v.NextResetAt, Blocked: v.BlockedExecutions,
			Numbers: map[string][5]int64{},
		}
		for name, n := range v.Numbers {
			five := [5]int64{n.Used, n.Reserved, n.Overrun}
			if n.EffectiveHard != nil {
				five[3], five[4] = *n.EffectiveHard, *n.Available
			}
			sp.Numbers[name] = five
		}
		if len(v.Holders) != int(min(v.LiveHolds, 10)) {
			m.d.t.Fatalf("BI2: %s: budget %s has %d holders and shows %d", s.name, v.ID, v.LiveHolds, len(v.Holders))
		}
		got[v.ID] = sp
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.d.t.Fatalf("BI1..BI3, BI6: budgets (-account +%s):\n%s", s.name, diff)
	}
}

// rationing is a key of a quota as the account and the stores tell it alike (S39).
type rationing struct {
	Held, Admitted, Blocked int
	NextFree                base.Time
	Holders                 []string
}

func (m *machine) checkQuotas(s *subject, records map[base.UUID]*core.Execution) {
	want := map[string]rationing{}
	for id, r := range m.w.quotas {
		for _, key := range []string{"", "x", "y"} {
			n := need{id, key}
			one := rationing{Held: m.w.slotsInUse(n.slots()), Admitted: m.w.startsIn(n.rate(), r.window), NextFree: m.w.nextFree(n.rate(), r)}
			for _, j := range m.w.jobs {
				if x := records[j.id.UUID]; x.BlockedOn == n.rate() || x.BlockedOn == n.slots() {
					one.Blocked++
				}
				if slices.Contains(j.holds, n.slots()) {
					one.Holders = append(one.Holders, j.id.String())
				}
			}
			slices.Sort(one.Holders)
			if one.Held+one.Admitted+one.Blocked > 0 {
				want[n.text()] = one
			}
			if r.rate > 0 && one.Admitted > r.rate {
				m.did("more starts than a lowered limit")
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	views, _, err := s.e.Quotas(ctx, reader, "", nil)
	if err != nil {
		m.d.t.Fatalf("%s: list_quotas: %v", s.name, err)
	}
	got := map[string]rationing{}
	for _, v := range views {
		for _, k := range v.Keys {
			one := rationing{Held: k.Held, Admitted: k.Admitted, Blocked: k.Blocked, NextFree: k.NextFree}
			for _, id := range k.Holders {
				one.Holders = append(one.Holders, id.String())
			}
			slices.Sort(one.Holders)
			got[need{v.Quota.ID, k.Key}.text()] = one
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.d.t.Fatalf("S39, S42, SI7, SI8: quotas (-account +%s):\n%s", s.name, diff)
	}
}

// checkEpochs looks at the budgets right after a boundary, before the sweep (BI9): the old epoch is not seen.
func (m *machine) checkEpochs() {
	for _, p := range m.w.purses {
		if p.next == 0 {
			continue
		}
		for _, s := range m.subjects {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			got, err := s.e.Budget(ctx, reader, p.ref())
			cancel()
			if err != nil || got.Epoch != p.epoch || got.NextResetAt != p.next {
				m.d.t.Fatalf("BI9: %s shows epoch %d of %s until %s (%v), it is %d until %s", s.name, got.Epoch, p.id, got.NextResetAt, err, p.epoch, p.next)
			}
		}
	}
}

// checkWhole lets the engine recount (S42, U113), and compares ledgers, past epochs and events (BI3, BI11).
func (m *machine) checkWhole(s *subject) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, err := s.e.Integrity(ctx)
	if err != nil || len(report.Differences) > 0 {
		m.d.t.Fatalf("S42: %s: integrity: %+v, %v", s.name, report.Differences, err)
	}
	told := m.told[s.name]
	if err := told.follow(ctx, s); err != nil {
		m.d.t.Fatal(err)
	}
	for _, p := range m.w.purses {
		m.same(s, "BI11: events of "+p.id.String(), map[string]int64{"budget.hard_breach": p.breaches, "budget.soft_breach": p.soft, "budget.reset": p.epoch - 1}, told.counts(p.id))
		want := map[string]string{}
		for id, row := range p.ledger {
			if text := heldText(p.id, row); text != heldText(p.id, nil) {
				want[id.String()] = text
			}
		}
		rows, _, err := s.e.BudgetSpend(ctx, reader, p.ref(), engine.SpendQuery{})
		if err != nil {
			m.d.t.Fatalf("%s: list_spend: %v", s.name, err)
		}
		got := map[string]string{}
		for _, row := range rows {
			got[row.ExecutionID.UUID.String()] = heldText(p.id, row.Used)
		}
		m.same(s, "BI3: ledger of "+p.id.String(), want, got)
		m.checkPast(ctx, s, p)
	}
}

func (m *machine) checkPast(ctx context.Context, s *subject, p *purse) {
	epochs, _, err := s.e.BudgetEpochs(ctx, reader, p.ref(), "", nil)
	if err != nil || len(epochs) != len(p.past) {
		m.d.t.Fatalf("B40: %s shows %d past epochs of %s (%v), there are %d", s.name, len(epochs), p.id, err, len(p.past))
	}
	for i, epoch := range epochs { // newest first
		used := map[string]int64{}
		for name, u := range epoch.Dimensions {
			used[name] = u.Used
		}
		m.same(s, "B40: past epoch of "+p.id.String(), p.past[len(p.past)-1-i], used)
	}
}

// budgetEvents counts the events of budgets that one store has told.
type budgetEvents struct {
	cursor string
	seen   map[string]map[string]int64
}

func newBudgetEvents() *budgetEvents {
	return &budgetEvents{cursor: "start", seen: map[string]map[string]int64{}}
}

func (b *budgetEvents) follow(ctx context.Context, s *subject) error {
	for {
		page, err := s.e.ReadEvents(ctx, reader, engine.EventsRequest{After: b.cursor, Limit: 1000})
		if err != nil {
			return fmt.Errorf("%s: read events: %w", s.name, err)
		}
		b.cursor = page.Next
		for _, logged := range page.Events {
			var data struct {
				Budget string `json:"budget_id"`
			}
			if !strings.HasPrefix(logged.Kind, "budget.") || json.Unmarshal(logged.Data.JSON(), &data) != nil {
				continue
			}
			if b.seen[data.Budget] == nil {
				b.seen[data.Budget] = map[string]int64{}
			}
			b.seen[data.Budget][logged.Kind]++
		}
		if page.AtEnd {
			return nil
		}
	}
}

func (b *budgetEvents) counts(id base.UUID) map[string]int64 {
	counts := map[string]int64{}
	for _, kind := range []string{"budget.hard_breach", "budget.soft_breach", "budget.reset"} {
		counts[kind] = b.seen[id.String()][kind]
	}
	return counts
}
