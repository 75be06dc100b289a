package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// cutQuota takes a blocking key apart: its kind, and the quota that it is of.
func cutQuota(key string) (kind, quota string) {
	kind, rest, _ := strings.Cut(key, ":")
	quota, _, _ = strings.Cut(rest, "/")
	return kind, quota
}

// purse is the one with a scope of this type; nil: there is none.
func (m *machine) purse(kind string) *purse {
	for _, p := range m.w.purses {
		if p.scope.Type == kind {
			return p
		}
	}
	return nil
}

func (m *machine) exists(p *purse) bool { return slices.Contains(m.w.purses, p) }

// anyPurse picks one; nil: there is none.
func (m *machine) anyPurse() *purse {
	if len(m.w.purses) == 0 {
		return nil
	}
	return pickOne(m.d, "budget", m.w.purses...)
}

// budgetScopes are those of which there is at most one budget each.
var budgetScopes = []core.BudgetScope{
	{Type: core.ScopeNamespace}, {Type: core.ScopeLane, Value: "a"}, {Type: core.ScopeTag, Value: "t=1"}, {Type: core.ScopeNone},
}

// define draws a budget. Times of resets fall between all others.
func (m *machine) define(name string, scope core.BudgetScope) (*purse, core.BudgetDefinition) {
	m.budgets++
	p := &purse{
		id: base.UUID{0: 4, 6: 0x70, 8: 0x80, 15: byte(m.budgets)}, name: name, scope: scope, amounts: map[string]*amount{}, epoch: 1,
		onHard:   pickOne(m.d, "on hard", m.reactions()...),
		forfeits: m.d.rarely("forfeits", 3), ledger: map[base.UUID]map[string]int64{}, receipts: map[string]receipt{},
	}
	d := core.BudgetDefinition{ID: p.id, Name: name, Scope: scope, Dimensions: map[string]core.BudgetLimits{}, OnHard: p.onHard}
	if p.forfeits {
		d.OnLeaseLoss = core.OnLossForfeit
	}
	for _, dimension := range pickOne(m.d, "dimensions", []string{"tok"}, []string{"tok"}, []string{"tok", "usd"}) {
		a := &amount{
			hard: pickOne(m.d, "hard", int64(0), 8, 20, 40, 60), soft: pickOne(m.d, "soft", int64(0), 0, 5), reserve: pickOne(m.d, "reserve", int64(0), 0, 2, 5),
		}
		p.amounts[dimension], d.Dimensions[dimension] = a, a.limits()
	}
	if m.timed {
		a := m.timeLimit()
		p.amounts[core.WallMS], d.Dimensions[core.WallMS] = a, a.limits()
	}
	d.Reset = m.plan(p)
	return p, d
}

func limitOf(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func (a *amount) limits() core.BudgetLimits {
	return core.BudgetLimits{Hard: limitOf(a.hard), Soft: limitOf(a.soft), DefaultReserve: limitOf(a.reserve)}
}

func (p *purse) ref() engine.BudgetRef {
	return engine.BudgetRef{Namespace: home, Budget: p.id.String()}
}

func (m *machine) createBudget() {
	var free []core.BudgetScope
	for _, scope := range budgetScopes {
		if m.purse(scope.Type) == nil {
			free = append(free, scope)
		}
	}
	if len(free) == 0 {
		return
	}
	scope := pickOne(m.d, "scope", free...)
	p, d := m.define("b "+scope.Type, scope)
	if m.d.rarely("parent", 2) {
		if p.parent = m.anyPurse(); p.parent != nil {
			d.Parent = p.parent.name
		}
	}
	m.w.purses = append(m.w.purses, p)
	m.did("create_budget")
	m.each(fmt.Sprintf("create_budget %s under %q %+v", p.id, d.Parent, p.numbers()), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.CreateBudget(ctx, operator, home, d, engine.AdminAction{})
		return err
	})
}

// numbers shows the dimensions of a purse.
func (p *purse) numbers() map[string]amount {
	all := map[string]amount{}
	for name, a := range p.amounts {
		all[name] = *a
	}
	return all
}

// updateBudget changes the limits of a dimension. One below what is used and reserved is refused (B4).
func (m *machine) updateBudget() {
	p := m.anyPurse()
	inUse := func(p *purse) bool { return p.amounts["tok"].used+m.w.reserved(p, "tok") > 6 }
	if at := slices.IndexFunc(m.w.purses, inUse); at >= 0 && m.d.rarely("too low", 3) {
		m.setHard(m.w.purses[at], "tok", 6)
		return
	}
	switch {
	case p == nil:
	case p.amounts[core.WallMS] != nil && m.d.rarely("time", 2):
		m.setHard(p, core.WallMS, pickOne(m.d, "hard", int64(1000), 4000, 30_000))
	default:
		m.setHard(p, "tok", pickOne(m.d, "hard", int64(6), 10, 30, 60))
	}
}

func (m *machine) setHard(p *purse, dimension string, hard int64) {
	a := p.amounts[dimension]
	code := base.Code("")
	switch {
	case a.soft > hard || a.reserve > hard:
		code = base.CodeInvalidBudget
	case (a.hard == 0 || hard < a.hard) && hard < a.used+m.w.reserved(p, dimension):
		code = base.CodeLimitBelowUsage
	default:
		m.did("update_budget")
		a.hard = hard
		m.w.shrink()
	}
	m.each(fmt.Sprintf("update_budget %s to %d of %s", p.id, hard, dimension), code, func(ctx context.Context, s *subject) error {
		_, err := s.e.UpdateBudget(ctx, operator, p.ref(), core.BudgetUpdate{
			Dimensions: map[string]core.DimensionUpdate{dimension: {Hard: core.LimitChange{Set: true, Value: &hard}}},
		}, engine.AdminAction{})
		return err
	})
}

func (m *machine) closeBudget() {
	if p := m.anyPurse(); p != nil {
		m.closeOf(p)
	}
}

func (m *machine) closeOf(p *purse) {
	p.closed = true
	m.did("close_budget")
	m.each(fmt.Sprintf("close_budget %s", p.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.CloseBudget(ctx, operator, p.ref(), engine.AdminAction{})
		return err
	})
}

func (m *machine) reopenBudget() {
	var closed []*purse
	for _, p := range m.w.purses {
		if p.closed {
			closed = append(closed, p)
		}
	}
	if len(closed) == 0 {
		m.closeBudget() // so that there is one the next time
		return
	}
	m.reopen(pickOne(m.d, "closed", closed...))
}

func (m *machine) reopen(p *purse) {
	p.closed = false
	m.did("reopen_budget")
	m.each(fmt.Sprintf("reopen_budget %s", p.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.ReopenBudget(ctx, operator, p.ref(), engine.AdminAction{})
		return err
	})
}

func (m *machine) resetBudget() {
	if p := m.anyPurse(); p != nil {
		m.resetOf(p)
	}
}

func (m *machine) resetOf(p *purse) {
	m.w.reset(p)
	m.did("reset_budget")
	m.each(fmt.Sprintf("reset_budget %s", p.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.ResetBudget(ctx, operator, p.ref(), engine.AdminAction{})
		return err
	})
}

// deleteBudget is refused while anything depends on it (B5).
func (m *machine) deleteBudget() {
	p := m.anyPurse()
	if p == nil {
		return
	}
	used := m.w.holders(p) > 0
	for _, other := range m.w.purses {
		used = used || other.parent == p
	}
	for _, j := range m.w.jobs {
		used = used || j.status != over && (slices.Contains(j.named, p) || slices.Contains(j.own, p))
	}
	code := base.CodeBudgetInUse
	if !used {
		code = ""
		m.w.purses = slices.DeleteFunc(m.w.purses, func(other *purse) bool { return other == p })
		for _, j := range m.w.jobs {
			j.bereft = j.bereft || slices.Contains(j.lapsed, p)
			j.lapsed = slices.DeleteFunc(slices.Clone(j.lapsed), func(other *purse) bool { return other == p })
		}
		m.did("delete_budget")
	}
	m.tell(fmt.Sprintf("delete_budget %s", p.id), code, func(ctx context.Context, s *subject) error {
		return s.e.DeleteBudget(ctx, operator, p.ref(), engine.AdminAction{})
	})
	m.sweep() // what it kept waiting goes on by follow-up work
	m.serve()
}

// usage draws what is reported, now and then of what only the engine measures (B17).
func (m *machine) usage() map[string]int64 {
	if m.d.rarely("time", 15) {
		return map[string]int64{"tok": 1, core.WallMS: 50}
	}
	return pickOne(m.d, "usage", map[string]int64{"tok": 1}, map[string]int64{"tok": 4}, map[string]int64{"tok": 9, "usd": 1}, map[string]int64{"usd": 5, "other": 2}, map[string]int64{"tok": 40})
}

// told is what of an outcome can be compared.
func verdictOf(o core.UsageOutcome) verdict {
	v := verdict{
		Outcome: o.Outcome, Action: o.Action, Applied: o.Applied, Repeated: o.Repeated, Budget: o.Budget, Dimension: o.Dimension,
		Remaining: orNone(o.Remaining),
	}
	switch o.Outcome {
	case core.UsageHardBreach:
		v.Breaches = len(o.All)
	case core.UsageSoftBreach:
		v.Softer = len(o.All)
	}
	return v
}

// remembered is what a repeat under a dedup key is answered with (B26).
func remembered(known map[string]receipt, key, print string) (v verdict, code base.Code, found bool) {
	r, found := known[key]
	switch {
	case !found || key == "":
		return v, "", false
	case r.print != print:
		return v, base.CodeIdempotencyConflict, true
	default:
		v = r.told
		v.Repeated = true
		return v, "", true
	}
}

// report is report_usage, now and then sent again (B19..B23, B26..B28).
func (m *machine) report() {
	j := m.worker()
	if j == nil {
		return
	}
	if j.late && j.bereft {
		return // its budget is gone: what is to be told then is not written anywhere
	}
	r := engine.UsageRequest{Usage: m.usage(), DedupKey: pickOne(m.d, "dedup key", "", "", "d1", "d2"), AlreadySpent: m.d.rarely("already spent", 3)}
	if m.d.rarely("too much", 3) {
		r.Usage = map[string]int64{"tok": 200}
	}
	m.reportOf(j, r)
	if (j.status == runs || j.late) && m.d.rarely("again", 3) {
		m.reportOf(j, r)
	}
	if j.asked != nil && j.status == suspends && !m.d.rarely("no decision yet", 3) {
		m.resume()
	}
}

func (m *machine) reportOf(j *job, r engine.UsageRequest) {
	print := fmt.Sprint(r.Usage, r.AlreadySpent)
	want, code, found := remembered(j.receipts, r.DedupKey, print)
	if _, named := r.Usage[core.WallMS]; named {
		code, found = base.CodeReservedDimension, true
	}
	if !found {
		b := booking{w: m.w, j: j, lines: j.charged, holds: !j.late, usage: r.Usage, spent: r.AlreadySpent}
		if j.late {
			b.lines = j.lapsed
			m.did("a late report")
		}
		var hard []breach
		want, hard = b.settle()
		want.Action = m.w.act(j, hard, !j.late)
		if want.Applied && r.DedupKey != "" {
			j.receipts[r.DedupKey] = receipt{print, want}
		}
		m.did("report_usage")
		m.did("report: " + want.Outcome + " " + want.Action)
	} else if code == "" {
		m.did("a report again")
	}
	m.each(fmt.Sprintf("report_usage of %s %+v", j.id, r), code, func(ctx context.Context, s *subject) error {
		r.Fence = j.fences[s.name]
		got, err := s.e.ReportUsage(ctx, client, j.id.Given(), r)
		if err == nil {
			m.same(s, "report_usage", want, verdictOf(got))
		}
		return err
	})
}

// charge is charge, and with a job record_spend (B24).
func (m *machine) charge() {
	p := m.anyPurse()
	if p == nil {
		return
	}
	r := engine.ChargeRequest{Usage: m.usage(), DedupKey: pickOne(m.d, "dedup key", "", "", "d1"), AlreadySpent: m.d.rarely("already spent", 3)}
	var j *job
	if m.d.rarely("record_spend", 3) {
		if j = m.some(waits, runs, over); j != nil {
			given := j.id.Given()
			r.Execution = &given
		}
	}
	m.chargeTo(p, j, r)
}

func (m *machine) chargeTo(p *purse, j *job, r engine.ChargeRequest) {
	print := fmt.Sprint(r.Usage, r.AlreadySpent, r.Execution)
	want, code, found := remembered(p.receipts, r.DedupKey, print)
	for name := range r.Usage {
		if p.amounts[name] == nil {
			code, found = base.CodeUnknownDimension, true
		}
	}
	if _, named := r.Usage[core.WallMS]; named {
		code, found = base.CodeReservedDimension, true
	}
	if !found && slices.ContainsFunc(p.line(), func(p *purse) bool { return p.closed }) {
		code, found = base.CodeBudgetClosed, true
	}
	if !found {
		b := booking{w: m.w, j: j, lines: p.line(), usage: r.Usage, spent: r.AlreadySpent}
		var hard []breach
		want, hard = b.settle()
		want.Action = m.w.act(j, hard, true)
		if want.Applied && r.DedupKey != "" {
			p.receipts[r.DedupKey] = receipt{print, want}
		}
		m.did("charge")
	}
	m.each(fmt.Sprintf("charge %s %+v", p.id, r), code, func(ctx context.Context, s *subject) error {
		got, err := s.e.Charge(ctx, client, p.ref(), r)
		if err == nil {
			m.same(s, "charge", want, verdictOf(got))
		}
		return err
	})
}

// spentOf lists the budgets whose ledger knows the job.
func (m *machine) spentOf(j *job) (all []*purse) {
	for _, p := range m.w.purses {
		if len(p.ledger[j.id.UUID]) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// releaseBudget gives back what a job has used (B25, BI7).
func (m *machine) releaseBudget() {
	p, j := m.anyPurse(), m.some(waits, runs, over, suspends)
	if p == nil || j == nil {
		return
	}
	if spent := m.spentOf(j); len(spent) > 0 && !m.d.rarely("any", 4) {
		p = pickOne(m.d, "used", spent...)
	}
	for range 2 { // the second time does nothing
		want := map[string]int64{}
		for name, n := range m.w.release(p, j) {
			if n > 0 {
				want[name] = n
				m.did("release_budget")
			}
		}
		m.each(fmt.Sprintf("release_budget %s of %s", p.id, j.id), "", func(ctx context.Context, s *subject) error {
			got, err := s.e.ReleaseBudget(ctx, operator, p.ref(), j.id.Given(), engine.AdminAction{})
			m.same(s, "release_budget", want, orNone(got))
			return err
		})
	}
}
